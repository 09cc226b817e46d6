"""``python -m benchmarks.printed_commands``: every command that a text or a ``--help`` shows is given once.

Commands are given page by page and in the order of the page, in an empty folder for each, as whoever reads it would.
What costs samples gets few of them (`SMALL`), words that stand for what the reader has get something (`STANDS_FOR`),
fragments of commands in a sentence get the rest (`REST`), and a run that a page takes for granted is made first
(`GRANTED`). A command passes that ends with exit code 0 and without a traceback. ``--benchmarks`` gives those of
``python -m benchmarks...`` instead, as they are printed; they take minutes to hours, so each is stopped after
``--limit`` seconds and passes if it has not failed by then.

The tests read the same commands, parse all of them and give those that take no time.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from rich.console import Console
from rich.table import Table

from curious_explorer.cli.app import app

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS += [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]
TEXTS += [*sorted((ROOT / "benchmarks").glob("*.py")), *sorted((ROOT / "notebooks").glob("*.ipynb"))]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]

SMALL = {
    "reproduce": {"--depths": "5", "--seeds": "1"},
    "compare": {"--samples": "10000", "--seeds": "1"},
    "explore": {"--samples": "30000"},
    "train": {"--samples": "3000"},
    "solve": {"--samples": "15000"},
    "demo": {"--depth": "5"},
}
"""Options that are given or replaced, so that a command takes seconds."""
STANDS_FOR = {
    "ID": "MiniGrid-DoorKey-5x5-v0",
    "N": "12000",
    "K": "1",
    "k": "1",
    "<id>": "r-max",
    "<short name>/8": "dcl/8",
}
REST = {
    "train": "MountainCar-v0 --reset-model results/car",
    "plan": "dcl/5",
    "certify": "results/lock",
    "compare --methods": "r-max",
}
"""Of fragments in a sentence: what their reader would add."""
GRANTED = {
    "results/lock": "explore dcl/5 --samples 40000 --out results/lock",
    "results/counts": "explore FrozenLake-v1 --cells identity --samples 30000 --out results/counts",
    "results/path": "explore path.json --samples 40000 --out results/path",
    "results/car": "explore MountainCar-v0 --samples 30000 --out results/car",
    "results/goal-car": "explore goal_mountain_car:GoalMountainCar-v0 --samples 30000 --out results/goal-car",
    "results/mine": "solve my_package:MyEnv-v0 --samples 12000 --out results/mine",
    "results/comparison": "compare --environments dcl/5 --samples 10000 --seeds 1 --out results/comparison",
}
OWN = """
import gymnasium
import numpy as np
from gymnasium import spaces


class MyEnv(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}
    observation_space = spaces.Box(0.0, 8.0, (2,), np.float32)
    action_space = spaces.Discrete(4)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.zeros(2, np.float32)
        return self.place.copy(), {}

    def step(self, action):
        self.place[action // 2] += 1 - 2 * (action % 2)
        self.place = np.clip(self.place, 0, 8)
        there = bool((self.place == 8).all())
        return self.place.copy(), float(there), there, False, {}

    def render(self):
        picture = np.full((90, 90, 3), 230, np.uint8)
        row, column = (self.place * 10).astype(int)
        picture[row : row + 10, column : column + 10] = 20
        return picture


def cell(observation):
    return int(observation[0]) * 9 + int(observation[1])


if "MyEnv-v0" not in gymnasium.registry:
    gymnasium.register("MyEnv-v0", MyEnv, max_episode_steps=60)
"""
"""The reader's own module."""
TABLE = """
from curious_explorer import FiniteMDP

builder = FiniteMDP.builder()
for place in range(4):
    builder.state(f"place {place}").action("on").to(f"place {place + 1}", reward=float(place == 3))
    builder.state(f"place {place}").action("back").to("place 0")
builder.terminal("place 4").start("place 0").build().save("path.json")
"""
"""The reader's own table."""
PACKAGES = {"ale_py": "ale_py", "--executor ray": "ray", "--tensorboard": "tensorboard"}
"""Words of commands that need a package, which may not be installed."""
ELSEWHERE = "--ray-address"
"""Needs a cluster; `tests/studies/test_ray.py` connects to one."""


def command_lines(text: str) -> Iterator[str]:
    """Commands on lines of their own, and those within a sentence that are set as code."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        whole = re.match(r"^\s*(?:\$ )?(curious-explorer [a-z].*)$", line)
        if whole:
            yield re.split(r"\s+#|\s{3,}\(", whole[1])[0]
            continue
        yield from re.findall(r"`{1,2}(curious-explorer [a-z][^`]*)`", line)


def printed() -> dict[str, list[str]]:
    """The commands by page, in the page's order, each once; those of ``--help`` are a page for each command."""
    pages: dict[str, list[str]] = {}
    for path in TEXTS:
        if path.suffix == ".py" and path.parent.name == "cli":  # their texts have places filled in by them
            continue
        lines = list(dict.fromkeys(command_lines(path.read_text(encoding="utf-8"))))
        if lines:
            pages[path.relative_to(ROOT).as_posix()] = lines
    for name, command in COMMANDS.items():
        shown = re.findall(r"curious-explorer [a-z].*", command.epilog or "")
        pages[f"{name} --help"] = [f"curious-explorer {name} --help", *map(str.strip, shown)]
    return pages


def benchmark_lines() -> list[tuple[str, str, str]]:
    """The page, the module and the rest of each call of a benchmark in a text."""
    found = {
        (path.relative_to(ROOT).as_posix(), *call)
        for path in TEXTS
        for call in re.findall(r"python -m (benchmarks\.\w+)([^`\n\"\\]*)", path.read_text(encoding="utf-8"))
    }
    return sorted(found)


def given(line: str) -> list[str]:
    """The words of a printed command as they are given: complete, and small."""
    name, *words = shlex.split(line.replace("[", "").replace("]", "").replace("<short name>", "dcl"))[1:]
    words = [STANDS_FOR.get(word, word) for word in words]
    words = [re.sub(r"@\d+", "@10000", word) for word in words]
    if "..." in words:
        words = [*shlex.split(REST[name]), *(word for word in words if word != "...")]
    elif name == "certify" and words[:1] == ["--arrivals"]:
        words = ["results/counts", *words]
    elif name in REST and words and words[0].startswith("-") and "--help" not in words:
        words = [*shlex.split(REST[name]), *words]
    if f"{name} {' '.join(words)}" in REST:
        words.append(REST[f"{name} {' '.join(words)}"])
    if "RUN" in words:
        needs_counts = "--arrivals" in words
        explored = "results/counts" if needs_counts else "results/lock"
        words[words.index("RUN")] = explored if name == "certify" else "results/mine"
    takes_argument = any(type(each).__name__.endswith("Argument") and each.required for each in COMMANDS[name].params)
    if takes_argument and not words:
        return [name, "--help"]  # only its name
    if {"--help", "--list"} & set(words):
        return [name, *words]
    for option, value in SMALL.get(name, {}).items():
        if option in words:
            at = words.index(option) + 1
            words[at] = str(min(int(words[at]), int(value)))
        else:
            words += [option, value]
    return [name, *words]


class Runs:
    """Gives commands in a folder of their own, and remembers what came of them."""

    def __init__(self, limit: float, only: str) -> None:
        self.limit, self.only = limit, only
        self.rows: list[tuple[str, str, float, str]] = []
        self.given: set[tuple[str, ...]] = set()

    def page(self, page: str, lines: list[str]) -> None:
        """All commands of a page."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for module in ("my_module", "my_package"):
                (folder / f"{module}.py").write_text(OWN)
            for example in ("goal_mountain_car", "courier"):
                shutil.copy(ROOT / "examples" / f"{example}.py", folder)
            self._call(folder, [sys.executable, "-c", TABLE])
            shutil.copy(folder / "path.json", folder / "my_mdp.json")
            for line in lines:
                if self.only in line:
                    self._one(folder, page, line)

    def _one(self, folder: Path, page: str, line: str) -> None:
        words = given(line)
        missing = [package for mark, package in PACKAGES.items() if mark in line and not installed(package)]
        if missing or ELSEWHERE in words:
            why = f"{missing[0]} is not installed" if missing else f"{ELSEWHERE} needs a cluster"
            self._note(page, line, 0.0, f"not run: {why}")
            return
        makes = {"--out", "explore", "solve", "train"} & set(words)  # what another command of the page may need
        if tuple(words) in self.given and not makes:
            return
        self.given.add(tuple(words))
        for run, command in GRANTED.items():
            if words[0] in ("train", "certify", "play", "reproduce") and run in words and not (folder / run).exists():
                self._curious(folder, shlex.split(command))
        if words[0] in ("explore", "solve", "train") and "--out" in words:
            shutil.rmtree(
                folder / words[words.index("--out") + 1], ignore_errors=True
            )  # of another command of the page
        elif words[0] in ("reproduce", "compare") and "--resume" not in words and "--comparison" not in words:
            shutil.rmtree(folder / "results", ignore_errors=True)
        elif words[0] in ("explore", "train", "demo"):
            shutil.rmtree(folder / "results" / ("train" if words[0] == "train" else "run"), ignore_errors=True)
        if "--reset-model" in words and words[0] == "train":
            made = words[words.index("--reset-model") + 1]
            if words[1].startswith("my_module"):  # `results/mine` of `explore`, not that of `solve`
                shutil.rmtree(folder / made, ignore_errors=True)
                self._curious(folder, ["explore", words[1], "--samples", "6000", "--out", made])
        began = time.perf_counter()
        outcome = self._curious(folder, words)
        self._note(page, line, time.perf_counter() - began, outcome)

    def benchmark(self, page: str, module: str, rest: str) -> None:
        """A call of a benchmark as it is printed, stopped after a while."""
        line = f"python -m {module}{rest}".partition("#")[0].strip()
        if self.only in line:
            with tempfile.TemporaryDirectory() as name:
                began = time.perf_counter()
                outcome = self._call(Path(name), [sys.executable, "-m", module, *shlex.split(rest.partition("#")[0])])
                self._note(page, line, time.perf_counter() - began, outcome)

    def _curious(self, folder: Path, words: list[str]) -> str:
        return self._call(folder, [sys.executable, "-m", "curious_explorer.cli", *words])

    def _call(self, folder: Path, words: list[str]) -> str:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        with tempfile.TemporaryFile("w+") as output:
            child = subprocess.Popen(
                words,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": paths, "COLUMNS": "200"},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            stopped = False
            try:
                child.wait(self.limit)
            except subprocess.TimeoutExpired:
                stopped = True
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            output.seek(0)
            text = output.read()
        if "Traceback (most recent call last)" in text:
            return "TRACEBACK: " + " ".join(text.split())[-600:]
        if stopped:
            return f"stopped after {self.limit:.0f} s"
        return "passed" if child.returncode == 0 else f"EXIT {child.returncode}: " + " ".join(text.split())[-600:]

    def _note(self, page: str, line: str, seconds: float, outcome: str) -> None:
        self.rows.append((page, line, seconds, outcome))
        print(f"{seconds:6.1f} s  {outcome[:700]}  |  {line}  ({page})", flush=True)


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    import importlib.util

    return importlib.util.find_spec(package) is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="commands that contain this")
    parser.add_argument("--pages", default="", help="pages that contain this")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds until a command is stopped")
    parser.add_argument("--benchmarks", action="store_true", help="give the benchmarks' commands, and no others")
    chosen = parser.parse_args()
    runs = Runs(chosen.limit, chosen.only)
    if chosen.benchmarks:
        for page, module, rest in benchmark_lines():
            if chosen.pages in page:
                runs.benchmark(page, module, rest)
    else:
        for page, lines in printed().items():
            if chosen.pages in page:
                runs.page(page, lines)
    table = Table("what came of it", "commands")
    kinds = [re.split(r"[ :]", outcome)[0] for *_, outcome in runs.rows]
    for kind in dict.fromkeys(kinds):
        table.add_row(kind, str(kinds.count(kind)))
    Console().print(table)
    sys.exit(any(kind in ("EXIT", "TRACEBACK") for kind in kinds))


if __name__ == "__main__":
    main()
