"""REINFORCE with a learned critic as baseline (Williams 1992), on a table of logits.

The gradient of V(theta) for a softmax policy is, summed over the steps of an episode and averaged over episodes,

    g(s, b) = sum_t A_t (1{s_t = s, a_t = b} - 1{s_t = s} pi(b|s)),

and the step is plain ascent along it. This is the practical mode; `Reinforce.theory` tunes everything by Zhang et al.
(2021), whose guarantees come at step sizes that hardly move a logit within the paper's 2,400 episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from curious_explorer.arrays import Floats
from curious_explorer.compile import compiled
from curious_explorer.learners.actor_critic import ActorCritic, softmax_row
from curious_explorer.learners.reinforce_theory import TheoryReinforce
from curious_explorer.worlds.world import EpisodeStatistics


@dataclass(frozen=True, kw_only=True)
class Reinforce(ActorCritic):
    """REINFORCE on tables; see `ActorCritic` for what it shares with `TRPO`."""

    learning_rate: float = 100.0
    """The step along the mean gradient of an episode. Large, because the gradient of a rarely reached state is tiny."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.learning_rate < float("inf"):
            raise ValueError(f"learning_rate is {self.learning_rate!r}, expected a positive number")

    @staticmethod
    def theory(**settings: Any) -> TheoryReinforce:
        """REINFORCE tuned by Zhang et al. (2021), with its guarantee and its tiny steps; see `TheoryReinforce`."""
        return TheoryReinforce(**settings)

    def take_step(self, logits: Floats, policy: Floats, batch: EpisodeStatistics) -> str | None:
        """Ascend along the mean gradient of an episode."""
        rate = self.learning_rate / len(batch.returns)
        moved = ascend(logits, policy, batch.weight, batch.advantage_sum, rate)
        return None if moved else "no advantage to follow"


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
