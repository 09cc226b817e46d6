"""The plain policy gradient of a batch, and the step along it."""

from __future__ import annotations

from curious_explorer.arrays import Floats
from curious_explorer.compile import compiled
from curious_explorer.learners.trust_region import softmax_row


def batch_gradient(policy: Floats, advantage_sum: Floats) -> Floats:
    """The gradient with respect to the logits, summed over the batch: advantages minus their share by the policy."""
    gradient: Floats = advantage_sum - policy * advantage_sum.sum(axis=1, keepdims=True)
    return gradient


@compiled
def ascend(logits: Floats, policy: Floats, weight: Floats, advantage_sum: Floats, rate: float) -> bool:
    """Add ``rate`` times `batch_gradient` to the logits, in place; False if that changes nothing."""
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
