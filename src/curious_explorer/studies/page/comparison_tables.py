"""The tables of a comparison, as HTML; whatever comes from data is text and stays text."""

from __future__ import annotations

from html import escape
from typing import Any

from curious_explorer.studies.comparison.comparison_grid import TARGET
from curious_explorer.studies.comparison.comparison_summary import Results
from curious_explorer.studies.page.reproduction_tables import table


def aggregate_table(results: Results) -> str:
    """All environments together; time is not a matter of the method alone, but of this machine too."""
    head = [
        "method",
        "final value, of the best (IQM)",
        "95% interval",
        f"runs that reached {TARGET:.0%}",
        "states seen",
        "seconds a run",
        "steps a second",
    ]
    rows = []
    for place, (method, figures) in enumerate(results.summary["aggregate"].items()):
        low, high = figures["iqm_interval"]
        seconds = float(results.seconds(method).mean())
        used = sum(run.used for environment in results.budgets for run in results.runs(method, environment))
        speed = used / max(float(results.seconds(method).sum()), 1e-9)
        rows.append(
            [
                _name(method, place),
                _bar(figures["iqm"], f"{figures['iqm']:.3f}"),
                _sorted(low, f"{low:.3f} to {high:.3f}"),
                _bar(figures["reached_target"], f"{figures['reached_target']:.0%}"),
                _bar(figures["coverage"], f"{figures['coverage']:.0%}"),
                _sorted(seconds, f"{seconds:.2f}"),
                _sorted(speed, f"{speed:,.0f}"),
            ]
        )
    return table(head, rows, "All environments together", sortable=True)


def target_table(results: Results) -> str:
    """Median samples to the target on each environment, with the interval under them."""
    head = ["method", *(f"{environment}, of {budget:,}" for environment, budget in results.budgets.items())]
    rows = []
    for place, method in enumerate(results.methods):
        cells = [results.summary["environments"][environment][method] for environment in results.budgets]
        rows.append([_name(method, place), *map(_target_cell, cells)])
    return table(head, rows, "Samples to the target", sortable=True)


def _target_cell(cell: dict[str, Any]) -> str:
    median = cell["samples_to_target"]
    if median is None:
        return f"<td>– <small>{cell['reached_target']:.0%} of runs</small></td>"
    low, high = cell["samples_to_target_interval"]
    most = "never" if high is None else f"{high:,.0f}"
    return _sorted(median, f"{median:,.0f} <small>{low:,.0f} to {most}</small>")


def constants_table(results: Results) -> str:
    """What each method's constants were."""
    described = results.comparison.described()["methods"]
    rows = [[escape(name), f'<td class="words">{escape(text)}</td>'] for name, text in described.items()]
    return table(["method", "constants"], rows, "Constants")


def versions_table(versions: dict[str, str]) -> str:
    """What the results were made with."""
    rows = [[escape(name), f'<td class="words">{escape(version)}</td>'] for name, version in versions.items()]
    return table(["what", "version"], rows, "Versions")


def _name(method: str, place: int) -> str:
    """A row's head; sorting by it brings back the order in which methods were named."""
    return f'<th scope="row" data-sort="{place}">{escape(method)}</th>'


def _sorted(value: float, text: str) -> str:
    return f'<td data-sort="{value:.9g}">{text}</td>'


def _bar(share: float, text: str) -> str:
    """A share with a bar behind it, which is for the eye only."""
    return f'<td class="bar" data-sort="{share:.9g}" style="--share:{min(max(share, 0.0), 1.0):.1%}">{text}</td>'
