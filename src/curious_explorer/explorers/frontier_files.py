"""What an exploration by counts alone knows, and its checkpoint: one file that is replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import COUNTS_FILE, exploration_folder, holds_results
from curious_explorer.explorers.stored_ways import ARRAYS as WAYS
from curious_explorer.explorers.stored_ways import StoredWays
from curious_explorer.models.cell_levels import Parts
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.settings_description import describe
from curious_explorer.storage import Format, check_size, decode, encode, read_plain, reading, write_atomically
from curious_explorer.validation import check_gamma
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.world import World

COUNTS = Format("curious-explorer/frontier", 3)
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
    "settings",
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
    ways: StoredWays | None = None  # by which it goes back, where cells mix states of a world that repeats

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


def claim_folder(
    folder: Path, world: World, explorer: object, gamma: float, samples: int
) -> AbstractContextManager[None]:
    """A context in which a folder is this exploration's; refused if it is another's, or in use."""
    settings = {"world": world.identity(), "gamma": gamma, "up_to": samples, "explorer": describe(explorer)}
    return exploration_folder(folder).claim(settings, replace=not holds_results(folder))


def write_counts(folder: Path, found: FrontierCounts) -> None:
    """Replace what the folder has of this exploration."""
    header = {name: getattr(found, name) for name in sorted(_KEYS - {"num_actions", "parts", "settings"})}
    parts = None if found.parts is None else [dict(each) for each in found.parts]
    header |= {"num_actions": found.model.num_actions, "parts": parts}
    header["settings"] = exploration_folder(folder).digest()
    arrays = found.model.arrays() | ({} if found.ways is None else found.ways.arrays())
    write_atomically(folder / COUNTS_FILE, encode(COUNTS, header, arrays))


def read_counts(folder: str | Path, cell_function: Callable[[Any], Any] | None = None) -> FrontierCounts | None:
    """What a folder has of an exploration by counts; None if that is not what it holds."""
    path = Path(folder) / COUNTS_FILE
    if not path.exists() and not path.is_symlink():
        return None
    run = exploration_folder(folder)
    with reading(path, CheckpointError, advice="choose another folder, or explore anew"):
        header, arrays = decode(read_plain(path, within=folder), COUNTS, _KEYS, None)
        run.check_digest(header["settings"])
        world = run.settings()["world"]
        num_states, num_actions = (check_size(header, name) for name in ("num_states", "num_actions"))
        changed = header["world"] is not None and "cells" in header["world"]  # on the way
        if world["num_actions"] != num_actions or (world["num_states"] != num_states and not changed):
            raise ValueError(f"it is of {num_states} states and {num_actions} actions, and its settings of others")
        kept = {name: arrays.pop(name) for name in WAYS if name in arrays}
        model = GrowingModel.from_arrays(arrays, num_actions, num_states)
        given = {name: value for name, value in header.items() if name in FrontierCounts._fields}
        _check_counts(header, len(model))
        discretisation = None
        described = world.get("discretisation")
        if described is not None:
            if changed:
                described = {**described, "cells": header["world"]["cells"]}
            discretisation = StoredDiscretisation(described, header["world"].get("discovered", []), cell_function)
        ways = StoredWays.from_stored(kept, header["state"]["ways"], num_actions, world["seed"]) if kept else None
        return FrontierCounts(model, discretisation=discretisation, ways=ways, **given)


def _check_counts(header: dict[str, Any], states: int) -> None:
    """Refuse numbers that no exploration leaves."""
    check_gamma(header["gamma"])
    check_size(header, "samples", least=0)
    if header["first_reward"] is not None:
        check_size(header, "first_reward", least=0)
    goals, parts = header["goals"], header["parts"]
    if not isinstance(goals, list) or not all(type(goal) is int and 0 <= goal < states for goal in goals):
        raise ValueError(f"its goals are no list of indices from 0 to {states - 1}")
    if parts is not None and not (isinstance(parts, list) and len(parts) == states):
        raise ValueError(f"it says of {len(parts)} states what they are made of, and has {states}")
    if not isinstance(header["complete"], bool):
        raise ValueError(f"complete is {header['complete']!r}, expected true or false")
