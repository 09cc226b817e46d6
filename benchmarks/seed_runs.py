"""An experiment with a thousand seeds in one call: `run_experiment` on tensors with one row for each seed.

All seeds share one MDP, whose action labels are permuted once; `run_experiment` permutes them for each seed. Nothing in
TRPO or REINFORCE tells one label from another (a uniform start, no ties to break), so values have the same
distribution; and run b is the twin of a single run with that seed on the same MDP.

The figure shows the share of seeds that reach at least a given value. A curve that stays high to the right is a method
that works whatever the seed; one that falls early fails for most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.studies.figures import PAGE_WIDTH, WITH_CE, WITHOUT_CE, new_figure, quiet
from curious_explorer.studies.paper_experiments import Experiment, ExperimentSettings
from curious_explorer.studies.paper_run import ARMS, AS_MANY_AS_THE_BUDGET_ALLOWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from curious_explorer.gpu.many_worlds import SeededWorlds

MakeWorlds = Callable[[FiniteMDP, Sequence[int]], "SeededWorlds"]

SOLVED = 0.9
"""A seed has solved its experiment if its policy is worth this fraction of the best possible value."""
SEED_LINES = {
    "with_ce": (WITH_CE, "-", "with CE"),
    "without_ce_total_budget": (WITHOUT_CE, "-", "without CE, as many steps in all"),
    "without_ce": (WITHOUT_CE, ":", "without CE, as many learning steps"),
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CONFIDENCE = 0.95
LABELS = 0
"""Seed of the action labels that all runs share."""


@dataclass(frozen=True, eq=False)
class SeedRuns:
    """What all seeds of one experiment gave; values are fractions of the best possible one, from the start."""

    experiment: Experiment
    seeds: tuple[int, ...]
    gamma: float
    optimal: float
    """The best possible value from the start, normalised."""
    values: dict[str, Floats]
    """By arm (see `ARMS`), each of shape (B,)."""
    samples: dict[str, Integers]
    """Steps taken by ``exploration``, and by the learning of each arm, each of shape (B,)."""
    seconds: dict[str, float]
    """What ``exploration`` and the learning of each arm took."""

    @property
    def total_seconds(self) -> float:
        """All of the experiment."""
        return sum(self.seconds.values())

    @property
    def total_samples(self) -> int:
        """Every step of every seed and arm."""
        return int(sum(int(steps.sum()) for steps in self.samples.values()))

    def solved(self, arm: str) -> float:
        """The share of seeds whose policy reaches `SOLVED`."""
        return float((self.values[arm] >= SOLVED).mean())

    def described(self) -> dict[str, Any]:
        """The results as plain data."""
        return {
            "experiment": self.experiment.name,
            "gamma": self.gamma,
            "optimal": self.optimal,
            "seeds": list(self.seeds),
            "labels": LABELS,
            "seconds": self.seconds,
            "samples": {name: steps.tolist() for name, steps in self.samples.items()},
            "samples_per_second": self.total_samples / self.total_seconds,
            "arms": {arm: self._described(arm) for arm in self.values},
        }

    @staticmethod
    def from_described(data: dict[str, Any]) -> SeedRuns:
        """What `described` was made from."""
        environment, depth, optimizer = data["experiment"].split("/")
        return SeedRuns(
            experiment=Experiment(environment, int(depth), optimizer),
            seeds=tuple(data["seeds"]),
            gamma=data["gamma"],
            optimal=data["optimal"],
            values={arm: np.array(described["values"]) for arm, described in data["arms"].items()},
            samples={name: np.array(steps, dtype=np.int64) for name, steps in data["samples"].items()},
            seconds=data["seconds"],
        )

    def _described(self, arm: str) -> dict[str, Any]:
        values = self.values[arm]
        quantiles = {f"{share:g}": float(np.quantile(values, share)) for share in QUANTILES}
        solved = {"solved": self.solved(arm), "solved_means": f"at least {SOLVED:g} of the best possible value"}
        return {"mean": float(values.mean()), **solved, "quantiles": quantiles, "values": values.tolist()}


def run_seeds(
    experiment: Experiment, seeds: Sequence[int], settings: ExperimentSettings, *, make_worlds: MakeWorlds | None = None
) -> SeedRuns:
    """Explore, learn, and let the rivals learn, all seeds at once; see `run_experiment`.

    ``make_worlds`` makes the worlds of all seeds; by default `SeededWorlds` on the GPU.
    """
    from curious_explorer.gpu.many_seeds import explore_many, improve_many
    from curious_explorer.gpu.many_worlds import SeededWorlds

    make = make_worlds or SeededWorlds
    mdp = experiment.mdp(LABELS)
    gamma = settings.gamma
    if settings.rounds is None or settings.visits is None:
        raise ValueError("seeds side by side need numbers of rounds and visits; the preset tuned has none, fixed has")
    best = float(mdp.start @ solve(mdp, gamma=gamma).values)
    values: dict[str, Floats] = {}
    samples: dict[str, Integers] = {}
    clock = _Stopwatch()

    worlds = make(mdp, seeds)
    exploration = explore_many(
        worlds,
        settings.exploring,
        gamma=gamma,
        rounds=settings.rounds,
        thresholds=settings.thresholds(mdp.num_states),
        visits=settings.visits,
        learn_from=settings.learn_from,
    )
    samples["exploration"] = exploration.samples.cpu().numpy()
    clock.stop("exploration")
    trained = improve_many(worlds, settings.learning, exploration.reset(settings.weighting), gamma=gamma)
    patient = replace(settings.learning, updates=AS_MANY_AS_THE_BUDGET_ALLOWS)
    arms = dict.fromkeys(ARMS, trained)
    for arm in ARMS:
        if arm != "with_ce":
            extra = exploration.samples if arm == "without_ce_total_budget" else 0
            arms[arm] = improve_many(make(mdp, seeds), patient, None, gamma=gamma, budgets=trained.samples + extra)
        values[arm] = exact_values(mdp, arms[arm].policy, gamma) / best
        samples[arm] = arms[arm].samples.cpu().numpy()
        clock.stop(arm)
    return SeedRuns(experiment, tuple(seeds), gamma, best, values, samples, clock.seconds)


def exact_values(mdp: FiniteMDP, policies: Tensor, gamma: float) -> Floats:
    """The normalised value from the start of B policies (B, S, A), shape (B,), by solving v = (1-g) r_pi + g P_pi v."""
    import torch

    def table(values: Floats) -> Tensor:
        return torch.from_numpy(np.array(values)).to(policies.device)

    chain = torch.einsum("bsa,sat->bst", policies, table(mdp.dense_transitions()))
    earned = (1.0 - gamma) * torch.einsum("bsa,sa->bs", policies, table(mdp.rewards))
    identity = torch.eye(mdp.num_states, dtype=torch.float64, device=policies.device)
    values = torch.linalg.solve(identity - gamma * chain, earned)
    result: Floats = (values @ table(mdp.start)).cpu().numpy()
    return result


def share_reaching(values: Floats) -> tuple[Floats, Floats]:
    """Points x in order, and the share of seeds that reach more than the point before and so, for all we know, x."""
    ordered = np.sort(values).clip(0.0, 1.0)  # rounding may put the best policy just above the best
    at_least = 1.0 - np.arange(len(ordered)) / len(ordered)
    return np.concatenate([[0.0], ordered, [1.0]]), np.concatenate([[1.0], at_least, [0.0]])


def band_width(count: int) -> float:
    """How far the true curve may lie from that of ``count`` seeds.

    With confidence 95%, everywhere at once (Dvoretzky, Kiefer, Wolfowitz; Massart 1990).
    """
    return math.sqrt(math.log(2.0 / (1.0 - CONFIDENCE)) / (2.0 * count))


def draw_seeds(experiments: Sequence[SeedRuns]) -> Figure:
    """One panel for each experiment, two in a row."""
    rows = math.ceil(len(experiments) / 2)
    figure = new_figure(PAGE_WIDTH, 2.5 * rows)
    for panel, runs in enumerate(experiments):
        _draw_seeds(figure.add_subplot(rows, min(2, len(experiments)), panel + 1), runs)
    return figure


def _draw_seeds(ax: Axes, runs: SeedRuns) -> None:
    for arm, (colour, style, label) in SEED_LINES.items():
        where, share = share_reaching(runs.values[arm])
        width = band_width(len(runs.seeds))
        order = 3 if arm == "with_ce" else 2
        ax.step(where, share, where="pre", color=colour, linestyle=style, linewidth=1.3, label=label, zorder=order)
        low, high = (share - width).clip(0.0), (share + width).clip(None, 1.0)
        ax.fill_between(where, low, high, step="pre", color=colour, alpha=0.12, linewidth=0)
    quiet(ax)
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("fraction of the best possible value", fontsize=7.5)
    ax.set_ylabel("share of seeds that reach it", fontsize=7.5)
    ax.set_title(f"{runs.experiment.title}, {len(runs.seeds):,} seeds", fontsize=9, loc="left", parse_math=False)
    ax.legend(fontsize=6.5, frameon=False, loc="best")


class _Stopwatch:
    """Seconds by name; each `stop` also starts the next one. Results have reached the host by then."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def stop(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name], self._began = now - self._began, now
