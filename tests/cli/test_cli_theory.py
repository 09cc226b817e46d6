"""The commands explore, hardness, plan and certify, as a person or a program would call them."""

import json

import pytest
from cli_helpers import call, refused

from curious_explorer import FiniteMDP, ResetModel
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.environments.environment_names import find_environment

FEW = ["--rounds", "2", "--visits", "100"]


def test_names_of_environments(tmp_path):
    assert find_environment("dcl/5") == combination_lock(5)
    assert find_environment("cct/4", labels=3) == crossroad_traps(4, permute_actions=3)
    assert find_environment("chain/3").num_states == 5
    assert find_environment("garnet/30").num_states == 30
    assert find_environment("FrozenLake-v1").num_states == 16
    assert find_environment("FrozenLake-v1?map_name=8x8&is_slippery=false").num_states == 64
    frozen = find_environment("FrozenLake-v1?is_slippery=False")
    assert frozen == find_environment("FrozenLake-v1?is_slippery=false")
    assert frozen.transitions.nnz < find_environment("FrozenLake-v1").transitions.nnz
    assert find_environment("curious_explorer/CombinationLock-v0?depth=7&permute_actions=2") == combination_lock(
        7, permute_actions=2
    )
    assert find_environment("curious_explorer/CombinationLock-v0") == combination_lock(5)
    path = combination_lock(2).save(tmp_path / "lock.json")
    assert find_environment(str(path)) == combination_lock(2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dcl20", "did you mean 'dcl/20'"),
        ("FrozenLke-v1", "did you mean 'FrozenLake-v1'"),
        ("dcl/deep", "expected a whole number after the slash"),
        ("dcl/0", "depth is 0"),
        ("nowhere.json", "there is no file 'nowhere.json'"),
    ],
)
def test_unknown_environments(monkeypatch, capsys, name, message):
    assert message in refused(monkeypatch, capsys, "hardness", name)


def test_hardness_for_people_and_programs():
    assert "exploitative factor" in call("hardness", "dcl/5")
    data = json.loads(call("hardness", "dcl/5", "--gamma", "0.9", "--json"))
    assert data["num_states"] == 19
    assert data["gamma"] == 0.9


def test_plan_takes_an_environment_or_a_number_of_states():
    assert "visits a round" in call("plan", "dcl/5")
    for_any = json.loads(call("plan", "19", "--json"))
    for_this = json.loads(call("plan", "dcl/5", "--json"))
    assert for_any["num_states"] == for_this["num_states"] == 19
    assert for_this["rounds"] < for_any["rounds"]  # knowing the MDP helps


def test_explore_then_certify(monkeypatch, capsys, tmp_path):
    run = tmp_path / "run"
    call("explore", "dcl/2", "--out", run, "--optimizer", "model-based", *FEW)
    assert ResetModel.load(run / "reset_model").num_states == 10
    assert FiniteMDP.load(run / "mdp.npz") == combination_lock(2)
    call("explore", "dcl/2", "--out", run, "--optimizer", "model-based", *FEW)  # goes on: nothing is left to do
    data = json.loads(call("certify", run, "--walks", "500", "--json"))
    assert data["arrivals"]["confidence"] == pytest.approx(0.95)
    assert len(data["arrivals"]["chances"]) == 10
    assert set(data) == {"arrivals", "poorly_visited", "training"}
    again = json.loads(call("certify", run / "exploration", "--environment", "dcl/2", "--walks", "500", "--json"))
    assert again == data
    assert "reached with at least 10%" in call("certify", run, "--walks", "500", "--max-steps", "5")
    assert "no counted model" in refused(monkeypatch, capsys, "certify", run, "--arrivals", "20")


def test_plans_for_chosen_resets(monkeypatch, capsys):
    data = json.loads(call("plan", "dcl/2", "--schedule", "chosen", "--json"))
    assert (data["kind"], data["num_states"]) == ("ChosenPlan", 10)
    assert f"{data['tries']:,}" in call("plan", "dcl/2", "--schedule", "chosen")
    assert "needs an environment" in refused(monkeypatch, capsys, "plan", "10", "--schedule", "chosen")


def test_certify_says_what_it_cannot_certify(tmp_path):
    run = tmp_path / "run"
    call("explore", "cct/3", "--out", run, "--no-record", *FEW)
    data = json.loads(call("certify", run, "--walks", "200", "--json"))
    assert "--record" in data["poorly_visited"]["refused"]
    assert data["arrivals"]["kind"] == "ArrivalCertificate"


def test_runs_on_gymnasium_environments_are_certified_by_arrivals(tmp_path):
    run = tmp_path / "run"
    call("explore", "MountainCar-v0", "--out", run, "--cells", "5x5", "--samples", "4000", "--gamma", "0.9", "--record")
    data = json.loads(call("certify", run, "--walks", "50", "--arrivals", "5", "--json"))
    assert data["chosen_resets"]["kind"] == "ChosenCertificate"
    assert min(data["chosen_resets"]["arrived"]) == 5
    assert len(data["arrivals"]["chances"]) == 25
    assert data["arrivals"]["samples"] > 0
    assert "grid cells" in data["poorly_visited"]["refused"]
    assert "grid cells" in data["training"]["refused"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "dcl/5", "--eta", "0"], "eta"),
        (["plan", "dcl/5", "--delta", "1.5"], "delta"),
        (["plan", "dcl/5", "--epsilon", "0.2"], "epsilon"),
        (["hardness", "dcl/5", "--gamma", "1"], "gamma is 1.0"),
        (["explore", "dcl/5", "--optimizer", "trop"], "did you mean 'trpo'"),
        (["explore", "dcl/5", "--gamma", "1"], "gamma is 1.0"),
        (["explore", "dcl/5", "--rounds", "0"], "rounds is 0"),
        (["explore", "dcl/5", "--schedule", "lnear"], "did you mean 'linear'"),
        (["certify", "no-such-run"], "there is no folder no-such-run"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(monkeypatch, capsys, *words)
    assert list(tmp_path.iterdir()) == []


def test_runs_of_another_world_are_refused_and_kept(monkeypatch, capsys, tmp_path):
    run = tmp_path / "run"
    call("explore", "cct/3", "--out", run, *FEW)
    before = sorted(path.name for path in run.rglob("*"))
    assert "another MDP" in refused(monkeypatch, capsys, "explore", "cct/4", "--out", run, *FEW)
    assert "other settings" in refused(monkeypatch, capsys, "explore", "cct/3", "--out", run, "--gamma", "0.9")
    wrong = refused(monkeypatch, capsys, "certify", run / "exploration", "--environment", "cct/4")
    assert "another MDP" in wrong
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("keep me")
    assert "is not empty" in refused(monkeypatch, capsys, "explore", "cct/3", "--out", mine)
    assert sorted(path.name for path in run.rglob("*")) == before
    assert [path.name for path in mine.iterdir()] == ["letter.txt"]


def test_an_unfinished_run_is_not_certified(monkeypatch, capsys, tmp_path):
    run = tmp_path / "run"
    call("explore", "cct/3", "--out", run, *FEW)
    (run / "exploration" / "round-0001.npz").unlink()
    assert "unfinished: 1 of 2 rounds" in refused(monkeypatch, capsys, "certify", run)


@pytest.mark.parametrize("command", ["explore", "hardness", "plan", "certify", "demo"])
def test_help_has_an_example(command):
    assert f"curious-explorer {command}" in call(command, "--help")


def test_demo_ends_in_a_picture(tmp_path):
    output = call("demo", "--depth", "4", "--out", tmp_path)
    assert "exploration.png" in output.replace("\n", "")
    assert (tmp_path / "exploration.png").read_bytes().startswith(b"\x89PNG")
