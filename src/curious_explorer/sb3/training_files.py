"""A training on disk.

RUN/training.json             what was asked for
RUN/checkpoint.safetensors    all that the learner knows, and the evaluations so far: one file, replaced in one step
RUN/evaluations.csv           the evaluations, for people
RUN/policy.safetensors        the policy learned last, which acts with NumPy alone (`NetworkPolicy`)

Weights are tensors, everything else is JSON. Nothing is unpickled, ever.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from curious_explorer.errors import CheckpointError
from curious_explorer.optional_packages import require
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, check_header, parse_strictly, write_atomically

if TYPE_CHECKING:
    from curious_explorer.sb3.training_learner import State

TRAINING = Format("curious-explorer/training", 1)
PROGRESS = Format("curious-explorer/training-progress", 1)
SETTINGS_FILE, CHECKPOINT_FILE, POLICY_FILE = "training.json", "checkpoint.safetensors", "policy.safetensors"
EVALUATIONS_FILE = "evaluations.csv"
_PLAIN = "plain_data"
"""The tensor that holds the JSON, as bytes."""


class Evaluated(NamedTuple):
    """One evaluation, from the environment's own start; its steps are no samples of the training and are told apart."""

    samples: int
    """Every step of the training so far."""
    learning_steps: int
    """Those of them that were not of roll-ins."""
    evaluation_steps: int
    """Steps of this evaluation."""
    mean_return: float
    """Of an episode, not discounted."""
    std_return: float
    mean_length: float


class TrainingFolder:
    """Where a training is kept, and goes on from."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder)

    def claim(self, settings: TrainingSettings, starts: dict[str, str]) -> TrainingSettings:
        """Make the folder this training's, or refuse one that is something else's; returns the settings to go on with.

        ``starts`` says where episodes begin. Only the number of samples may grow from one call to the
        next: then the training goes on.
        """
        folder = RunFolder(self.path, SETTINGS_FILE, TRAINING, "training", CheckpointError)
        every = settings.interval
        if settings.evaluate_every is None and folder.claimed:
            stored = folder.settings().get("evaluate_every")
            every = stored if isinstance(stored, int) else every
        settings = replace(settings, evaluate_every=every)
        folder.claim(asdict(settings) | starts, growing=("samples",))
        return settings

    def save(self, state: State, evaluations: list[Evaluated]) -> None:
        """Keep where the training stands."""
        import torch

        tensors, plain = state
        header = {
            "format": PROGRESS.name,
            "version": PROGRESS.version,
            "learner": plain,
            "evaluations": [list(evaluated) for evaluated in evaluations],
        }
        plain_data = bytearray(json.dumps(header, allow_nan=False).encode())
        content = require("safetensors.torch", "sb3").save(
            tensors | {_PLAIN: torch.frombuffer(plain_data, dtype=torch.uint8)}
        )
        write_atomically(self.path / CHECKPOINT_FILE, content)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([Evaluated._fields, *evaluations])
        write_atomically(self.path / EVALUATIONS_FILE, text.getvalue())

    def load(self) -> tuple[State, list[Evaluated]] | None:
        """Where the training stands; None if nothing was saved yet."""
        path = self.path / CHECKPOINT_FILE
        if not path.is_file():
            return None
        storing = require("safetensors.torch", "sb3")
        try:
            tensors = storing.load(path.read_bytes())
            plain = parse_strictly(tensors.pop(_PLAIN).numpy().tobytes())
            header = check_header(plain, PROGRESS, {"learner", "evaluations"})
            return (tensors, header["learner"]), [Evaluated(*row) for row in header["evaluations"]]
        except (require("safetensors", "sb3").SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
            raise CheckpointError(
                f"{path} cannot be read as a checkpoint of a training: {error}; delete it to train from the beginning"
            ) from error
