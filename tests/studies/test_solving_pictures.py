"""`solve_task` on pictures that hide what matters: stored actions lead to the reward, and can be handed out."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import curious_explorer
from curious_explorer import GymWorld
from curious_explorer.gym.agents import WayAgent
from curious_explorer.studies.playing import play
from curious_explorer.studies.solve_files import AGENT, AGENT_FILE, WAY, keep

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

STAY, GO = range(2)
PLACES, BEATS, LIVES = 8, 4, 3


class HiddenBeat(gymnasium.Env):
    """A bar that moves on every fourth beat, if it is told to, and is lost if it is told so two beats later.

    Every picture differs from all others in its grain, in which all actions so far show, and none shows the beat. Three
    bars make an episode.
    """

    def __init__(self):
        self.observation_space = spaces.Box(0, 255, (24, 5 * PLACES, 3), np.uint8)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._beat, self._place, self._lives, self._done = 0, 0, LIVES, 1
        return self._picture(), {"lives": self._lives}

    def step(self, action):
        self._beat += 1
        self._done = (3 * self._done + action + 1) % 1_000_003
        if action == GO and self._beat % BEATS == 0:
            self._place += 1
        elif action == GO and self._beat % BEATS == 2:
            self._place, self._lives = 0, self._lives - 1
        paid = self._place == PLACES - 1
        return self._picture(), float(paid), paid or self._lives == 0, False, {"lives": self._lives}

    def _picture(self):
        grain = np.random.default_rng(self._done).integers(100, 104, self.observation_space.shape)
        grain[:, 5 * self._place : 5 * self._place + 5] += 100
        return grain.astype(np.uint8)


@pytest.fixture(scope="module", autouse=True)
def hidden_beat():
    gymnasium.register("HiddenBeat-v0", entry_point=HiddenBeat, max_episode_steps=300)
    yield
    del gymnasium.registry["HiddenBeat-v0"]


def test_a_world_of_small_pictures_is_found_to_repeat_and_explored_one_life_at_a_time():
    world = GymWorld("HiddenBeat-v0", time_limits=True)
    assert world.repeats
    assert "life" in world.describe()
    world.restart()
    steps = [world.step(GO) for _ in range(2)]
    assert [step.terminated for step in steps] == [False, True]


def test_stored_actions_are_an_agent_where_cells_mix_what_differs(tmp_path):
    result = curious_explorer.solve_task("HiddenBeat-v0", samples=40_000, out=tmp_path)
    assert result.summary["success"] == 1.0
    assert result.summary["samples"] <= 40_000
    way = result.stages["explore"]["way"]
    assert way["returned"] == 1.0
    keep(tmp_path, AGENT_FILE, AGENT, "agent", WAY)  # whatever else was as good
    agent = curious_explorer.load_policy(tmp_path)
    assert isinstance(agent, WayAgent)
    assert len(agent.way) * agent.discretisation.action_set.hold == way["steps"]
    assert play(tmp_path, episodes=2, seed=77).returns == [1.0, 1.0]
