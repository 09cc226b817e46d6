"""The suite: environments with a rare reward, by their Gymnasium ids; no arm is told anything else about them.

Three of them chose the settings of starts and learning (see docs/starts.md) and are marked; the rest is run once with
what was frozen. MiniGrids have the layout of the run's seed, their own observation and their own time limit, and pay 1
for success.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import curious_explorer  # noqa: F401  (registers the zoo)

Env = gymnasium.Env[Any, Any]
CHOSE_SETTINGS = ("KeyCorridorS3R1", "MultiRoom-N4", "deep-sea-20")


class GoalOnly(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays 1 where the episode terminates, which in these environments is the goal, and nothing anywhere else."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, float(terminated), terminated, truncated, info


class Press(gymnasium.Env[Any, Any]):
    """Two dials to be turned to a place where a press pays and ends the episode, which leaves what is seen as it was.

    Args:
        submit: whether a press anywhere else ends the episode, too, and pays nothing.
        slip: how often another action than the one that is asked for is taken, a press aside.
    """

    PLACES, PAYS = 12, (10, 9)

    def __init__(self, submit: bool = False, slip: float = 0.0) -> None:
        self._submit, self._slip = submit, slip
        self.observation_space = spaces.Box(0, self.PLACES - 1, (2,), np.int64)
        self.action_space = spaces.Discrete(5)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._dials = [0, 0]
        return np.array(self._dials), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.np_random.random() < self._slip:
            action = self.np_random.integers(4)
        if action == 4:
            right = tuple(self._dials) == self.PAYS
            return np.array(self._dials), float(right), right or self._submit, False, {}
        dial, back = divmod(int(action), 2)
        self._dials[dial] = min(max(self._dials[dial] + (-1 if back else 1), 0), self.PLACES - 1)
        return np.array(self._dials), 0.0, False, False, {}


def _goal_only(name: str = "", **_: Any) -> Env:
    return GoalOnly(gymnasium.make(name, disable_env_checker=True))


class Success(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays 1 where anything is paid: how MiniGrid pays less for longer ways differs from task to task."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(float(reward) > 0.0), terminated, truncated, info


SEVEN_ROOMS = "MiniGrid-MultiRoom-N7-S8-v0"
"""Which the literature uses and MiniGrid does not list."""


def _success(name: str = "", **_: Any) -> Env:
    import minigrid  # noqa: F401

    if SEVEN_ROOMS not in gymnasium.registry:
        rooms = {"minNumRooms": 7, "maxNumRooms": 7, "maxRoomSize": 8}
        gymnasium.register(SEVEN_ROOMS, entry_point="minigrid.envs:MultiRoomEnv", kwargs=rooms)
    return Success(gymnasium.make(f"MiniGrid-{name}", disable_env_checker=True))


def _timed(name: str = "", steps: int | None = None, **arguments: Any) -> Env:
    made = gymnasium.make(f"curious_explorer/{name}-v0", disable_env_checker=True, **arguments)
    return TimeLimit(made, arguments["size"] if steps is None else steps)


gymnasium.register("studies/Press-v0", f"{__name__}:Press", max_episode_steps=60)
gymnasium.register("studies/MountainCarGoal-v0", _goal_only, kwargs={"name": "MountainCar-v0"})
gymnasium.register("studies/Grid-v0", _success)
gymnasium.register("studies/AcrobotGoal-v0", _goal_only, kwargs={"name": "Acrobot-v1"})
SHUFFLED = {"steps": 40, "depth": 20, "permute_actions": 0}
gymnasium.register("studies/Lock-v0", _timed, kwargs={"name": "CombinationLock", **SHUFFLED})
gymnasium.register("studies/Crossroads-v0", _timed, kwargs={"name": "CrossroadTraps", **SHUFFLED})
gymnasium.register("studies/DeepSea-v0", _timed, kwargs={"name": "DeepSea"})

HERE = "benchmarks.gym_studies.tasks"
SAMPLES, CORE_SAMPLES, PRESS_SAMPLES = 300_000, 120_000, 60_000
"""In all, for every arm, unless another number is asked for; fewer where rivals run, for the time that they take."""


class Task(NamedTuple):
    """One task."""

    environment: str
    layouts: bool = False
    """Whether it draws layouts; then a run has the layout of its seed."""
    best: float = 1.0
    """The return that counts as the best; 1 in MiniGrids, which pay 1 for success here."""
    samples: int = SAMPLES
    """What every arm is given, unless another number is asked for."""


def _grid(name: str, version: int = 0, samples: int = SAMPLES) -> Task:
    return Task(f"{HERE}:studies/Grid-v0?name={name}-v{version}", layouts=True, samples=samples)


def _core(name: str, version: int = 0) -> Task:
    return _grid(name, version, CORE_SAMPLES)


TASKS: dict[str, Task] = {
    "KeyCorridorS3R1": _core("KeyCorridorS3R1"),
    "KeyCorridorS3R3": _core("KeyCorridorS3R3"),
    "KeyCorridorS4R3": _grid("KeyCorridorS4R3"),
    "KeyCorridorS6R3": _grid("KeyCorridorS6R3", samples=1_000_000),
    "MultiRoom-N4": _core("MultiRoom-N4-S5", 1),
    "MultiRoom-N6": _core("MultiRoom-N6"),
    "MultiRoom-N7-S8": _grid("MultiRoom-N7-S8"),
    "DoorKey-8x8": _core("DoorKey-8x8"),
    "DoorKey-16x16": _grid("DoorKey-16x16"),
    "UnlockPickup": _core("UnlockPickup"),
    "BlockedUnlockPickup": _grid("BlockedUnlockPickup"),
    "ObstructedMaze-1Dlh": _core("ObstructedMaze-1Dlh"),
    "ObstructedMaze-1Dlhb": _grid("ObstructedMaze-1Dlhb"),
    "ObstructedMaze-2Dlh": _grid("ObstructedMaze-2Dlh"),
    "mountain-car-goal": Task(f"{HERE}:studies/MountainCarGoal-v0", samples=CORE_SAMPLES),
    "acrobot-goal": Task(f"{HERE}:studies/AcrobotGoal-v0"),
    "deep-sea-20": Task(f"{HERE}:studies/DeepSea-v0?size=20", best=0.99, samples=CORE_SAMPLES),
    "deep-sea-50": Task(f"{HERE}:studies/DeepSea-v0?size=50", best=0.99),
    "lock-20": Task(f"{HERE}:studies/Lock-v0"),
    "crossroads-20": Task(f"{HERE}:studies/Crossroads-v0"),
    "frozen-lake-8x8": Task("FrozenLake8x8-v1", best=0.86),
    "taxi": Task("Taxi-v4", best=7.9),
    "cart-pole": Task("CartPole-v1", best=500.0, samples=CORE_SAMPLES),
    "frozen-lake-4x4": Task("FrozenLake-v1", best=0.74, samples=CORE_SAMPLES),
    "empty-8x8": _core("Empty-8x8"),
    "door-key-5x5": _core("DoorKey-5x5"),
    "press": Task(f"{HERE}:studies/Press-v0", samples=PRESS_SAMPLES),
    "submit": Task(f"{HERE}:studies/Press-v0?submit=true", samples=PRESS_SAMPLES),
    "press-slip": Task(f"{HERE}:studies/Press-v0?slip=0.1", samples=PRESS_SAMPLES),
}
CORE = (
    "KeyCorridorS3R3", "MultiRoom-N4", "MultiRoom-N6", "DoorKey-8x8", "UnlockPickup", "ObstructedMaze-1Dlh",
    "mountain-car-goal", "deep-sea-20",
)  # fmt: skip
"""Where rivals run."""
PLAIN_SOLVES = ("cart-pole", "frozen-lake-4x4", "empty-8x8", "door-key-5x5")
"""Where plain PPO meets the reward by itself, so that nothing is to be won: how much is lost is measured there."""
PRESSES = ("press", "submit", "press-slip")
"""Where the step that pays changes nothing that is seen."""
SUITE = tuple(name for name in TASKS if name not in (*PLAIN_SOLVES, *PRESSES, "KeyCorridorS3R1"))
"""What is to be solved."""
GROUPS = {"suite": SUITE, "core": CORE, "plain-solves": PLAIN_SOLVES, "presses": PRESSES}
