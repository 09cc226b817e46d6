"""The errors of this library that callers may want to tell from others."""

from __future__ import annotations


class MissingPackageError(ValueError):
    """A package is not installed that only some parts need; the message says how to get it."""


class MDPFileError(ValueError):
    """A file that should hold an MDP is damaged, of another kind, of a newer version, or unsafe to read."""


class ResetModelError(ValueError):
    """A folder that should hold a reset model does not, or holds one that is damaged or of a newer version."""


class UnreachableStateError(ValueError):
    """A state to start in that was never met, or to which no way is known; the nearest ones are named."""


class ArrivalError(RuntimeError):
    """Roll-ins to a chosen state failed to arrive, as often in a row as they were to be tried."""


class CheckpointError(ValueError):
    """A checkpoint folder is damaged, of a newer version, or belongs to a run with other settings."""


class FolderInUseError(ValueError):
    """Someone else writes in a folder; the message says who."""


class CertificateError(ValueError):
    """A certificate or bound that was asked for cannot be given; it is refused rather than weakened."""


class StudyError(ValueError):
    """A study's output folder is damaged, cannot be written, or belongs to a study with other settings."""


class ObservationError(ValueError):
    """An environment returned an observation that its space does not allow: another shape, NaN, out of range."""


class CellError(ValueError):
    """A map from observations to cells is missing, does not fit, or names a cell outside its range."""


class ActionError(ValueError):
    """An action space has no finite action_set of actions, or the one given does not fit."""


class SnapshotError(RuntimeError):
    """An environment cannot be saved and restored, or does not go on as before when it is."""


class EnvironmentFailureError(RuntimeError):
    """An environment raised while it was reset or stepped; the cause is attached."""


class ExecutorError(ValueError):
    """Jobs cannot be run where they were asked to: no such cluster, not enough of it, or workers that keep dying."""


class BackendError(ValueError):
    """A backend that was asked for cannot be used here: no GPU, no driver for it, a package or memory is missing."""


class DemonstrationError(RuntimeError):
    """There is no way to a reward to demonstrate, or the world is not as it was counted."""


class DatasetError(ValueError):
    """A dataset cannot be written: a folder in the way, no permission, or what was seen does not fit its format."""


class NoRewardWarning(UserWarning):
    """Nothing that was seen pays, so that starts are spread instead of moving with what is learned."""


class UnfinishedEpisodesWarning(UserWarning):
    """Episodes are never finished, so that starts cannot follow what is learned."""


class CellWarning(UserWarning):
    """Cells that tell too much apart: exploration goes on, and can learn little."""
