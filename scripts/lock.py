"""``python scripts/lock.py --index URL``: requirements.lock, the pins of constraints.txt with hashes of their files.

The lock has the hash of every file of each pinned version that the index lists, for all platforms, so ``pip install
--require-hashes --no-deps -r requirements.lock`` accepts these files from any index, mirror or folder, and no others.
What only some systems or Pythons need carries a marker; it is found by following, from ``curious-explorer[dev]``, what
the packages that are installed here ask for on each.

PyTorch is left out: its builds for one version differ (CPU, CUDA, ROCm), come from different places, and bring
different packages. ``make locked`` installs it by its version, and everything else by its hash.
"""

from __future__ import annotations

import argparse
import html
import re
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parents[1]
LOCK, CONSTRAINTS = ROOT / "requirements.lock", ROOT / "constraints.txt"
LEFT_OUT = ("torch",)
BEGIN = "curious-explorer[dev]"
SYSTEMS = {"linux": ("Linux", "posix"), "darwin": ("Darwin", "posix"), "win32": ("Windows", "nt")}
"""The names of systems, as ``sys_platform``, ``platform_system`` and ``os_name`` say them."""
PYTHONS = ("3.11", "3.12", "3.13")
LINK = re.compile(r'<a\s[^>]*href="([^"#]+)#sha256=([0-9a-f]{64})"')
HEAD = """\
# Made by scripts/lock.py from constraints.txt: the SHA-256 of every file of these versions. PyTorch is not among them.
#     python -m pip install --require-hashes --no-deps -r requirements.lock
"""


def pins(text: str) -> dict[str, str]:
    """The versions of constraints.txt, by normalised name."""
    found = (line.split("==") for line in text.splitlines() if "==" in line)
    return {canonicalize_name(name): version for name, version in found}


def needed(system: str, python: str) -> set[str]:
    """What the package needs on a system with a Python, as far as it is installed here."""
    platform, os_name = SYSTEMS[system]
    here = {"sys_platform": system, "platform_system": platform, "os_name": os_name}
    here |= {"python_version": python, "python_full_version": f"{python}.0"}
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(BEGIN)]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *sorted(wanted.extras)):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            try:
                asked = distribution(name).requires or []
            except PackageNotFoundError:  # of another system
                continue
            given = here | {"extra": extra}
            waiting += [each for each in map(Requirement, asked) if each.marker is None or each.marker.evaluate(given)]
    return {name for name, _ in found}


def markers(names: set[str]) -> dict[str, str]:
    """Where each is needed, as a marker; nothing for what is needed everywhere, or nowhere that is known."""
    where = {(system, python): needed(system, python) for system in SYSTEMS for python in PYTHONS}
    found = {}
    for name in names:
        systems = [system for system in SYSTEMS if any(name in where[system, python] for python in PYTHONS)]
        pythons = [python for python in PYTHONS if any(name in where[system, python] for system in SYSTEMS)]
        parts = []
        if 0 < len(systems) < len(SYSTEMS):
            parts.append(" or ".join(f"sys_platform == '{system}'" for system in systems))
        if 0 < len(pythons) < len(PYTHONS):
            parts.append(" or ".join(f"python_version == '{python}'" for python in pythons))
        found[name] = " and ".join(f"({part})" if " or " in part and len(parts) > 1 else part for part in parts)
    return found


def files(index: str, name: str, version: str) -> list[str]:
    """The SHA-256 of every file that the index lists for a version."""
    with urllib.request.urlopen(f"{index.rstrip('/')}/{name}/") as answer:
        page = answer.read().decode()
    found = set()
    for address, digest in LINK.findall(page):
        file = urllib.parse.unquote(html.unescape(address)).rpartition("/")[2]
        try:
            of = parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
        except ValueError:  # an egg, or an installer
            continue
        if str(of) == version:
            found.add(digest)
    if not found:
        raise SystemExit(f"the index lists no file of {name} {version} with its SHA-256")
    return sorted(found)


def main() -> None:
    """Write the lock."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", required=True, help="the address of the simple pages of a package index")
    index = parser.parse_args().index
    wanted = {name: version for name, version in pins(CONSTRAINTS.read_text()).items() if name not in LEFT_OUT}
    where = markers(set(wanted))
    with ThreadPoolExecutor(8) as pool:
        listed = dict(zip(wanted, pool.map(lambda item: files(index, *item), wanted.items()), strict=True))
    lines = [HEAD]
    for name, version in sorted(wanted.items()):
        marker = f" ; {where[name]}" if where[name] else ""
        hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in listed[name])
        lines.append(f"{name}=={version}{marker}{hashes}\n")
    LOCK.write_text("".join(lines))
    print(f"{LOCK.name}: {len(wanted)} packages, {sum(map(len, listed.values()))} files")


if __name__ == "__main__":
    main()
