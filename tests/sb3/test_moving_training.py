"""Training from starts that move, with a warm start: counted, resumed bit for bit, honest where nothing was seen."""

import numpy as np
import pytest

from curious_explorer import Frontier, GymWorld, ResetModel, explore
from curious_explorer.callbacks import on_events
from curious_explorer.learners.model_based import ModelBased

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

from curious_explorer.sb3.training import train_into
from curious_explorer.sb3.training_settings import TrainingSettings

PRESS = "benchmarks.gym_studies.tasks:studies/Press-v0"
SEA = "curious_explorer/DeepSea-v0?size=8"


@pytest.fixture(scope="module")
def resets():
    world = GymWorld(SEA, seed=0)
    return Frontier().explore(world, gamma=0.99, samples=2_000).reset_model


def settings(**more):
    small = {"n_steps": 64, "n_epochs": 2}
    given = {"environment": SEA, "samples": 3_000, "num_envs": 2, "evaluation_episodes": 2, "evaluate_every": 700}
    return TrainingSettings(**{**given, "hyperparameters": small, **more})


def test_a_warm_start_is_paid_for_and_solves_what_can_be_imitated(tmp_path, resets):
    training = train_into(tmp_path / "warm", settings(), resets)
    warm = training.warm_start
    assert warm is not None
    assert warm.agreement > 0.9
    assert train_into(tmp_path / "warm", settings(), resets).warm_start == warm, "a training that goes on knows it, too"
    first = training.evaluations[0]
    assert first.samples == warm.samples > 0
    assert first.mean_return > 0.9
    cold = train_into(tmp_path / "cold", settings(warm_start=False), resets)
    assert cold.warm_start is None
    assert cold.evaluations[0].samples == 0
    assert cold.evaluations[0].mean_return < 0.5
    assert cold.samples == training.samples == 3_000


@pytest.mark.parametrize("seed", [1, 2])
def test_a_policy_that_was_cloned_sees_places_at_the_same_numbers_for_some_time(tmp_path, seed):
    """Else it misses the one place at which to press, stays there, and moves the mean by that still further."""
    world = GymWorld(PRESS, seed=seed, time_limits=True)
    found = Frontier().explore(world, gamma=0.99, samples=4_000).reset_model
    asked = TrainingSettings(environment=PRESS, samples=7_000, seed=seed, deterministic=False, evaluate_every=2_000)
    training = train_into(tmp_path / "run", asked, found)
    assert training.warm_start.agreement > 0.95
    assert min(evaluated.mean_return for evaluated in training.evaluations) > 0.5


def test_a_killed_training_goes_on_where_its_starts_were(tmp_path, resets):
    whole = train_into(tmp_path / "whole", settings(), resets)
    seen = []

    def stop(event):
        if event.kind == "evaluation":
            seen.append(event)
            if len(seen) == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_into(tmp_path / "halves", settings(), resets, watch=on_events(stop))
    halves = train_into(tmp_path / "halves", settings(), resets)
    assert halves.evaluations == whole.evaluations
    assert halves.starts == whole.starts
    assert halves.starts.episodes > 0
    assert halves.starts.finished
    names = ("checkpoint.safetensors", "policy.safetensors")
    assert all((tmp_path / "halves" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in names)


def test_snapshots_leave_more_samples_to_learn_from(tmp_path, resets):
    plain = train_into(tmp_path / "plain", settings(warm_start=False), resets)
    saved = train_into(tmp_path / "saved", settings(warm_start=False, snapshots=True), resets)
    assert plain.steps_saved == 0
    assert saved.steps_saved > 0
    assert saved.samples == plain.samples == 3_000
    assert saved.learning_steps > plain.learning_steps


def test_without_a_reward_training_goes_on_from_spread_starts(tmp_path):
    world = GymWorld(SEA, seed=0)
    model = Frontier().explore(world, gamma=0.99, samples=60).reset_model
    model.model.paid[:] = 0.0
    training = train_into(tmp_path / "run", settings(samples=1_500), model)
    assert training.warm_start is None
    assert training.starts is not None
    assert not training.starts.reward_known
    assert training.samples == 1_500


def test_a_reset_model_without_counts_trains_as_it_is_weighed(tmp_path):
    uniform = np.full((37, 2), 0.5)
    stored = GymWorld(SEA, seed=0).stored_discretisation()
    training = train_into(
        tmp_path / "run", settings(samples=1_500), ResetModel([uniform], gamma=0.9, discretisation=stored)
    )
    assert training.starts is None
    assert training.warm_start is None


def test_explorations_of_algorithm_2_that_count_have_moving_starts_too(tmp_path):
    world = GymWorld(SEA, seed=0)
    exploration = explore(world, ModelBased(), gamma=0.95, rounds=8, budget=500, progress=False)
    training = train_into(tmp_path / "run", settings(samples=1_500), exploration.reset_model)
    assert training.starts is not None
