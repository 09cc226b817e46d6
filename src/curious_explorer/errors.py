"""The errors of this library that callers may want to tell from others."""

from __future__ import annotations


class MDPFileError(ValueError):
    """A file that should hold an MDP is damaged, of another kind, of a newer version, or unsafe to read."""


class ResetModelError(ValueError):
    """A folder that should hold a reset model does not, or holds one that is damaged or of a newer version."""


class CheckpointError(ValueError):
    """A checkpoint folder is damaged, of a newer version, or belongs to a run with other settings."""


class CertificateError(ValueError):
    """A certificate or bound that was asked for cannot be given; it is refused rather than weakened."""


class StudyError(ValueError):
    """A study's output folder is damaged, cannot be written, or belongs to a study with other settings."""
