"""The environments that Stable-Baselines3 learns in: gymnasium wrappers, one on another, in a `DummyVecEnv`.

From the inside out:

- the environment; a world of states is one whose observations are the states' numbers (`WorldEnv`)
- `MeteredEnv`: every step is paid for, those of roll-ins too, so that training stops at its budget to the step
- `RollInWrapper`: episodes begin where a reset model's roll-ins end; starts that move are told how episodes went
- `CheckedEnv`: faults of the environment are told as what they are (see `gym.checked_env`)
- `HeldActions`, where an action is taken several times in a row
- `TaskEnv`, for an optimizer: the reward to be learned for, its absorbing end, and a horizon of the learner's own
- `NetworkView`: observations and actions in the form that networks of Stable-Baselines3 take (see `network_view`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.gym.cells import Env
from curious_explorer.gym.checked_env import CheckedEnv
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.held_actions import HeldActions
from curious_explorer.gym.restart_wrapper import RollInWrapper
from curious_explorer.gym.time_limits import WithoutTimeLimit
from curious_explorer.optional_packages import require
from curious_explorer.resets.moving_starts import MovingStarts
from curious_explorer.sb3.network_view import NUMBERS, NetworkView
from curious_explorer.worlds.episodes import Reward
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import World

END_REWARD = "end_reward"
"""What `info` of a terminating step may carry: what the last state goes on paying at every step."""


class BudgetSpent(BaseException):
    """No step is left; not an error, so that nobody who handles errors on the way takes it for one."""


class Meter:
    """How many steps all environments of a training have taken, and how many they may take."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.taken = 0

    @property
    def left(self) -> int:
        """How many steps may still be taken."""
        return self._budget - self.taken

    def charge(self) -> None:
        """Pay for the next step."""
        if self.taken >= self._budget:
            raise BudgetSpent
        self.taken += 1


class MeteredEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose every step is paid for; raises `BudgetSpent` in front of the first that cannot be."""

    def __init__(self, env: Env, meter: Meter) -> None:
        super().__init__(env)
        self._meter = meter

    def step(self, action: Any) -> Any:
        """Pay, then step."""
        self._meter.charge()
        return self.env.step(action)


class WorldEnv(gymnasium.Env[Any, Any]):
    """A world of states as an environment; it draws its own random numbers, whatever seed a reset is given."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.observation_space = spaces.Discrete(world.num_states)
        self.action_space = spaces.Discrete(world.num_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        return int(self._world.restart()), {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        step = self._world.step(int(action))
        return step.state, step.reward, step.terminated, step.truncated, {END_REWARD: step.end_reward}


class Episode(NamedTuple):
    """An episode that is over, or that was looked at before its end."""

    states: list[int]  # in which its steps were taken, and in which it ended
    returned: float  # discounted


class TaskEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Episodes of an optimizer's task, whose states and returns are recorded.

    A terminated episode is absorbing: the step that terminates is paid, besides its own reward, all that the last state
    pays for ever after, ``gamma * r(s_end) / (1 - gamma)``. A reward that is a table pays an action that has no number
    in it (of a box) the mean of the state's row; so does it after the end.

    The learner sees rewards multiplied by ``1 - gamma``, so that its critic has to predict values between 0 and 1 for
    rewards between 0 and 1, whatever gamma is. Recorded returns are not multiplied.

    Args:
        env: where to act.
        discretisation: which state or cell an observation belongs to; cells met for the first time become known to it.
        reward: the world's own if None.
        gamma: the discount.
        horizon: after how many steps an episode is cut off; what lies beyond is left to the critic.
    """

    def __init__(
        self, env: Env, discretisation: Discretisation, reward: Reward | None, *, gamma: float, horizon: int
    ) -> None:
        super().__init__(env)
        self._index, self._horizon = discretisation.cells.index, horizon
        self._gamma, self._unit = gamma, 1.0 - gamma
        self._larger = reward is not None and reward.combine == "max"
        self._rows: list[list[float]] | None = None
        if reward is not None:  # the last column, -1, is for actions without a number
            self._rows = np.column_stack([reward.table, reward.table.mean(axis=1)]).tolist()
        numbered = isinstance(env.action_space, spaces.Discrete)
        choices = discretisation.action_set.choices if numbered else []
        self._number = {choice: number for number, choice in enumerate(choices)}
        self.finished: list[Episode] = []
        """Those that ended since somebody last emptied the list."""
        self._states: list[int] = []

    def so_far(self) -> Episode:
        """The episode up to now."""
        return Episode(self._states, self._returned)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._states = [self._index(observation, self.env)]
        self._returned, self._discount = 0.0, 1.0
        return observation, info

    def step(self, action: Any) -> Any:
        """Take one action, and be paid for it."""
        observation, own, terminated, truncated, info = self.env.step(action)
        states = self._states
        earned = self._paid(states[-1], self._number.get(action, -1) if self._number else -1, float(own))
        states.append(self._index(observation, self.env))
        if terminated:
            earned += self._gamma / self._unit * self._paid(states[-1], -1, info.get(END_REWARD, 0.0))
        self._returned += self._discount * earned
        self._discount *= self._gamma
        cut_off = truncated or len(states) > self._horizon
        if terminated or cut_off:
            self.finished.append(self.so_far())
        return observation, self._unit * earned, terminated, cut_off, {}

    def _paid(self, state: int, number: int, own: float) -> float:
        if self._rows is None:
            return own
        given = self._rows[state][number]
        return max(own, given) if self._larger else given


def make_training_envs(
    make: Callable[[], Env],
    meter: Meter,
    *,
    num_envs: int,
    resets: tuple[RollIn | MovingStarts, Discretisation] | None = None,
    task: Callable[[Env], TaskEnv] | None = None,
    perceptron: bool = True,
    normalize: bool = True,
    reward_scale: float = 1.0,
    snapshots: bool = False,
    hold: int = 1,
) -> tuple[Any, Sequence[TaskEnv]]:
    """Environments side by side, and those of them that note episodes down.

    Args:
        make: makes an environment.
        meter: pays for their steps.
        num_envs: how many.
        resets: where episodes begin, and what the policies that lead there see and do; the environment's own start if
            None.
        task: puts an optimizer's task around an environment, whose time limits are dropped; by default the
            environment's own reward is learned for, within its own time limit.
        perceptron: whether a multilayer perceptron is to see pictures too, however large they are.
        normalize: whether observations that are boxes are shifted and scaled by their running mean and variance.
        reward_scale: what a learner sees of a reward is multiplied by this.
        snapshots: whether roll-ins to chosen cells may restore saved states.
        hold: for how many steps an action is taken.
    """
    vectors = require("stable_baselines3.common.vec_env", "sb3")
    tasks: list[TaskEnv] = []

    def make_one() -> Env:
        env: Env = MeteredEnv(make(), meter)
        if task is not None:
            env = WithoutTimeLimit(env)
        env = CheckedEnv(env if resets is None else RollInWrapper(env, *resets, snapshots=snapshots))
        if task is not None:
            env = task(env)
            tasks.append(env)
        if hold > 1:
            env = HeldActions(env, hold)
        if reward_scale != 1.0:
            env = gymnasium.wrappers.TransformReward(env, lambda reward: reward_scale * float(reward))
        return NetworkView(env, perceptron=perceptron)

    envs = vectors.DummyVecEnv([make_one] * num_envs)
    space = envs.observation_space
    beside = isinstance(space, spaces.Dict) and NUMBERS in space.spaces
    if normalize and (beside or (isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating))):
        envs = vectors.VecNormalize(envs, norm_obs=True, norm_reward=False, norm_obs_keys=[NUMBERS] if beside else None)
        envs._update_reward = _no_statistics  # nobody reads them, and they take a tenth of the time of a step
    return envs, tasks


def _no_statistics(reward: Any) -> None:
    """Forget the reward; a function of this module, so that it can be pickled."""


def occupancy_of(episodes: Sequence[Episode], num_states: int, gamma: float) -> Floats:
    """Discounted visits of episodes, shape (S,), summing to one; an end keeps what is left."""
    total: Floats = np.zeros(num_states)
    for states, _ in episodes:
        weights = (1.0 - gamma) * gamma ** np.arange(len(states))
        weights[-1] = gamma ** (len(states) - 1)
        np.add.at(total, states, weights)
    share: Floats = total / total.sum()
    return share
