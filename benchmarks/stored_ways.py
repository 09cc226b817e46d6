"""``python -m benchmarks.stored_ways``: how far exploring gets in Montezuma's Revenge, and whether it gets there again.

Explores as `solve` does, by restart and step alone, and says after how many samples the best return of an episode has
risen. Then the best stored way is taken again in fresh episodes of an environment of its own: as it was explored, and
with sticky actions (the last action is repeated with 0.25), through which no list of actions can be relied on. A run
that was stopped by ``--minutes`` goes on where its folder stands.

Montezuma's Revenge needs the package ale-py.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.json_lines import read_lines
from curious_explorer import Exploration, Frontier, GymWorld
from curious_explorer.explorers.frontier import SAVE_EVERY
from curious_explorer.explorers.frontier_files import claim_folder, read_counts, write_counts
from curious_explorer.gym.agents import WayAgent, play_episodes
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.make_env import make_by_id

GAME = "ale_py:ALE/MontezumaRevenge-v5"
GAMMA = 0.99
EPISODES = 50
EACH = 1_000


@dataclass(frozen=True)
class Rise:
    """The best return of an episode so far, and after how many samples it was."""

    samples: int
    returned: float


def explore(task: str, seed: int, samples: int, seconds: float, folder: Path) -> dict[str, Any]:
    """Explore, as far as time allows; what came of it so far."""
    began = time.process_time()
    world, frontier = GymWorld(task, seed=seed, time_limits=True), Frontier()
    looked, log = world.samples, folder / "rises.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    with claim_folder(folder / "exploration", world, frontier, GAMMA, samples):
        run = frontier.begin(world, read_counts(folder / "exploration"), samples=samples)
        rises = [rise for rise in read_lines(log, Rise) if rise.samples <= looked + run.taken]
        first, late = run.taken, False
        while looked + run.taken < samples and not run.done and not late:
            run.advance(min(run.taken + EACH, samples - looked))
            best = Rise(0, 0.0) if run.ways is None else Rise(looked + run.ways.best.samples, run.ways.best.returned)
            if best.returned > max((rise.returned for rise in rises), default=0.0):
                rises.append(best)
                log.write_text("".join(json.dumps(asdict(rise)) + "\n" for rise in rises))
                print(f"seed {seed}: {best.returned:g} after {best.samples:,}", flush=True)
            late = time.process_time() - began > seconds
            if run.taken // SAVE_EVERY > (run.taken - EACH) // SAVE_EVERY:
                write_counts(folder / "exploration", run.counts(GAMMA))
                run = frontier.begin(world, read_counts(folder / "exploration"), samples=samples)  # as after a kill
                print(f"seed {seed}: {looked + run.taken:,} samples, {len(run.model):,} cells", flush=True)
        write_counts(folder / "exploration", run.counts(GAMMA))
    cells, taken = world.discretisation.cells.describe(), run.taken
    world.close()
    return {
        "seed": seed,
        "samples": looked + taken,
        "cells": len(run.model),
        "cells_are": cells,
        "rises": rises,
        "milliseconds": 1_000.0 * (time.process_time() - began) / max(1, taken - first),
        "returns": None if run.ways is None else [run.ways.arrived, run.ways.failed],
    }


def play_again(task: str, folder: Path, seed: int) -> tuple[int, list[float]]:
    """How long the best stored way is, and what it returns in fresh episodes."""
    found = Exploration.load(folder / "exploration")
    if found.ways is None or found.discretisation is None:
        return 0, [0.0]
    agent = WayAgent(found.ways.best_way(), Discretisation.from_stored(found.discretisation), seed=seed)
    env = make_by_id(task)
    played = play_episodes(env, agent, EPISODES, seed=10_000 + seed, longest=agent.steps_known)
    env.close()
    return agent.steps_known, played.returns


def main() -> None:
    """Explore and play for each seed; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2_000_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of processor time, for each seed in this call")
    parser.add_argument("--out", type=Path, default=Path("results/stored_ways"))
    given = parser.parse_args()
    still, sticky = (f"{GAME}?repeat_action_probability={share}" for share in (0.0, 0.25))
    print("| seed | samples | cells | best return after so many samples | ms a step | steps | again | sticky |")
    print("|---|---|---|---|---|---|---|---|")
    for seed in given.seeds:
        folder = given.out / str(seed)
        found = explore(still, seed, given.samples, 60.0 * given.minutes, folder)
        steps, again = play_again(still, folder, seed)
        _, led_astray = play_again(sticky, folder, seed)
        rises = ", ".join(f"{rise.returned:g} after {rise.samples:,}" for rise in found["rises"]) or "none"
        print(
            f"| {seed} | {found['samples']:,} | {found['cells']:,} | {rises} | {found['milliseconds']:.2f} | {steps} | "
            f"{np.mean(again):g} ({min(again):g} to {max(again):g}) | {np.mean(led_astray):.3g} |",
            flush=True,
        )
        print(f"seed {seed}: cells are {found['cells_are']}; returns that arrived, and failed: {found['returns']}")


if __name__ == "__main__":
    main()
