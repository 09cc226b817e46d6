"""Exploring and training in Gymnasium environments from the command line, as a person would."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from cli_helpers import refused
from cli_helpers import told as call

from curious_explorer import Exploration, ResetModel
from curious_explorer.environments import combination_lock
from curious_explorer.errors import CellError
from curious_explorer.explorers.sample_budget import SampleBudget
from curious_explorer.gym.cell_names import named_cells

CAR = ["MountainCar-v0", "--cells", "6x6", "--gamma", "0.9", "--samples", "9000", "--rounds", "3", "--optimizer=trpo"]


def files(folder):
    """The content of every file below a folder, by its name."""
    return {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# Cells by name --------------------------------------------------------------------------------------------------------


def test_cells_by_name():
    car, lake = gymnasium.make("MountainCar-v0"), gymnasium.make("FrozenLake-v1")
    assert named_cells("20", car).count == named_cells("20x20", car).count == 400
    assert named_cells("4x3", car).index(np.array([0.59, 0.069]), None) == 11  # the last of 12
    bounded = named_cells("2x2:-1,-1:1,1", car)
    assert bounded.description()["low"] == [-1.0, -1.0]
    assert [bounded.index(np.array(at), None) for at in ([-0.1, -0.1], [-0.1, 0.1], [0.1, 0.1])] == [0, 1, 3]
    assert named_cells("quantiles:5x2", car).description()["bins"] == [5, 2]
    assert named_cells("hash:0.1,0.5", car, max_cells=7).description()["width"] == [0.1, 0.5]
    assert named_cells("hash", car, max_cells=7).count == 7
    assert named_cells("minigrid", car, max_cells=9).count == 9
    assert named_cells("identity", lake).count == 16
    assert named_cells(None, lake) is None  # chosen by a look at the environment
    assert named_cells("operator:index:16", lake).index(3, None) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("20xx", "expected identity, 20"),
        ("0x4", "expected identity, 20"),
        ("2x2:1,1", "expected identity, 20"),
        ("hash:wide", "expected identity, 20"),
        ("no_such_module:cell:4", "is no function that can be imported"),
        ("math:pi:4", "expected a function"),
        ("identity", "is for Discrete observations"),
    ],
)
def test_unknown_cells(name, message):
    with pytest.raises(CellError, match=message):
        named_cells(name, gymnasium.make("MountainCar-v0"))


def test_cells_that_do_not_fit():
    with pytest.raises(CellError, match="has no bounds"):
        named_cells("5", gymnasium.make("CartPole-v1"))
    with pytest.raises(CellError, match="--max-cells is for cells that are discovered"):
        named_cells("5x5", gymnasium.make("MountainCar-v0"), max_cells=3)


# Exploring ------------------------------------------------------------------------------------------------------------


def test_explore_keeps_to_its_samples_and_goes_on_where_it_stood(tmp_path, monkeypatch, capsys):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    told = call("explore", *CAR, "--out", whole)
    assert "stepping in the environment, 36 cells (grid), 3 actions" in told
    exploration = Exploration.load(whole / "exploration")
    assert len(exploration.rounds) == 3
    assert 0.8 * 9_000 < exploration.samples <= 9_000
    assert f"{exploration.samples:,} samples" in told
    described = json.loads((whole / "environment.json").read_text())["settings"]
    assert (described["environment"], described["cells"]["bins"]) == ("MountainCar-v0", [6, 6])
    assert (whole / "visited.png").read_bytes().startswith(b"\x89PNG")
    assert ResetModel.load(whole / "reset_model").num_states == 36

    call("explore", *CAR, "--out", halves)
    for lost in ("exploration/round-0002.npz", "exploration/round-0001.npz", "reset_model/reset_model.json"):
        (halves / lost).unlink()  # as if it had been killed in the second round
    call("explore", *CAR, "--out", halves)
    assert files(halves) == files(whole)
    told = refused(monkeypatch, capsys, "explore", *CAR, "--samples", "12000", "--out", halves)
    assert "other settings: samples is 9000 there and 12000 here" in told
    assert files(halves) == files(whole)


@pytest.mark.parametrize("cells", ["hash:0.1", "quantiles:4", None])
def test_other_cells_and_optimizers(tmp_path, cells):
    words = ["MountainCar-v0", *([] if cells is None else ["--cells", cells])]
    words += {"hash:0.1": ["--optimizer", "model-based"], "quantiles:4": ["--optimizer", "reinforce"]}.get(cells, [])
    told = call(
        *["explore", *words, "--out", tmp_path / "run", "--gamma", "0.8", "--num-envs", "2"],
        *["--rounds", "2", "--samples", "12000"],
    )
    samples = int(told.split(" samples (")[0].split()[-1].replace(",", ""))
    assert samples <= 12_000
    assert ResetModel.load(tmp_path / "run" / "reset_model").discretisation.environment == "MountainCar-v0"


def test_a_folder_in_which_nothing_was_finished_can_be_tried_again_with_other_cells(tmp_path, monkeypatch, capsys):
    words = ["explore", "MountainCar-v0", "--cells", "hash:0.01", *CAR[3:], "--out", tmp_path / "run"]
    assert "--max-cells" in refused(monkeypatch, capsys, *words, "--max-cells", "2")
    call(*words, "--max-cells", "2000")
    told = refused(monkeypatch, capsys, *words, "--max-cells", "3000")
    assert "cells.max_cells is 2000 there and 3000 here" in told


def test_a_table_is_used_where_there_is_one_unless_told_otherwise(tmp_path, monkeypatch, capsys):
    few = ["--rounds", "2", "--samples", "6000", "--gamma", "0.8"]
    told = call("explore", "FrozenLake-v1", "--out", tmp_path / "table", *few)
    assert "shows its table of transitions (16 states)" in told
    assert (tmp_path / "table" / "mdp.npz").is_file()
    assert Exploration.load(tmp_path / "table" / "exploration").samples <= 6_000
    told = call("explore", "FrozenLake-v1", "--cells", "identity", "--out", tmp_path / "steps", *few)
    assert "stepping in the environment, 16 cells (discrete), 4 actions" in told
    assert not (tmp_path / "steps" / "mdp.npz").exists()
    for folder, words, message in (
        ("table", ["--cells", "identity"], "holds a run on the environment's table"),
        ("steps", [], "holds a run that steps in the environment"),
    ):
        assert message in refused(
            monkeypatch, capsys, "explore", "FrozenLake-v1", *words, "--out", tmp_path / folder, *few
        )


def test_interrupted_exploration_says_what_is_kept(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("curious_explorer.learners.trpo.TRPO.take_step", interrupted)
    told = call("explore", *CAR, "--out", tmp_path / "run", code=130)
    assert "Interrupted" in told
    assert "the same command goes on" in told


def test_environments_are_explored_by_counts_unless_rounds_are_asked_for(tmp_path):
    words = ["explore", "FrozenLake-v1", "--cells", "identity", "--samples", "1500", "--out", str(tmp_path / "run")]
    shown = [call(*words) for _ in range(2)]  # the second finds it finished
    found = re.compile(r"1,500 samples, the first reward was seen after [\d,]+")
    first, second = (" ".join(each.split()) for each in shown)  # lines break where the folder's name makes them
    assert found.search(first).group() == found.search(second).group()
    assert "It was finished before: nothing was done again." in second
    exploration = Exploration.load(tmp_path / "run" / "exploration")
    assert (exploration.samples, exploration.rounds) == (1_500, ())
    assert 0 < exploration.first_reward <= 1_500
    resets = ResetModel.load(tmp_path / "run" / "reset_model")
    assert resets.model.tries.sum() == 1_500


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explore", "MountanCar-v0"], "did you mean 'MountainCar"),
        (["explore", "no_such_package:Car-v0"], "no_such_package"),
        (["explore", "MiniWorld-Hallway-v0"], "needs the package miniworld: pip install miniworld"),
        (["explore", "no_such_space/Car-v0"], "as in 'package:no_such_space/Car-v0'"),
        (["explore", "dcl/5", "--cells", "5"], "needs no cells"),
        (["explore", "dcl/5", "--optimizer", "ppo"], "has no observations"),
        (["explore", "CartPole-v1", "--samples", "9"], "1 steps are too few"),
        (["explore", "MountainCar-v0", "--cells", "5x5x5"], "2 dimensions"),
        (["explore", "MountainCar-v0", "--samples", "1000", "--rounds", "3"], "1,000 samples are too few"),
        (["explore", "MountainCar-v0", "--samples", "0"], "samples is 0"),
        (["explore", "MountainCar-v0", "--optimizer", "frontier", "--rounds", "3"], "frontier has no rounds"),
        (["explore", "dcl/5", "--optimizer", "frontier"], "table of transitions"),
        (["explore", "MountainCar-v0", "--actions", "1"], "action"),
        (["explore", "MountainCar-v0", "--optimizer", "pppo"], "did you mean 'ppo'"),
        (["explore", "MountainCar-v0", "--optimizer", "ppo", "--record"], "--record keeps the transitions of cells"),
        (["train", "MountanCar-v0"], "did you mean 'MountainCar"),
        (["train", "bsuite/deep_sea-v0"], "needs the package shimmy: pip install 'shimmy[bsuite]'"),
        (["train", "MountainCar-v0", "--algorithm", "dqnn"], "unknown algorithm 'dqnn'"),
        (["train", "MountainCar-v0", "--reset-model", "nowhere"], "holds no reset model"),
        (["train", "MountainCar-v0", "--set", "n_steps"], "--set is 'n_steps'"),
        (["train", "MountainCar-v0", "--set", "policy_kwargs=1"], "use net_arch and activation_fn"),
        (["train", "MountainCar-v0", "--set", "net_arch=64"], "net_arch is 64, expected a list of widths"),
        (["train", "MountainCar-v0", "--set", "activation_fn=rleu"], "expected one of tanh, relu"),
        (["train", "MountainCar-v0", "--set", "nsteps=4"], "ppo has no hyperparameter 'nsteps'"),
        (["train", "MountainCar-v0", "--samples", "0"], "samples is 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path, words, message):
    if words[0] == "train":
        pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    monkeypatch.chdir(tmp_path)
    assert message in refused(monkeypatch, capsys, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_environment_is_named_and_the_checkpoint_is_kept(monkeypatch, capsys, tmp_path):
    (tmp_path / "fragile_car.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import MountainCarEnv\n"
        "class Fragile(MountainCarEnv):\n"
        "    steps = 0\n"
        "    def step(self, action):\n"
        "        Fragile.steps += 1\n"
        "        if Fragile.steps > 7000: raise OSError('the cable came off')\n"
        "        return super().step(action)\n"
        "gymnasium.register('Fragile-v0', entry_point=Fragile)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    told = refused(monkeypatch, capsys, "explore", "fragile_car:Fragile-v0", *CAR[1:], "--out", "run")
    assert "the cable came off" in told
    assert (tmp_path / "run" / "exploration" / "round-0000.npz").is_file()


def test_a_sample_budget_is_shared_out_within_the_total():
    car = SampleBudget.plan(1_200_000, 0.99)
    assert (car.rounds, 20 <= car.visits <= 40) == (20, True)
    assert car.rounds * car.cost_of(car.visits) <= 0.3 * car.samples
    left = car.samples
    for number in range(car.rounds):  # measuring becomes dearer by a tenth each time
        visits = min(int(5_000 * 1.1**number), car.for_visits(left, number))
        left -= visits
        left -= car.for_learning(left, number, visits)
        assert left >= 0
    assert left == 0
    with pytest.raises(ValueError, match="samples are too few"):
        SampleBudget.plan(10_000, 0.99)


# Training -------------------------------------------------------------------------------------------------------------

TRAIN = ["train", "MountainCar-v0", "--samples", "1500", "--num-envs", "2", "--evaluation-episodes", "1"]
SMALL = ["--set", "n_steps=64", "--set", "n_epochs=1", "--evaluate-every", "700"]


@pytest.fixture(scope="module")
def resets(tmp_path_factory):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    run = tmp_path_factory.mktemp("explored") / "run"
    call("explore", *CAR, "--out", run)
    return run


def test_train_from_resets_counts_every_step(tmp_path, resets):
    told = call(*TRAIN, *SMALL, "--reset-model", resets, "--out", tmp_path / "run", "--tensorboard", tmp_path / "logs")
    rows = [line.split(",") for line in (tmp_path / "run" / "evaluations.csv").read_text().splitlines()]
    samples, learned = int(rows[-1][0]), int(rows[-1][1])
    assert samples == 1_500  # the budget to the step
    assert 0 < learned < samples  # the rest are roll-ins
    assert f"{learned:,} of episodes and {samples - learned:,} of roll-ins" in told
    assert list((tmp_path / "logs").glob("events.*"))
    assert (tmp_path / "run" / "evaluations.png").read_bytes().startswith(b"\x89PNG")

    from stable_baselines3 import PPO

    from curious_explorer.gym.network_policy import NetworkPolicy
    from curious_explorer.sb3.training import load_progress
    from curious_explorer.sb3.training_settings import PPO as PPO_SETTINGS

    saved = load_progress(tmp_path / "run")
    assert saved is not None
    tensors = saved[0][0]
    network = {"policy_kwargs": {"net_arch": PPO_SETTINGS["net_arch"]}}
    judge = PPO("MlpPolicy", gymnasium.make("MountainCar-v0"), device="cpu", **network).policy
    names = [name.removeprefix("policy.") for name in tensors if name.startswith("policy.")]
    judge.load_state_dict({name: tensors[f"policy.{name}"] for name in names})
    network = NetworkPolicy.decode((tmp_path / "run" / "policy.safetensors").read_bytes())
    seen = np.array([[-0.5, 0.01], [0.3, -0.02]])
    scaled = (seen - tensors["seen.mean"].numpy()) / np.sqrt(tensors["seen.variance"].numpy() + 1e-8)
    scaled = scaled.clip(-10.0, 10.0)  # VecNormalize's default
    logits = judge.get_distribution(judge.obs_to_tensor(scaled.astype(np.float32))[0]).distribution.logits
    ours = network.outputs(list(seen))
    theirs = logits.detach().numpy()
    np.testing.assert_allclose(ours - ours.mean(1, keepdims=True), theirs - theirs.mean(1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("algorithm", ["ppo", "rnd"])
def test_a_training_that_was_killed_goes_on_as_if_it_had_not_been(tmp_path, resets, monkeypatch, capsys, algorithm):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    words = [*TRAIN, *SMALL, "--reset-model", resets / "reset_model", "--algorithm", algorithm]
    call(*words, "--out", whole)
    from curious_explorer.sb3 import training as run

    keep, kept = run.save_progress, []

    def save_twice(folder, state, evaluations):
        if len(kept) == 2:
            raise KeyboardInterrupt
        kept.append(keep(folder, state, evaluations))

    monkeypatch.setattr(run, "save_progress", save_twice)
    told = call(*words, "--out", halves, code=130)
    assert "the same command goes on" in told
    monkeypatch.setattr(run, "save_progress", keep)
    call(*words, "--out", halves)
    kept, expected = files(halves), files(whole)
    for name in ("model.zip", "vecnormalize.pkl"):  # in a format that holds the time of day
        assert kept.pop(Path(name))
        assert expected.pop(Path(name))
    assert kept == expected
    other = refused(monkeypatch, capsys, *words, "--out", halves, "--seed", "1")
    assert "other settings: seed is 0 there and 1 here" in other
    other = refused(monkeypatch, capsys, *words, "--out", halves, "--weighting", "average")
    assert "other settings: weighting is 'spread' there and 'average' here" in other
    (halves / "checkpoint.safetensors").write_bytes(b"nothing that was ever saved")
    assert "cannot be read as a checkpoint" in refused(monkeypatch, capsys, *words, "--out", halves)


def test_plain_training_and_other_algorithms(tmp_path):
    pytest.importorskip("sb3_contrib", reason="the extra sb3 is not installed")
    for algorithm, settings in (("a2c", []), ("trpo", ["--set", "n_steps=64"])):
        told = call(*TRAIN, *settings, "--algorithm", algorithm, "--out", tmp_path / algorithm)
        assert "and 0 of roll-ins" in told
    wide = ["--set", "net_arch=[16,8]", "--set", "activation_fn=relu"]
    for algorithm in ("dqn", "recurrent-ppo"):
        call(*TRAIN, *wide, "--algorithm", algorithm, "--out", tmp_path / algorithm)
    call("train", "Pendulum-v1", *TRAIN[2:], *wide, "--algorithm", "sac", "--out", tmp_path / "sac")
    lake = ["train", "FrozenLake-v1", *TRAIN[2:], "--set", "n_steps=64", "--stochastic"]
    call(*lake, "--out", tmp_path / "lake")  # Discrete observations are not normalised
    assert (tmp_path / "lake" / "policy.safetensors").is_file()


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ("dcl/20", "did you mean 'curious_explorer/CombinationLock-v0?depth=20'?"),
        ("FrozenLake-v1?map_nam=8x8", "FrozenLake-v1 cannot be made with map_nam='8x8'"),
        ("FrozenLake-v1?map_name=9x9", "cannot be made with map_name='9x9': KeyError '9x9'"),
        ("FrozenLake-v1?map_name=8x8&map_name=4x4", "gives map_name twice"),
        ("FrozenLake-v1?8x8", "expected arguments as in '?depth=20&x=a'"),
        ("FrozenLak-v1?map_name=8x8", "did you mean 'FrozenLake-v1'"),
    ],
)
def test_environments_that_cannot_be_made(monkeypatch, capsys, tmp_path, environment, message):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    assert message in refused(monkeypatch, capsys, "train", environment, "--out", tmp_path / "run")


def test_arguments_of_an_environment_follow_a_question_mark(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    lock = "curious_explorer/CombinationLock-v0?depth=3"
    call("explore", lock, "--cells", "identity", *CAR[3:], "--out", tmp_path / "run")
    assert ResetModel.load(tmp_path / "run").num_states == combination_lock(3).num_states
    call("train", lock, "--reset-model", tmp_path / "run", *TRAIN[2:], *SMALL, "--out", tmp_path / "trained")


def test_weighting_needs_resets_and_a_known_name(monkeypatch, capsys, tmp_path, resets):
    monkeypatch.chdir(tmp_path)
    words = ["train", "MountainCar-v0", "--weighting"]
    assert "give --reset-model too" in refused(monkeypatch, capsys, *words, "spread")
    told = refused(monkeypatch, capsys, *words, "widest", "--reset-model", resets)
    assert "weighting is 'widest', expected one of 'average', 'last', 'spread'" in told
    assert list(tmp_path.iterdir()) == []


def test_resets_of_another_environment_are_refused(monkeypatch, capsys, tmp_path, resets):
    monkeypatch.chdir(tmp_path)
    words = ["train", "CartPole-v1", "--reset-model", resets]
    assert "the reset model was made for the action space Discrete(3)" in refused(monkeypatch, capsys, *words)
    assert list(tmp_path.iterdir()) == []


# Ids ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "import curious_explorer, gymnasium; env = gymnasium.make('curious_explorer/CombinationLock-v0', depth=20)",
        "import gymnasium; env = gymnasium.make('curious_explorer:curious_explorer/CombinationLock-v0', depth=20)",
    ],
)
def test_ids_are_known_in_a_fresh_process(program):
    program += "; env.reset(seed=0); print(env.observation_space.n)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 64  # 3 d + 4 states
    assert "torch" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
@pytest.mark.parametrize("told_to_end", [signal.SIGINT, signal.SIGTERM])
def test_who_is_told_to_end_says_what_is_kept(tmp_path, told_to_end):
    command = [
        sys.executable,
        "-m",
        "curious_explorer.cli",
        "explore",
        "MountainCar-v0",
        "--out",
        str(tmp_path / "run"),
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert child.stdout is not None
    while "Exploring into" not in child.stdout.readline():
        assert child.poll() is None
    child.send_signal(told_to_end)
    told, _ = child.communicate(timeout=60)
    assert child.returncode == 130, told
    assert "the same command goes on" in " ".join(told.split())
