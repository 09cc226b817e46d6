"""The API reference has every public name, and the code on its pages and in the tutorials runs."""

import inspect
import re
from pathlib import Path

import pytest

import curious_explorer

DOCS = Path(__file__).parents[2] / "docs"
API = sorted((DOCS / "api").glob("*.md"))
PAGES = [*API, *sorted((DOCS / "tutorials").glob("*.md"))]
PAGES += [DOCS / name for name in ("index.md", "callbacks.md", "automatic-cells.md", "frontier.md")]
"""Those whose blocks stand for themselves."""


def public_objects():
    """Every public name with what it stands for: those of the package, and those of the packages inside it."""
    found = {}
    for name in curious_explorer.__all__:
        value = getattr(curious_explorer, name)
        if inspect.ismodule(value):
            found |= {f"{name}.{inner}": getattr(value, inner) for inner in value.__all__}
        else:
            found[name] = value
    return {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isfunction(value)}


def test_every_public_name_is_in_the_reference():
    documented = set()
    for page in API:
        for address in re.findall(r"^::: curious_explorer\.([\w.]+)$", page.read_text(), flags=re.MULTILINE):
            value = curious_explorer
            for part in address.split("."):
                value = getattr(value, part)
            documented.add(value)
    missing = [name for name, value in public_objects().items() if value not in documented]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(page)
    assert blocks, "a page of the reference has an example"
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)


LED_TO_BY = {
    "AnytimeResult": "learn",
    "Cells": "GridCells",
    "Evaluation": "evaluation",
    "EpisodeStatistics": "episodes",
    "ExactReport": "visitation_report",
    "Explorer": "CuriousExplorer",
    "LearningCurve": "curve",
    "MDPBuilder": "builder",
    "Optimizer": "TRPO",
    "RewardScale": "reward_scale",
    "Round": "rounds",
    "Solution": "solve",
    "Solved": "solve_task",
    "TransitionCounts": "take",
}
"""What an example calls instead of a class that is only returned, or only describes others."""


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_block_is_python(page):
    for block in blocks_of(page):
        compile(block, page.name, "exec")


def test_every_public_name_is_in_an_example():
    """Functions and what is made by its name; a result is in one where the function that returns it is."""
    code = "\n".join(block for page in PAGES for block in blocks_of(page))
    known = set(re.findall(r"\w+", code))
    returned = {returned_by(value) for name, value in public_objects().items() if name.rpartition(".")[2] in known}
    missing = [
        name
        for name, value in public_objects().items()
        if not {name.rpartition(".")[2], LED_TO_BY.get(name.rpartition(".")[2])} & (known | returned)
    ]
    assert not missing


def returned_by(value):
    """The name of the class that a function says it returns."""
    if not inspect.isfunction(value):
        return None
    return str(inspect.signature(value).return_annotation).split(".")[-1].split("[")[0].removesuffix(" | None")


def blocks_of(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
