"""Speed beside rlberry-scool, in one run: its agents in their own interpreter, ours here, taking turns.

The same MDP (the lock of depth 20, handed over as arrays), the same discount and the same horizon. A round measures
every agent of the rival once and every method of ours twice, for as many steps as its relative took and for a long run;
the figures are medians over rounds. Every step in the environment counts, planning is included, compiling is not.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from rich.table import Table

from curious_explorer import TabularWorld
from curious_explorer.environments import combination_lock
from curious_explorer.explorers.methods import METHODS
from curious_explorer.mdp.finite_mdp import FiniteMDP

GAMMA, HORIZON, ROUNDS = 0.95, 90, 3
LONG_RUN = 1_000_000
AGENTS = {"Q-learning": 100_000, "UCBVI": 50, "UCBVI, real-time": 500}
"""Agents of rlberry-scool, and how much of each one waits for: steps, or episodes of UCBVI."""
PAIRS = [
    ("eps-greedy-q", "Q-learning"),
    ("ucb-q", "Q-learning"),
    ("ucbvi", "UCBVI"),
    ("ucbvi", "UCBVI, real-time"),
    *((method, "UCBVI") for method in ("r-max", "e3", "mbie", "mbie-eb", "beb", "ucrl2", "psrl")),
]
"""Our methods, and the nearest thing that rlberry-scool 0.7 has. It has none of the last seven, and UCBVI is its one
explorer that plans on a learned model; its real-time variant plans only in the states that it passes."""


class Rival:
    """An interpreter in which rlberry-scool answers."""

    def __init__(self, python: str, mdp: FiniteMDP) -> None:
        self._python = python
        self._folder = tempfile.TemporaryDirectory()
        arrays = Path(self._folder.name) / "mdp.npz"
        np.savez(
            arrays, transitions=mdp.dense_transitions(), rewards=mdp.rewards, start=mdp.start, terminal=mdp.terminal
        )
        child = Path(__file__).with_name("rlberry_child.py")
        self._process = subprocess.Popen(
            [python, str(child), str(arrays)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.version = self._answer()["version"]

    def __enter__(self) -> Rival:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def measure(self, agent: str, amount: int, seed: int) -> tuple[int, float]:
        """Train an agent; the steps it took, and how many a second."""
        assert self._process.stdin is not None
        request = {"agent": agent, "amount": amount, "horizon": HORIZON, "gamma": GAMMA, "seed": seed}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        return answer["steps"], answer["steps"] / answer["seconds"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ValueError(
                f"{self._python} did not answer; expected an interpreter with rlberry-scool installed "
                "(python -m venv rival && rival/bin/pip install rlberry-scool, then --rlberry rival/bin/python)"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


def our_speed(mdp: FiniteMDP, method: str, steps: int, seed: int) -> float:
    """Steps a second of one run of ours."""
    began = time.perf_counter()
    result = METHODS[method]()(TabularWorld(mdp, seed=seed), None, gamma=GAMMA, budget=steps)
    return result.samples / (time.perf_counter() - began)


def measure_all(rival: Rival, mdp: FiniteMDP) -> dict[tuple[str, str], float]:
    """Medians by what and agent: its "steps", its "speed", and by method and "short" or "long" the speeds of ours."""
    figures: dict[tuple[str, str], list[float]] = defaultdict(list)
    for agent in AGENTS:
        rival.measure(agent, 2, 0)  # compile
    for method, _ in PAIRS:
        our_speed(mdp, method, 2_000, 0)  # compile
    for seed in range(ROUNDS):
        for agent, amount in AGENTS.items():
            steps, speed = rival.measure(agent, amount, seed)
            figures["steps", agent].append(steps)
            figures["speed", agent].append(speed)
            for method in (method for method, relative in PAIRS if relative == agent):
                figures[f"{method} short", agent].append(our_speed(mdp, method, steps, seed))
                figures[f"{method} long", agent].append(our_speed(mdp, method, LONG_RUN, seed))
    return {name: float(np.median(values)) for name, values in figures.items()}


def speed_beside_rlberry(python: str) -> list[Table]:
    """The tables."""
    mdp = combination_lock(20)
    with Rival(python, mdp) as rival:
        measured = measure_all(rival, mdp)
    theirs = Table(title=f"rlberry-scool {rival.version} on DCL(20), horizon {HORIZON}, medians of {ROUNDS} rounds")
    for name in ("agent", "trained for", "environment steps a second"):
        theirs.add_column(name, justify="left" if name == "agent" else "right")
    for agent in AGENTS:
        theirs.add_row(agent, f"{measured['steps', agent]:,.0f} steps", f"{measured['speed', agent]:,.0f}")
    table = Table(title="Ours in the same run: environment steps a second")
    names = ("method", "relative there", "as many steps", "times as fast", f"{LONG_RUN:,} steps", "times as fast")
    for name in names:
        table.add_column(name, justify="left" if name in names[:2] else "right")
    for method, relative in PAIRS:
        short, long = measured[f"{method} short", relative], measured[f"{method} long", relative]
        ratios = [f"{speed / measured['speed', relative]:,.0f}" for speed in (short, long)]
        table.add_row(method, relative, f"{short:,.0f}", ratios[0], f"{long:,.0f}", ratios[1])
    return [theirs, table]
