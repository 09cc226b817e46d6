"""Which rounds to start from, so that starts are spread as widely as the policies allow (`weighting="spread"`).

The average of D_0, ..., D_N gives every round the same share, and rounds that went to the same places drown the few
that reached the far ones. Here the shares w are chosen instead so that

    sum over seen states s of log(w_0 D_0(s) + ... + w_N D_N(s))

is largest: of all mixtures, the one nearest to the uniform distribution on the states that were seen, by relative
entropy. It is a concave problem, and expectation maximisation,

    w_i <- w_i * mean over seen s of D_i(s) / mixture(s),

climbs it from the average without a step size, so what comes out is never less spread than the average.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats

MOST_STATES = 20_000
"""So many seen states are plenty to choose a few dozen shares by: of more, evenly spaced ones are taken."""
MOST_UPDATES = 2_000
TOLERANCE = 1e-4
"""At the best shares no round gains: the mean ratio is 1 for every round with a share, and at most 1 for the others.
No mixture is nearer to the uniform distribution than this one by more than the largest ratio's excess over 1."""


def spread_shares(visited: Floats) -> Floats:
    """The shares of the rounds whose visits were measured: ``visited`` has shape (rounds, S), the result (rounds,)."""
    seen = np.flatnonzero(visited.any(axis=0))
    chosen = visited[:, seen[:: -(-len(seen) // MOST_STATES)]]
    shares = np.full(len(visited), 1.0 / len(visited))
    for _ in range(MOST_UPDATES):
        ratios = (chosen / (shares @ chosen)).mean(axis=1)
        if ratios.max() <= 1.0 + TOLERANCE:
            break
        shares *= ratios
    spread: Floats = shares / shares.sum()
    return spread
