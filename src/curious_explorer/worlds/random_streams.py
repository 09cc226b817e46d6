"""Random numbers as a pure function of (seed, stream, index).

There is no generator to carry around: draw number ``index`` of stream ``stream`` under ``seed`` is

    mix64(key + index * GOLDEN),   key = mix64(mix64(seed) + stream * GOLDEN)

with SplitMix64's finaliser ``mix64`` (Steele, Lea and Flood 2014), which costs 1.5 ns. So results do not depend on the
number of threads or on the device, and resuming a run needs no generator state.

A walk takes its own key from its number (`walk_key`) and reads its draws in order. Draws are compared with integer
thresholds only: `threshold` turns a probability into a number on the scale of `draw`, 0 to 2**63, where 2**63 means
"always". The top bit is given up for that, so that certainty is exact and an impossible outcome can never be drawn.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.compile import compiled

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ALWAYS = np.uint64(1 << 63)
ONE = np.uint64(1)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled
def mix64(z: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection of 64-bit words that leaves no visible pattern."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@compiled
def stream_key(seed: np.uint64, stream: np.uint64) -> np.uint64:
    """The key of one stream of draws under a seed."""
    return mix64(mix64(np.uint64(seed)) + np.uint64(stream) * GOLDEN)


@compiled
def walk_key(key: np.uint64, walk: int) -> np.uint64:
    """The key of walk number ``walk`` within a stream."""
    return mix64(key + np.uint64(walk) * GOLDEN)


@compiled
def threshold(probability: float) -> np.uint64:
    """The integer below which a draw falls with the given probability: 2**63 for certainty."""
    return np.uint64(min(max(probability, 0.0), 1.0) * 9223372036854775808.0)
