"""Who watches is told of everything and changes nothing: explorers, optimizers, trainings and `solve_task`."""

import numpy as np
import pytest

from curious_explorer import TRPO, Frontier, GymWorld, ModelBased, TabularWorld, explore, improve, learn
from curious_explorer.callbacks import Callback, Callbacks, Event, on_events
from curious_explorer.environments import combination_lock
from curious_explorer.explorers.methods import METHODS
from curious_explorer.learners.optimizer import OptimizerResult, can_be_watched, learning_curve

GAMMA = 0.9


def told_of(run):
    """The events that a run tells of, and what it returns."""
    events = []
    return events, run(on_events(events.append))


def kinds(events):
    return {event.kind for event in events}


def world(seed=0):
    return TabularWorld(combination_lock(3), seed=seed)


def test_algorithm_2_tells_of_rounds_and_of_the_batches_between_them():
    options = {"gamma": GAMMA, "rounds": 3, "progress": False}
    alone = explore(world(), TRPO(updates=4), **options)
    events, watched = told_of(lambda watch: explore(world(), TRPO(updates=4), watch=watch, **options))
    assert all(np.array_equal(one.policy, two.policy) for one, two in zip(alone.rounds, watched.rounds, strict=True))
    assert alone.samples == watched.samples
    assert {event.phase for event in events} == {"explore"}
    rounds = [event for event in events if event.kind == "round"]
    assert [event.numbers["round"] for event in rounds] == [done.number for done in watched.rounds]
    assert [event.numbers["poorly_visited"] for event in rounds] == [
        done.poorly_visited.sum() for done in watched.rounds
    ]
    assert rounds[-1].samples == watched.samples
    assert rounds[-1].policy is watched.rounds[-1].learned_policy
    samples = [event.samples for event in events]
    assert samples == sorted(samples)
    returns = [event for event in events if "return" in event.numbers]
    assert len(returns) == sum(done.accepted + sum(done.rejected.values()) for done in watched.rounds)
    assert {event.numbers["round"] for event in returns} <= {done.number for done in watched.rounds}


def test_a_plain_function_is_told_of_rounds_alone_as_ever():
    calls = []
    options = {"gamma": GAMMA, "rounds": 2, "progress": False}
    found = explore(world(), TRPO(updates=3), watch=lambda policy, samples: calls.append(samples), **options)
    assert calls == [0, found.rounds[0].samples, found.samples]


def test_an_optimizer_that_takes_no_watch_is_told_of_by_rounds():
    def at_random(world, reset, *, gamma, reward=None, budget=None):
        return OptimizerResult(policy=np.full((world.num_states, 4), 0.25), samples=0, curve=learning_curve([]))

    assert not can_be_watched(at_random)
    assert can_be_watched(TRPO())
    events, found = told_of(
        lambda watch: explore(world(), at_random, gamma=GAMMA, rounds=2, watch=watch, progress=False)
    )
    assert [event.samples for event in events if event.kind == "round"] == [found.rounds[0].samples, found.samples]


def test_improve_tells_of_batches_and_of_the_evaluation():
    events, learned = told_of(lambda watch: improve(world(), TRPO(updates=5), None, gamma=GAMMA, watch=watch))
    assert {event.phase for event in events} == {"learn"}
    batches = [event for event in events if event.kind == "batch" and event.numbers]
    assert [event.samples for event in batches] == list(learned.curve.samples)
    assert [event.numbers["return"] for event in batches] == list(learned.curve.returns)
    (evaluated,) = (event for event in events if event.kind == "evaluation")
    assert evaluated.numbers["value"] == learned.evaluation.value
    assert evaluated.samples == learned.samples


def test_a_plain_function_is_not_called_again_for_the_evaluation():
    calls = []
    learned = improve(world(), TRPO(updates=2), None, gamma=GAMMA, watch=lambda policy, samples: calls.append(samples))
    assert len(calls) == 3
    assert calls[-1] == learned.samples


@pytest.mark.parametrize("name", ["r-max", "psrl", "ucb-q"])
def test_rivals_tell_of_what_they_earn(name):
    events, _ = told_of(lambda watch: METHODS[name]().explore(world(), gamma=GAMMA, samples=2_000, watch=watch))
    assert kinds(events) == {"batch"}
    assert events[-1].samples == 2_000
    assert any("return" in event.numbers for event in events)
    assert all(event.policy.shape == (13, 4) for event in events)


def test_frontier_tells_every_thousand_samples_without_planning():
    events, found = told_of(
        lambda watch: Frontier().explore(GymWorld("MountainCar-v0"), gamma=0.99, samples=2_500, watch=watch)
    )
    assert [event.samples // 1_000 for event in events[:2]] == [1, 2]
    assert events[-1].samples == found.samples
    assert events[-1].numbers["states"] == len(found.model)
    assert all(event.policy is None for event in events)


def test_optimizers_that_know_of_no_events_are_told_of_too():
    events, _ = told_of(lambda watch: improve(world(), ModelBased(), None, gamma=GAMMA, budget=2_000, watch=watch))
    assert kinds(events) == {"batch", "evaluation"}
    assert events[0].policy.shape == (13, 4)


def test_learning_in_turns_tells_too():
    events, result = told_of(lambda watch: learn(world(), TRPO(), gamma=GAMMA, samples=60_000, watch=watch))
    assert events[-1].samples <= result.samples
    assert events[-1].numbers["value"] == result.evaluation.value


def test_several_callbacks_hear_the_same_in_order():
    heard = []
    both = Callbacks(*(on_events(lambda event, name=name: heard.append((name, event))) for name in "ab"))
    event = Event(kind="batch", phase="learn", samples=3)
    both.on_event(event)
    assert heard == [("a", event), ("b", event)]


def test_what_is_no_callback_is_refused():
    with pytest.raises(ValueError, match="on_events"):
        Callbacks(print)
    with pytest.raises(ValueError, match="a function of an Event"):
        on_events(3)
    with pytest.raises(TypeError):
        Callback()


def test_a_training_tells_of_stretches_and_evaluations(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    from curious_explorer.sb3.training import train_into
    from curious_explorer.sb3.training_settings import TrainingSettings

    settings = TrainingSettings(
        environment="CartPole-v1",
        samples=1_000,
        num_envs=2,
        evaluate_every=400,
        evaluation_episodes=2,
        hyperparameters={"n_steps": 64},
    )
    events, training = told_of(lambda watch: train_into(tmp_path / "run", settings, watch=watch))
    assert {event.phase for event in events} == {"train"}
    evaluations = [event for event in events if event.kind == "evaluation"]
    assert [event.numbers["evaluation/mean_return"] for event in evaluations] == [
        each.mean_return for each in training.evaluations
    ]
    stretches = [event for event in events if event.kind == "batch"]
    assert len(stretches) >= 3
    assert all("loss" in event.numbers for event in stretches[:-1])  # the last may not have sufficed for an update
    assert stretches[-1].numbers["samples/learning"] == training.learning_steps
