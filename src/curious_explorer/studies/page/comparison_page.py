"""The page of a comparison, and the section that it is on the page of a reproduction."""

from __future__ import annotations

from html import escape
from string import Template
from typing import Any

import numpy as np

from curious_explorer.studies.comparison.comparison_grid import OWN_BUDGET, TARGET, Comparison
from curious_explorer.studies.comparison.comparison_summary import Results, band
from curious_explorer.studies.comparison.methods import DEFAULT_METHODS
from curious_explorer.studies.page.comparison_tables import (
    aggregate_table,
    constants_table,
    target_table,
    versions_table,
)
from curious_explorer.studies.page.page_assembly import Part, page_html, read_part, versions

TITLE = "Curious Explorer: exploration methods compared"
LINKS = [
    ("comparison", "Explorers compared"),
    ("comparison-target", "Samples to the target"),
    ("comparison-curves", "Curves"),
    ("comparison-profile", "Profile"),
    ("comparison-improvement", "Who beats whom"),
    ("comparison-settings", "Settings"),
]
DIGITS = 4


def comparison_html(results: Results) -> str:
    """The whole page."""
    part = comparison_part(results, alone=True)
    return page_html(TITLE, lead(results), part.links, part.html, [part])


def comparison_part(results: Results, *, alone: bool = False) -> Part:
    """The sections of a comparison; on another study's page, not ``alone``, they say the result themselves."""
    comparison = results.comparison
    html = Template(read_part("comparison.html")).substitute(
        intro="" if alone else f"<p>{escape(lead(results))}</p>\n",
        gamma=f"{comparison.gamma:g}",
        target=f"{TARGET:.0%}",
        aggregate=aggregate_table(results),
        to_target=target_table(results),
        constants=constants_table(results),
        versions=versions_table(versions()),
        command=escape(command_of(comparison)),
    )
    return Part("comparison", LINKS, html, comparison_data(results))


def lead(results: Results) -> str:
    """The result in a few sentences."""
    seeds, aggregate = results.comparison.seeds, results.summary["aggregate"]
    runs = len(results.methods) * len(results.budgets) * seeds
    samples = sum(run.used for m in results.methods for e in results.budgets for run in results.runs(m, e))
    reliable = [name for name in results.methods if aggregate[name]["reached_target"] == 1.0]
    sentences = [
        f"{len(results.methods)} methods, {len(results.budgets)} environments, {seeds} seeds: {runs:,} runs and "
        f"{samples / 1e6:,.1f} million steps, at equal budgets on each environment."
    ]
    if reliable and len(reliable) < len(results.methods):
        sentences.append(f"{TARGET:.0%} of the best value was reached in every run by {', '.join(reliable)}.")
    elif reliable:
        sentences.append(f"Every run of every method reached {TARGET:.0%} of the best value.")
    fastest = [_fastest(results, environment) for environment in results.budgets]
    sentences.append(f"Fewest samples to get there, as a median over seeds: {', '.join(fastest)}.")
    return " ".join(sentences)


def _fastest(results: Results, environment: str) -> str:
    medians = {
        name: cell["samples_to_target"]
        for name, cell in results.summary["environments"][environment].items()
        if cell["samples_to_target"] is not None
    }
    if not medians:
        return f"nobody on {environment}"
    best = min(medians, key=lambda name: medians[name])
    return f"{best} on {environment} ({medians[best]:,.0f})"


def command_of(comparison: Comparison) -> str:
    """The command that does this comparison again."""
    words = ["curious-explorer compare"]
    if comparison.methods != DEFAULT_METHODS:
        words.append(f"--methods {','.join(comparison.methods)}")
    budgets = comparison.budgets
    if len(set(budgets.values())) == 1:
        words.append(f"--environments {','.join(budgets)} --budget {next(iter(budgets.values()))}")
    else:
        words.append("--environments " + ",".join(f"{name}{OWN_BUDGET}{budget}" for name, budget in budgets.items()))
    words.append(f"--seeds {comparison.seeds}")
    if comparison.gamma != Comparison.gamma:
        words.append(f"--gamma {comparison.gamma:g}")
    return " ".join(words)


def comparison_data(results: Results) -> dict[str, Any]:
    """Everything that the script needs."""
    summary = results.summary
    profile = summary["performance_profile"]
    return {
        "methods": results.methods,
        "target": TARGET,
        "environments": [_environment(results, environment) for environment in results.budgets],
        "profile": {"taus": _rounded(profile["taus"]), "shares": [_rounded(profile[m]) for m in results.methods]},
        "improvement": {
            measure: [[_chance(pairs[one].get(other)) for other in results.methods] for one in results.methods]
            for measure, pairs in summary["probability_of_improvement"].items()
        },
    }


def _environment(results: Results, environment: str) -> dict[str, Any]:
    bands = [band(results, method, environment) for method in results.methods]
    cells = [results.summary["environments"][environment][method] for method in results.methods]
    return {
        "name": environment,
        "budget": results.budgets[environment],
        "samples": bands[0].samples.round().tolist(),
        "curves": [[_rounded(each.middle), _rounded(each.low), _rounded(each.high)] for each in bands],
        "toTarget": [cell["samples_to_target"] for cell in cells],
        "reached": [cell["reached_target"] for cell in cells],
    }


def _chance(pair: dict[str, Any] | None) -> list[float] | None:
    """A probability and its interval; nothing for a method against itself."""
    return None if pair is None else [round(value, 3) for value in (pair["probability"], *pair["interval"])]


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), DIGITS).tolist()
