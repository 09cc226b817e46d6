"""`StepLog`: every step of an exploration, and a replay buffer that begins with them."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

from benchmarks.fuzz_files import learner_of_the_car
from curious_explorer.errors import CheckpointError
from curious_explorer.gym import ActionSet
from curious_explorer.sb3.algorithms import private_randomness
from curious_explorer.sb3.kept_buffer import BUFFER_FILE, COLUMNS, keep_buffer, restore_buffer
from curious_explorer.sb3.step_log import STEPS_FILE, StepLog, fit, recall
from curious_explorer.sb3.training_learner import Learner
from curious_explorer.sb3.training_settings import TrainingSettings


class Line(gymnasium.Env):
    """A number that goes up or down; pays at three, where the episode ends."""

    observation_space = spaces.Dict({"at": spaces.Box(-9.0, 9.0, (1,), np.float32), "on": spaces.Discrete(2)})

    def __init__(self, box=False):
        self.action_space = spaces.Box(-2.0, 2.0, (1,), np.float32) if box else spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = 0.0
        return self._seen(), {}

    def _seen(self):
        return {"at": np.array([self._at], np.float32), "on": 1}

    def step(self, action):
        self._at += float(np.sign(action[0])) if isinstance(self.action_space, spaces.Box) else float(action - 5)
        return self._seen(), float(self._at == 3.0), self._at == 3.0, False, {}


def noted(env, log, episodes):
    watched = log.around(env)
    log.begin(ActionSet.of(env.action_space))
    for actions in episodes:
        watched.reset()
        for action in actions:
            watched.step(action)
    return log


@pytest.fixture
def log():
    env = Line()
    return noted(env, StepLog.of(env), [[5, 6], [6, 6, 6], [5]])


def test_steps_are_kept_as_a_network_sees_them(log):
    kept = log.arrays()
    assert len(log) == 6
    assert kept["seen"][:, 0].tolist() == [0, 0, 0, 1, 2, 0]
    assert kept["following"][:, 0].tolist() == [0, 1, 1, 2, 3, 0]
    assert kept["acted"][:, 0].tolist() == [0, 1, 1, 1, 1, 0]  # the network counts from zero
    assert kept["paid"].tolist() == [0, 0, 0, 0, 1, 0]
    assert kept["ended"].tolist() == [False, False, False, False, True, False]
    assert kept["cut"].tolist() == [False, True, False, False, False, False]
    assert len(log.arrays(4)["seen"]) == 4


def test_what_no_learner_of_values_can_use_is_not_kept():
    env = Line()
    env.observation_space = spaces.Box(0, 255, (48, 48, 3), np.uint8)
    assert StepLog.of(env) is None


def test_an_interrupted_exploration_takes_over_the_steps_that_it_counted(log, tmp_path):
    log.save(tmp_path)
    again = StepLog.of(Line())
    again.load(tmp_path, 4)
    assert len(again) == 4
    assert again.arrays()["seen"].tolist() == log.arrays(4)["seen"].tolist()
    noted(Line(), again, [[6] * 3] * 2_000)  # and there is room for more
    assert len(again) == 6_004
    other = Line()
    other.observation_space = spaces.Box(-9.0, 9.0, (4,), np.float32)
    with pytest.raises(CheckpointError, match="not of this environment"):
        StepLog.of(other).load(tmp_path, 4)
    (tmp_path / STEPS_FILE).write_bytes(b"no archive")
    with pytest.raises(CheckpointError, match="explore again elsewhere"):
        StepLog.of(Line()).load(tmp_path, 4)


@pytest.mark.parametrize("box", [False, True])
def test_a_replay_buffer_begins_with_steps_that_were_taken_before(box):
    gymnasium.register("Line-v0", Line, max_episode_steps=20, kwargs={"box": box})
    try:
        env = Line(box=box)
        choices = ActionSet.of(env.action_space).choices
        up, down = choices[-1], choices[0]
        episodes = [[down] * 20, [up, down, up], *[[down] * 20] * 9, [up, up, up]]
        log = noted(env, StepLog.of(env), episodes)
        settings = TrainingSettings(
            environment="Line-v0",
            algorithm="dqn",
            num_envs=1,
            samples=1_000,
            action_list=[np.asarray(choice).tolist() for choice in choices],
            hyperparameters={"buffer_size": 5_000},
        )
        learner = Learner(settings, None, None)
        recall(learner, log.arrays(), 2.0)
        buffer = learner.model.replay_buffer
        size = buffer.pos
        assert len(log) == 206
        assert size == 206 + 20 * 3  # the one episode that paid is repeated
        assert buffer.rewards[:size].sum() == 2.0 * 21
        assert buffer.timeouts[:size].sum() == 11
        assert buffer.dones[:size].sum() == 11 + 21
        assert set(np.unique(buffer.actions[:size])) == {0, len(choices) - 1}
        assert learner.statistics.count >= 206
        before = learner.model._n_updates
        with private_randomness(0, threads=1):
            fit(learner, 3)
        assert learner.model._n_updates == before + 3
        agent = settings.choosing(learner.agent(0))
        agent.begin()
        assert env.action_space.contains(agent(env.reset()[0]))
        learner.close()
    finally:
        del gymnasium.registry["Line-v0"]


def test_a_learner_that_goes_on_has_its_own_steps(tmp_path, monkeypatch):
    car = gymnasium.make("MountainCar-v0")
    log = noted(car, StepLog.of(car), [[0, 1, 2], [2, 2, 2, 2]])
    first, again, fuller = (learner_of_the_car() for _ in range(3))
    recall(first, log.arrays(), 1.0)
    keep_buffer(first.model, 3, tmp_path)
    own = first.model.replay_buffer
    assert own.timeouts[:7, 0].tolist() == [0, 0, 1, 0, 0, 0, 1]
    recall(again, log.arrays(3), 1.0)
    restore_buffer(again.model, tmp_path)
    assert again.model.replay_buffer.pos == 7
    for name in COLUMNS:
        assert getattr(again.model.replay_buffer, name)[:7].tolist() == getattr(own, name)[:7].tolist()
    fuller.model.replay_buffer.pos = 18  # there is room for two more
    restore_buffer(fuller.model, tmp_path)
    assert (fuller.model.replay_buffer.pos, fuller.model.replay_buffer.full) == (0, True)
    assert fuller.model.replay_buffer.observations[18:].tolist() == own.observations[5:7].tolist()
    keep_buffer(fuller.model, 3, tmp_path)
    monkeypatch.setattr("curious_explorer.sb3.kept_buffer.MOST_BYTES", 100)
    keep_buffer(fuller.model, 3, tmp_path)
    assert not (tmp_path / BUFFER_FILE).exists()
    restore_buffer(again.model, tmp_path)
    (tmp_path / BUFFER_FILE).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="delete it to go on without it"):
        restore_buffer(again.model, tmp_path)


def test_actions_that_are_held_are_kept_as_one():
    env = Line()
    log = StepLog.of(env)
    log.begin(ActionSet.of(env.action_space).held(2))
    watched = log.around(env)
    watched.reset()
    for action in (5, 5, 6, 6, 6):  # the last ends the episode
        watched.step(action)
    kept = log.arrays()
    assert kept["seen"][:, 0].tolist() == [0, 0, 2]
    assert kept["following"][:, 0].tolist() == [0, 2, 3]
    assert kept["acted"][:, 0].tolist() == [0, 1, 1]
    assert kept["paid"].tolist() == [0, 0, 1]


def test_a_model_is_stored_without_the_open_logs_of_its_learner(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    settings = TrainingSettings(environment="CartPole-v1", algorithm="dqn", num_envs=1, samples=1_000)
    learner = Learner(settings, None, str(tmp_path / "logs"))
    assert learner.own_format()["model.zip"]
    learner.close()
