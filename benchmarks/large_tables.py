"""``python -m benchmarks.large_tables``: how many states of large tables are seen, against samples.

Deep seas and mazes of 10^4 to 10^6 states, explored by `Frontier`, by random walks of several lengths (the best of them
is named), by MBIE-EB and by R-MAX, each for the same number of samples. Every state that any step shows counts as seen,
for all of them. Each line is printed as it is done, with processor seconds, one thread; ``--kinds``, ``--states``,
``--methods`` and ``--samples`` choose. A method that takes more than ``--minutes`` is stopped; its line has
what it had seen by then, and says so.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from types import FrameType

import numpy as np

from curious_explorer import FiniteMDP, Frontier, TabularWorld
from curious_explorer.environments import deep_sea, one_way_maze
from curious_explorer.explorers.methods import METHODS as EXPLORERS
from curious_explorer.worlds.world import EpisodeBatch
from curious_explorer.worlds.wrappers import SeenStates

LENGTHS = (100, 1_000, 10_000)
KINDS: dict[str, Callable[[int], FiniteMDP]] = {
    "deep sea": lambda states: deep_sea(round((2 * states) ** 0.5), permute_actions=0),
    "maze": lambda states: one_way_maze(round(states**0.5)),
}
METHODS = ("frontier", "random walks", "mbie-eb", "r-max")
GAMMA = 0.99


def seen_by(method: str, mdp: FiniteMDP, samples: int, seed: int) -> tuple[int, int, str]:
    """States seen, samples taken, and words, among them whether it was stopped on the way."""
    if method == "frontier":
        found = Frontier().explore(TabularWorld(mdp, seed=seed, threads=1), gamma=GAMMA, samples=samples)
        return len(found.model), found.samples, "all within reach" if found.complete else ""  # type: ignore[arg-type]
    if method == "random walks":
        best = max((_walks(mdp, length, samples, seed), length) for length in LENGTHS)
        return best[0], samples, f"length {best[1]:,}"
    world = SeenStates(TabularWorld(mdp, seed=seed, threads=1))
    try:
        EXPLORERS[method]().explore(world, gamma=GAMMA, samples=samples)
    except TooLongError:
        return int(world.seen.sum()), world.samples, "stopped"
    return int(world.seen.sum()), world.samples, ""


def _walks(mdp: FiniteMDP, length: int, samples: int, seed: int) -> int:
    world = SeenStates(TabularWorld(mdp, seed=seed, threads=1))
    uniform = np.full((mdp.num_states, mdp.num_actions), 1.0 / mdp.num_actions)
    world.episodes(uniform, EpisodeBatch(episodes=samples, horizon=length, gamma=GAMMA, max_samples=samples))
    return int(world.seen.sum())


class TooLongError(Exception):
    """A method took longer than it may."""


def _stop(signal_number: int, frame: FrameType | None) -> None:
    raise TooLongError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--states", default="10000,1000000")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    print("| problem | states | method | states seen | samples | processor seconds | |\n|---|---|---|---|---|---|---|")
    for kind in asked.kinds.split(","):
        for states in map(int, asked.states.split(",")):
            mdp = KINDS[kind](states)
            for method in asked.methods.split(","):
                began = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, 60.0 * asked.minutes)
                try:
                    seen, taken, words = seen_by(method, mdp, asked.samples, asked.seed)
                    texts = [f"{seen:,}", f"{taken:,}"]
                except TooLongError:
                    texts, words = ["-", "-"], "stopped"
                signal.setitimer(signal.ITIMER_PROF, 0.0)
                took = time.process_time() - began
                print(
                    f"| {kind} | {mdp.num_states:,} | {method} | {' | '.join(texts)} | {took:.0f} | {words} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
