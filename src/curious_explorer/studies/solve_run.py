"""One run of `solve`: its folder, what was asked for, the results of stages that are done, and what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from curious_explorer.callbacks.events import Callback
from curious_explorer.gym.cells import Env
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.flat_actions import with_flat_actions
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.studies.solve_budget import Budget
from curious_explorer.studies.solve_files import STAGES, STAGES_FILE, keep, kept_stages
from curious_explorer.studies.solve_settings import SolveSettings


class Progress(NamedTuple):
    """How far it is, for a line on a terminal."""

    stage: str
    samples: int
    words: str


@dataclass(kw_only=True)
class SolveRun:
    """A run, and whom to tell of it."""

    folder: Path
    settings: SolveSettings
    callback: Any
    """Of Stable-Baselines3."""
    watch: Callback
    tell: Callable[[str], None]
    progress: Callable[[Progress], None]
    stages: dict[str, Any] = field(default_factory=dict)

    def read_stages(self) -> bool:
        """Take over what an earlier call has kept; returns whether there is anything."""
        found = kept_stages(self.folder)
        self.stages = found or {}
        return found is not None

    def keep(self, stage: str, result: dict[str, Any]) -> None:
        """Keep the result of a stage."""
        self.stages[stage] = result
        keep(self.folder, STAGES_FILE, STAGES, "stages", self.stages)

    @property
    def used(self) -> int:
        """All samples of stages that are done."""
        return sum(int(stage.get("samples", 0)) for stage in self.stages.values())

    @property
    def left(self) -> int:
        """How many samples are left."""
        return self.settings.samples - self.used

    @property
    def budget(self) -> Budget:
        """How samples are shared out."""
        return Budget(self.settings.samples, int(self.stages.get("look", {}).get("longest", 0)))

    def make(self) -> Env:
        """The environment, in its layout."""
        layout = self.stages.get("layout", {}).get("layout")
        return with_layout(with_flat_actions(make_by_id(self.settings.environment)), layout)

    @property
    def memory(self) -> int | None:
        """How many earlier contents of observations exploring and what follows from it remember."""
        steps = self.stages.get("memory", {}).get("steps")
        return None if steps is None else int(steps)

    @property
    def success_return(self) -> float:
        """An episode succeeds above this return.

        Zero, where anything pays more. Where steps only cost, what comes to an end succeeds: above the costs of an
        episode that goes on for as long as it may, and above what random actions came to.
        """
        given, look = self.settings.success_return, self.stages["look"]
        if given is not None:
            return given
        if look["positive"] or look["price"] >= 0.0 or self.stages.get("explore", {}).get("positive"):
            return 0.0
        return max(float(look["best_return"]), float(look["price"] * look["longest"]))
