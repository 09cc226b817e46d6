"""The curves of `benchmarks.scaling`, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Report = dict[str, Any]
GIB = 2**30


def draw(report: Report, path: Path) -> None:
    """Six panels, from whatever the report has."""
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    axes = figure.subplots(2, 3)
    good = [case for case in report["cases"] if "error" not in case]
    models = [case for case in good if case["study"] == "model"]
    explorations = [case for case in good if case["study"] == "exploration"]
    by_size = [case for case in explorations if case["rounds"] == 4]
    by_rounds = sorted((case for case in explorations if case["states"] < 2e5 and case["states"] > 5e4), key=_rounds)
    sizes = [case["states"] for case in models]

    for name in ("build", "save", "load", "load mapped", "world"):
        axes[0, 0].plot(sizes, [case["seconds"][name] for case in models], "o-", label=name)
    _label(axes[0, 0], "A model with 4 actions, 2 successors each", "states", "seconds")
    for name, label in (("array_bytes", "the arrays"), ("build_bytes", "peak while building")):
        axes[0, 1].plot(sizes, [case[name] / GIB for case in models], "o-", label=label)
    axes[0, 1].plot(sizes, [case["peak_bytes"] / GIB for case in models], "o-", label="peak, walking included")
    peaks = [case["peak_bytes"] / GIB for case in by_size]
    axes[0, 1].plot([case["states"] for case in by_size], peaks, "s--", label="peak, exploring a maze (4 rounds)")
    _label(axes[0, 1], "Memory", "states", "GiB")
    axes[0, 2].plot(sizes, [case["steps_a_second"] for case in models], "o-", label="visit")
    _label(axes[0, 2], "Walking under the uniform policy", "states", "steps a processor second")

    axes[1, 0].plot([case["states"] for case in by_size], [case["seconds"]["explore"] for case in by_size], "o-")
    _label(axes[1, 0], "4 rounds of exploration on a maze", "states", "seconds")
    rounds = [case["rounds"] for case in by_rounds]
    axes[1, 1].plot(rounds, [case["seconds"]["explore"] for case in by_rounds], "o-", label="seconds, 10^5 states")
    axes[1, 1].plot(rounds, [case["samples"] / 1e6 for case in by_rounds], "o-", label="million samples")
    _label(axes[1, 1], "Against rounds", "rounds", "")
    depths = [case for case in good if case["study"] == "depth"]
    levels = [case["depth"] for case in depths]
    axes[1, 2].plot(levels, [case["samples"] / 1e6 for case in depths], "o-", label="million samples, lock, by depth")
    many = [case for case in good if case["study"] == "seeds"]
    axes[1, 2].plot(
        [case["seeds"] for case in many], [case["seconds"]["all"] for case in many], "s-", label="seconds, by seeds"
    )
    _label(axes[1, 2], "Against depth and seeds", "depth, or seeds", "")
    figure.savefig(path, dpi=80)


def _rounds(case: Report) -> int:
    return int(case["rounds"])


def _label(axes: Any, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8)
