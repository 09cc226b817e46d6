"""What README.md and docs/results.md say of the defaults, anew from one run: python scripts/renew_results.py FOLDER.

FOLDER is what ``curious-explorer reproduce`` (ten seeds, the preset ``tuned``) has left. Rows of the tables and the
four pictures of docs/images are replaced; what the prose says about them is for people to read again.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from PIL import Image

from curious_explorer.storage import write_atomically
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import ExperimentResults, by_experiment
from curious_explorer.studies.reproduction import run_study

ROOT = Path(__file__).parents[1]
PICTURES = ("episodes-reinforce-dcl", "samples-trpo-dcl", "evolution-dcl-20-trpo", "scatter-reinforce-cct")
COLOURS = 128
"""Of a picture of the docs: as it looks, in a fifth of the bytes."""


def steps(count: float) -> str:
    """A number of steps as the tables have it."""
    return f"{count / 1e6:.2f} M"


def readme_row(result: ExperimentResults) -> str:
    """A row of the README's table."""
    with_ce, same, total = result.spreads.values()
    share = f"**{with_ce.mean:.3f}** (worst {with_ce.min:.3f}) | {same.mean:.3f} | {total.mean:.3f}"
    taken = f"{steps(result.exploration_samples)} + {steps(result.learning_samples)}"
    return f"| {result.experiment.name} | {share} | {taken} |"


def results_row(result: ExperimentResults) -> str:
    """A row of the page's first table."""
    with_ce, *without = result.spreads.values()
    others = " | ".join(f"{spread.mean:.3f} ± {spread.std:.3f}" for spread in without)
    taken = f"{steps(result.exploration_samples)} | {steps(result.learning_samples)}"
    first = f"{with_ce.mean:.3f} ± {with_ce.std:.3f} | {with_ce.min:.3f}"
    return f"| {result.experiment.title} | {first} | {others} | {taken} |"


def finding_field(result: ExperimentResults) -> str:
    """What came of a finding of the paper, as the page's table has it."""
    finding = result.finding
    without, with_ce, interval = re.match(
        r"(\d+%) without and (\d+%) with CE after .*?([+-][\d.]+ to [+-][\d.]+)", finding.sentence
    ).groups()
    return f" {without} / {with_ce}, {interval}: {finding.verdict} "


def replaced(lines: list[str], begin: str, row: str, first: int = 0) -> None:
    """Put a row in place of the one that begins so, at or after a line."""
    number = next(at for at in range(first, len(lines)) if lines[at].startswith(begin))
    lines[number] = row


def renew(folder: Path) -> None:
    """Write the rows and the pictures."""
    results = by_experiment(run_study(Study(seeds=10), folder, resume=True))
    readme, page = ROOT / "README.md", ROOT / "docs" / "results.md"
    lines = readme.read_text(encoding="utf-8").split("\n")
    for result in results:
        replaced(lines, f"| {result.experiment.name} |", readme_row(result))
    write_atomically(readme, "\n".join(lines))
    lines = page.read_text(encoding="utf-8").split("\n")
    defaults = next(at for at, line in enumerate(lines) if line.startswith("## The defaults"))
    judged = next(at for at, line in enumerate(lines) if line.startswith("## What the paper says"))
    for result in results:
        begin = f"| {result.experiment.title} |"
        replaced(lines, begin, results_row(result), defaults)
        number = next(at for at in range(judged, len(lines)) if lines[at].startswith(begin))
        fields = lines[number].split("|")
        fields[3] = finding_field(result)
        lines[number] = "|".join(fields)
    write_atomically(page, "\n".join(lines))
    for name in PICTURES:
        small = io.BytesIO()
        picture = Image.open(folder / "figures" / f"{name}.png").convert("RGB").quantize(COLOURS)
        picture.save(small, format="png", optimize=True)
        write_atomically(ROOT / "docs" / "images" / f"{name}.png", small.getvalue())


if __name__ == "__main__":
    renew(Path(sys.argv[1]))
