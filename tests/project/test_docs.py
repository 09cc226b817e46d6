"""The documentation builds without a warning, and what it says about the code is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import curious_explorer

ROOT = Path(__file__).parents[2]
PACKAGE = Path(curious_explorer.__file__).parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_the_documentation_builds_strictly(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert (tmp_path / "site" / "paper-map" / "index.html").exists()


@pytest.mark.parametrize("page", ["paper-map.md", "implementation-details.md"])
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_images_are_small(page):
    for image in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / image).stat().st_size < 300_000
