"""``python -m benchmarks.supply_chain``: what is installed with this library, its licences, and a bill of materials.

``--sbom FILE`` writes a CycloneDX 1.5 bill of materials for a release. imageio-ffmpeg (the extra ``report``) brings a
binary of FFmpeg that is under the GPL; it is run as a program of its own and never linked.
"""

from __future__ import annotations

import argparse
import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = "curious-explorer"


def needed(name: str = ROOT) -> dict[str, metadata.Distribution]:
    """Everything that is installed of what a package needs, its extras included, by name."""
    found: dict[str, metadata.Distribution] = {}
    left = [name]
    while left:
        wanted = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if wanted in found:
            continue
        try:
            found[wanted] = metadata.distribution(wanted)
        except metadata.PackageNotFoundError:
            continue
        told = found[wanted].requires or []
        required = [each for each in told if wanted == ROOT or "extra ==" not in each]
        left += [re.split(r"[^A-Za-z0-9_.-]", each, maxsplit=1)[0] for each in required]
    return found


def licence(distribution: metadata.Distribution) -> str:
    """The licence that a package says it has."""
    told: Any = distribution.metadata
    classified = [line.rpartition(":: ")[2] for line in told.get_all("Classifier") or [] if "License ::" in line]
    text = told.get("License-Expression") or ", ".join(classified) or (told.get("License") or "unknown").split("\n")[0]
    return str(text)[:60]


BUNDLED = {"imageio-ffmpeg": ("ffmpeg", "GPL-3.0-or-later")}
"""Programs that packages bring with them, and their licences."""


def bill() -> dict[str, Any]:
    """A CycloneDX bill of materials."""
    found = needed()
    components = [
        {
            "type": "library",
            "name": name,
            "version": each.version,
            "purl": f"pkg:pypi/{name}@{each.version}",
            "licenses": [{"license": {"name": licence(each)}}],
        }
        for name, each in sorted(found.items())
        if name != ROOT
    ]
    components += [
        {
            "type": "application",
            "name": program,
            "description": f"the binary in {package} {found[package].version}",
            "licenses": [{"license": {"id": terms}}],
        }
        for package, (program, terms) in BUNDLED.items()
        if package in found
    ]
    root = {
        "type": "library",
        "name": ROOT,
        "version": metadata.version(ROOT),
        "licenses": [{"license": {"id": "MIT"}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sbom", type=Path, help="where to write the bill of materials")
    options = parser.parse_args()
    for name, each in sorted(needed().items()):
        print(f"{name:32} {each.version:16} {licence(each)}")
    if options.sbom is not None:
        options.sbom.parent.mkdir(parents=True, exist_ok=True)
        options.sbom.write_text(json.dumps(bill(), indent=1) + "\n")


if __name__ == "__main__":
    main()
