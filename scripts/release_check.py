"""Whether this tree could be released: built, judged by twine, installed into an environment of its own, and used.

    python scripts/release_check.py             everything from the index (make release-check)
    python scripts/release_check.py --linked    without a download (make release-check-linked, and CI)
    python scripts/release_check.py --repository https://...   as it would be with that address in pyproject.toml

The environment has nothing but the wheel and what it asks for, so a module that the core imports and the wheel does not
declare is found here, and so is a file that the wheel lacks. What runs in it are the README's ten lines. With
``--linked`` what the wheel asks for is not installed again: the distributions that it names, and those that they name,
are linked from the environment that this runs in, at their versions there, and no others.
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(
    r"(?=\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\))|<(?:img|a)\b[^>]+(?:src|href)=\"([^\"]+)\"|^\[[^\]]+\]:\s*(\S+)",
    re.MULTILINE,
)
"""A link or a picture, in Markdown's two ways or as HTML, and its address."""
PICTURE = re.compile(r"!\[|<img\b")
WHOLE = re.compile(r"https?://|mailto:|#")
"""How an address begins that means the same away from the repository."""
PLACE = "[project.urls]\n"
LEFT = (".*", "results", "site", "__pycache__", "*.egg-info")
"""What a copy of the tree leaves out; ``.gitignore``, which says what is packed, is copied."""


class NotReleasableError(Exception):
    """What has to be mended first."""


def call(*words: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, without what this process's environment would add to its imports."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode:
        raise NotReleasableError(f"{' '.join(map(str, words))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout.strip()


def first_example() -> str:
    """The README's ten lines."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)[0]


def wheel_metadata(wheel: Path) -> email.message.Message:
    """What the wheel says of itself; the payload is its long description."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def check_version(version: str) -> None:
    """Refuse a version that the changelog has no dated entry for."""
    dated = rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$"
    if not re.search(dated, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        raise NotReleasableError(f"CHANGELOG.md has no entry '## {version} - <date>'")
    if f"version: {version}\n" not in (ROOT / "CITATION.cff").read_text():
        raise NotReleasableError(f"CITATION.cff is not of version {version}")


def addresses_in(text: str) -> list[str]:
    """Where the links and pictures of a text lead, what is set as code left out."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [next(filter(None, found.groups())) for found in LINK.finditer(prose)]


def check_description(text: str, readme: str, repository: str | None, version: str) -> str:
    """Refuse a long description with links that lead nowhere from an index, or that lacks some; say what it has.

    Args:
        text: the long description.
        readme: what it was made from.
        repository: where the tree is published, if that is known.
        version: whose tag links lead to.
    """
    found = addresses_in(text)
    relative = sorted({address for address in found if not WHOLE.match(address)})
    if relative:
        raise NotReleasableError(f"the long description has relative links: {', '.join(relative)}")
    inside = [address for address in addresses_in(readme) if not WHOLE.match(address)]
    if repository is None:
        if PICTURE.search(text):
            raise NotReleasableError("the long description shows a picture, and where it lies is not known")
        return f"{len(inside)} links and pictures of the README are words, because no address is known"
    for address in inside:
        there = [rf"{repository.rstrip('/')}/{kind}/v{version}/{address}" for kind in ("blob", "raw")]
        if not (ROOT / address.partition("#")[0]).exists() or not set(there) & set(found):
            raise NotReleasableError(f"{address} of the README leads nowhere in the long description")
    if len(found) != len(addresses_in(readme)) or len(PICTURE.findall(text)) != len(PICTURE.findall(readme)):
        raise NotReleasableError("the long description has other links or pictures than the README")
    return f"all {len(inside)} links and pictures of the README lead to {repository}"


def published_at(repository: str, folder: Path) -> Path:
    """A copy of the tree whose ``pyproject.toml`` says where it is published."""
    copy = folder / "tree"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT))
    shutil.copy(ROOT / ".gitignore", copy)
    text = (copy / "pyproject.toml").read_text()
    (copy / "pyproject.toml").write_text(text.replace(PLACE, f'{PLACE}Repository = "{repository}"\n', 1))
    return copy


def needed(requirements: list[str]) -> list[str]:
    """The distributions that requirements name, and those that these name, as far as they hold here and now."""
    from packaging.requirements import Requirement

    found: list[str] = []
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        name = wanted.name.lower().replace("_", "-").replace(".", "-")
        if name in found:
            continue
        try:
            there = distribution(name)
        except PackageNotFoundError:
            raise NotReleasableError(f"{name} is asked for and not installed here; make setup installs it") from None
        found.append(name)
        waiting += map(Requirement, there.requires or [])
    return sorted(found)


def link(names: list[str], site_packages: Path) -> None:
    """Make distributions that are installed here importable there."""
    for name in names:
        there = distribution(name)
        tops = {path.parts[0] for path in there.files or [] if path.parts[0] not in ("..", "__pycache__")}
        for top in sorted(tops):
            source = Path(str(there.locate_file(top)))
            if source.exists() and not (site_packages / top).exists():
                (site_packages / top).symlink_to(source)


def environment_of_its_own(folder: Path, wheel: Path, linked: bool) -> Path:
    """The Python of a new environment with the wheel, and what the wheel asks for."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    if linked:
        where = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
        names = needed(wheel_metadata(wheel).get_all("Requires-Dist") or [])
        link(names, Path(where))
        call(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
        print(f"installed, beside {len(names)} distributions that are linked:", ", ".join(names))
    else:
        call(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
        print("installed, with what it asks for")
    print(call(*pip, "check", cwd=folder))
    return python


def check_all(folder: Path, linked: bool, repository: str | None) -> None:
    """All checks, each with a line when it has passed."""
    isolated = ["--no-isolation"] if linked else []
    tree = ROOT if repository is None else published_at(repository, folder)
    call(sys.executable, "-m", "build", *isolated, "--outdir", folder / "dist", tree, cwd=folder)
    built = sorted((folder / "dist").iterdir())
    print("built:", ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.2f} MB)" for path in built))
    call(sys.executable, "-m", "twine", "check", "--strict", *built, cwd=folder)
    print("twine: passed")
    (wheel,) = (path for path in built if path.suffix == ".whl")
    described = wheel_metadata(wheel)
    check_version(described["Version"])
    addresses = dict(each.split(", ", 1) for each in described.get_all("Project-URL") or [])
    print("addresses:", ", ".join(f"{name} {address}" for name, address in addresses.items()))
    readme = (ROOT / "README.md").read_text()
    print(
        "long description:",
        check_description(described.get_payload(), readme, addresses.get("Repository"), described["Version"]),
    )
    python = environment_of_its_own(folder / "user", wheel, linked)
    print("the command:", call(python.parent / "curious-explorer", "--version", cwd=folder))
    print("the README's ten lines:", call(python, "-c", first_example(), cwd=folder))


def main() -> None:
    """Say what passed, or what has to be mended."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--linked", action="store_true", help="link what is installed here, and download nothing")
    parser.add_argument("--repository", help="check a copy with this address under [project.urls]")
    chosen = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        try:
            check_all(Path(name), chosen.linked, chosen.repository)
        except NotReleasableError as error:
            sys.exit(f"not releasable: {error}")
    print(f"releasable; checked in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
