"""Actions by their number, or taken several times in a row: for a learner, and for whoever acts by what it learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium

from curious_explorer.gym.agents import Agent
from curious_explorer.gym.cells import Env


class HeldActions(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment in which a step is several of them by the same action, or fewer where the episode ends.

    Args:
        env: the environment.
        hold: how many.
    """

    def __init__(self, env: Env, hold: int) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, hold=hold)
        super().__init__(env)
        self.hold = hold

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action so many times; what that pays is added up."""
        paid = 0.0
        for _ in range(self.hold):
            observation, reward, terminated, truncated, info = self.env.step(action)
            paid += float(reward)
            if terminated or truncated:
                break
        return observation, paid, terminated, truncated, info


class HoldingAgent(Agent):
    """An agent that is asked once for several steps, in the environment as it is."""

    def __init__(self, agent: Agent, hold: int) -> None:
        self._agent, self._hold = agent, hold
        self.begin()

    def begin(self) -> None:
        """An episode begins: no action is held over from the last one."""
        self._left, self._action = 0, None
        self._agent.begin()

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """The action that is held, or the next one."""
        if self._left == 0:
            self._left, self._action = self._hold, self._agent.act(observation, env)
        self._left -= 1
        return self._action


class ChoosingAgent(Agent):
    """An agent in an environment as it is, of one whose actions are numbers of a list."""

    def __init__(self, agent: Agent, choices: Sequence[Any]) -> None:
        self._agent, self._choices = agent, choices

    def begin(self) -> None:
        """An episode begins."""
        self._agent.begin()

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """The action of the number that the agent chooses."""
        return self._choices[int(self._agent.act(observation, env))]


def holding(agent: Agent, hold: int) -> Agent:
    """The agent, or one that is asked once for so many steps."""
    return agent if hold == 1 else HoldingAgent(agent, hold)
