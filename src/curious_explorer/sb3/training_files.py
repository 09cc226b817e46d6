"""A training on disk.

RUN/training.json             what was asked for
RUN/checkpoint.safetensors    all that the learner knows, and the evaluations so far: one file, replaced in one step
RUN/evaluations.csv, .png     the evaluations, for people
RUN/policy.safetensors        the policy learned last, which acts with NumPy alone (`NetworkPolicy`)

Weights are tensors, everything else is JSON. Nothing is unpickled, ever.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from curious_explorer.errors import CheckpointError
from curious_explorer.optional_packages import require
from curious_explorer.sb3.training_evaluation import Evaluated
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, check_header, parse_strictly, write_atomically

if TYPE_CHECKING:
    from curious_explorer.sb3.training_learner import State

TRAINING = Format("curious-explorer/training", 1)
PROGRESS = Format("curious-explorer/training-progress", 1)
SETTINGS_FILE, CHECKPOINT_FILE, POLICY_FILE = "training.json", "checkpoint.safetensors", "policy.safetensors"
EVALUATIONS = "evaluations"
_PLAIN = "plain_data"
"""The tensor that holds the JSON, as bytes."""


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
        text = bytearray(json.dumps(header, allow_nan=False).encode())
        content = require("safetensors.torch", "sb3").save(
            tensors | {_PLAIN: torch.frombuffer(text, dtype=torch.uint8)}
        )
        write_atomically(self.path / CHECKPOINT_FILE, content)
        self._tell(evaluations)

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

    def _tell(self, evaluations: list[Evaluated]) -> None:
        """The evaluations for people: a table, and a curve."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([Evaluated._fields, *evaluations])
        write_atomically(self.path / f"{EVALUATIONS}.csv", text.getvalue())

    def draw(self, evaluations: list[Evaluated], title: str) -> Path:
        """A picture of the evaluations."""
        from curious_explorer.studies.figures.canvas import PAGE_WIDTH, WITH_CE, new_figure, quiet, save_figure

        figure = new_figure(0.75 * PAGE_WIDTH, 2.8)
        ax = figure.add_subplot()
        ax.plot([e.samples for e in evaluations], [e.mean_return for e in evaluations], color=WITH_CE, marker=".")
        ax.set_xlabel("samples of the training, roll-ins included", fontsize=8)
        ax.set_ylabel("mean return from the start", fontsize=8)
        ax.set_title(title, fontsize=9)
        quiet(ax)
        return save_figure(figure, self.path / EVALUATIONS)[0]
