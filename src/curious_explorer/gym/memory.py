"""Observations that remember: what was seen before, and how long what is seen now has been there.

Where an observation shows only a part of what matters, places look alike that are not, and neither counts nor a network
can tell them apart. What was seen before often does: the last few contents that *differed*, with the actions that led
away from them, and for how many steps nothing has changed since. A content differs if anything differs that is no real
number; where there are only real numbers, any of them.

`Memory` is the environment that shows this, `RememberingObserver` the same for an agent who is shown single
observations, `advised_memory` says from a look whether it is of use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.gym.agents import Agent
from curious_explorer.gym.cells import Env
from curious_explorer.gym.observation_look import copied
from curious_explorer.gym.observation_reader import code_of
from curious_explorer.validation import check_count

LONGEST_STAY = 20
"""Steps without a change are counted up to so many."""
MOST_REMEMBERED = 100
"""Earlier contents, all of which are part of every observation."""
MEMORIES = (2, 4)
"""How many earlier contents may be remembered."""
FEWEST_SURPRISES = 5
"""Memory is of use where so many repeated tries come out otherwise than the first one, and nothing is random."""


def check_memory(steps: Any) -> int:
    """A number of earlier contents that can be remembered."""
    return check_count(steps, "the number of earlier contents to remember", least=1, most=MOST_REMEMBERED)


class RememberingObserver:
    """Makes observations that remember of single ones.

    Args:
        steps: how many earlier contents are remembered.
        first: the number of the first action; one less stands for none. None: actions are not remembered.
    """

    def __init__(self, steps: int, first: int | None) -> None:
        self.steps, self.nothing = check_memory(steps), None if first is None else first - 1
        self._before: deque[tuple[Any, Any]] = deque(maxlen=steps)
        self.begin()

    def begin(self) -> None:
        """An episode begins."""
        self._before.clear()
        self._now: Any = None
        self._code: Hashable = None
        self._stay, self._did, self._fresh = 0, self.nothing, True

    def see(self, observation: Any) -> tuple[Any, ...]:
        """The observation, its stay, then earlier contents and the actions that led away from them, newest first."""
        code = content_of(observation)
        if not self._fresh and code == self._code:
            self._stay = min(self._stay + 1, LONGEST_STAY)
        else:
            if not self._fresh:
                self._before.appendleft((self._now, self._did))
            self._stay, self._code, self._fresh = 0, code, False
        self._now = copied(observation)
        filled = [*self._before, *[(self._now, self.nothing)] * (self.steps - len(self._before))]
        earlier = [part for seen, did in filled for part in ((seen,) if self.nothing is None else (seen, did))]
        return (self._now, self._stay, *earlier)

    def did(self, action: Any) -> None:
        """Take in which action follows."""
        if self.nothing is not None:
            self._did = int(action)


class Memory(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observations remember.

    Args:
        env: the environment.
        steps: how many earlier contents are remembered.
    """

    def __init__(self, env: Env, steps: int) -> None:
        super().__init__(env)
        actions, before = env.action_space, [env.observation_space]
        first = first_action(actions)
        if isinstance(actions, spaces.Discrete):
            before.append(spaces.Discrete(int(actions.n) + 1, start=int(actions.start) - 1))
        stay = spaces.Discrete(LONGEST_STAY + 1)
        self.observation_space = spaces.Tuple([env.observation_space, stay, *before * check_memory(steps)])
        self._observer = RememberingObserver(steps, first)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._observer.begin()
        return self._observer.see(observation), info

    def step(self, action: Any) -> Any:
        """Take one action."""
        self._observer.did(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._observer.see(observation), reward, terminated, truncated, info


def with_memory(env: Env, steps: int | None) -> Env:
    """The environment with so much memory, or as it is."""
    return env if not steps else Memory(env, steps)


class AgentWithMemory(Agent):
    """An agent of an environment with memory, which is shown single observations; `begin` says that a new episode does.

    Args:
        agent: who acts on observations that remember.
        observer: who makes them.
    """

    def __init__(self, agent: Agent, observer: RememberingObserver) -> None:
        self.agent, self._observer = agent, observer

    def begin(self) -> None:
        """An episode begins."""
        self._observer.begin()
        self.agent.begin()

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """An action of the environment."""
        action = self.agent.act(self._observer.see(observation), env)
        self._observer.did(action)
        return action


def agent_with_memory(agent: Agent, steps: int | None, first: int | None) -> Agent:
    """The agent for single observations, or as it is; ``first`` is the number of the first action."""
    return AgentWithMemory(agent, RememberingObserver(steps, first)) if steps else agent


def first_action(space: spaces.Space[Any]) -> int | None:
    """The number of the first action, if they have numbers."""
    return int(space.start) if isinstance(space, spaces.Discrete) else None


def content_of(observation: Any) -> Hashable:
    """What is compared of an observation: all but real numbers, unless there is nothing else."""
    leaves = list(_leaves(observation))
    whole = [leaf for leaf in leaves if not _is_real(leaf)]
    return tuple(map(code_of, whole or leaves))


def _leaves(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        for key in sorted(observation):
            yield from _leaves(observation[key])
    elif isinstance(observation, tuple):
        for value in observation:
            yield from _leaves(value)
    else:
        yield observation


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, float) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind == "f")


def advised_memory(cells: Sequence[int], actions: Sequence[int]) -> int:
    """How many earlier contents are worth remembering, from a walk in a world in which nothing is random.

    There, what follows from a state and an action is always the same; where it is not, something is not seen.

    Args:
        cells: of observations one after the other.
        actions: that followed each of them; negative after the last of an episode.
    """
    if _surprises(cells, actions, 0) < FEWEST_SURPRISES:
        return 0
    return next((steps for steps in MEMORIES if _surprises(cells, actions, steps) < FEWEST_SURPRISES), MEMORIES[-1])


def _surprises(cells: Sequence[int], actions: Sequence[int], steps: int) -> int:
    """How many repeated tries came out otherwise than the first one, if so many earlier contents are remembered."""
    observer = RememberingObserver(steps, 0) if steps else None
    first: dict[Hashable, int] = {}
    found = 0
    for place, action in enumerate(actions):
        state: Hashable = cells[place] if observer is None else observer.see(cells[place])
        if observer is not None:
            observer.did(action)
        if action >= 0:
            found += first.setdefault((state, action), cells[place + 1]) != cells[place + 1]
        elif observer is not None:
            observer.begin()
    return found
