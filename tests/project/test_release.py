"""What the release check refuses, what an index would show of the README, and what is installed by its hash."""

import importlib.util
import io
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(name):
    if name == "long_description":
        pytest.importorskip("hatchling", reason="the extra release is not installed")
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_the_long_description_has_no_link_into_nowhere():
    described, check = script("long_description"), script("release_check")
    readme = (ROOT / "README.md").read_text()
    with pytest.raises(check.NotReleasableError, match=r"relative links: .*docs/solve.md"):
        check.check_description(readme)
    bare = described.long_description(readme, None, "0.2.0")
    check.check_description(bare)
    assert re.findall(r"```python\n(.*?)```", bare, re.DOTALL) == re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    whole = described.long_description(readme, "https://code.example/group/name/", "0.2.0")
    check.check_description(whole)
    assert "[solve](https://code.example/group/name/blob/v0.2.0/docs/solve.md)" in whole
    assert "](https://code.example/group/name/raw/v0.2.0/docs/images/exploration.png)" in whole


@pytest.mark.parametrize(
    "text", ["[a](docs/a.md)", "![a](a.png)", '<img src="a.png">', "[![b](b.svg)](https://b.example)"]
)
def test_relative_links_are_refused(text):
    check = script("release_check")
    with pytest.raises(check.NotReleasableError, match=r"docs/a.md|a.png|b.svg"):
        check.check_description(f"Words, and {text}.")
    check.check_description("[a](#section), [b](https://b.example), and\n```\nx[0](y)\n```\n")


def test_a_version_needs_a_date():
    check = script("release_check")
    check.check_version("0.2.0")
    with pytest.raises(check.NotReleasableError, match=r"CHANGELOG.md has no entry '## 9.9.9"):
        check.check_version("9.9.9")


def test_nothing_is_linked_that_the_package_does_not_ask_for(tmp_path):
    pytest.importorskip("packaging", reason="the extra release is not installed")
    check = script("release_check")
    names = check.needed(["gymnasium>=1.0", "torch; extra == 'sb3'"])
    assert {"numpy", "gymnasium", "cloudpickle"} <= set(names)
    assert "torch" not in names
    check.link(["cloudpickle"], tmp_path)
    assert (tmp_path / "cloudpickle" / "__init__.py").exists()
    with pytest.raises(check.NotReleasableError, match="no-such-distribution is asked for"):
        check.needed(["no-such-distribution"])


def test_every_pin_has_hashes_but_pytorchs():
    pytest.importorskip("packaging", reason="the extra release is not installed")
    lock = script("lock")
    text = lock.LOCK.read_text()
    entry = r"^(\S+)==(\S+)( ; [^\\\n]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$"
    entries = re.findall(entry, text, re.MULTILINE)
    pinned = lock.pins(lock.CONSTRAINTS.read_text())
    assert {name: version for name, version, _, _ in entries} | {"torch": pinned["torch"]} == pinned
    assert len(re.findall(r"^\S+==", text, re.MULTILINE)) == len(entries)
    where = {name: marker for name, _, marker, _ in entries if marker}
    assert where["triton"] == " ; sys_platform == 'linux'"  # there is none for other systems
    assert "numpy" not in where


def test_the_files_of_a_version_are_those_that_the_index_lists(monkeypatch):
    pytest.importorskip("packaging", reason="the extra release is not installed")
    lock = script("lock")
    digests = [digit * 64 for digit in "01234"]
    names = [
        "a_b-1.0-py3-none-any.whl",
        "a_b-1.0.tar.gz",
        "a_b-1.0.1.tar.gz",
        "a_b-11.0-py3-none-any.whl",
        "a_b-1.0.exe",
    ]
    links = [f'<a href="../{name}#sha256={digest}">x</a>' for name, digest in zip(names, digests, strict=True)]
    monkeypatch.setattr("urllib.request.urlopen", lambda address: io.BytesIO("".join(links).encode()))
    assert lock.files("https://index.example", "a-b", "1.0") == digests[:2]
    with pytest.raises(SystemExit, match=r"no file of a-b 2\.0"):
        lock.files("https://index.example", "a-b", "2.0")


def test_the_bill_of_materials_names_every_package_and_the_program_under_the_gpl():
    from importlib import metadata

    from benchmarks.supply_chain import bill

    found = bill()
    assert found["metadata"]["component"]["version"] == metadata.version("curious-explorer")
    versions = {each["name"]: each.get("version") for each in found["components"]}
    assert versions["numpy"] == metadata.version("numpy")
    assert all(each["licenses"] for each in found["components"])
    if "imageio-ffmpeg" in versions:
        assert found["components"][-1]["licenses"] == [{"license": {"id": "GPL-3.0-or-later"}}]
