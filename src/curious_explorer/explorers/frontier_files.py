"""What an exploration by counts alone knows, and its checkpoint: one file that is replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import SETTINGS, SETTINGS_FILE
from curious_explorer.models.cell_levels import Parts
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.settings_description import RunFolder, describe
from curious_explorer.storage import Format, decode, encode, write_atomically
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.world import World

COUNTS = Format("curious-explorer/frontier", 1)
COUNTS_FILE = "counts.npz"
MOST_ENTRIES = 1 << 26
"""Of all policies of a reset model together: 20 policies of 400,000 cells with eight actions, fewer of more."""
_KEYS = {
    "gamma",
    "num_states",
    "num_actions",
    "samples",
    "first_reward",
    "complete",
    "goals",
    "parts",
    "state",
    "world",
}


class FrontierCounts(NamedTuple):
    """What was counted, and what it took."""

    model: GrowingModel
    gamma: float
    num_states: int
    samples: int
    first_reward: int | None
    complete: bool
    goals: list[int]  # some of the indices that the agent went to, evenly spaced in samples
    discretisation: StoredDiscretisation | None = None
    parts: list[Parts] | None = None  # of every index, where the world knows them
    state: dict[str, Any] | None = None  # where the explorer stands
    world: dict[str, Any] | None = None  # where the world stands

    def policies(self, most: int) -> list[Floats]:
        """Policies that take the shortest known way to the goals, shape (S, A) each."""
        num_actions = self.model.num_actions
        most = max(1, min(most, MOST_ENTRIES // (self.num_states * num_actions)))
        policies = []
        for goal in self.goals[:: -(-len(self.goals) // most)]:
            policy = np.full((self.num_states, num_actions), 1.0 / num_actions)
            policy[self.model.states] = self.model.way_to(goal)
            policies.append(frozen(policy))
        return policies


def claim_folder(folder: Path, world: World, explorer: object, gamma: float, samples: int) -> None:
    """Make a folder this exploration's, or refuse it."""
    settings = {"world": world.identity(), "gamma": gamma, "samples": samples, "explorer": describe(explorer)}
    _run_folder(folder).claim(settings)


def write_counts(folder: Path, found: FrontierCounts) -> None:
    """Replace what the folder has of this exploration."""
    header = {name: getattr(found, name) for name in _KEYS - {"num_actions", "parts"}}
    parts = None if found.parts is None else [dict(each) for each in found.parts]
    header |= {"num_actions": found.model.num_actions, "parts": parts}
    write_atomically(folder / COUNTS_FILE, encode(COUNTS, header, found.model.arrays()))


def read_counts(folder: str | Path, cell_function: Callable[[Any], Any] | None = None) -> FrontierCounts | None:
    """What a folder has of an exploration by counts; None if that is not what it holds."""
    path = Path(folder) / COUNTS_FILE
    if not path.is_file():
        return None
    try:
        header, arrays = decode(path.read_bytes(), COUNTS, _KEYS, None)
        model = GrowingModel.from_arrays(arrays, int(header.pop("num_actions")))
        given = {name: value for name, value in header.items() if name in FrontierCounts._fields}
        described = _run_folder(Path(folder)).settings()["world"].get("discretisation")
        discretisation = None
        if described is not None:
            if "cells" in header["world"]:  # which were changed on the way
                described = {**described, "cells": header["world"]["cells"]}
            discretisation = StoredDiscretisation(described, header["world"].get("discovered", []), cell_function)
        return FrontierCounts(model, discretisation=discretisation, **given)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; choose another folder, or explore anew") from error


def _run_folder(folder: Path) -> RunFolder:
    return RunFolder(folder, SETTINGS_FILE, SETTINGS, "exploration", CheckpointError)
