"""The page put together: a template, its style and script, Plotly, tables and data."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from html import escape
from importlib import metadata, resources
from string import Template
from typing import Any

from curious_explorer import __version__
from curious_explorer.experiments.extras import require
from curious_explorer.experiments.findings import NOT_REPRODUCED, PAST, REPRODUCED, VISIBLE, Finding, findings
from curious_explorer.experiments.page.data import page_data
from curious_explorer.experiments.page.tables import results_table, samples_table, settings_list, theory_table
from curious_explorer.experiments.running import CellRun
from curious_explorer.experiments.study import Study
from curious_explorer.experiments.summary import by_cell


def report_html(study: Study, runs: Sequence[CellRun], command: str) -> str:
    """The whole page."""
    found = findings(runs)
    settings = json.dumps(study.described(), indent=2)
    return Template(_part("template.html")).substitute(
        css=_part("page.css"),
        js=_part("page.js"),
        plotly=require("plotly.offline").get_plotlyjs(),
        data=json_in_html(page_data(runs)),
        lead=lead(found, runs),
        results=results_table(runs, found),
        samples=samples_table(runs),
        theory=theory_table(runs),
        settings=settings_list(study.cells, versions(), range(study.seeds), settings),
        command=escape(command),
    )


def json_in_html(value: Any) -> str:
    """JSON that no HTML parser can mistake for markup, wherever it stands."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def lead(found: Sequence[Finding], runs: Sequence[CellRun]) -> str:
    """The result in a few sentences."""
    by_verdict = {
        verdict: [finding.cell.title for finding in found if finding.verdict == verdict]
        for verdict in (REPRODUCED, NOT_REPRODUCED, PAST)
    }
    judged = sum(map(len, by_verdict.values()))
    samples = sum(run.exploration_samples + run.learning_samples for run in runs)
    sentences = [f"{len(by_cell(runs))} cells, {len(runs)} runs, {samples / 1e6:,.0f} million steps with CE."]
    if judged:
        sentences.append(f"Of the paper's {judged} findings here, {len(by_verdict[REPRODUCED])} are reproduced.")
    if by_verdict[PAST]:
        sentences.append(f"Past the paper, which saw no reward at all: {', '.join(by_verdict[PAST])}.")
    if by_verdict[NOT_REPRODUCED]:
        sentences.append(f"Not reproduced: {', '.join(by_verdict[NOT_REPRODUCED])}.")
    worth = [finding.cell.title for finding in found if finding.end_with_ce - finding.end_without_ce > VISIBLE]
    sentences.append(
        "Where the learner without CE is given the exploration's steps too, CE still brings more in the end on: "
        f"{', '.join(worth) or 'none of the cells'}."
    )
    return escape(" ".join(sentences))


def versions() -> dict[str, str]:
    """What the results were made with."""
    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "matplotlib", "plotly")}
    return {"curious-explorer": __version__, "Python": platform.python_version(), **packages}


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
