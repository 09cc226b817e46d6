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


def described_by(tree):
    """The metadata that a build of a tree would write, as hatchling makes it."""
    metadata = pytest.importorskip("hatchling.metadata.core", reason="the extra release is not installed")
    from hatchling.plugin.manager import PluginManager

    return metadata.ProjectMetadata(str(tree), PluginManager()).core


def test_without_an_address_links_are_words_and_pictures_are_left_out():
    check = script("release_check")
    readme = (ROOT / "README.md").read_text()
    core = described_by(ROOT)
    assert core.urls == {"Paper": "https://arxiv.org/abs/2106.15503"}  # whoever knows more adds a line
    check.check_description(core.readme, readme, None, "0.2.0")
    examples = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert examples.findall(core.readme) == examples.findall(readme)
    assert "(https://arxiv.org/abs/2106.15503)" in core.readme
    assert "Here is what it came to so far (docs/solve.md)." in core.readme
    assert "turn from red to green" not in core.readme  # what a caption says of a picture that is not there
    with pytest.raises(check.NotReleasableError, match=r"relative links: .*docs/solve.md"):
        check.check_description(readme, readme, None, "0.2.0")
    with pytest.raises(check.NotReleasableError, match="where it lies is not known"):
        check.check_description("![a](https://b.example/a.png)", readme, None, "0.2.0")


def test_one_line_makes_every_link_and_picture_an_address(tmp_path):
    check = script("release_check")
    readme, address = (ROOT / "README.md").read_text(), "https://code.example/group/name"
    tree = check.published_at(address, tmp_path)
    core = described_by(tree)
    assert core.urls["Repository"] == address
    whole = core.readme
    assert "blob" not in readme
    check.check_description(whole, readme, address, core.version)
    assert f"[solve]({address}/blob/v{core.version}/docs/solve.md)" in whole
    assert f"]({address}/raw/v{core.version}/docs/images/exploration.png)" in whole
    inside = [each for each in check.addresses_in(readme) if not each.startswith("https:")]
    led = [each for each in check.addresses_in(whole) if each.startswith(address)]
    assert len(led) == len(inside) > 10
    with pytest.raises(check.NotReleasableError, match=r"docs/solve.md of the README leads nowhere"):
        check.check_description(whole.replace("docs/solve.md", "docs/solved.md"), readme, address, core.version)
    with pytest.raises(check.NotReleasableError, match="other links or pictures"):
        check.check_description(whole + "[a](https://b.example)", readme, address, core.version)


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs/a.md)",
        "![a](a.png)",
        '<img src="a.png">',
        "[![b](b.svg)](https://b.example)",
        '<a href="docs/a.md">',
        "[a][1]\n\n[1]: docs/a.md\n",
    ],
)
def test_relative_links_are_refused(text):
    check = script("release_check")
    with pytest.raises(check.NotReleasableError, match=r"docs/a.md|a.png|b.svg"):
        check.check_description(f"Words, and {text}", "", None, "0.2.0")
    check.check_description(
        "[a](#section), [b](https://b.example), `c[0](d)`, and\n```\nx[0](y)\n```\n", "", None, "0.2.0"
    )


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
