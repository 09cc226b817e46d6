"""``python -m benchmarks.bsuite_deep_sea``: deep seas by the protocol of bsuite (Osband and others 2020).

10,000 episodes in a sea of N x N, actions of every place permuted by a seed, moving right costs 0.01 / N, the corner
pays 1. In the *stochastic* sea moving right fails once in N times, and what ends in either corner pays standard normal
noise, too. An episode is *bad* where the agent goes left on the diagonal. A sea is *solved* at the first episode at
which less than 0.8 of all episodes so far were bad (counted from episode 100 on where it is stochastic), if that is
below 2^N + 100.

The agent is `Frontier`, told nothing but the number of samples; every episode that it takes counts. Where it stops, the
plan on its counts takes the other episodes. By default it explores as long as there is something to know, which under
noise has no end; with ``--explore-share 0.5`` the plan takes over after half of the samples. Cells are the places.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium
import numpy as np

from curious_explorer import Frontier, FunctionCells, GymWorld

EPISODES, MOVE_COST, BAD, FORGIVENESS, FIRST_COUNTED = 10_000, 0.01, 0.8, 100, 100


class BsuiteSea(gymnasium.Env[Any, Any]):
    """A deep sea as bsuite defines it; ``bad`` has an entry for each episode that has ended."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, size: int, seed: int, *, stochastic: bool) -> None:
        self.observation_space = gymnasium.spaces.Box(0, size, (2,), np.int64)
        self.size, self.stochastic = size, stochastic
        self.bad: list[bool] = []
        self._right = np.random.default_rng(seed).integers(2, size=(size, size))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._row = self._column = 0
        self._went_left = False
        return np.zeros(2, dtype=np.int64), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        last, reward = self.size - 1, 0.0
        right = action == self._right[self._row, self._column]
        if self._column == last and right:
            reward += 1.0
        if self.stochastic and self._row == last and self._column in (0, last):
            reward += float(self.np_random.standard_normal())
        if right:
            if not self.stochastic or self.np_random.random() > 1.0 / self.size:
                self._column = min(self._column + 1, last)
            reward -= MOVE_COST / self.size
        else:
            self._went_left |= self._row == self._column
            self._column = max(self._column - 1, 0)
        self._row += 1
        ended = self._row == self.size
        if ended:
            self.bad.append(self._went_left)
        return np.array([self._row, self._column]), reward, ended, False, {}


def solved_at(bad: list[bool], *, stochastic: bool) -> int | None:
    """The first episode at which few enough were bad; None: there is none."""
    episodes = np.arange(1, len(bad) + 1)
    few = np.cumsum(bad) / episodes < BAD
    few[: FIRST_COUNTED - 1] &= not stochastic
    return int(np.argmax(few)) + 1 if few.any() else None


def play(size: int, seed: int, episodes: int, *, stochastic: bool, share: float) -> list[bool]:
    """Which episodes of a run were bad."""
    env = BsuiteSea(size, seed, stochastic=stochastic)
    across = size + 1
    cells = FunctionCells(lambda place: int(place[0]) * across + int(place[1]), across * across)
    world = GymWorld(env, cells=cells, seed=seed)
    exploration = Frontier().explore(world, gamma=0.99, samples=int(share * size * episodes))
    policy = np.asarray(exploration.policy)
    while len(env.bad) < episodes:
        state, ended = world.restart(), False
        while not ended:
            state, _, ended, *_ = world.step(int(np.argmax(policy[state])))
    return env.bad[:episodes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,20,30,40,50,100")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--kinds", default="deterministic,stochastic")
    parser.add_argument("--explore-share", type=float, default=1.0)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    print(
        "| sea | size | solved | at episode: median (range) | bad of the last tenth | seconds |\n"
        "|---|---|---|---|---|---|"
    )
    for kind in asked.kinds.split(","):
        for size in map(int, asked.sizes.split(",")):
            began, found, late = time.perf_counter(), [], []
            for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
                bad = play(size, seed, asked.episodes, stochastic=kind == "stochastic", share=asked.explore_share)
                at = solved_at(bad, stochastic=kind == "stochastic")
                found.append(np.inf if at is None or at >= 2**size + FORGIVENESS else at)
                late.append(np.mean(bad[-len(bad) // 10 :]))
            words = f"{np.median(found):,.0f} ({min(found):,.0f} to {max(found):,.0f})"
            took = time.perf_counter() - began
            solved = f"{np.isfinite(found).sum()} of {asked.seeds}"
            print(f"| {kind} | {size} | {solved} | {words} | {np.mean(late):.2f} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
