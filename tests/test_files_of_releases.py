"""Files that a release has written are read by every later one, to the same content.

What a later version knows besides is no part of it: ``added_since.json`` names it, release by release. The files of
``0.2.0-before`` were written while that release was made, by older versions of some formats.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("safetensors", reason="the extra gym is not installed")

from benchmarks.fuzz_digest import digest
from benchmarks.fuzz_files import LOADERS

DATA = Path(__file__).parent / "data"
RELEASES = sorted(path.name for path in DATA.iterdir() if path.name[0].isdigit())
NOT_READ = ("curious-explorer/solve-seeds",)
"""What is written for people, and never read again."""
CASES = [(release, path.name) for release in RELEASES for path in sorted((DATA / release).iterdir()) if path.is_dir()]


@pytest.mark.parametrize(("release", "name"), CASES)
def test_a_file_of_a_release_is_read_for_ever(release: str, name: str) -> None:
    expected = json.loads((DATA / release / "digests.json").read_text())[name]
    added = frozenset(json.loads((DATA / release / "added_since.json").read_text()))
    assert digest(LOADERS[name][0](DATA / release / name), without=added) == expected


def test_every_format_has_a_file_of_the_release() -> None:
    assert {name for release, name in CASES if release == "0.2.0"} == set(LOADERS)


def test_every_version_that_is_read_has_a_file() -> None:
    """A format that changes gets a new version, and a file of it here."""
    source = "".join(path.read_text() for path in sorted((DATA.parent.parent / "src").rglob("*.py")))
    declared = re.findall(r'Format\(\s*"([^"]+)", (\d+)(?:, oldest=(\d+))?', source)
    assert len(declared) == source.count('Format("') > 20
    needed = {
        (name, version)
        for name, newest, oldest in declared
        for version in range(int(oldest or newest), int(newest) + 1)
        if name not in NOT_READ
    }
    assert needed - {header for folder in RELEASES for header in headers_in(DATA / folder)} == set()


def headers_in(folder: Path) -> set[tuple[str, int]]:
    """The formats and versions that the files in a folder say they have; quotes are escaped within safetensors."""
    found = set()
    for content in (path.read_bytes().replace(b"\\", b"") for path in folder.rglob("*") if path.is_file()):
        names, versions = (re.findall(wanted, content) for wanted in (rb'"format": "([^"]+)"', rb'"version": (\d+)'))
        assert len(names) <= 1
        found |= {(name.decode(), int(version)) for name in names for version in versions}
    return found
