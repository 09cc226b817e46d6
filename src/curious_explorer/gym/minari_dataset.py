"""Everything that was seen while exploring, as a Minari dataset: for offline and imitation libraries.

    env = EpisodeRecorder(gymnasium.make("MountainCar-v0"), "explored/car-v0")
    exploration = explore(GymWorld(env, cells=...), gamma=0.99, samples=50_000)
    env.write()

`EpisodeRecorder` keeps what passes through it and refuses at once what could not be written at the end: a dataset of
that name, a folder without permission, observations that Minari does not know. `write_minari` writes any episodes, such
as `Exploration.demonstrations`. An episode that was given up for a new one is truncated at its last step.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.errors import DatasetError
from curious_explorer.gym.cells import Env
from curious_explorer.optional_packages import require

ROOT = "MINARI_DATASETS_PATH"
"""The environment variable by which Minari knows where datasets are."""


class Episode(Protocol):
    """What there is to write of an episode; one observation more than there are steps."""

    observations: list[Any]
    actions: list[Any]
    rewards: list[float]
    terminated: bool


@dataclass(eq=False)
class RecordedEpisode:
    """An episode as it was seen."""

    observations: list[Any]
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False


class EpisodeRecorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that remembers every step that was taken in it.

    Args:
        env: the environment.
        dataset: the name that Minari will know the dataset by, as in "explored/car-v0".
        folder: where datasets lie; Minari's own default if None.
    """

    def __init__(self, env: Env, dataset: str, *, folder: str | Path | None = None) -> None:
        super().__init__(env)
        check_dataset(dataset, env, folder)
        self._dataset, self._folder = dataset, folder
        self.episodes: list[RecordedEpisode] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.episodes.append(RecordedEpisode([_kept(observation)]))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action, and remember it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        episode = self.episodes[-1]
        episode.observations.append(_kept(observation))
        episode.actions.append(_kept(action))
        episode.rewards.append(float(reward))
        episode.terminated = bool(terminated)
        if truncated and not terminated:  # who steps on, as explorers do, begins a new one in the data
            self.episodes.append(RecordedEpisode([_kept(observation)]))
        return observation, reward, terminated, truncated, info

    def write(self, **about: Any) -> Path:
        """Write everything that was seen; see `write_minari`."""
        return write_minari(self._dataset, self.episodes, self.env, folder=self._folder, **about)


def write_minari(
    dataset: str,
    episodes: Sequence[Episode],
    env: Env,
    *,
    folder: str | Path | None = None,
    algorithm: str = "curious-explorer",
    description: str = "Seen while exploring with Curious Explorer, from the environment's own start.",
) -> Path:
    """Write episodes as a Minari dataset; returns its folder. Those without a step are left out.

    Args:
        dataset: its name, as in "explored/car-v0"; ``minari.load_dataset`` finds it by that.
        episodes: what to write.
        env: the environment that they are of.
        folder: where datasets lie; Minari's own default if None.
        algorithm: what made them.
        description: what they are.

    Raises:
        DatasetError: if there is one of this name, the folder cannot be written, or the spaces do not fit Minari.
    """
    check_dataset(dataset, env, folder)
    minari = require("minari", "minari")
    buffer_of = require("minari.data_collector", "minari").EpisodeBuffer
    buffers: list[Any] = []
    for episode in episodes:
        steps = len(episode.rewards)
        if steps == 0:
            continue
        ends = [False] * (steps - 1)
        buffers.append(
            buffer_of(
                id=len(buffers),
                observations=_columns(episode.observations, env.observation_space),
                actions=_columns(episode.actions, env.action_space),
                rewards=list(episode.rewards),
                terminations=[*ends, episode.terminated],
                truncations=[*ends, not episode.terminated],
                infos={},
            )
        )
    if not buffers:
        raise DatasetError(f"there is nothing to write as {dataset}: no episode has a step")
    with _root(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that nobody said who the author is
        try:
            minari.create_dataset_from_buffers(
                dataset,
                buffers,
                env=env if env.spec is not None else None,
                observation_space=env.observation_space,
                action_space=env.action_space,
                algorithm_name=algorithm,
                description=description,
                jpeg_encoding=False,
            )
        except OSError as error:
            raise DatasetError(f"the dataset {dataset} cannot be written: {error}; choose another folder") from error
    return dataset_folder(dataset, folder)


def dataset_folder(dataset: str, folder: str | Path | None = None) -> Path:
    """Where a dataset lies, or would."""
    return _datasets(folder) / dataset


def check_dataset(dataset: str, env: Env, folder: str | Path | None = None) -> None:
    """Refuse what could not be written in the end."""
    serialization = require("minari.serialization", "minari")
    try:
        require("minari.dataset.minari_dataset", "minari").parse_dataset_id(dataset)
    except ValueError as error:
        raise DatasetError(f"the dataset is called {dataset!r}, expected a name as in 'explored/car-v0'") from error
    for kind, space in (("observations", env.observation_space), ("actions", env.action_space)):
        try:
            serialization.serialize_space(space)
        except (NotImplementedError, TypeError) as error:
            raise DatasetError(
                f"Minari cannot hold {kind} in {space}; put a wrapper around the environment that makes numbers, text, "
                "or dicts of them"
            ) from error
    target = dataset_folder(dataset, folder)
    if target.exists():
        raise DatasetError(f"{target} exists; choose another name or version for the dataset, or delete it")
    above = next(parent for parent in target.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise DatasetError(f"{target} cannot be written: {above} is no folder that can be written in; choose another")


def _datasets(folder: str | Path | None) -> Path:
    if folder is not None:
        return Path(folder).absolute()
    return Path(os.environ.get(ROOT) or Path.home() / ".minari" / "datasets")


@contextmanager
def _root(folder: str | Path | None) -> Iterator[None]:
    """Let Minari look in a folder for a while."""
    if folder is None:
        yield
        return
    before = os.environ.get(ROOT)
    os.environ[ROOT] = str(_datasets(folder))
    try:
        yield
    finally:
        if before is None:
            del os.environ[ROOT]
        else:
            os.environ[ROOT] = before


def _kept(value: Any) -> Any:
    """A copy, of arrays that an environment may write into again."""
    if isinstance(value, dict):
        return {name: _kept(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_kept, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _columns(rows: Sequence[Any], space: spaces.Space[Any]) -> Any:
    """Dicts and tuples of columns in the place of rows of dicts and tuples."""
    if isinstance(space, spaces.Dict):
        return {name: _columns([row[name] for row in rows], part) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_columns([row[place] for row in rows], part) for place, part in enumerate(space.spaces))
    if isinstance(space, spaces.Text):
        return list(rows)
    return np.asarray(rows, dtype=space.dtype)
