"""What a run of `solve` is asked to do, checked before anything is made or written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from curious_explorer.sb3.algorithms import TRAINABLE
from curious_explorer.validation import check_count, check_name, check_seed

LEAST_SAMPLES = 5_000
"""A look, two updates of a plain learner, and as much again to explore and to learn."""


@dataclass(frozen=True, kw_only=True)
class SolveSettings:
    """What is asked for; everything else follows from the task."""

    environment: str
    samples: int
    seed: int = 0
    algorithm: str | None = None
    """By default PPO, or SAC where actions are numbers and there is a reward nearly everywhere."""
    success_return: float | None = None
    """An episode succeeds above this return; by default above zero, or, where nothing pays more than zero, above the
    best return that random actions met in the look."""
    cells: str | None = None
    """By name, see `named_cells`; chosen by themselves by default."""
    layout: int | None = None
    """The layout of every episode; by default the seed's, where every reset draws another."""

    def __post_init__(self) -> None:
        check_count(self.samples, "samples", least=1)
        if self.samples < LEAST_SAMPLES:
            raise ValueError(
                f"samples is {self.samples:,}, too few for a look, an exploration and a training; the least is "
                f"{LEAST_SAMPLES:,}, and tasks with rare rewards take 100,000 and more"
            )
        check_seed(self.seed)
        if self.layout is not None:
            check_seed(self.layout, "layout")
        if self.algorithm is not None:
            check_name(self.algorithm, TRAINABLE, "algorithm")
        if self.success_return is not None and not math.isfinite(self.success_return):
            raise ValueError(f"success_return is {self.success_return}, expected a finite number")
