"""A look around before anything is explored, for cells that are cut where observations fall."""

from __future__ import annotations

from typing import Any

import numpy as np

from curious_explorer.sampling.gym.actors import Draws, TableActor
from curious_explorer.sampling.gym.cells import Cells, Env
from curious_explorer.sampling.gym.senses import Senses
from curious_explorer.sampling.gym.solo import SoloLane


class _Notebook(Cells):
    """One cell for everything, which keeps what it was shown."""

    count = 1

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def index(self, observation: Any, env: Env | None) -> int:
        self.seen.append(np.array(observation))
        return 0

    def description(self) -> dict[str, Any]:
        return {}


def random_observations(env: Env, senses: Senses, steps: int, draws: Draws, seed: int) -> list[Any]:
    """What an agent sees that acts at random for exactly so many steps, time limits left out."""
    notebook = _Notebook()
    lane = SoloLane(env, senses._replace(cells=notebook))
    choices = senses.menu.choices
    anyhow = TableActor(np.full((1, len(choices)), 1.0 / len(choices)), choices)
    lane.reset(seed=seed)
    while lane.steps < steps:
        if lane.terminated or lane.stuck:
            lane.reset()
        lane.walk(anyhow, steps - lane.steps, draws)
    return notebook.seen
