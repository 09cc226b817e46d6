"""What a run of `solve` has on disk, and the agent that it describes; see `solving` for the files.

What is kept of stages, of rewards met and of the choice carries the digest of the run's settings, so that a file of
another run is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from curious_explorer.errors import CheckpointError, StudyError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.agents import Agent, WayAgent
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.memory import check_memory
from curious_explorer.sb3.training import load_trained
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, check_inside, check_types, read_json, reading, write_json
from curious_explorer.studies.solve_plan import CountsPlan

SOLVE, SUMMARY = Format("curious-explorer/solve", 1), Format("curious-explorer/solve-summary", 1)
STAGES = Format("curious-explorer/solve-stages", 2, oldest=1)
AGENT = Format("curious-explorer/agent", 2, oldest=1)
LOG = Format("curious-explorer/rewards-met", 2, oldest=1)
SETTINGS_FILE, STAGES_FILE, AGENT_FILE, SUMMARY_FILE = "solve.json", "stages.json", "agent.json", "summary.json"
PLAIN, LEARNING, REPLAY = "plain", "learning", "replay"
EXPLORATION, RESETS = "exploration", "reset_model"
PLAN: dict[str, Any] = {"kind": "plan", "folder": EXPLORATION}
"""The agent that acts by the plan on the counts."""
WAY: dict[str, Any] = {"kind": "way", "folder": EXPLORATION}
"""The agent that takes the stored actions that returned most."""


def solve_folder(path: str | Path) -> RunFolder:
    """The folder of a run."""
    return RunFolder(Path(path), SETTINGS_FILE, SOLVE, "run of solve", StudyError, "choose another --out")


def keep(folder: Path, file: str, kind: Format, name: str, content: dict[str, Any]) -> None:
    """Keep something of a run under this name; read again by `kept`."""
    write_json(folder / file, kind, {name: content, "settings": solve_folder(folder).digest()})


def kept(folder: Path, file: str, kind: Format, name: str) -> dict[str, Any] | None:
    """What was kept of a run; None if it is not there."""
    path = folder / file
    if not os.path.lexists(path):
        return None
    with reading(path, CheckpointError, "what a run of solve keeps", "delete it, and what came of it is done again"):
        header = read_json(path, kind, {name, "settings"}, since={"settings": 2})
        if "settings" in header:
            solve_folder(folder).check_digest(header["settings"])
        found = header[name]
        if not isinstance(found, dict):
            raise ValueError(f"{name} is {found!r:.200}, expected an object")
        return found


def kept_stages(folder: Path) -> dict[str, Any] | None:
    """The results of stages that are done, by name; None before the first."""
    stages = kept(folder, STAGES_FILE, STAGES, "stages")
    for name, stage in (stages or {}).items():
        if not isinstance(stage, dict) or type(stage.get("samples", 0)) is not int:
            words = f"stage {name} is {stage!r:.200}, expected an object whose samples are a whole number"
            raise CheckpointError(f"{folder / STAGES_FILE} cannot be read: {words}; do the run again in another folder")
    if stages is not None and "memory" in stages:
        with reading(folder / STAGES_FILE, CheckpointError, "what a run of solve keeps", "do it again elsewhere"):
            check_memory(stages["memory"].get("steps"))
    return stages


def open_agent(folder: Path, described: dict[str, Any], *, seed: int = 0) -> Agent:
    """The agent that a run's ``agent.json`` describes."""
    if described["kind"] == "plan":
        steps = (kept_stages(folder) or {}).get("memory", {}).get("steps")
        return CountsPlan(Exploration.load(folder / described["folder"])).agent(seed=seed, memory=steps)
    if described["kind"] == "way":
        exploration = Exploration.load(folder / described["folder"])
        if exploration.ways is None or exploration.discretisation is None:
            raise CheckpointError(f"{folder / described['folder']} has no stored ways; do the run again elsewhere")
        way = exploration.ways.best_way()
        return WayAgent(way, Discretisation.from_stored(exploration.discretisation), seed=seed)
    agent, _ = load_trained(
        folder / described["folder"], described["which"], deterministic=described["deterministic"], seed=seed
    )
    return agent


def chosen_agent(folder: Path) -> dict[str, Any]:
    """Which agent a run has chosen."""
    found = kept(folder, AGENT_FILE, AGENT, "agent")
    if found is None:
        raise CheckpointError(f"{folder} holds a run of solve that has chosen no agent yet; the same command goes on")
    expected: dict[str, tuple[type, ...]] = {"kind": (str,), "folder": (str,)}
    if found.get("kind") not in ("plan", "way"):
        expected |= {"which": (str,), "deterministic": (bool,)}
    with reading(folder / AGENT_FILE, CheckpointError, "an agent of this run", "do it again elsewhere"):
        check_types(found, expected)
        check_inside(folder / found["folder"], folder)
    return found
