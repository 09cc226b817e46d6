"""A look around before anything is explored, for cells that are cut where observations fall."""

from __future__ import annotations

from typing import Any

import numpy as np

from curious_explorer.gym.actors import RandomStream, TableActor
from curious_explorer.gym.cells import Cells, Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.single_environment import SingleEnvironment


class _Memory(Cells):
    """One cell for everything, which keeps what it was shown."""

    count = 1

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def index(self, observation: Any, env: Env | None) -> int:
        self.seen.append(np.array(observation))
        return 0

    def description(self) -> dict[str, Any]:
        return {}


def random_observations(
    env: Env, discretisation: Discretisation, steps: int, draws: RandomStream, seed: int
) -> list[Any]:
    """What an agent sees that acts at random for exactly so many steps, time limits left out."""
    memory_ = _Memory()
    lane = SingleEnvironment(env, discretisation._replace(cells=memory_))
    choices = discretisation.action_set.choices
    anyhow = TableActor(np.full((1, len(choices)), 1.0 / len(choices)), choices)
    lane.reset(seed=seed)
    while lane.steps < steps:
        if lane.terminated or lane.stuck:
            lane.reset()
        lane.walk(anyhow, steps - lane.steps, draws)
    return memory_.seen
