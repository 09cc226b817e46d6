"""The pages of a reproduction and of a comparison, which can also be a section of the other; see `page_assembly`.

Numbers come from `paper_results` and `comparison_results`; drawings get them rounded to what a screen can tell apart.
Whatever comes from data is text and stays text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.mdp.layout import edges_of, layout_states
from curious_explorer.studies.comparison_results import ComparisonResults
from curious_explorer.studies.comparison_run import TARGET
from curious_explorer.studies.page.page_assembly import (
    Part,
    bar_field,
    fill,
    page_html,
    sorted_field,
    table,
    text_table,
    versions_table,
)
from curious_explorer.studies.page.run_page import film_of
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import (
    FEWEST_SEEDS,
    NO_GAIN,
    NOT_REPRODUCED,
    PAST,
    REPRODUCED,
    VERDICTS,
    WEAKER,
    ExperimentResults,
    Finding,
    Spread,
    few_seeds,
    size_of,
    with_verdict,
)
from curious_explorer.studies.runner import counted

REPRODUCTION_TITLE = "Curious Explorer: the paper's experiments, reproduced"
REPRODUCTION_LINKS = [("results", "Results"), ("look", "A closer look"), ("samples", "Samples"), ("theory", "Theory")]
FILM_TITLE = "Every round of every experiment"
COMPARISON_TITLE = "Curious Explorer: exploration methods compared"
COMPARISON_LINKS = [
    ("comparison", "Explorers compared"),
    ("comparison-target", "Samples to the target"),
    ("comparison-curves", "Curves"),
    ("comparison-profile", "Profile"),
    ("comparison-improvement", "Who beats whom"),
    ("comparison-settings", "Settings"),
]
THEORY_COLUMNS = {
    "theorem_1_left": "sum of max d(K)",
    "theorem_1_a_posteriori": "a posteriori",
    "theorem_1_repaired": "repaired",
    "theorem_1_printed": "as printed",
    "exploitative_factor": "e",
    "mismatch": "mismatch",
    "mismatch_ideal": "ideal",
    "certificate": "certified max d(K)",
    "certificate_truth": "its truth",
}

# The reproduction ----------------------------------------------------------------------------------------------------


def reproduction_html(
    study: Study,
    results: Sequence[ExperimentResults],
    comparison: ComparisonResults | None = None,
    film: Path | None = None,
) -> str:
    """The page of a reproduction, with the section of a comparison and with the film if there is one."""
    compared = [] if comparison is None else [comparison_part(comparison)]
    body = fill(
        "reproduction.html",
        results=results_table(results),
        samples=samples_table(results),
        theory=theory_table(results),
        film="" if film is None else f'<h3 id="film">{FILM_TITLE}</h3>\n{film_of(film, FILM_TITLE)}',
        comparison="".join(part.html for part in compared),
        settings=settings_list(study),
        command=escape(study.command),
    )
    links = [*REPRODUCTION_LINKS, *(part.links[0] for part in compared), ("settings", "Settings")]
    data = {"experiments": [_experiment_data(result) for result in results]}
    parts = [Part("reproduction", links, body, data), *compared]
    return page_html(REPRODUCTION_TITLE, reproduction_lead(results), links, body, parts)


def reproduction_lead(results: Sequence[ExperimentResults]) -> str:
    """The result in a few sentences."""
    titles = {verdict: [result.experiment.title for result in with_verdict(results, verdict)] for verdict in VERDICTS}
    runs = [run for result in results for run in result.runs]
    samples = sum(run.exploration_samples + run.learning_samples for run in runs)
    sentences = [f"{counted(len(results), 'experiment')}, {counted(len(runs), 'run')}, {_steps(samples)} with CE."]
    if (seeds := len(results[0].runs)) < FEWEST_SEEDS:
        sentences.append(few_seeds(seeds))
    if judged := sum(map(len, titles.values())):
        sentences.append(f"Of the paper's {judged} findings here, {len(titles[REPRODUCED])} are reproduced.")
    if titles[PAST]:
        sentences.append(f"Past the paper, which saw no reward at all: {', '.join(titles[PAST])}.")
    if titles[WEAKER]:
        sentences.append(f"A gain for certain, but perhaps not as large as the paper's: {', '.join(titles[WEAKER])}.")
    if titles[NOT_REPRODUCED]:
        sentences.append(f"Not reproduced: {', '.join(titles[NOT_REPRODUCED])}.")
    worth = [result.experiment.title for result in results if size_of(result.finding.end_gain) != NO_GAIN]
    sentences.append(
        "Where the learner without CE is given the exploration's steps too, CE still brings more in the end on: "
        f"{', '.join(worth) or 'none of the experiments'}."
    )
    return " ".join(sentences)


def _steps(samples: float) -> str:
    return f"{samples / 1e6:,.0f} million steps" if samples >= 1e7 else f"{samples:,.0f} steps"


def results_table(results: Sequence[ExperimentResults]) -> str:
    """Values beside what the paper says."""
    head = ["experiment", "with CE", "without, same learning", "without, all steps", "the paper: CE brings", "here"]
    rows = [
        [escape(each.experiment.title), *map(_spread_field, each.spreads.values()), *_finding_fields(each.finding)]
        for each in results
    ]
    return table(head, rows, "Results")


def _spread_field(spread: Spread) -> str:
    return f"{spread.mean:.3f} ± {spread.std:.3f} <small>worst {spread.min:.3f}</small>"


def _finding_fields(finding: Finding) -> list[str]:
    kind = finding.verdict.replace(" ", "-")
    verdict = f'<span class="verdict {kind}">{finding.verdict}</span>: ' if finding.verdict else ""
    paper = finding.paper or "no such experiment"
    return [f'<td class="words">{paper}</td>', f'<td class="words">{verdict}{escape(finding.sentence)}</td>']


def samples_table(results: Sequence[ExperimentResults]) -> str:
    """Where the steps went."""
    rows = []
    for result in results:
        exploration, learning = result.exploration_samples, result.learning_samples
        counts = [f"{count:,.0f}" for count in (exploration, learning, exploration + learning)]
        rows.append([escape(result.experiment.title), *counts, f"{exploration / (exploration + learning):.0%}"])
    return table(["experiment", "exploration", "learning", "together", "exploration's share"], rows, "Samples")


def theory_table(results: Sequence[ExperimentResults]) -> str:
    """Both sides of Theorem 1, and mismatch coefficients."""
    rows = []
    for result in results:
        fields = [_bound_field(result, name) for name in THEORY_COLUMNS]
        rows.append([escape(result.experiment.title), str(len(result.first.thresholds)), *fields])
    return table(["experiment", "rounds", *THEORY_COLUMNS.values()], rows, "Theory")


def _bound_field(result: ExperimentResults, name: str) -> str:
    bound = result.bound(name)
    if bound is None:
        return "none" if name == "certificate" else "infinite"
    is_bound = name.startswith("theorem_1") and name != "theorem_1_left"
    vacuous = is_bound and bound >= len(result.first.thresholds)
    return f"{bound:,.3g}" + (" <small>vacuous</small>" if vacuous else "")


def settings_list(study: Study) -> str:
    """Versions, seeds and the exact settings of every experiment."""
    seeds, text = ", ".join(map(str, range(study.seeds))), json.dumps(study.described(), indent=2)
    return (
        f"<p>Seeds: {seeds}. Action labels are permuted from the seed.</p>{versions_table()}"
        f"<details><summary>The exact settings of all {len(study.experiments)} experiments</summary>"
        f"<pre>{escape(text)}</pre></details>"
    )


def _experiment_data(result: ExperimentResults) -> dict[str, Any]:
    """What the page's script draws of an experiment."""
    experiment, run, mdp = result.experiment, result.first, result.mdp
    return {
        "name": experiment.name,
        "title": experiment.title,
        "gamma": run.gamma,
        "beta": run.beta,
        "best": result.best,
        "return": result.kind_of_return,
        "exploration": result.exploration_samples,
        "states": list(mdp.state_names),
        "terminal": mdp.terminal.tolist(),
        "starts": np.flatnonzero(mdp.start > 0.0).tolist(),
        "places": _rounded(layout_states(mdp)),
        "edges": [
            [int(tail), int(head), round(float(probability), 3), bool(reward > 0.0), bool(reverse and tail != head)]
            for tail, head, probability, reward, reverse in zip(*edges_of(mdp), strict=True)
        ],
        "mu": _rounded(result.mu),
        "shares": _rounded(result.shares),
        "thresholds": [float(f"{threshold:.3g}") for threshold in run.thresholds],
        "poor": run.poorly_visited.astype(int).tolist(),
        "curves": {axis: _returns_data(result, axis) for axis in ("episodes", "samples")},
    }


def _returns_data(result: ExperimentResults, axis: str) -> dict[str, Any]:
    bands = result.returns(axis)
    return {
        name: {
            "x": bands[arm].effort.round().tolist(),
            **{key: _rounded(getattr(bands[arm], key)) for key in ("mean", "low", "high")},
        }
        for name, arm in (("with", "with_ce"), ("without", "without_ce_total_budget"))
    }


# The comparison ------------------------------------------------------------------------------------------------------


def comparison_html(results: ComparisonResults) -> str:
    """The page of a comparison."""
    part = comparison_part(results, alone=True)
    return page_html(COMPARISON_TITLE, comparison_lead(results), part.links, part.html, [part])


def comparison_part(results: ComparisonResults, *, alone: bool = False) -> Part:
    """The sections of a comparison; on another study's page, not ``alone``, they say the result themselves."""
    comparison, described = results.comparison, results.comparison.described()
    html = fill(
        "comparison.html",
        intro="" if alone else f"<p>{escape(comparison_lead(results))}</p>\n",
        gamma=f"Gamma is {described['gamma']:g}. " if "gamma" in described else "",
        explained=escape(comparison.measure.explained),
        quantity=comparison.measure.quantity,
        seeds=comparison.measure.seeds,
        returns=returns_table(results),
        target=f"{TARGET:.0%}",
        aggregate=aggregate_table(results),
        to_target=target_table(results),
        constants=text_table(("method", "constants"), described["methods"], "Constants"),
        versions=versions_table(),
        command=escape(comparison.command),
    )
    return Part("comparison", COMPARISON_LINKS, html, comparison_data(results))


def comparison_lead(results: ComparisonResults) -> str:
    """The result in a few sentences."""
    seeds, aggregate = results.comparison.seeds, results.summary["aggregate"]
    quantity = results.comparison.measure.quantity
    runs = len(results.methods) * len(results.budgets) * seeds
    samples = sum(map(results.used, results.methods))
    reliable = [name for name in results.methods if aggregate[name]["reached_target"] == 1.0]
    sentences = [
        f"{counted(len(results.methods), 'method')}, {counted(len(results.budgets), 'environment')}, "
        f"{counted(seeds, 'seed')}: {counted(runs, 'run')} and {_steps(samples)}, at equal budgets on "
        "each environment."
    ]
    if reliable and len(reliable) < len(results.methods):
        sentences.append(f"{TARGET:.0%} of the best {quantity} was reached in every run by {', '.join(reliable)}.")
    elif reliable:
        sentences.append(f"Every run of every method reached {TARGET:.0%} of the best {quantity}.")
    fastest = [_fastest(results, environment) for environment in results.budgets]
    sentences.append(f"Fewest samples to get there, as a median over seeds: {', '.join(fastest)}.")
    return " ".join(sentences)


def _fastest(results: ComparisonResults, environment: str) -> str:
    medians = {name: results.on(environment, name)["samples_to_target"] for name in results.methods}
    reached = {name: median for name, median in medians.items() if median is not None}
    if not reached:
        return f"nobody on {environment}"
    best = min(reached, key=lambda name: reached[name])
    return f"{best} on {environment} ({reached[best]:,.0f})"


def aggregate_table(results: ComparisonResults) -> str:
    """All environments together; time is not a matter of the method alone, but of this machine too."""
    final = f"final {results.comparison.measure.quantity}, of the best (IQM)"
    head = ["method", final, "95% interval", f"runs that reached {TARGET:.0%}", "above after"]
    head += ["states seen"] if results.comparison.measure.coverage else []
    head += ["seconds a run", "steps a second"]
    rows = []
    for place, (method, figures) in enumerate(results.summary["aggregate"].items()):
        low, high = figures["iqm_interval"]
        seconds = results.seconds(method)
        speed = results.used(method) / max(float(seconds.sum()), 1e-9)
        rows.append(
            [
                _method_head(method, place),
                bar_field(figures["iqm"], f"{figures['iqm']:.3f}"),
                sorted_field(low, f"{low:.3f} to {high:.3f}"),
                bar_field(figures["reached_target"], f"{figures['reached_target']:.0%}"),
                _kept_field(figures["share_above_target"]),
                *(
                    []
                    if figures["coverage"] is None
                    else [bar_field(figures["coverage"], f"{figures['coverage']:.0%}")]
                ),
                sorted_field(float(seconds.mean()), f"{seconds.mean():.2f}"),
                sorted_field(speed, f"{speed:,.0f}"),
            ]
        )
    return table(head, rows, "All environments together", sortable=True)


def _kept_field(share: float | None) -> str:
    """How much of the rest of a run was above the target, once it was reached."""
    return "<td>–</td>" if share is None else bar_field(share, f"{share:.0%}")


def returns_table(results: ComparisonResults) -> str:
    """What was earned on each environment, in its own units; nothing where values are exact."""
    if results.comparison.measure.coverage:
        return ""
    rows = []
    for place, method in enumerate(results.methods):
        found = [results.on(name, method)["return"] for name in results.budgets]
        fields = [
            sorted_field(each["mean"], f"{each['mean']:.4g} <small>{each['least']:.4g} to {each['most']:.4g}</small>")
            for each in found
        ]
        rows.append([_method_head(method, place), *fields])
    shown = table(["method", *results.budgets], rows, "Returns", sortable=True)
    words = "A mean over seeds, and below it the worst and the best of them, in the environment's own units."
    return f'<h3 id="comparison-returns">Mean return of an episode</h3>\n<p class="quiet">{words}</p>\n{shown}\n'


def target_table(results: ComparisonResults) -> str:
    """Median samples to the target on each environment; under them their interval and how well it was kept."""
    head = ["method", *(f"{environment}, of {budget:,}" for environment, budget in results.budgets.items())]
    rows = [
        [_method_head(method, place), *(_target_field(results.on(name, method)) for name in results.budgets)]
        for place, method in enumerate(results.methods)
    ]
    return table(head, rows, "Samples to the target", sortable=True)


def _target_field(figures: dict[str, Any]) -> str:
    median = figures["samples_to_target"]
    if median is None:
        return f"<td>– <small>{figures['reached_target']:.0%} of runs</small></td>"
    low, high = figures["samples_to_target_interval"]
    most = "never" if high is None else f"{high:,.0f}"
    kept = f"{figures['share_above_target']:.0%} above after"
    return sorted_field(median, f"{median:,.0f} <small>{low:,.0f} to {most}<br>{kept}</small>")


def _method_head(method: str, place: int) -> str:
    """A row's head; sorting by it brings back the order in which methods were named."""
    return f'<th scope="row" data-sort="{place}">{escape(method)}</th>'


def comparison_data(results: ComparisonResults) -> dict[str, Any]:
    """Everything that the script needs."""
    profile = results.summary["performance_profile"]
    shares = [_rounded(profile[method], 4) for method in results.methods]
    return {
        "methods": results.methods,
        "quantity": results.comparison.measure.quantity,
        "target": TARGET,
        "environments": [_environment_data(results, environment) for environment in results.budgets],
        "profile": {"taus": _rounded(profile["taus"], 4), "shares": shares},
        "improvement": {
            measure: [[_chance(pairs[one].get(other)) for other in results.methods] for one in results.methods]
            for measure, pairs in results.summary["probability_of_improvement"].items()
        },
    }


def _environment_data(results: ComparisonResults, environment: str) -> dict[str, Any]:
    bands = [results.bands[method, environment] for method in results.methods]
    figures = [results.on(environment, method) for method in results.methods]
    return {
        "name": environment,
        "budget": results.budgets[environment],
        "samples": bands[0].samples.round().tolist(),
        "curves": [[_rounded(line, 4) for line in (band.middle, band.low, band.high)] for band in bands],
        "toTarget": [each["samples_to_target"] for each in figures],
        "reached": [each["reached_target"] for each in figures],
    }


def _chance(pair: dict[str, Any] | None) -> list[float] | None:
    """A probability and its interval; nothing for a method against itself."""
    return None if pair is None else [round(value, 3) for value in (pair["probability"], *pair["interval"])]


def _rounded(values: ArrayLike, digits: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()
