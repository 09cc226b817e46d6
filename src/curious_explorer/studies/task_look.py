"""A first look at a task by random actions: what it pays, how long it lasts, whether layouts change.

What follows from it is in `TaskLook`: whether a plain learner has something to learn from, what a step costs whatever
it leads to, and by how much rewards are to be scaled. Every step is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.agents import LONGEST_EPISODE
from curious_explorer.gym.cells import Env
from curious_explorer.gym.checked_env import CheckedEnv
from curious_explorer.gym.network_inputs import parts_of
from curious_explorer.gym.time_limits import time_limit_of
from curious_explorer.storage import check_types

OFTEN = 0.05
"""Where so large a share of steps pays something else than its action usually does, there is a reward nearly
everywhere."""
LAYOUT_RESETS = 10
DECISIONS, MOST_HELD = 125, 16
LASTING, LEAST_LONGEST, LONGEST_SHARE = 10, 100, 0.01
"""Without a time limit, episodes are cut off after so many times what the longest of random actions lasted; none takes
more than a hundredth of all samples, if that is more than the least."""
SAME = 1e-6
"""Rewards that differ by less than this share of the largest are the same."""


@dataclass(frozen=True, kw_only=True)
class TaskLook:
    """What was found out by looking; plain data, so that it can be stored."""

    steps: int
    episodes: int
    time_limit: int | None
    longest: int
    """The most steps that an episode is taken to last: its time limit, or many times what random actions lasted."""
    threshold: float | None
    """The mean return from which the environment's registration calls it solved, if it says so."""
    layouts_change: bool
    """Whether every reset seems to draw another layout."""
    price: float
    """The most that an action pays as a rule, whatever it leads to."""
    often: float
    """The share of steps that paid something else than their action does as a rule."""
    best_return: float
    """Of an episode of random actions."""
    spread: float
    """The standard deviation of discounted returns from steps, gamma 0.99."""
    positive: bool
    """Whether any step paid more than zero."""

    @property
    def pays_all_along(self) -> bool:
        """Whether there is something to learn from nearly everywhere."""
        return self.often > OFTEN or self.price > 0.0

    @property
    def hold(self) -> int:
        """For how many steps to hold an action so that an episode has some `DECISIONS` of them; a power of two."""
        return 1 << max(0, int(math.log2(min(self.longest / DECISIONS, MOST_HELD)))) if self.longest > DECISIONS else 1

    @property
    def paid_back(self) -> float:
        """What every step costs, where that is the same for all of them: it is paid back, so that what pays shows."""
        return 0.0 if self.pays_all_along else min(0.0, self.price)

    def tells_something(self, reward: float, terminated: bool) -> bool:
        """Whether a step is one that a learner can learn from: more than the price, or the end of costs."""
        more = reward > self.price + SAME * max(1.0, abs(self.price))
        return more or (terminated and self.price < 0.0)


def look_at_task(make: Callable[[], Env], steps: int, seed: int, *, layouts_change: bool, samples: int) -> TaskLook:
    """Look for so many steps, of all samples of a run."""
    env = CheckedEnv(make())
    env.action_space.seed(seed)
    choices = ActionSet.of(env.action_space).choices
    generator = np.random.default_rng(seed)
    paid: list[list[float]] = [[] for _ in choices]
    episodes: list[list[float]] = []
    longest = time_limit_of(env)
    threshold = None if env.spec is None else env.spec.reward_threshold
    ended = True
    for _ in range(steps):
        if ended or len(episodes[-1]) >= (longest or LONGEST_EPISODE):
            env.reset(seed=seed + len(episodes))
            episodes.append([])
        number = int(generator.integers(len(choices)))
        _, reward, terminated, truncated, _ = env.step(choices[number])
        ended = bool(terminated or truncated)
        paid[number].append(float(reward))
        episodes[-1].append(float(reward))
    env.close()
    most = min(LONGEST_EPISODE, int(LONGEST_SHARE * samples))
    largest = max((abs(each) for of_action in paid for each in of_action), default=0.0)
    usual = [float(np.median(each)) for each in paid if each]
    other = sum(
        int((np.abs(np.array(each) - np.median(each)) > SAME * max(1.0, largest)).sum()) for each in paid if each
    )
    return TaskLook(
        steps=steps,
        episodes=len(episodes),
        time_limit=longest,
        longest=longest or max(LEAST_LONGEST, min(LASTING * max(map(len, episodes)), most)),
        threshold=None if threshold is None else float(threshold),
        layouts_change=layouts_change,
        price=max(usual),
        often=other / steps,
        best_return=max(map(math.fsum, episodes)),
        spread=float(np.std(np.concatenate([_discounted(each) for each in episodes]))),
        positive=largest > 0.0 and max(max(each, default=0.0) for each in paid) > 0.0,
    )


def _discounted(rewards: list[float]) -> np.ndarray[Any, Any]:
    returns, following = np.zeros(len(rewards)), 0.0
    for place in range(len(rewards) - 1, -1, -1):
        following = returns[place] = rewards[place] + 0.99 * following
    return returns


def layouts_change(make: Callable[[], Env]) -> bool:
    """Whether resets draw layouts: symbols that differ from reset to reset, and not by the seed's accident.

    A single number is a state by itself, and numbers that vary are starts; a layout shows where an observation of
    whole numbers begins otherwise nearly every time. An environment that keeps its ``grid`` is asked for that, too.
    """
    env = CheckedEnv(make())
    symbols = [part for part in parts_of(env.observation_space) if _is_symbolic(part.space)]
    whole = isinstance(env.observation_space, spaces.Discrete) or not symbols
    seen = set()
    for number in range(LAYOUT_RESETS):
        observation, _ = env.reset(seed=number)
        grid: Any = getattr(env.unwrapped, "grid", None)
        content = [grid.encode().tobytes()] if hasattr(grid, "encode") else []
        if not whole:
            content += [np.asarray(part.of(observation)).tobytes() for part in symbols]
        seen.add(tuple(content))
    env.close()
    return len(seen) > LAYOUT_RESETS // 2


def _is_symbolic(space: gymnasium.Space[Any]) -> bool:
    return isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)) or (
        isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer)
    )


class RewardLog:
    """What a learner has met while it learned: episodes, those with something to learn from, and the best return."""

    def __init__(self, look: TaskLook) -> None:
        self._look = look
        self.steps = 0
        self.first: int | None = None
        """After how many steps there was something to learn from."""
        self.best: float | None = None
        self.told: list[bool] = []
        """Of every episode that ended, whether it had something to learn from."""

    def around(self, env: Env) -> Env:
        """The environment, watched."""
        return _Watched(env, self, self._look)

    def recent_share(self, episodes: int = 100) -> float:
        """The share of the last episodes that had something to learn from."""
        return float(np.mean(self.told[-episodes:])) if self.told else 0.0

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {"steps": self.steps, "first": self.first, "best": self.best, "told": [int(each) for each in self.told]}

    def restore(self, state: dict[str, Any]) -> None:
        """Know what `state` said; a ``ValueError`` says what cannot be."""
        check_types(state, {"steps": (int,), "first": (int, NoneType), "best": (int, float, NoneType), "told": (list,)})
        self.steps, self.first, self.best = state["steps"], state["first"], state["best"]
        self.told = [bool(each) for each in state["told"]]


class _Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose rewards are noted down."""

    def __init__(self, env: Env, log: RewardLog, look: TaskLook) -> None:
        super().__init__(env)
        self._log, self._look = log, look
        self._total, self._told = 0.0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._total, self._told = 0.0, False
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Take one action, and note what it pays."""
        event = self.env.step(action)
        _, reward, terminated, truncated, _ = event
        log = self._log
        log.steps += 1
        self._total += float(reward)
        if not self._told and self._look.tells_something(float(reward), bool(terminated)):
            self._told = True
            log.first = log.steps if log.first is None else log.first
        if terminated or truncated:
            log.told.append(self._told)
            log.best = self._total if log.best is None else max(log.best, self._total)
        return event
