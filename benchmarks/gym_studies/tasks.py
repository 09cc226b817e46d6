"""The tasks: environments with a rare reward, how each is explored, and how PPO is set for it.

What a learner gets is the environment that ``make`` returns, which is also the one that is explored; ``view`` puts
around it whatever only the network needs (one-hot or flattened observations). All arms use the same settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

import curious_explorer  # noqa: F401  (registers the combination lock)
from curious_explorer.explorers.thresholds import constant
from curious_explorer.explorers.visits import OccupancyVisits, Visits
from curious_explorer.gym.cells import Cells, DiscreteCells, FunctionCells, GridCells, MiniGridCells
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.optimizer import Optimizer

Env = gymnasium.Env[Any, Any]

WEIGHTINGS = {"explored": "spread", "averaged": "average"}
"""The arms that explore first, and how the rounds are weighed that episodes begin from."""


class GoalOnly(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays 1 where the episode terminates, which in these environments is the goal, and nothing anywhere else."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, float(terminated), terminated, truncated, info


class OneHot(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A `Discrete` observation as a row of zeros with a one in it."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, gymnasium.spaces.Discrete)
        self._size = int(env.observation_space.n)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (self._size,), np.float32)

    def observation(self, observation: Any) -> Any:
        row = np.zeros(self._size, dtype=np.float32)
        row[int(observation)] = 1.0
        return row


class OneLayout(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MiniGrid that is the same in every episode, as Algorithm 2's one start has it, seen as symbols.

    An observation is where the agent is and looks, what it carries, and how the doors are, one number for each fact.
    MiniGrid's own, an image of what the agent sees, takes ten times as long to make as all the rest of a step, so it
    is not made.
    """

    def __init__(self, env: Env, layout: int) -> None:
        super().__init__(env)
        self._layout = layout
        env.reset(seed=layout)
        self._grid = cast(Any, env.unwrapped)
        self._grid.gen_obs = self._symbols
        size = len(self._symbols())
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (size,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=self._layout, options=options)

    def _symbols(self) -> Any:
        grid = self._grid
        carried = None if grid.carrying is None else grid.carrying.type
        facts = [*_one_of(int(grid.agent_pos[0]), grid.width), *_one_of(int(grid.agent_pos[1]), grid.height)]
        facts += [*_one_of(int(grid.agent_dir), 4), carried == "key", carried == "ball"]
        for thing in grid.grid.grid:
            if thing is not None and thing.type == "door":
                facts += [thing.is_open, thing.is_locked]
        return np.array(facts, dtype=np.float32)


def _one_of(place: int, size: int) -> list[float]:
    return [float(number == place) for number in range(size)]


@dataclass(frozen=True)
class Task:
    """One task; see the module."""

    name: str
    make: Callable[[int], Env]
    """The environment of a seed: with the learner's time limit, and one layout where layouts are random."""
    cells: Callable[[], Cells]
    optimizer: Callable[[], Optimizer]
    """What learns to reach poorly visited cells."""
    exploration: dict[str, Any]
    """Arguments of `explore`."""
    total: int
    """Samples in all, exploration and roll-ins included; the same for every arm."""
    best: float
    """The achievable return."""
    gamma: float = 0.99
    limit: int | None = None
    """Where episodes from explored resets are cut off in training: short ones see more resets. Whoever begins at the
    start needs, and has, the environment's own limit, which also holds wherever a policy is measured."""
    view: Callable[[Env], Env] = lambda env: env
    ppo: dict[str, Any] = field(default_factory=dict)
    note: str = ""


PPO_SETTINGS: dict[str, Any] = {
    "n_steps": 256,  # times 8 environments
    "batch_size": 512,
    "n_epochs": 6,
    "learning_rate": 1e-3,
    "gae_lambda": 0.95,
    # Until a reward has come back to a state, noise pushes its actions about; this keeps them open so long. With 0.01
    # one seed in five of DoorKey, MultiRoom and Acrobot settled on a wrong habit from explored resets.
    "ent_coef": 0.03,
}


def _occupancy(episodes: int) -> Visits:
    return OccupancyVisits(episodes)


def _mountain_car(seed: int) -> Env:
    return GoalOnly(gymnasium.make("MountainCar-v0", disable_env_checker=True))


def _mountain_car_continuous(seed: int) -> Env:
    return gymnasium.make("MountainCarContinuous-v0", disable_env_checker=True)


def _acrobot(seed: int) -> Env:
    return GoalOnly(gymnasium.make("Acrobot-v1", disable_env_checker=True))


def acrobot_cell(observation: Any) -> int:
    """Both angles in 12 steps, both speeds in 3: a grid over what the six numbers mean."""
    first = math.atan2(observation[1], observation[0])
    second = math.atan2(observation[3], observation[2])
    places = [min(11, int((angle + math.pi) / (2.0 * math.pi) * 12.0)) for angle in (first, second)]
    speeds = [int(np.digitize(observation[4 + i], edges)) for i, edges in enumerate(((-2.0, 2.0), (-3.0, 3.0)))]
    return ((places[0] * 12 + places[1]) * 3 + speeds[0]) * 3 + speeds[1]


def _of_the_paper(name: str, environment: str, states: int, *, total: int, gamma: float, entropy: float) -> Task:
    """One of the paper's problems at depth 20, shown to a network as one-hot observations.

    States that no reward has come back to yet are pushed about by noise, and the bonus for entropy is what keeps their
    actions open until it has: on the crossroads, where one wrong step loses the way, it has to be large.
    """

    def make(seed: int) -> Env:
        return TimeLimit(gymnasium.make(f"curious_explorer/{environment}-v0", depth=20, permute_actions=seed), 40)

    return Task(
        name,
        make,
        lambda: DiscreteCells(states),
        ModelBased,
        {"gamma": 0.95, "rounds": 20, "visits": _occupancy(20)},
        total=total,
        best=1.0,
        gamma=gamma,
        limit=10,
        view=OneHot,
        ppo={"learning_rate": 5e-4, "n_epochs": 8, "batch_size": 256, "ent_coef": entropy},
        note="depth 20, one-hot observations, 40 steps",
    )


def _grid(name: str, environment: str, limit: int, *, rounds: int, total: int) -> Task:
    """A MiniGrid of one layout a seed. Nothing in it is random, so one try makes a pair of cell and action known."""

    def make(seed: int) -> Env:
        import minigrid  # noqa: F401  (registers the environments)

        return GoalOnly(OneLayout(gymnasium.make(environment, disable_env_checker=True), seed))

    return Task(
        name,
        make,
        lambda: MiniGridCells(5_000),
        lambda: ModelBased(known_after=1),
        {"gamma": 0.97, "rounds": rounds, "budget": 4_000, "visits": _occupancy(15), "thresholds": constant(1e-4)},
        total=total,
        best=1.0,
        limit=60,
        note=f"one layout a seed, symbols, 1 at the goal and 0 elsewhere, {limit} steps",
    )


TASKS = {
    task.name: task
    for task in (
        _of_the_paper("lock-20", "CombinationLock", 64, total=300_000, gamma=0.99, entropy=0.03),
        _of_the_paper("crossroads-20", "CrossroadTraps", 21, total=300_000, gamma=0.95, entropy=0.1),
        Task(
            "mountain-car-goal",
            _mountain_car,
            lambda: GridCells(20, [-1.2, -0.07], [0.6, 0.07]),
            ModelBased,
            {"gamma": 0.99, "rounds": 12, "budget": 10_000, "visits": _occupancy(20)},
            total=600_000,
            best=1.0,
            limit=60,
            ppo={"learning_rate": 3e-4, "n_epochs": 10, "batch_size": 64, "ent_coef": 0.0},  # the library's own
            note="MountainCar, 1 at the goal and 0 elsewhere, 200 steps",
        ),
        Task(
            "mountain-car-continuous",
            _mountain_car_continuous,
            lambda: GridCells(20, [-1.2, -0.07], [0.6, 0.07]),
            ModelBased,
            {"gamma": 0.99, "rounds": 6, "budget": 10_000, "visits": _occupancy(20)},
            total=300_000,
            best=100.0,
            ppo={"ent_coef": 0.01},  # a Gaussian's entropy has no bound
            note="MountainCarContinuous with its own reward, 999 steps",
        ),
        Task(
            "acrobot-goal",
            _acrobot,
            lambda: FunctionCells(acrobot_cell, 1296),
            ModelBased,
            {"gamma": 0.99, "rounds": 10, "budget": 10_000, "visits": _occupancy(20)},
            total=500_000,
            best=1.0,
            limit=150,
            note="Acrobot, 1 at the goal and 0 elsewhere, 500 steps",
        ),
        _grid("door-key-8x8", "MiniGrid-DoorKey-8x8-v0", 640, rounds=25, total=500_000),
        _grid("multi-room-n4", "MiniGrid-MultiRoom-N4-S5-v1", 80, rounds=20, total=800_000),
    )
}
