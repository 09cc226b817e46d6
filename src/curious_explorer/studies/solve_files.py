"""What a run of `solve` has on disk, and the agent that it describes; see `solving` for the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.errors import CheckpointError, StudyError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.agents import Agent, CellAgent
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.sb3.training import load_trained
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, read_json, reading

SOLVE, STAGES = Format("curious-explorer/solve", 1), Format("curious-explorer/solve-stages", 1)
AGENT, SUMMARY = Format("curious-explorer/agent", 1), Format("curious-explorer/solve-summary", 1)
LOG = Format("curious-explorer/rewards-met", 1)
SETTINGS_FILE, STAGES_FILE, AGENT_FILE, SUMMARY_FILE = "solve.json", "stages.json", "agent.json", "summary.json"
PLAIN, LEARNING, EXPLORATION, RESETS = "plain", "learning", "exploration", "reset_model"


def solve_folder(path: str | Path) -> RunFolder:
    """The folder of a run."""
    return RunFolder(Path(path), SETTINGS_FILE, SOLVE, "run of solve", StudyError, "choose another --out")


def open_agent(folder: Path, described: dict[str, Any], *, seed: int = 0) -> Agent:
    """The agent that a run's ``agent.json`` describes."""
    if described["kind"] == "plan":
        exploration = Exploration.load(folder / described["folder"])
        assert exploration.discretisation is not None
        discretisation = Discretisation.from_stored(exploration.discretisation)
        return CellAgent(np.asarray(exploration.policy), discretisation, seed=seed)
    agent, _ = load_trained(
        folder / described["folder"], described["which"], deterministic=described["deterministic"], seed=seed
    )
    return agent


def chosen_agent(folder: Path) -> dict[str, Any]:
    """Which agent a run has chosen."""
    path = folder / AGENT_FILE
    if not path.is_file():
        raise CheckpointError(f"{folder} holds a run of solve that has chosen no agent yet; the same command goes on")
    with reading(path, CheckpointError, "which agent a run of solve chose", "do the run again in another folder"):
        found: dict[str, Any] = read_json(path, AGENT, {"agent"})["agent"]
        return found
