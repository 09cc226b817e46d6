"""The documentation builds without a warning, and what it says about the code is there."""

import contextlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import curious_explorer

ROOT = Path(__file__).parents[2]
PACKAGE = Path(curious_explorer.__file__).parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "notebooks").glob("*.ipynb"))]
TEXTS += sorted((ROOT / "examples").glob("*.py"))
FILES = {"curious_explorer.py"}  # Algorithm 2's file, not a name in the package


def test_the_documentation_builds_strictly(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    site = tmp_path / "site"
    assert (site / "paper-map.html").exists()  # a file of its own, so that links work when it is opened from disk
    theory = (site / "theory.html").read_text()
    assert "<math" in theory  # formulas need no script and no network
    assert "arithmatex" not in theory
    assert "$$" not in theory
    for page in site.rglob("*.html"):
        fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text())
        assert not fetched, f"{page.name} fetches {fetched}"


@pytest.mark.parametrize("page", ["architecture.md", "paper-map.md", "implementation-details.md"])
def test_files_and_names_of_the_map_exist(page):
    rows = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("|") and ".py`" in line]
    assert len(rows) > 15
    for row in rows:
        files = [name for name in re.findall(r"`([^`]+)`", row) if name.endswith(".py")]
        source = "".join((PACKAGE / name).read_text() for name in files)
        *_, last, _ = row.split("|")
        for name in re.findall(r"`([A-Za-z_.]+)`", last):
            if not name.endswith(".py"):
                assert re.search(rf"\b{name.rsplit('.', 1)[-1]}\b", source), f"{name} is not in {files}"


@pytest.mark.parametrize("page", [*PAGES, *TEXTS], ids=lambda page: page.name)
def test_every_path_and_every_dotted_name_exists(page):
    """Wherever a text names a file of the repository, or something by its full address, it is there."""
    text = page.read_text()
    for name in re.findall(r"`((?:[A-Za-z_]+/)+[A-Za-z_]+\.(?:py|md|ipynb))\b", text):
        assert any((root / name).exists() for root in (ROOT, PACKAGE, ROOT / "docs")), f"{page.name} names {name}"
    for name in set(re.findall(r"\bcurious_explorer(?:\.[A-Za-z_0-9]+)+", text)) - FILES:
        assert _find(name) is not None, f"{page.name} names {name}"


def _find(name):
    """What a dotted name stands for: a module, or something in one."""
    home, _, last = name.rpartition(".")
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module(name)
    return importlib.import_module(home) if not home else getattr(_find(home), last, None)


def test_the_architecture_names_every_package():
    table = (ROOT / "docs" / "architecture.md").read_text().split("## The contracts")[0]
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    missing = [room for room in rooms - {"__init__"} if f"`{room}`" not in table and f"`{room}.py`" not in table]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_images_are_small(page):
    for image in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / image).stat().st_size < 300_000
