"""The page of a reproduction: results beside what the paper says, a closer look at every cell, theory, settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from string import Template

from curious_explorer.studies.comparison.comparison_summary import Results
from curious_explorer.studies.findings import NOT_REPRODUCED, PAST, REPRODUCED, VISIBLE, Finding, findings
from curious_explorer.studies.page.comparison_page import comparison_part
from curious_explorer.studies.page.page_assembly import Part, page_html, read_part, versions
from curious_explorer.studies.page.page_data import page_data
from curious_explorer.studies.page.reproduction_tables import (
    results_table,
    samples_table,
    settings_list,
    theory_table,
)
from curious_explorer.studies.paper_run import CellRun
from curious_explorer.studies.paper_summary import by_cell
from curious_explorer.studies.study import Study

TITLE = "Curious Explorer: the paper's experiments, reproduced"
LINKS = [("results", "Results"), ("look", "A closer look"), ("samples", "Samples"), ("theory", "Theory")]


def report_html(study: Study, runs: Sequence[CellRun], command: str, comparison: Results | None = None) -> str:
    """The whole page, with the section of a comparison if there is one."""
    compared = [] if comparison is None else [comparison_part(comparison)]
    found = findings(runs)
    settings = json.dumps(study.described(), indent=2)
    body = Template(read_part("reproduction.html")).substitute(
        results=results_table(runs, found),
        samples=samples_table(runs),
        theory=theory_table(runs),
        comparison="".join(part.html for part in compared),
        settings=settings_list(study.cells, versions(), range(study.seeds), settings),
        command=escape(command),
    )
    links = [*LINKS, *(part.links[0] for part in compared), ("settings", "Settings")]
    parts = [Part("reproduction", links, body, page_data(runs)), *compared]
    return page_html(TITLE, lead(found, runs), links, body, parts)


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
    return " ".join(sentences)
