"""Exact solvers: ours against QuantEcon's DiscreteDP on the same problems, and cost against the number of states.

``python -m benchmarks.exact_solvers`` prints the table and saves the cost curve to ``results/bench/exact_cost.png``.
QuantEcon's problem objects are built outside the timing. Everything is run once before it is timed, so compilation does
not count, and the median of several runs is reported. At a million states QuantEcon is timed at its default accuracy
(epsilon 1e-3) and, in a row of its own, at an accuracy like ours.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from curious_explorer.environments import combination_lock, garnet, one_way_maze
from curious_explorer.exact.evaluation import evaluation_report
from curious_explorer.exact.max_visitation import max_visitation_report
from curious_explorer.exact.optimal import solve
from curious_explorer.exact.visitation import visitation_report
from curious_explorer.mdp.finite_mdp import FiniteMDP

GAMMA = 0.95
LARGE = 10**6
CURVE_SIZES = (10**2, 10**3, 10**4, 10**5, 10**6)
OUTPUT = Path("results/bench/exact_cost.png")


class Row(NamedTuple):
    """One line of the table; times in seconds, None where there is nothing to compare with."""

    name: str
    ours: float
    theirs: float | None
    ratio: float | None
    method: str


class Memory(NamedTuple):
    """What `visitation` at a million states costs beyond the MDP itself."""

    seconds: float
    peak_bytes: int
    residual: float


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def compare(name: str, method: str, ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> Row:
    our_time, their_time = median_seconds(ours, repeats), median_seconds(theirs, repeats)
    return Row(name, our_time, their_time, their_time / our_time, method)


def quantecon_problem(mdp: FiniteMDP, rewards: np.ndarray[Any, Any] | None = None) -> Any:
    from quantecon.markov import DiscreteDP

    states = np.repeat(np.arange(mdp.num_states), mdp.num_actions)
    actions = np.tile(np.arange(mdp.num_actions), mdp.num_states)
    table = mdp.rewards if rewards is None else rewards
    return DiscreteDP(table.ravel(), mdp.transitions, GAMMA, states, actions)


def small_rows() -> list[Row]:
    """DCL(40), 124 states: call overhead is most of the cost."""
    mdp = combination_lock(40)
    theirs = quantecon_problem(mdp)
    solution = solve(mdp, gamma=GAMMA)
    actions = solution.policy.argmax(axis=1)
    policy = np.eye(mdp.num_actions)[actions]
    report = evaluation_report(mdp, policy, gamma=GAMMA)
    return [
        compare(
            "solve, DCL(40), 124 states",
            solution.method,
            lambda: solve(mdp, gamma=GAMMA),
            lambda: theirs.solve("modified_policy_iteration"),
            200,
        ),
        compare(
            "evaluate, DCL(40), 124 states",
            report.method,
            lambda: evaluation_report(mdp, policy, gamma=GAMMA),
            lambda: theirs.evaluate_policy(actions),
            200,
        ),
    ]


def coverage_row() -> Row:
    """`max_visitation` of DCL(20) against one QuantEcon solution for each state."""
    mdp = combination_lock(20)
    problems = []
    for state in range(mdp.num_states):
        rewards = np.zeros(mdp.rewards.shape)
        rewards[state] = 1.0
        problems.append(quantecon_problem(mdp, rewards))

    def state_by_state() -> list[float]:
        return [float(mdp.start @ problem.solve("modified_policy_iteration").v) for problem in problems]

    method = max_visitation_report(mdp, gamma=GAMMA).method
    name = "max_visitation, DCL(20), 64 states"
    return compare(name, method, lambda: max_visitation_report(mdp, gamma=GAMMA), state_by_state, 11)


def maze_rows() -> list[Row]:
    """A one-way maze has cycles: every state of ten thousand as a target, and one goal among a million states."""
    cells = one_way_maze(100)
    most = max_visitation_report(cells, gamma=GAMMA)
    maze = one_way_maze(1000)
    solution = solve(maze, gamma=GAMMA)
    return [
        Row(
            "max_visitation, one-way maze of 10^4 cells",
            median_seconds(lambda: max_visitation_report(cells, gamma=GAMMA), 1),
            *(None, None, most.method),
        ),
        Row(
            "solve, one-way maze of 10^6 cells",
            median_seconds(lambda: solve(maze, gamma=GAMMA), 3),
            *(None, None, solution.method),
        ),
    ]


def large_rows(mdp: FiniteMDP) -> list[Row]:
    """A random graph of a million states; QuantEcon's sparse LU policy evaluation does not return here."""
    theirs = quantecon_problem(mdp)
    policy = mdp.uniform_policy()
    solution = solve(mdp, gamma=GAMMA)
    ours = median_seconds(lambda: solve(mdp, gamma=GAMMA), 3)
    # Unnormalised values: what bounds ours by 1e-10 bounds theirs by 1e-10 / (1 - gamma).
    accuracies = {"default accuracy": 1e-3, "same accuracy": 1e-10 / (1.0 - GAMMA)}
    rows = []
    for label, epsilon in accuracies.items():
        seconds = median_seconds(lambda e=epsilon: theirs.solve("modified_policy_iteration", epsilon=e), 1)  # type: ignore[misc]
        rows.append(Row(f"solve, garnet 10^6, QuantEcon at {label}", ours, seconds, seconds / ours, solution.method))
    for name, report in (("visitation", visitation_report), ("evaluate", evaluation_report)):
        method = report(mdp, policy, gamma=GAMMA).method
        seconds = median_seconds(lambda f=report: f(mdp, policy, gamma=GAMMA), 3)  # type: ignore[misc]
        rows.append(Row(f"{name}, garnet 10^6", seconds, None, None, method))
    return rows


def large_memory(mdp: FiniteMDP) -> Memory:
    """Time, extra memory and residual of `visitation` at a million states."""
    policy = mdp.uniform_policy()
    seconds = median_seconds(lambda: visitation_report(mdp, policy, gamma=GAMMA), 3)
    tracemalloc.start()  # agrees with the growth of resident memory: it sees what compiled kernels allocate too
    report = visitation_report(mdp, policy, gamma=GAMMA)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Memory(seconds, peak, report.residual)


def layered(num_states: int, num_actions: int = 4, branching: int = 2, seed: int = 0) -> FiniteMDP:
    """A random MDP in which every action leads to states further on; the last one is terminal."""
    random = np.random.default_rng(seed)
    here = np.repeat(np.arange(num_states - 1), num_actions * branching)
    ahead = np.minimum(here + 1 + random.integers(100, size=here.size), num_states - 1)
    pairs = np.repeat(np.arange((num_states - 1) * num_actions), branching)
    shape = (num_states * num_actions, num_states)
    rows = sparse.csr_array(sparse.coo_array((np.full(here.size, 1.0 / branching), (pairs, ahead)), shape=shape))
    rewards = random.random((num_states, num_actions))
    return FiniteMDP.from_rows(rows, rewards, 0, terminal=[num_states - 1])


Curve = dict[str, list[tuple[int, float]]]


def cost_curve() -> Curve:
    """Seconds against the number of states, for two kinds of MDP and two questions."""
    curve: Curve = {}
    for kind, make in (("garnet", garnet), ("layered", layered)):
        for size in CURVE_SIZES:
            mdp = make(size)
            policy = mdp.uniform_policy()
            repeats = 20 if size < 10**4 else 3
            visit = median_seconds(lambda m=mdp, p=policy: visitation_report(m, p, gamma=GAMMA), repeats)  # type: ignore[misc]
            best = median_seconds(lambda m=mdp: solve(m, gamma=GAMMA), repeats)  # type: ignore[misc]
            curve.setdefault(f"visitation, {kind}", []).append((size, visit))
            curve.setdefault(f"solve, {kind}", []).append((size, best))
    return curve


def save_curve(curve: Curve, path: Path = OUTPUT) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for (name, points), style in zip(curve.items(), ("o-", "s-", "o--", "s--"), strict=True):
        axes.loglog(*zip(*points, strict=True), style, label=name)
    axes.set_xlabel("number of states")
    axes.set_ylabel("seconds, one core")
    axes.set_title(f"Exact solvers, gamma = {GAMMA}, 4 actions, 2 successors each")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def report(console: Console) -> None:
    """Print everything, and save the cost curve."""
    mdp = garnet(LARGE, 4, 2)
    table = Table("what", "ours", "QuantEcon", "ratio", "method", title=f"Exact solvers, gamma = {GAMMA}")
    for row in [*small_rows(), coverage_row(), *maze_rows(), *large_rows(mdp)]:
        theirs = "" if row.theirs is None else f"{row.theirs:.3g} s"
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}"
        table.add_row(row.name, f"{row.ours:.3g} s", theirs, ratio, row.method)
    console.print(table)
    memory = large_memory(mdp)
    extra = f"{memory.peak_bytes / 2**30:.2f} GiB extra"
    console.print(f"visitation at 10^6 states: {memory.seconds:.2f} s, {extra}, L1 residual {memory.residual:.1e}")
    console.print(f"cost curve: {save_curve(cost_curve())}")


if __name__ == "__main__":
    report(Console(width=120))
