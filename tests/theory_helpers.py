"""Explorations of small random MDPs with optimizers of every quality, and dense judges, for the theory tests."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from curious_explorer import FiniteMDP, TabularWorld, explore
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.exact_visits import ExactVisits
from curious_explorer.learners.optimizer import LearningCurve, OptimizerResult


class KnowingOptimizer:
    """Knows the model: exact, a noisy mixture of exact and random, or random altogether."""

    def __init__(self, mdp: FiniteMDP, kind: str = "exact", seed: int = 0) -> None:
        assert kind in ("exact", "noisy", "random")
        self.mdp, self.kind = mdp, kind
        self.random = np.random.default_rng(seed)

    def __call__(self, world, reset, *, gamma, reward=None, budget=None):
        shape = (self.mdp.num_states, self.mdp.num_actions)
        policy = self.random.dirichlet(np.full(shape[1], 0.5), size=shape[0])
        if self.kind != "random":
            share = 1.0 if self.kind == "exact" else self.random.random()
            policy = share * solve(self.mdp, gamma=gamma, rewards=reward.table).policy + (1.0 - share) * policy
        nothing = np.zeros(0, dtype=np.int64)
        return OptimizerResult(policy, 0, LearningCurve(nothing, np.zeros(0), nothing))


def explore_exactly(mdp, *, gamma, rounds, thresholds=None, kind="exact", seed=0):
    """An exploration with exact visits, which takes no step."""
    optimizer = KnowingOptimizer(mdp, kind, seed)
    world = TabularWorld(mdp)
    return explore(
        world, optimizer, gamma=gamma, rounds=rounds, thresholds=thresholds, visits=ExactVisits(mdp), progress=False
    )


def program_visitation(mdp, gamma):
    """max_pi d(s) for every state by linear programming over state-action visitation, at the solver's tightest."""
    flow = np.repeat(np.eye(mdp.num_states), mdp.num_actions, axis=1) - gamma * mdp.transitions.toarray().T
    most = []
    for row in np.eye(mdp.num_states):
        reward = np.repeat(row, mdp.num_actions)
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        found = linprog(-reward, A_eq=flow, b_eq=(1 - gamma) * mdp.start, method="highs", options=options)
        assert found.status == 0, found.message
        most.append(-found.fun)
    return np.array(most)


def two_states() -> FiniteMDP:
    """s0 -> s1, absorbing; one action."""
    return FiniteMDP([[[0.0, 1.0]], [[0.0, 1.0]]], np.zeros((2, 1)), 0)
