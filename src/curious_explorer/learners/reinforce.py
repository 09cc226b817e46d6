"""REINFORCE with a learned critic as baseline (Williams 1992), on a table of logits.

The gradient of V(theta) for a softmax policy is, summed over the steps of an episode and averaged over episodes,

    g(s, b) = sum_t A_t (1{s_t = s, a_t = b} - 1{s_t = s} pi(b|s)),

and the step is plain ascent along it. This is the practical mode; `Reinforce.theory` tunes everything by Zhang et al.
(2021), whose guarantees come at step sizes that hardly move a logit within the paper's 2,400 episodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.compile import compiled
from curious_explorer.learners.actor_critic import ActorCritic, softmax_row
from curious_explorer.learners.reinforce_theory import TheoryReinforce
from curious_explorer.validation import check_number
from curious_explorer.worlds.world import EpisodeStatistics


@dataclass(frozen=True, kw_only=True)
class Reinforce(ActorCritic):
    """REINFORCE on tables; see `ActorCritic` for what it shares with `TRPO`."""

    learning_rate: float = 100.0
    """The step along the mean gradient of an episode. Large, because the gradient of a rarely reached state is tiny.
    Only where the number of updates is given; see `largest_change` for the other case."""
    largest_change: float = 10.0
    """How far a batch with the largest recent signal moves a logit, where steps are measured against it (see
    `annealed`): with 1 and 3 one of two seeds of deep sea 40 stays unsolved, with 10 none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.learning_rate, "learning_rate", above=True)
        check_number(self.largest_change, "largest_change", above=True, high=1e6)

    @staticmethod
    def theory(**settings: Any) -> TheoryReinforce:
        """REINFORCE tuned by Zhang et al. (2021), with its guarantee and its tiny steps; see `TheoryReinforce`."""
        return TheoryReinforce(**settings)

    def take_step(self, logits: Floats, policy: Floats, batch: EpisodeStatistics) -> str | None:
        """Ascend along the mean gradient of an episode."""
        rate = self.learning_rate / len(batch.returns)
        moved = ascend(logits, policy, batch.weight, batch.advantage_sum, rate)
        return None if moved else "no advantage to follow"

    def take_measured_step(
        self, logits: Floats, policy: Floats, batch: EpisodeStatistics, *, largest: float, caution: float
    ) -> tuple[str | None, float]:
        """Ascend so far that a signal as large as ``largest`` moves a logit by `largest_change`.

        The signal is the largest entry of the mean gradient of an episode.
        """
        centred = batch.advantage_sum - policy * batch.advantage_sum.sum(axis=1, keepdims=True)
        signal = float(np.abs(centred).max()) / len(batch.returns)
        if not 0.0 < signal < math.inf:
            return "no advantage to follow" if signal == 0.0 else "advantages not finite", 0.0
        rate = caution * self.largest_change / max(signal, largest) / len(batch.returns)
        ascend(logits, policy, batch.weight, batch.advantage_sum, rate)
        return None, signal


@compiled
def ascend(logits: Floats, policy: Floats, weight: Floats, advantage_sum: Floats, rate: float) -> bool:
    """Add ``rate`` times the gradient of the batch to the logits, in place; False if that changes nothing."""
    moved = False
    for state in range(policy.shape[0]):
        total, seen = 0.0, 0.0
        for action in range(policy.shape[1]):
            total += advantage_sum[state, action]
            seen += weight[state, action]
        if seen > 0.0:
            for action in range(policy.shape[1]):
                change = rate * (advantage_sum[state, action] - policy[state, action] * total)
                moved = moved or change != 0.0
                logits[state, action] += change
            softmax_row(logits, policy, state)
    return moved
