"""Long calls are made of short compiled ones: they can be interrupted, and come to the same."""

from __future__ import annotations

import signal
import time
from typing import Any

import numpy as np
import pytest

from curious_explorer import TRPO, TabularWorld, explore, improve, visit
from curious_explorer.environments import garnet, river_swim
from curious_explorer.worlds import numba_backend

MDP = river_swim(20)
UNIFORM = np.full((20, 2), 0.5)


def results(threads: int) -> list[Any]:
    world = TabularWorld(MDP, seed=3, threads=threads)
    counts = visit(world, UNIFORM, gamma=0.9, count=3_000)
    learned = improve(world, TRPO(updates=3, episodes=40, horizon=30), None, gamma=0.9, budget=3_300)
    return [counts, learned.policy, world.samples]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_calls_changes_nothing(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    together = results(threads)
    monkeypatch.setattr(numba_backend, "STEPS_AT_ONCE", 100)
    for one, other in zip(together, results(threads), strict=True):
        np.testing.assert_array_equal(one, other)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


CALLS = {
    "walks": lambda world: visit(world, UNIFORM, gamma=1.0 - 1e-6, count=10**9),
    "episodes": lambda world: improve(world, TRPO(episodes=10**6, horizon=10**4), None, gamma=0.9, budget=10**12),
    "counts": lambda world: explore(TabularWorld(garnet(50, seed=3)), gamma=0.9, samples=10**12),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_interruption_does_not_wait_for_the_end(call: str) -> None:
    world = TabularWorld(MDP, threads=2)
    before = signal.signal(signal.SIGALRM, _interrupt)
    began = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises((KeyboardInterrupt, SystemError)):  # at its very end compiled code says it in its own way
            CALLS[call](world)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 30.0
