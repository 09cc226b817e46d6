"""E3: wander evenly in unknown states, and in known ones either try to escape to an unknown one or exploit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats, Mask
from curious_explorer.explorers.model_based_explorer import MOST_TRIES, NEVER, ModelBasedExplorer, NextPolicy, Strategy
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import even_greedy, plan, problem
from curious_explorer.worlds.world import World

IMBALANCE = 0.1
"""Tries of a state's actions that differ by less than this share count as equal, so that thousands of them need not be
looked at one by one; below ten tries it is exact."""


@dataclass(frozen=True, kw_only=True)
class E3(ModelBasedExplorer):
    """Explicit Explore or Exploit (Kearns and Singh 2002), discounted.

    A state is known when each of its actions was tried m times. In an unknown state the least-tried action is taken
    (balanced wandering). In a known one, U(s) is the discounted chance to escape to an unknown state at best, so
    no policy is worth more than the best one within the known states plus U(s): if U(s) > epsilon / 2 the agent tries
    to escape, else it exploits. The choice is made anew in every state, not for stretches of a mixing time.
    """

    known_after: int | None = 5
    """m. Practical, as for `RMax`. None takes the order of the published one (from memory, constants left out):
    (S / (epsilon (1 - gamma)))^4 ln(S A / delta)."""
    epsilon: float = 0.002
    """How far from the best, as a normalised value, is good enough. The problems here are worth a few hundredths."""
    delta: float = 0.05
    """Risk for the published m."""

    def tries_needed(self, num_states: int, num_actions: int, gamma: float) -> int:
        """How many tries make a pair known in a world of this size."""
        if self.known_after is not None:
            return self.known_after
        base = num_states / (self.epsilon * (1.0 - gamma))
        return math.ceil(min(base**4 * math.log(num_states * num_actions / self.delta), MOST_TRIES))

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `E3Strategy`."""
        return E3Strategy(world, task, self.tries_needed(world.num_states, world.num_actions, task.gamma), self.epsilon)


class E3Strategy:
    """One run of E3: wander, escape or exploit, state by state."""

    def __init__(self, world: World, task: Task, known_after: int, epsilon: float) -> None:
        self._task, self._known_after, self._epsilon = task, known_after, epsilon
        self._known: Mask | None = None
        self.escape: Floats = np.ones(world.num_states)
        """U(s): the best discounted chance to escape from the known states, shape (S,)."""
        self._earnings: Floats = np.zeros(world.num_states)
        self._policy: Floats = np.zeros((world.num_states, world.num_actions))

    def __call__(self, model: CountedModel, samples: int) -> NextPolicy:
        """What to do next."""
        known = (model.tries >= self._known_after).all(axis=1) | model.terminal
        if self._known is None or (known != self._known).any():
            self._replan(model, known)
        # Balanced wandering: the least-tried actions are the only good ones, ties shared evenly.
        most = np.floor((1.0 + IMBALANCE) * model.tries.min(axis=1, keepdims=True)).astype(np.int64)
        wandering = even_greedy((model.tries <= most).astype(np.float64), 0.0)
        policy = np.where(known[:, None], self._policy, wandering)
        return NextPolicy(policy, np.where(known[:, None], NEVER, np.maximum(1, most + 1 - model.tries)))

    def _replan(self, model: CountedModel, known: Mask) -> None:
        self._known = known
        unknown = np.repeat(~known[:, None], model.num_actions, axis=1)
        ended = np.repeat(model.terminal[:, None], model.num_actions, axis=1)
        escaping = np.where(unknown, 1.0, np.where(ended, 0.0, np.nan))
        explore = plan(problem(model, np.zeros(model.shape), escaping), self._task.gamma, self.escape).policy
        settled = model.settled(self._task.reward, unknown, worth=0.0)
        rewards = model.rewards(self._task.reward)
        exploit = plan(problem(model, rewards, settled), self._task.gamma, self._earnings).policy
        self._policy = np.where(self.escape[:, None] > 0.5 * self._epsilon, explore, exploit)
