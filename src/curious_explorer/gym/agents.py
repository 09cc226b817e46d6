"""Agents: whatever acts in an environment, one observation after the other, and the episodes that it plays.

- `NetworkAgent`: a `NetworkPolicy`, by NumPy alone;
- `RememberingAgent`: a `RecurrentPolicy`, by NumPy alone;
- `CellAgent`: a table over cells, as planning on counts gives one;
- `WayAgent`: stored actions one after the other, whatever is seen.

What Stable-Baselines3 has learned and NumPy cannot run is `ModelAgent` of `curious_explorer.sb3`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.gym.cells import UNKNOWN, Env
from curious_explorer.gym.checked_env import CheckedEnv
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.gym.recurrent_policy import RecurrentPolicy

LONGEST_EPISODE = 1_000
"""When an episode is cut off, in an environment that has no time limit of its own."""


class Agent(ABC):
    """Acts in an environment; `act` is asked in the order of an episode, and `begin` told of each new one."""

    steps_known: int = 0
    """So many steps of an episode are known beforehand: one that has no time limit is not cut off earlier."""

    def begin(self) -> None:
        """An episode begins; agents that remember nothing have nothing to do."""
        return

    @abstractmethod
    def act(self, observation: Any, env: Env | None = None) -> Any:
        """The environment's action for an observation; ``env`` is where it was made, for cells that need it."""

    def __call__(self, observation: Any, env: Env | None = None) -> Any:
        """The same as `act`."""
        return self.act(observation, env)


class NetworkAgent(Agent):
    """A multilayer perceptron that acts with NumPy alone.

    Args:
        policy: its weights.
        deterministic: whether it takes the likeliest action instead of drawing one.
        seed: where its draws come from.
    """

    def __init__(self, policy: NetworkPolicy, *, deterministic: bool = True, seed: int = 0) -> None:
        self.policy, self.deterministic = policy, deterministic
        self._generator = np.random.default_rng(seed)

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """An action of the environment."""
        if self.deterministic:
            return self.policy.act_likeliest([observation])[0]
        return self.policy.act([observation], self._generator)[0]


class RememberingAgent(Agent):
    """A network that remembers the episode, and acts with NumPy alone.

    Args:
        policy: its weights.
        deterministic: whether it takes the likeliest action instead of drawing one.
        seed: where its draws come from.
    """

    def __init__(self, policy: RecurrentPolicy, *, deterministic: bool = False, seed: int = 0) -> None:
        self.policy, self.deterministic = policy, deterministic
        self._generator = np.random.default_rng(seed)
        self.begin()

    def begin(self) -> None:
        """An episode begins: the last one is forgotten."""
        self._memory: Any = None
        self._did: int | None = None

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """An action of the environment."""
        likely, self._memory = self.policy.look(self._memory, self._did, observation)
        self._did = int(likely.argmax() if self.deterministic else self._generator.choice(len(likely), p=likely))
        return self.policy.choices[self._did]


class CellAgent(Agent):
    """A table of action probabilities over cells; in a cell that was never met, all actions are alike.

    Actions are held for as many steps as they were while exploring (`ActionSet.hold`).

    Args:
        table: shape (S, A).
        discretisation: the cells and the actions that it is about.
        seed: where its draws come from.
    """

    def __init__(self, table: Floats, discretisation: Discretisation, *, seed: int = 0) -> None:
        self.table, self.discretisation = table, discretisation.frozen()
        self._generator = np.random.default_rng(seed)
        self._choices: list[Any] | None = None
        self._held: Any = None
        self._left = 0

    def begin(self) -> None:
        """An episode begins: no action is held over from the last one."""
        self._left = 0

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """An action of the environment."""
        if self._left > 0:
            self._left -= 1
            return self._held
        if self._choices is None:
            actions = self.discretisation.action_set
            space = None if env is None else env.action_space
            self._choices = (actions if space is None else actions.in_space(space)).choices
        cell = self.discretisation.cells.index(observation, env)
        probabilities = None if cell == UNKNOWN else self.table[cell]
        self._held = self._choices[int(self._generator.choice(len(self._choices), p=probabilities))]
        self._left = self.discretisation.action_set.hold - 1
        return self._held


class WayAgent(Agent):
    """Takes stored actions one after the other without a look, and random ones when they are used up.

    It does again what was done once, as long as nothing in the environment is random.

    Args:
        way: the numbers of the actions, each held as long as all are.
        discretisation: what the numbers stand for.
        seed: where the random actions come from.
    """

    def __init__(self, way: Sequence[int], discretisation: Discretisation, *, seed: int = 0) -> None:
        self.way, self.discretisation = tuple(way), discretisation
        self.steps_known = len(self.way) * discretisation.action_set.hold
        self._generator = np.random.default_rng(seed)
        self._choices: list[Any] | None = None
        self._taken = 0

    def begin(self) -> None:
        """An episode begins, and the way with it."""
        self._taken = 0

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """An action of the environment."""
        if self._choices is None:
            actions = self.discretisation.action_set
            self._choices = (actions if env is None else actions.in_space(env.action_space)).choices
        place = self._taken // self.discretisation.action_set.hold
        self._taken += 1
        if place < len(self.way):
            return self._choices[self.way[place]]
        return self._choices[int(self._generator.integers(len(self._choices)))]


class Played(NamedTuple):
    """Episodes that were played from the environment's own start."""

    returns: list[float]
    """Not discounted."""
    lengths: list[int]

    @property
    def steps(self) -> int:
        """All steps together."""
        return sum(self.lengths)

    @property
    def mean_return(self) -> float:
        """Of an episode."""
        return float(np.mean(self.returns))

    def success(self, above: float) -> float:
        """The share of episodes with a return above this."""
        return float(np.mean(np.array(self.returns) > above))


def play_episodes(
    env: Env,
    agent: Agent,
    episodes: int,
    *,
    seed: int,
    longest: int = LONGEST_EPISODE,
    on_step: Callable[[Env, float], None] | None = None,
) -> Played:
    """Play whole episodes from the environment's own start, the first reset with ``seed``, the next with ``seed + 1``.

    Args:
        env: where to act.
        agent: who acts.
        episodes: how many.
        seed: of the first episode's reset.
        longest: when an episode is cut off, if the environment has no time limit of its own; not before the agent has
            done what it knows beforehand.
        on_step: told the environment and the return so far after every reset and step, as a camera wants to be.
    """
    limited = env.spec is not None and env.spec.max_episode_steps is not None
    env, longest = CheckedEnv(env), max(longest, agent.steps_known)
    returns, lengths = [], []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        agent.begin()
        total, length, ended = 0.0, 0, False
        if on_step is not None:
            on_step(env, total)
        while not ended and (limited or length < longest):
            observation, reward, terminated, truncated, _ = env.step(agent.act(observation, env))
            total, length, ended = total + float(reward), length + 1, terminated or truncated
            if on_step is not None:
                on_step(env, total)
        returns.append(total)
        lengths.append(length)
    return Played(returns, lengths)
