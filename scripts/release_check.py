"""Whether this tree could be released: built, judged by twine, installed into an empty environment, and used.

    python scripts/release_check.py        (or make release-check)

The environment has nothing but the wheel and what it asks for, so a module that the core imports and the wheel does not
declare is found here, and so is a file that the wheel lacks. What runs in it are the README's ten lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("build", "twine")


def call(*words: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, without what this process's environment would add to its imports."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def empty_environment(folder: Path) -> Path:
    """The Python of a new environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def first_example() -> str:
    """The README's ten lines."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)[0]


def check_version(wheel: Path) -> None:
    """Refuse a version that the changelog has no dated entry for."""
    version = wheel.name.split("-")[1]
    if not re.search(
        rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    ):
        sys.exit(f"CHANGELOG.md has no entry '## {version} - <date>'")
    if f"version: {version}" not in (ROOT / "CITATION.cff").read_text():
        sys.exit(f"CITATION.cff is not of version {version}")


def main() -> None:
    """All checks, each with a line when it has passed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = empty_environment(folder / "tools")
        call(tools, "-m", "pip", "install", "--quiet", *TOOLS, cwd=folder)
        call(tools, "-m", "build", "--outdir", folder / "dist", ROOT, cwd=folder)
        built = sorted((folder / "dist").iterdir())
        print("built:", ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.2f} MB)" for path in built))
        print(call(tools, "-m", "twine", "check", "--strict", *built, cwd=folder).strip())
        (wheel,) = (path for path in built if path.suffix == ".whl")
        check_version(wheel)
        python = empty_environment(folder / "user")
        constraints = ROOT / "constraints.txt"
        call(python, "-m", "pip", "install", "--quiet", "-c", constraints, wheel, cwd=folder)
        print("the README's ten lines:", call(python, "-c", first_example(), cwd=folder).strip())


if __name__ == "__main__":
    main()
