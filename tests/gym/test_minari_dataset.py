"""What was seen while exploring, as a Minari dataset: every step of it, and refusals before anything is done."""

import os
import stat

import gymnasium
import numpy as np
import pytest
from gym_helpers import Corridor
from gymnasium import spaces

from curious_explorer import Frontier, GridCells, GymWorld
from curious_explorer.errors import DatasetError
from curious_explorer.gym import EpisodeRecorder, write_minari

minari = pytest.importorskip("minari", reason="the extra minari is not installed")

NAME = "explored/corridor-v0"


class Parts(gymnasium.ObservationWrapper):
    """The corridor's place, as a dict of a tuple and a number."""

    def __init__(self, env):
        super().__init__(env)
        place = env.observation_space
        self.observation_space = spaces.Dict({"both": spaces.Tuple([place, place]), "number": spaces.Discrete(20)})

    def observation(self, seen):
        return {"both": (seen, -seen), "number": int(seen[0])}


def explored(folder, env=None):
    recorder = EpisodeRecorder(env or Corridor(length=12), NAME, folder=folder)
    world = GymWorld(recorder, cells=GridCells(12, 0.0, 12.0), seed=1)
    return recorder, world, Frontier().explore(world, gamma=0.99, samples=1_000)


def test_every_step_is_in_the_dataset(tmp_path):
    recorder, world, exploration = explored(tmp_path)
    demonstrated = exploration.demonstrations(world, 3)
    written = recorder.write()
    assert written == tmp_path / "explored" / "corridor-v0"
    dataset = minari.MinariDataset(written / "data")
    assert dataset.total_steps == world.samples
    episodes = list(dataset.iterate_episodes())
    assert sum(len(episode.rewards) for episode in episodes) == world.samples
    for episode in episodes:
        assert len(episode.observations) == len(episode.actions) + 1
        assert (episode.terminations | episode.truncations).tolist() == [False] * (len(episode.actions) - 1) + [True]
        ahead = np.where(episode.actions == 1, 1, -1)
        places = episode.observations[:, 0]
        assert (np.maximum(places[:-1] + ahead, 0) == places[1:]).all()
    assert [len(episode.rewards) for episode in episodes[-3:]] == [len(one) for one in demonstrated]
    assert "MINARI_DATASETS_PATH" not in os.environ


def test_dicts_and_tuples_are_columns(tmp_path):
    recorder = EpisodeRecorder(Parts(Corridor(length=12)), NAME, folder=tmp_path)
    recorder.reset(seed=0)
    for action in (1, 1, 0, 1):
        recorder.step(action)
    (episode,) = minari.MinariDataset(recorder.write() / "data").iterate_episodes()
    assert episode.observations["number"].tolist() == [0, 1, 2, 1, 2]
    assert episode.observations["both"][1][:, 0].tolist() == [0, -1, -2, -1, -2]


def test_what_cannot_be_written_is_refused_before_anything_is_done(tmp_path):
    recorder, _, _ = explored(tmp_path)
    recorder.write()
    with pytest.raises(DatasetError, match="exists"):
        EpisodeRecorder(Corridor(), NAME, folder=tmp_path)
    with pytest.raises(DatasetError, match="exists"):
        recorder.write()
    with pytest.raises(DatasetError, match="a name as in"):
        EpisodeRecorder(Corridor(), "not a name!", folder=tmp_path)
    odd = Corridor()
    odd.observation_space = spaces.Graph(spaces.Discrete(3), None)
    with pytest.raises(DatasetError, match="observations in Graph"):
        EpisodeRecorder(odd, "explored/odd-v0", folder=tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetError, match="no folder that can be written"):
        EpisodeRecorder(Corridor(), NAME, folder=tmp_path / "file")
    with pytest.raises(DatasetError, match="nothing to write"):
        write_minari("explored/none-v0", [], Corridor(), folder=tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for this user")
def test_an_unwritable_folder_is_refused(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(DatasetError, match="cannot be written"):
            EpisodeRecorder(Corridor(), NAME, folder=tmp_path)
    finally:
        tmp_path.chmod(stat.S_IRWXU)
