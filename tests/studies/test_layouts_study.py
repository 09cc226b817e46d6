"""Exploring, cloning and testing in stages that go on where they were left."""

import functools
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from layouts_helpers import Signposts
from typer.testing import CliRunner

from curious_explorer import HashedCells
from curious_explorer.cli.app import app
from curious_explorer.errors import StudyError
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.sb3.label_cloning import Cloning
from curious_explorer.sb3.recurrent_cloning import RecurrentCloning
from curious_explorer.storage import write_json
from curious_explorer.studies import layouts_study, solving_layouts
from curious_explorer.studies.layouts_study import LayoutsStudy, study_of_minigrid, where_it_stands
from curious_explorer.studies.playing import load_policy, play
from curious_explorer.studies.solving_layouts import layouts_summary, solve_layouts, verdict
from curious_explorer.studies.unseen_layouts import split_layouts

pytest.importorskip("torch")


def study(**changed):
    cloning = Cloning(hidden=(32, 32), most_updates=300)
    settings = {"stages": (4, 12), "share": 400, "after": 20, "tests": 60, "cloning": cloning}
    settings["make"] = functools.partial(Signposts, length=5, limit=12)
    return LayoutsStudy(name="signposts", cells=HashedCells(200), **settings | changed)


def test_unseen_layouts_are_solved_by_what_was_learned_in_others_and_stages_go_on(tmp_path):
    first = study(stages=(4,)).run(tmp_path)
    assert first[0].found == 4
    both = study().run(tmp_path)
    assert both[0] == first[0]
    assert both[1].layouts == both[1].found == 12
    assert both[1].samples > both[0].samples
    assert both[1].solved == 60
    assert both[1].low > 0.9
    assert study().run(tmp_path) == both  # nothing is done twice
    policy = ClonedPolicy.load(tmp_path / "0012" / "policy", Signposts().observation_space)
    env = Signposts()
    for seed in range(200, 220):
        seen, _ = env.reset(seed=seed)
        assert policy.probabilities([seen])[0].argmax() == seen[1]


def test_what_an_easier_task_has_taught_helps_from_the_first_layout(tmp_path):
    small = RecurrentCloning(
        width=32, memory=32, walks=32, kept=4, longest=24, batch=16, every=5, updates=150, updates_a_layout=0
    )
    settings = {"cloning": small, "lesson_updates": 20, "tests": 20}
    easier = study(**settings, stages=(8,))
    easier.run(tmp_path / "easier")
    harder = {**settings, "stages": (3,), "seed": 1, "make": functools.partial(Signposts, length=5, limit=24)}
    knowing = study(**harder, begin=tmp_path / "easier" / "0008" / "policy")
    (stage,), (alone,) = knowing.run(tmp_path / "knowing"), study(**harder).run(tmp_path / "alone")
    assert sum(stage.first_rewards) < 0.7 * sum(alone.first_rewards)
    with pytest.raises(StudyError, match="settings"):
        study(**harder).run(tmp_path / "knowing")
    with pytest.raises(ValueError, match="same settings"):
        study(**harder | {"cloning": replace(small, memory=16)}, begin=knowing.begin).settings()
    with pytest.raises(ValueError, match="there are no lessons"):
        study(**harder, lessons=False, begin=knowing.begin)


class StoppedError(Exception):
    pass


def test_a_study_that_is_stopped_says_where_it_stood_and_goes_on(tmp_path, monkeypatch):
    assert where_it_stands(tmp_path) == "nothing was explored"
    whole = study().run(tmp_path / "whole")
    with pytest.raises(StoppedError):
        study().run(tmp_path / "run", on_stage=stop)
    assert where_it_stands(tmp_path / "run") == "after the stage of 4 layouts"
    monkeypatch.setattr(layouts_study, "write_json", lambda path, *rest: stop_at("explored.json", path, *rest))
    with pytest.raises(StoppedError):
        study().run(tmp_path / "run")
    where = where_it_stands(tmp_path / "run")
    assert where.startswith(
        "in exploring for the stage of 12 layouts: of the 8 that it adds 8 had paid and 8 were done"
    )
    monkeypatch.setattr(layouts_study, "write_json", lambda path, *rest: stop_at("tested.json", path, *rest))
    with pytest.raises(StoppedError):
        study().run(tmp_path / "run")
    assert where_it_stands(tmp_path / "run") == "in cloning or testing after 12 layouts"
    monkeypatch.undo()
    again = study().run(tmp_path / "run")
    assert [each._replace(seconds=0) for each in again] == [each._replace(seconds=0) for each in whole]
    assert where_it_stands(tmp_path / "run") == "after the stage of 12 layouts"


def stop(stage):
    raise StoppedError


def stop_at(name, path, *rest):
    if path.name == name:
        raise StoppedError
    return write_json(path, *rest)


def test_layouts_that_raise_are_told_of_those_explored_and_those_tested(tmp_path):
    split = split_layouts(8, 30, seed=0)
    broken = (split.train[2], split.test[3], split.test[20])
    make = functools.partial(Signposts, length=5, limit=12, broken=broken)
    stage = study(stages=(8,), tests=30, make=make).run(tmp_path)[0]
    assert (stage.found, stage.failed, stage.set_aside) == (7, 1, 0)
    assert f"no map of {broken[0]}" in stage.report
    assert stage.tests_failed == tuple(sorted(broken[1:]))
    assert stage.solved <= 28
    assert "in 2 of those tested the environment raised" in verdict(stage)


def test_other_settings_need_another_folder(tmp_path):
    study(stages=(4,)).run(tmp_path)
    with pytest.raises(StudyError, match="after"):
        study(stages=(4,), after=30).run(tmp_path)


def test_where_nothing_is_found_nothing_is_learned(tmp_path):
    stage = study(stages=(2,), actions=[0], share=30, tests=10).run(tmp_path)[0]
    assert (stage.found, stage.labels, stage.solved) == (0, 0, 0)
    with pytest.raises(ValueError, match="stages"):
        study(stages=(8, 4))


@pytest.mark.slow
def test_a_minigrid_with_changing_layouts(tmp_path):
    task = study_of_minigrid("MiniGrid-MultiRoom-N2-S4-v0", stages=(8,), share=3_000, after=200, tests=40)
    stage = task.run(tmp_path)[0]
    assert stage.found == 8
    assert stage.solved >= 20


def test_solve_explores_layouts_by_an_id_and_says_what_came_of_it(tmp_path):
    gymnasium.register("Signposts-v0", entry_point=Signposts, kwargs={"length": 4, "limit": 12})
    try:
        told, heard = [], []
        summary = solve_layouts(
            "Signposts-v0",
            layouts=8,
            samples=4_000,
            out=tmp_path / "run",
            tests=40,
            tell=told.append,
            progress=lambda *now: heard.append(now),
        )
        assert heard[-1] == (summary["samples"], "8 of 8 layouts paid, 8 done")
        assert heard == sorted(heard)
        assert summary["success"] > 0.9
        assert summary["samples"] <= 4_000
        assert "layouts never seen are solved" in summary["verdict"]
        assert (summary["found"], summary["set_aside"], summary["failed"], summary["tests_failed"]) == (8, 0, 0, [])
        assert summary["report"].startswith("8 of 8 layouts paid")
        assert len(told) == 2
        assert (tmp_path / "run" / "summary.json").is_file()
        played = play(tmp_path / "run", episodes=20, seed=2**30)
        assert np.mean(np.array(played.returns) > 0) > 0.8
        agent = load_policy(tmp_path / "run", deterministic=True)
        agent.begin()
        assert agent(np.array([0, 2])) == 2
        with pytest.raises(ValueError, match="at least 400"):
            solve_layouts("Signposts-v0", layouts=8, samples=300, out=tmp_path / "other")
        with pytest.raises(ValueError, match="Signposts-v0"):
            solve_layouts("Signposts-v9", layouts=8, samples=4_000, out=tmp_path / "other")
        assert not (tmp_path / "other").exists()
    finally:
        del gymnasium.registry["Signposts-v0"]


@pytest.fixture
def small(monkeypatch):
    """Networks that learn next to nothing in no time, for the command."""
    cloning = RecurrentCloning(width=16, memory=8, walks=8, kept=2, longest=12, batch=4, updates=10, updates_a_layout=0)
    study = functools.partial(LayoutsStudy, cloning=cloning, lesson_updates=10)
    monkeypatch.setattr(solving_layouts, "LayoutsStudy", study)


def solved_by_the_command(name, folder, *words):
    words = ("solve", name, "--layouts", "6", "--samples", "6000", "--seed", "3", "--workers", "1", *words)
    result = CliRunner().invoke(app, [*words, "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_the_command_says_that_restarts_do_not_repeat(tmp_path, small):
    gymnasium.register("DeafSignposts-v0", entry_point=Signposts, kwargs={"length": 4, "limit": 12, "deaf": True})
    try:
        told = solved_by_the_command("DeafSignposts-v0", tmp_path / "run")
    finally:
        del gymnasium.registry["DeafSignposts-v0"]
    assert "all layouts as one with" in told
    assert "two restarts by one seed did not agree" in told
    assert not layouts_summary(tmp_path / "run")["repeatable"]


def test_the_command_names_layouts_that_raise_and_those_set_aside(tmp_path, small):
    split = split_layouts(6, seed=3)
    arguments = {"length": 4, "limit": 12, "broken": (split.train[4], split.test[7])}
    gymnasium.register("BrokenSignposts-v0", entry_point=Signposts, kwargs=arguments)
    try:
        told = solved_by_the_command("BrokenSignposts-v0", tmp_path / "run")
    finally:
        del gymnasium.registry["BrokenSignposts-v0"]
    assert "5 of 6 layouts paid; 0 set aside, 1 left alone since the environment raised" in told
    assert f"no map of {split.train[4]}" in told
    assert f"in 1 of those tested the environment raised ({split.test[7]})" in told
