"""Checkpoints of an exploration: a folder with the settings and one file for each finished round.

A round's file is written whole or not at all, and holds everything that the next round needs: the policy just learned,
the visits so far, where the world's random numbers stand, and what the optimizer remembers. So a run that is
killed at any moment and started again gives, bit for bit, the result of one that was not; only the round in flight is
sampled again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.rounds import Round
from curious_explorer.learners.optimizer import Optimizer
from curious_explorer.settings_description import RunFolder, describe
from curious_explorer.storage import (
    Archive,
    Format,
    check_size,
    decode,
    encode,
    read_plain,
    reading,
    write_atomically,
)
from curious_explorer.validation import check_gamma, check_policy
from curious_explorer.worlds.policies import ObservationPolicy, Policy, StoredPolicy, frozen
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.world import TransitionCounts, World

SETTINGS = Format("curious-explorer/exploration", 2)
ROUND = Format("curious-explorer/exploration-round", 3)
SETTINGS_FILE, COUNTS_FILE = "exploration.json", "counts.npz"
_COUNTS = ("visit_samples", "learning_samples", "accepted")
_ROUND_KEYS = {"number", "threshold", *_COUNTS, "rejected", "ended", "position", "memory", "settings"}
_TRANSITIONS = ("state", "action", "next_state", "times")


@runtime_checkable
class Remembers(Protocol):
    """An optimizer that keeps something from round to round, such as a learned model."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """What it remembers, as plain arrays."""

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Remember this instead."""


class Checkpoint:
    """A folder to save rounds in and to go on from; does nothing when there is no folder.

    It is a context, within which nobody else can write in the folder.
    """

    def __init__(self, folder: str | Path | None, world: World, optimizer: Optimizer, settings: dict[str, Any]) -> None:
        self._folder = None if folder is None else Path(folder)
        self._world = world
        self._optimizer = optimizer
        self._settings, self._digest, self._claim = settings, "", ExitStack()

    def __enter__(self) -> Checkpoint:
        if self._folder is not None:
            described = {
                "world": self._world.identity(),
                **self._settings,
                "optimizer": describe(self._optimizer),
            }
            folder = exploration_folder(self._folder)
            self._claim.enter_context(folder.claim(described, replace=not holds_results(self._folder)))
            self._digest = folder.digest()
        return self

    def __exit__(self, *_: object) -> None:
        self._claim.close()

    def resume(self) -> list[Round]:
        """The rounds that are already paid for; world and optimizer are put where the last of them left them."""
        if self._folder is None or not _round_file(self._folder, 0).exists():
            return []
        rounds, last = _read_rounds(self._folder, (self._world.num_states, self._world.num_actions))
        path = _round_file(self._folder, len(rounds) - 1)
        with reading(path, CheckpointError, advice="delete it to go on from the round before"):
            position = last.header["position"]
            if not isinstance(position, dict) or not all(map(_is_position, position.values())):
                raise ValueError(f"position is {position!r}, expected whole numbers by name")
            if isinstance(self._optimizer, Remembers):
                kinds = last.header["memory"].items()
                memory = {name: last.array(f"memory_{name}", dtype, tuple(shape)) for name, (dtype, shape) in kinds}
                self._optimizer.recall(memory)
            self._world.restore(position)
        return rounds

    def save(self, round_: Round) -> None:
        """Keep a finished round."""
        if self._folder is None:
            return
        memory = self._optimizer.memory() if isinstance(self._optimizer, Remembers) else {}
        header = {
            **{name: getattr(round_, name) for name in ("number", "threshold", *_COUNTS, "ended")},
            "rejected": dict(round_.rejected),
            "settings": self._digest,
            "position": self._world.position(),
            "memory": {name: [array.dtype.str, list(array.shape)] for name, array in memory.items()},
        }
        arrays: dict[str, NDArray[Any]] = {
            **_encode_policy("policy", round_.policy),
            **_encode_policy("learned_policy", round_.learned_policy),
            "visited": round_.visited,
            "poorly_visited": round_.poorly_visited,
            **{f"memory_{name}": array for name, array in memory.items()},
        }
        if round_.occupancy is not None:
            arrays["occupancy"] = round_.occupancy
        if round_.seen is not None:
            arrays |= {f"seen_{name}": array for name, array in round_.seen._asdict().items()}
        write_atomically(_round_file(self._folder, round_.number), encode(ROUND, header, arrays))


class StoredExploration(NamedTuple):
    """What a checkpoint folder holds, as `Exploration` takes it."""

    rounds: tuple[Round, ...]
    gamma: float
    discretisation: StoredDiscretisation | None
    planned_rounds: int


def read_exploration(folder: str | Path, cell_function: Callable[[Any], Any] | None = None) -> StoredExploration:
    """The rounds of a checkpoint folder, without going on; `Exploration.load` for everybody else."""
    source = Path(folder)
    if not (source / SETTINGS_FILE).is_file():
        raise CheckpointError(f"{source} holds no exploration: there is no {SETTINGS_FILE} in it")
    settings = exploration_folder(source).settings()
    if not _round_file(source, 0).exists():
        raise CheckpointError(f"{source} holds an exploration that has not finished a round yet")
    with reading(source / SETTINGS_FILE, CheckpointError):
        world, gamma = settings["world"], check_gamma(settings["gamma"])
        shape = (check_size(world, "num_states"), check_size(world, "num_actions"))
    planned = settings.get("thresholds")
    rounds, last = _read_rounds(source, shape)
    discretisation = None
    if "discretisation" in world:
        with reading(_round_file(source, len(rounds) - 1), CheckpointError):
            discovered = last.header["position"].get("discovered", [])
        discretisation = StoredDiscretisation(world["discretisation"], discovered, cell_function)
    at_least = len(planned) if isinstance(planned, list) else 0
    return StoredExploration(tuple(rounds), gamma, discretisation, max(at_least, len(rounds)))


def explored_digest(folder: str | Path) -> object:
    """The digest of the world that a checkpoint folder explored, as `World.identity` gave it."""
    world = exploration_folder(folder).settings().get("world")
    return world.get("digest") if isinstance(world, dict) else None


def explored_seed(folder: str | Path) -> object:
    """The seed of that world."""
    world = exploration_folder(folder).settings().get("world")
    return world.get("seed") if isinstance(world, dict) else None


def _round_file(folder: Path, number: int) -> Path:
    return folder / f"round-{number:04d}.npz"


def exploration_folder(folder: str | Path) -> RunFolder:
    """The folder of an exploration."""
    growing = ("thresholds", "up_to")
    return RunFolder(Path(folder), SETTINGS_FILE, SETTINGS, "exploration", CheckpointError, growing=growing)


def holds_results(folder: Path) -> bool:
    """Whether anything was finished in the folder of an exploration."""
    return _round_file(folder, 0).exists() or (folder / COUNTS_FILE).exists()


def _read_rounds(folder: Path, shape: tuple[int, int]) -> tuple[list[Round], Archive]:
    """All rounds in order, up to the first that is missing, and the last one's archive."""
    rounds: list[Round] = []
    archive = None
    digest = exploration_folder(folder).digest()
    advice = "delete it and the rounds after it to go on from the one before"
    while os.path.lexists(path := _round_file(folder, len(rounds))):
        with reading(path, CheckpointError, advice=advice):
            archive = decode(read_plain(path, within=folder), ROUND, _ROUND_KEYS, None)
            if archive.header["settings"] != digest:
                raise ValueError("it is a round of an exploration with other settings")
            rounds.append(_decode_round(archive, len(rounds), shape))
    assert archive is not None
    return rounds, archive


def _is_position(value: object) -> bool:
    """Whether this can be part of a world's position: a whole number, or names in order."""
    return type(value) is int or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def _encode_policy(name: str, policy: Policy) -> dict[str, NDArray[Any]]:
    if isinstance(policy, ObservationPolicy):
        return {f"{name}_network": np.frombuffer(policy.encode(), dtype=np.uint8)}
    return {name: policy}


def _decode_policy(name: str, archive: Archive, shape: tuple[int, int]) -> Policy:
    if f"{name}_network" in archive.arrays:
        return StoredPolicy(archive.array(f"{name}_network", "|u1", None).tobytes())
    return frozen(check_policy(archive.array(name, "<f8", shape), *shape))


def _decode_round(archive: Archive, number: int, shape: tuple[int, int]) -> Round:
    header = archive.header
    if header["number"] != number:
        raise ValueError(f"it says that it is round {header['number']!r}, expected {number}")
    seen = None
    if "seen_state" in archive.arrays:
        state, action, next_state, times = (archive.array(f"seen_{name}", "<i8", None) for name in _TRANSITIONS)
        reward = archive.array("seen_reward", "<f8", None)
        seen = TransitionCounts(state, action, next_state, times, reward)
    occupancy = archive.array("occupancy", "<f8", shape[:1]) if "occupancy" in archive.arrays else None
    visited = np.array(archive.array("visited", "<f8", shape[:1]))
    if not (np.isfinite(visited).all() and (visited >= 0.0).all() and visited.any()):
        raise ValueError("visited must be shares of visits: finite, not negative, and not all zero")
    return Round(
        number=number,
        threshold=float(header["threshold"]),
        policy=_decode_policy("policy", archive, shape),
        visited=visited,
        poorly_visited=np.array(archive.array("poorly_visited", "|b1", shape[:1])),
        learned_policy=_decode_policy("learned_policy", archive, shape),
        **{name: check_size(header, name, least=0) for name in _COUNTS},
        ended=None if header["ended"] is None else str(header["ended"]),
        rejected=dict(header["rejected"]),
        occupancy=occupancy,
        seen=seen,
    )
