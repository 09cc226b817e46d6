"""The errors of this library that callers may want to tell from others."""

from __future__ import annotations


class MDPFileError(ValueError):
    """A file that should hold an MDP is damaged, of another kind, of a newer version, or unsafe to read."""
