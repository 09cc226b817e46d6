"""The API reference has every public name, and the code on its pages and in the tutorials runs."""

import inspect
import re
from pathlib import Path

import pytest

import curious_explorer

DOCS = Path(__file__).parents[2] / "docs"
API = sorted((DOCS / "api").glob("*.md"))
PAGES = [*API, *sorted((DOCS / "tutorials").glob("*.md"))]


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
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks, "a page of the reference has an example"
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
