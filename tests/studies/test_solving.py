"""`solve_task`: from an id to an agent, or to a verdict; what it leaves, and what it refuses."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import curious_explorer
from curious_explorer.callbacks import on_events
from curious_explorer.callbacks.events import EVALUATION
from curious_explorer.gym import FlatActions
from curious_explorer.gym.fixed_layout import FixedLayout
from curious_explorer.gym.shifted_reward import ShiftedReward
from curious_explorer.sb3.kept_buffer import BUFFER_FILE
from curious_explorer.studies.solve_files import open_agent
from curious_explorer.studies.solve_measuring import network

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")


class Corridor(gymnasium.Env):
    """Cells in a row; the right end pays and ends the episode, if it is to pay at all."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    action_space = spaces.Discrete(3)

    def __init__(self, length=12, pays=True, render_mode=None):
        self.observation_space = spaces.Box(0, length, (1,), dtype=np.int64)
        self._length, self._pays, self.render_mode = length, pays, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = 0
        return np.array([0]), {}

    def step(self, action):
        # The way on takes another action in every other cell, so that random actions hardly get anywhere.
        on = action == (self._at % 2)
        self._at = min(self._at + 1, self._length) if on else 0
        done = self._at == self._length
        return np.array([self._at]), float(done and self._pays), done, False, {}

    def render(self):
        frame = np.zeros((32, 8 * (self._length + 1), 3), dtype=np.uint8)
        frame[:, 8 * self._at : 8 * self._at + 8] = 255
        return frame


@pytest.fixture(scope="module", autouse=True)
def corridors():
    gymnasium.register("Corridor-v0", entry_point=Corridor, max_episode_steps=40)
    gymnasium.register("NoPay-v0", entry_point=Corridor, kwargs={"pays": False}, max_episode_steps=40)
    yield
    for name in ("Corridor-v0", "NoPay-v0"):
        del gymnasium.registry[name]


@pytest.fixture(scope="module")
def solved(tmp_path_factory, corridors):
    told, events = [], []
    out = tmp_path_factory.mktemp("solved") / "run"
    watch = on_events(events.append)
    result = curious_explorer.solve_task("Corridor-v0", samples=12_000, out=out, watch=watch, tell=told.append)
    return result, told, events


def test_callbacks_are_told_of_every_stage(solved):
    _, _, events = solved
    assert {event.phase for event in events} == {"plain", "explore", "learning"}
    evaluated = [event for event in events if event.phase == "learning" and event.kind == "evaluation"]
    assert len(evaluated) >= 2


def test_a_reward_that_plain_learning_never_meets_becomes_an_agent(solved):
    result, *_ = solved
    summary = result.summary
    assert summary["success"] == 1.0
    assert summary["verdict"].startswith("Solved")
    assert summary["samples"] <= 12_000
    assert summary["explored"] < 12_000
    assert summary["first_reward"] is not None
    assert result.exploration is not None
    env = gymnasium.make("Corridor-v0")
    observation, _ = env.reset(seed=5)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(result.policy(observation))
        total, ended = total + reward, terminated or truncated
    assert total == 1.0


def test_samples_of_exploring_are_one_number_wherever_they_are_told(solved):
    result, told, _ = solved
    explored, first = result.summary["explored"], result.summary["first_reward"]
    looked = explored - result.exploration.samples  # finding the cells took so many
    assert looked > 0
    stages = result.stages
    before = stages["look"]["samples"] + stages["plain"]["trial"]
    assert first == before + looked + result.exploration.first_reward
    sentence = next(text for text in told if text.startswith("Explored"))
    assert f"Explored {explored:,} samples" in sentence
    assert f"the first reward after {first - before:,}" in sentence
    page = (result.folder / "report.html").read_text()
    assert f"{explored:,} samples met" in page
    assert f"the first reward was seen after {first - before:,}" in page
    assert stages["explore"]["growth"][-1][0] == explored


def test_a_finished_run_is_not_done_again_and_another_is_refused(solved):
    result, *_ = solved
    told = []
    again = curious_explorer.solve_task("Corridor-v0", samples=12_000, out=result.folder, tell=told.append)
    assert again.summary == result.summary
    assert any("finished" in text for text in told)
    with pytest.raises(ValueError, match="seed is 0 there and 1 here"):
        curious_explorer.solve_task("Corridor-v0", samples=12_000, out=result.folder, seed=1)


def test_one_line_loads_what_was_learned(solved):
    result, *_ = solved
    agent = curious_explorer.load_policy(result.folder)
    assert agent(np.array([0])) in (0, 1, 2)
    last = curious_explorer.load_policy(result.folder / "learning", "last")
    assert last(np.array([0])) in (0, 1, 2)


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    from curious_explorer.studies.solve_run import SolveRun

    keep = SolveRun.keep

    def stop_after(stage):
        def kept(self, name, result):
            keep(self, name, result)
            if name == stage:
                raise KeyboardInterrupt

        return kept

    for stage in ("look", "plain", "explore", "measure", "halving", "learn"):
        monkeypatch.setattr(SolveRun, "keep", stop_after(stage))
        with pytest.raises(KeyboardInterrupt):
            curious_explorer.solve_task("Corridor-v0", samples=9_000, out=tmp_path / "run")
    monkeypatch.setattr(SolveRun, "keep", keep)
    halves = curious_explorer.solve_task("Corridor-v0", samples=9_000, out=tmp_path / "run")
    whole = curious_explorer.solve_task("Corridor-v0", samples=9_000, out=tmp_path / "whole")
    assert halves.summary == whole.summary


def test_where_nothing_pays_the_verdict_says_how_much_was_covered(tmp_path):
    result = curious_explorer.solve_task("NoPay-v0", samples=5_000, out=tmp_path / "run")
    assert result.summary["success"] == 0.0
    assert result.summary["first_reward"] is None
    assert result.summary["verdict"].startswith("Reward never seen")
    assert str(result.stages["explore"]["cells"]) in result.summary["verdict"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["verdict"] == result.summary["verdict"]


class Sea(gymnasium.Env):
    """Left pays a little at every step, right leads to a reward a hundred times as large."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(15)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = 0
        return 0, {}

    def step(self, action):
        self._at = self._at + 1 if action else max(self._at - 1, 0)
        done = self._at == 14
        return self._at, 1.0 if done else 0.0 if action else 0.0005, done, False, {}


def test_a_small_reward_beside_the_start_does_not_hide_a_large_one(tmp_path):
    gymnasium.register("Sea-v0", entry_point=Sea, max_episode_steps=20)
    try:
        result = curious_explorer.solve_task("Sea-v0", samples=8_000, out=tmp_path / "run")
    finally:
        del gymnasium.registry["Sea-v0"]
    assert result.summary["return_mean"] >= 1.0
    assert result.summary["samples"] <= 8_000


def test_where_steps_only_cost_an_episode_succeeds_that_comes_to_an_end(tmp_path):
    result = curious_explorer.solve_task("CliffWalking-v1", samples=22_000, out=tmp_path / "run")
    assert result.summary["return_mean"] == -13.0
    assert -1_000.0 <= result.summary["success_return"] < -13.0
    assert result.summary["samples"] <= 22_000


def test_exploring_has_a_share_where_rewards_come_nearly_everywhere(tmp_path):
    result = curious_explorer.solve_task("CartPole-v1", samples=10_000, out=tmp_path / "run", success_return=20.0)
    assert 0 < result.summary["explored"] <= 2_500
    assert 5_000 < result.summary["samples"] <= 10_000


def test_budgets_that_are_too_small_name_the_least():
    with pytest.raises(ValueError, match="the least is 5,000"):
        curious_explorer.solve_task("Corridor-v0", samples=100)
    with pytest.raises(ValueError, match="may last 500 steps; the least is 10,000"):
        curious_explorer.solve_task("CartPole-v1", samples=9_000)


@pytest.mark.parametrize(
    ("environment", "given", "message"),
    [
        ("MountanCar-v0", {}, "did you mean 'MountainCar-v0'"),
        ("benchmarks.solve_tasks:solve/KeyRom-v0", {}, "did you mean 'benchmarks.solve_tasks:solve/KeyRoom-v0'"),
        ("no_such_package:MyEnv-v0", {}, "no_such_package, which is not installed"),
        ("MiniWorld-Hallway-v0", {}, "pip install miniworld"),
        ("no_such_space/MyEnv-v0", {}, "as in 'package:no_such_space/MyEnv-v0'"),
        ("Nameless-v0", {}, "entry point of nothing"),
        ("Blackjack-v1", {"algorithm": "sac"}, "choose ppo"),
        ("Blackjack-v1", {"algorithm": "pppo"}, "did you mean 'ppo'"),
        ("Blackjack-v1", {"cells": "nothing"}, "expected identity"),
        ("Sets-v0", {}, "there is no network that acts in"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path, environment, given, message):
    def missing(**arguments):
        raise gymnasium.error.DependencyNotInstalled("entry point of nothing")

    class Sets(Corridor):
        action_space = spaces.Sequence(spaces.Discrete(2))

    gymnasium.register("Nameless-v0", entry_point=missing)
    gymnasium.register("Sets-v0", entry_point=Sets, max_episode_steps=40)
    try:
        with pytest.raises(ValueError, match=message):
            curious_explorer.solve_task(environment, samples=10_000, out=tmp_path / "run", **given)
    finally:
        del gymnasium.registry["Nameless-v0"], gymnasium.registry["Sets-v0"]
    assert not (tmp_path / "run").exists()


def test_episodes_without_a_time_limit_are_learned_from(tmp_path):
    result = curious_explorer.solve_task("Blackjack-v1", samples=5_000, out=tmp_path / "run")
    assert 3_000 < result.summary["samples"] <= 5_000


def test_the_layout_is_fixed_where_resets_draw_one():
    pytest.importorskip("minigrid")
    env = FixedLayout(gymnasium.make("MiniGrid-FourRooms-v0"), 3)
    grids = set()
    for seed in range(4):
        env.reset(seed=seed)
        grids.add(env.unwrapped.grid.encode().tobytes())
    assert len(grids) == 1


def test_steps_that_cost_are_paid_back_and_their_end_pays():
    env = ShiftedReward(gymnasium.make("MountainCar-v0"), -1.0)
    env.reset(seed=0)
    env.unwrapped.state = np.array([0.49, 0.06])
    _, reward, terminated, _, _ = env.step(2)
    assert (reward, terminated) == (1.0, True)
    env.reset(seed=0)
    assert env.step(1)[1] == 0.0


def test_of_equally_bad_ways_the_most_promising_goes_on(monkeypatch):
    from types import SimpleNamespace

    from curious_explorer.studies import solve_halving
    from curious_explorer.studies.solve_budget import Budget

    budget = Budget(100_000, 100)
    learned = {"starts": {"level": 1.0, "farthest": 40.0}}
    run = SimpleNamespace(budget=budget, left=50_000, tell=lambda text: None, stages={"learn": learned})
    monkeypatch.setattr(solve_halving, "worth_of", lambda run, name: {"plain": 0.5}.get(name, 0.0))
    state = {"alive": ["learning", "counting"], "given_up": [], "share": 1_000}
    assert solve_halving._next_round(run, state)["alive"] == ["learning"]
    state = {"alive": ["learning", "plain", "counting"], "given_up": [], "share": 1_000}
    assert solve_halving._next_round(run, state)["alive"] == ["learning", "plain"]
    state = {"alive": ["learning", "replay"], "given_up": [], "share": 1_000}
    assert solve_halving._next_round(run, state)["alive"] == ["replay"]  # starts have not moved
    learned["starts"]["level"] = 9.0
    assert solve_halving._next_round(run, state)["alive"] == ["learning"]


@pytest.mark.parametrize(("positive", "begins"), [(False, "Solved: 100%"), (True, "Learned as far as this")])
def test_where_random_actions_meet_nothing_but_penalties_more_than_zero_is_success(positive, begins):
    from dataclasses import replace

    from benchmarks.fuzz_files import LOOK
    from curious_explorer.studies.solving_words import verdict

    look = replace(LOOK, often=0.2, positive=positive)
    summary = {
        "success": 1.0,
        "return_mean": 1.0,
        "success_return": 0.0,
        "settings": {"agent": {"kind": "plan"}, "asked": {"success_return": None}},
    }
    assert verdict(summary, {"explore": {"positive": True}}, look).startswith(begins)


def test_a_page_is_written_without_matplotlib():
    from curious_explorer.studies.page.run_page import drawing

    def draw():
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    assert "no drawing, because the package matplotlib is not installed" in drawing(draw, "Cells met")


def test_where_something_is_not_seen_the_agent_remembers(tmp_path):
    from gym_helpers import Blind

    gymnasium.register("Blind-v0", entry_point=Blind, max_episode_steps=40)
    try:
        solved = curious_explorer.solve_task("Blind-v0", samples=15_000, out=tmp_path / "run")
        assert solved.stages["memory"]["steps"] > 0
        assert solved.summary["success"] == 1.0
        assert solved.summary["samples"] <= 15_000
        assert "remember" in (tmp_path / "run" / "report.html").read_text()
        agent, env = curious_explorer.load_policy(tmp_path / "run"), gymnasium.make("Blind-v0")
        observation, _ = env.reset(seed=3)
        agent.begin()
        total, ended = 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(agent(observation))
            total, ended = total + reward, terminated or truncated
        assert total == 1.0
    finally:
        del gymnasium.registry["Blind-v0"]


def test_plain_learning_goes_on_while_it_is_on_its_way_to_what_the_registration_asks_for():
    from types import SimpleNamespace

    from curious_explorer.studies.solve_budget import Budget
    from curious_explorer.studies.solve_stages import _on_its_way

    budget = Budget(120_000, 500)
    run, asked = SimpleNamespace(budget=budget), SimpleNamespace(pays_all_along=True, threshold=475.0)
    assert _on_its_way(run, asked, [20.0, 150.0], 1)
    assert _on_its_way(run, asked, [20.0, 150.0, 90.0], 2)  # few episodes are measured
    assert not _on_its_way(run, asked, [20.0, 25.0], 1)
    assert not _on_its_way(run, asked, [20.0, 400.0], 7)  # it has had its share
    assert not _on_its_way(run, SimpleNamespace(pays_all_along=True, threshold=None), [20.0, 150.0], 1)
    assert not _on_its_way(run, SimpleNamespace(pays_all_along=False, threshold=475.0), [0.0, 300.0], 1)
    for times in range(1, 8):
        given = budget.trials_with_evaluations(times)
        assert budget.learned_from(given, budget.trial) == times * budget.trial


class Uphill(gymnasium.Env):
    """A number that slips back unless it is pushed; pays at two."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = 0.0
        return np.array([self._at], np.float32), {}

    def step(self, action):
        pushed = 0.08 * (np.sum(action) - 1.5) + 0.02 * self.np_random.normal()
        self._at = max(self._at + pushed, 0.0)
        return np.array([self._at], np.float32), float(self._at >= 2.0), self._at >= 2.0, False, {}


@pytest.fixture
def uphill(request):
    gymnasium.register("Uphill-v0", Uphill, max_episode_steps=300, kwargs={"action_space": request.param})
    yield
    del gymnasium.registry["Uphill-v0"]


@pytest.mark.parametrize("uphill", [spaces.Discrete(3)], indirect=True)
def test_where_cells_mix_states_values_are_learned_from_the_steps_of_exploring(tmp_path, monkeypatch, uphill):
    monkeypatch.setattr("curious_explorer.studies.solve_training.FITTED", 50)
    evaluations = []

    def stop_at_second(event):
        if event.phase == "replay" and event.kind == EVALUATION:
            evaluations.append(event.samples)
            if len(evaluations) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        curious_explorer.solve_task("Uphill-v0", samples=30_000, out=tmp_path / "run", watch=on_events(stop_at_second))
    assert 0 < evaluations[1] < 30_000
    result = curious_explorer.solve_task("Uphill-v0", samples=30_000, out=tmp_path / "run")
    stages = result.stages
    assert stages["explore"]["hold"] == 2  # 150 decisions in an episode of 300 steps
    assert 0 < stages["explore"]["steps"] < stages["explore"]["samples"] / 1.5
    assert (tmp_path / "run" / "replay" / BUFFER_FILE).is_file()
    assert stages["replay"]["samples"] > 0
    assert "replay" in {*stages["halving"]["given_up"], *stages["halving"]["alive"]}
    assert result.summary["samples"] <= 30_000
    assert result.summary["success"] == 1.0
    agent = open_agent(tmp_path / "run", network("replay", "last", deterministic=True))
    actions = [agent(np.array([at], np.float32)) for at in (0.0, 9.0, 0.1, -9.0)]
    assert actions[0] == actions[1]  # held
    assert actions[2] == actions[3]


@pytest.mark.parametrize("uphill", [spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])], indirect=True)
def test_actions_of_any_kind_are_flattened(tmp_path, uphill):
    told = []
    result = curious_explorer.solve_task("Uphill-v0", samples=8_000, out=tmp_path / "run", tell=told.append)
    assert any("taken as MultiDiscrete([2 2]) (FlatActions)" in each for each in told)
    flat = FlatActions(gymnasium.make("Uphill-v0"))
    observation, _ = flat.reset(seed=0)
    assert flat.step(result.policy(observation, flat))[3] is False


def test_observations_that_are_no_arrays_are_refused_before_anything_is_learned(tmp_path):
    class Lists(Corridor):
        def reset(self, *, seed=None, options=None):
            return [0], super().reset(seed=seed)[1]

    gymnasium.register("Lists-v0", entry_point=Lists, max_episode_steps=40)
    try:
        with pytest.raises(ValueError, match=r"returned the observation \[0\] which is list and no array"):
            curious_explorer.solve_task("Lists-v0", samples=9_000, out=tmp_path / "run")
        assert not (tmp_path / "run" / "plain").exists()
    finally:
        del gymnasium.registry["Lists-v0"]
