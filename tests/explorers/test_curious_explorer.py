"""Algorithm 2: the loop against one written out by hand, its options, its checkpoints, its refusals."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from random_mdps import random_mdp

from curious_explorer import (
    TRPO,
    Exploration,
    FiniteMDP,
    ModelBased,
    Reinforce,
    ResetModel,
    TabularWorld,
    evaluate,
    explore,
    improve,
    solve,
    visitation,
)
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.curious_explorer import effort_of
from curious_explorer.explorers.exact_visits import ExactVisits
from curious_explorer.explorers.rounds import EMPTY, NOTHING_NEW
from curious_explorer.explorers.thresholds import constant, linear, paper_linear, schedule_values
from curious_explorer.explorers.visits import FreshVisits, LearningVisits, OccupancyVisits
from curious_explorer.learners.optimizer import LearningCurve, OptimizerResult

GAMMA = 0.9
QUICK = TRPO(updates=5, episodes=10)
NO_CURVE = LearningCurve(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64))


class Ideal:
    """The exact optimum for the reward it is given."""

    def __init__(self, mdp):
        self.mdp = mdp

    def __call__(self, world, reset, *, gamma, reward=None, budget=None):
        rewards = None if reward is None else reward.table
        return OptimizerResult(solve(self.mdp, gamma=gamma, rewards=rewards).policy, 0, NO_CURVE)


def algorithm_2_by_hand(mdp, betas):
    """The paper's lines with dense linear algebra and a dense value iteration."""
    transitions = mdp.dense_transitions()
    policy, mu, total, rounds = mdp.uniform_policy(), mdp.start, np.zeros(mdp.num_states), []
    for beta in betas:
        chain = np.einsum("sa,sat->st", policy, transitions)
        visited = (1 - GAMMA) * mu @ np.linalg.inv(np.eye(mdp.num_states) - GAMMA * chain)
        total = total + visited
        poorly = total <= beta
        mu = 0.5 * visited + 0.5 * mdp.start
        values = np.zeros(mdp.num_states)
        for _ in range(2000):
            q = (1 - GAMMA) * poorly[:, None] + GAMMA * transitions @ values
            values = q.max(axis=1)
        best = q >= q.max(axis=1, keepdims=True) - 1e-9
        policy = best / best.sum(axis=1, keepdims=True)
        rounds.append((visited, poorly, policy))
    return rounds


@pytest.mark.parametrize("schedule", [linear, constant, paper_linear])
@pytest.mark.parametrize("seed", range(4))
def test_exact_mode_is_the_algorithm(seed, schedule):
    mdp = [crossroad_traps(5), combination_lock(3), random_mdp(1), random_mdp(2)][seed]
    thresholds = schedule(0.07)  # not a value that a visitation could equal
    world = TabularWorld(mdp)
    got = explore(
        world, Ideal(mdp), gamma=GAMMA, rounds=5, thresholds=thresholds, visits=ExactVisits(mdp), progress=False
    )
    expected = algorithm_2_by_hand(mdp, [thresholds(n) for n in range(5)])
    for round_, (visited, poorly, policy) in zip(got.rounds, expected, strict=True):
        np.testing.assert_allclose(round_.visited, visited, atol=1e-10)
        assert (round_.poorly_visited == poorly).all()
        np.testing.assert_allclose(round_.learned_policy, policy, atol=1e-9)
        assert (round_.curiosity_reward == poorly).all()
    assert world.samples == got.samples == 0


def test_lemma_2_counterexample_in_closed_form():
    # s0 -> s1 (absorbing): D_1(s1) = gamma (3 - gamma) / 2, more than any policy reaches from s0.
    from curious_explorer import FiniteMDP

    mdp = FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), np.zeros((2, 1)), 0)
    got = explore(TabularWorld(mdp), Ideal(mdp), gamma=GAMMA, rounds=2, visits=ExactVisits(mdp), progress=False)
    assert got.rounds[0].visited[1] == pytest.approx(GAMMA)
    assert got.rounds[1].visited[1] == pytest.approx(GAMMA * (3 - GAMMA) / 2)


def test_chain_of_policies_and_sample_accounting():
    mdp = combination_lock(4)
    world = TabularWorld(mdp, seed=2)
    got = explore(world, QUICK, gamma=GAMMA, rounds=4, thresholds=linear(1 / 32), visits=300, progress=False)
    assert got.samples == world.samples == sum(round_.samples for round_ in got.rounds)
    assert all(round_.visit_samples > 0 and round_.learning_samples > 0 for round_ in got.rounds)
    assert (got.rounds[0].policy == 0.25).all()
    for before, after in zip(got.rounds, got.rounds[1:], strict=False):
        assert after.policy is before.learned_policy
    assert len(got.policies) == len(got.reset_model.policies) == 5
    total = np.zeros(mdp.num_states)
    for n, round_ in enumerate(got.rounds):
        assert round_.threshold == pytest.approx((n + 1) / (2 * mdp.num_states))
        total += round_.visited
        assert (round_.poorly_visited == (total <= round_.threshold)).all()
        assert round_.accepted + sum(round_.rejected.values()) == QUICK.updates
    np.testing.assert_allclose(got.total_visited, total)


def test_exploration_reaches_what_a_uniform_policy_does_not():
    mdp = combination_lock(10)
    world = TabularWorld(mdp, seed=0)
    optimizer = TRPO(updates=30)
    exploration = explore(world, optimizer, gamma=0.95, rounds=10, progress=False)
    mu = exploration.reset_model.distribution(mdp)
    start = visitation(mdp, mdp.uniform_policy(), gamma=0.95)
    assert mu.min() > 10 * start.min()
    trained = improve(world, optimizer, exploration.reset_model, gamma=0.95)
    best = mdp.start @ solve(mdp, gamma=0.95).values
    assert mdp.start @ evaluate(mdp, trained.policy, gamma=0.95) > 0.9 * best
    assert trained.evaluation.value == pytest.approx(
        mdp.start @ evaluate(mdp, trained.policy, gamma=0.95), abs=5 * trained.evaluation.standard_error + 1e-9
    )


def test_occupancy_visits_measure_the_visitation_with_fewer_walks():
    """Against the exact one, from a roll-in: single stops of as many walks are several times as far off."""
    mdp = combination_lock(5)
    world, uniform = TabularWorld(mdp, seed=3), mdp.uniform_policy()
    exact = visitation(mdp, uniform, gamma=0.9)
    off = {
        kind: np.abs(kind(400)(world, uniform, None, None, 0.9) - exact).sum()
        for kind in (OccupancyVisits, FreshVisits)
    }
    assert np.abs(OccupancyVisits(40_000)(world, uniform, None, None, 0.9) - exact).sum() < 0.02  # 1% is cut off
    assert off[OccupancyVisits] < off[FreshVisits]
    with pytest.raises(ValueError, match="episodes is 0"):
        OccupancyVisits(0)


def test_learning_visits_cost_nothing_after_the_first_round():
    mdp = combination_lock(5)
    world = TabularWorld(mdp, seed=1)
    got = explore(world, QUICK, gamma=GAMMA, rounds=3, visits=LearningVisits(FreshVisits(200)), progress=False)
    assert got.rounds[0].visit_samples > 0
    assert [round_.visit_samples for round_ in got.rounds[1:]] == [0, 0]
    assert (got.rounds[1].visited == got.rounds[0].occupancy).all()
    assert got.rounds[1].visited.sum() == pytest.approx(1.0)


def test_combined_reward_pays_the_larger_of_the_two():
    paid = []

    def spy(world, reset, *, gamma, reward=None, budget=None):
        paid.append(reward)
        return QUICK(world, reset, gamma=gamma, reward=reward, budget=budget)

    mdp = crossroad_traps(4)
    explore(
        TabularWorld(mdp),
        spy,
        gamma=GAMMA,
        rounds=2,
        thresholds=linear(0.1),
        reward="combined",
        visits=50,
        progress=False,
    )
    assert [reward.combine for reward in paid] == ["max", "max"]


@pytest.mark.parametrize("learn_from", ["average", "last", "spread", "recent"])
def test_optimizer_is_given_the_resets_asked_for(learn_from):
    """Round 1 reached nothing new here, so "recent" does without the last policy in it."""
    given = []

    def spy(world, reset, *, gamma, reward=None, budget=None):
        given.append(reset)
        return QUICK(world, reset, gamma=gamma, reward=reward, budget=budget)

    mdp = crossroad_traps(4)
    explore(
        TabularWorld(mdp),
        spy,
        gamma=GAMMA,
        rounds=3,
        thresholds=linear(0.1),
        learn_from=learn_from,
        visits=50,
        progress=False,
    )
    weightings = [learn_from] * 3 if learn_from != "recent" else ["recent", "spread", "recent"]
    assert [(len(reset.policies), reset.weighting) for reset in given] == list(zip((1, 2, 3), weightings, strict=True))


def test_recorded_transitions_exist_in_the_model():
    mdp = random_mdp(5)
    got = explore(TabularWorld(mdp), QUICK, gamma=GAMMA, rounds=2, record=True, visits=50, progress=False)
    dense = mdp.dense_transitions()
    for round_ in got.rounds:
        seen = round_.seen
        assert (dense[seen.state, seen.action, seen.next_state] > 0).all()
        np.testing.assert_allclose(seen.reward, mdp.rewards[seen.state, seen.action])
        assert seen.times.sum() <= round_.learning_samples


def run_to_the_end(folder=None, **changes):
    mdp = combination_lock(5)
    world = TabularWorld(mdp, seed=changes.pop("seed", 3))
    settings = {"gamma": GAMMA, "rounds": 5, "visits": 100, "record": True} | changes
    optimizer = settings.pop("optimizer", QUICK)
    return explore(world, optimizer, checkpoint=folder, progress=False, **settings), world


def assert_same(one, two):
    assert len(one.rounds) == len(two.rounds)
    for a, b in zip(one.rounds, two.rounds, strict=True):
        assert (a.number, a.threshold, a.samples, a.accepted, dict(a.rejected)) == (
            b.number,
            b.threshold,
            b.samples,
            b.accepted,
            dict(b.rejected),
        )
        for name in ("policy", "visited", "poorly_visited", "learned_policy", "occupancy"):
            assert np.all(getattr(a, name) == getattr(b, name))
        assert all((x == y).all() for x, y in zip(a.seen, b.seen, strict=True))


@pytest.mark.parametrize("finished", range(6))
def test_resuming_after_any_round_is_bit_identical(tmp_path, finished):
    expected, _ = run_to_the_end()
    run_to_the_end(tmp_path)
    for number in range(finished, 5):
        (tmp_path / f"round-{number:04d}.npz").unlink()
    resumed, world = run_to_the_end(tmp_path)
    assert_same(resumed, expected)
    assert world.samples == expected.samples
    assert_same(Exploration.load(tmp_path), expected)


KILLED = """
import sys, time
from curious_explorer import TRPO, TabularWorld, explore
from curious_explorer.environments import combination_lock
print("ready", flush=True)
explore(TabularWorld(combination_lock(5), seed=3), TRPO(updates=5, episodes=10), gamma=0.9, rounds=5, visits=100,
        record=True, checkpoint=sys.argv[1], progress=False)
print("done", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06, 0.1, 0.3])
def test_sigkill_at_any_moment_loses_only_the_round_in_flight(tmp_path, delay):
    expected, _ = run_to_the_end()
    folder = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    resumed, _ = run_to_the_end(folder)
    assert_same(resumed, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": 0.8}, "gamma is 0.9 there and 0.8 here"),
        ({"visits": 101}, "visits.count is 100 there and 101 here"),
        ({"thresholds": 0.5}, "thresholds is"),
        ({"seed": 4}, "world.seed is 3 there and 4 here"),
        ({"optimizer": TRPO(updates=6, episodes=10)}, "optimizer.updates is 5 there and 6 here"),
        ({"optimizer": Reinforce(updates=5, episodes=10)}, "optimizer is 'TRPO' there and 'Reinforce' here"),
        ({"reward": "combined"}, "reward is"),
        ({"learn_from": "last"}, "learn_from is"),
    ],
)
def test_checkpoint_of_other_settings_is_refused_and_kept(tmp_path, changes, message):
    run_to_the_end(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match=message):
        run_to_the_end(tmp_path, **changes)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_more_rounds_go_on_with_a_finished_exploration(tmp_path):
    run_to_the_end(tmp_path, rounds=3)
    longer, _ = run_to_the_end(tmp_path)
    assert_same(longer, run_to_the_end()[0])
    assert len(run_to_the_end(tmp_path, rounds=2)[0].rounds) == 2  # and fewer are just a look back
    assert len(Exploration.load(tmp_path).rounds) == 5


def test_an_unfinished_exploration_says_so(tmp_path):
    run_to_the_end(tmp_path)
    assert Exploration.load(tmp_path).finished
    (tmp_path / "round-0004.npz").unlink()
    assert not Exploration.load(tmp_path).finished


def test_functions_are_told_apart_by_what_they_do(tmp_path):
    def optimizer_with(updates):
        return lambda *given, **named: TRPO(updates=updates, episodes=10)(*given, **named)

    run_to_the_end(tmp_path, optimizer=optimizer_with(5))
    run_to_the_end(tmp_path, optimizer=optimizer_with(5))
    with pytest.raises(CheckpointError, match="optimizer"):
        run_to_the_end(tmp_path, optimizer=optimizer_with(6))
    with pytest.raises(CheckpointError, match="optimizer"):
        run_to_the_end(tmp_path, optimizer=lambda *given, **named: Reinforce(updates=5)(*given, **named))


def test_an_optimizer_that_overspends_or_returns_nonsense_is_refused():
    mdp = combination_lock(3)
    spender = lambda world, reset, *, gamma, reward=None, budget=None: QUICK(world, reset, gamma=gamma)  # noqa: E731
    silent = lambda world, reset, *, gamma, reward=None, budget=None: None  # noqa: E731
    for optimizer, message in [(spender, "its budget was 10"), (silent, "returned NoneType")]:
        with pytest.raises(ValueError, match=message):
            explore(TabularWorld(mdp), optimizer, gamma=GAMMA, rounds=1, budget=10, visits=5, progress=False)
        with pytest.raises(ValueError, match=message):
            improve(TabularWorld(mdp), optimizer, None, gamma=GAMMA, budget=10)


def test_what_is_no_world_or_no_optimizer_is_named():
    mdp = combination_lock(3)
    for world, optimizer, message in [
        (mdp, QUICK, "world is FiniteMDP, expected a World"),
        (TabularWorld(mdp), TRPO, r"optimizer is the class TRPO, expected an object: TRPO\(...\)"),
        (TabularWorld(mdp), "trpo", "optimizer is 'trpo'"),
    ]:
        with pytest.raises(ValueError, match=message):
            explore(world, optimizer, gamma=GAMMA, rounds=1, progress=False)
        with pytest.raises(ValueError, match=message):
            improve(world, optimizer, None, gamma=GAMMA)
    with pytest.raises(ValueError, match=r"reset_model is str, expected a ResetModel"):
        improve(TabularWorld(mdp), QUICK, "folder", gamma=GAMMA)


def test_damaged_checkpoints_are_refused_and_kept(tmp_path):
    run_to_the_end(tmp_path)
    path = tmp_path / "round-0002.npz"
    whole = path.read_bytes()
    for content in (
        whole[:-7],
        whole[: len(whole) // 2],
        b"",
        whole.replace(b"exploration-round", b"exploration-bound"),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"round-0002\.npz cannot be read"):
            run_to_the_end(tmp_path)
        assert path.read_bytes() == content
    path.write_bytes(whole)
    settings = tmp_path / "exploration.json"
    settings.write_text(settings.read_text().replace('"version": 2', '"version": 9'))
    with pytest.raises(CheckpointError, match="newer than 2"):
        run_to_the_end(tmp_path)


def test_what_a_killed_first_write_left_behind_does_no_harm(tmp_path):
    (tmp_path / ".0123456789abcdef.tmp").write_bytes(b"half a file")
    assert_same(run_to_the_end(tmp_path)[0], run_to_the_end()[0])


def test_folder_that_is_not_a_checkpoint_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CheckpointError, match="is not empty and holds no exploration"):
        run_to_the_end(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(CheckpointError, match="is a file"):
        run_to_the_end(tmp_path / "thesis.tex")
    with pytest.raises(CheckpointError, match="holds no exploration"):
        Exploration.load(tmp_path)


def test_checkpoint_files_are_plain(tmp_path):
    run_to_the_end(tmp_path)
    assert json.loads((tmp_path / "exploration.json").read_text())["settings"]["gamma"] == GAMMA
    with np.load(tmp_path / "round-0000.npz", allow_pickle=False) as arrays:
        assert arrays["visited"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"gamma": -0.1}, "gamma is -0.1"),
        ({"rounds": 0}, "rounds is 0"),
        ({"visits": 0}, "visits is 0"),
        ({"budget": 0}, "budget is 0"),
        ({"thresholds": -1.0}, "threshold of round 0 is -1.0"),
        ({"thresholds": lambda n: float("nan") if n == 2 else 0.1}, "threshold of round 2 is nan"),
        ({"thresholds": "high"}, "thresholds is 'high'"),
        ({"reward": "extrinsic"}, "reward is 'extrinsic'"),
        ({"learn_from": "first"}, "learn_from is 'first'"),
    ],
)
def test_explore_refuses_bad_input_before_a_step_is_taken(tmp_path, changes, message):
    world = TabularWorld(combination_lock(3))
    with pytest.raises(ValueError, match=message):
        explore(
            world,
            QUICK,
            **({"gamma": GAMMA, "rounds": 3, "progress": False, "checkpoint": tmp_path / "run"} | changes),
        )
    assert world.samples == 0
    assert not (tmp_path / "run").exists()


def test_improve_refuses_bad_input_before_a_step_is_taken():
    world = TabularWorld(combination_lock(3))
    model = explore(TabularWorld(combination_lock(4)), QUICK, gamma=GAMMA, rounds=1, progress=False).reset_model
    for changes, message in [
        ({"reset_model": model}, "made for 16 states and 4 actions"),
        ({"gamma": 2}, "gamma is 2"),
        ({"budget": -3}, "budget is -3"),
        ({"evaluation_episodes": -1}, "evaluation_episodes is -1"),
    ]:
        given = {"reset_model": None, "gamma": GAMMA} | changes
        with pytest.raises(ValueError, match=message):
            improve(world, QUICK, given.pop("reset_model"), **given)
    assert world.samples == 0


def test_budget_of_a_round_is_kept_to_the_step():
    world = TabularWorld(combination_lock(4))
    got = explore(world, TRPO(updates=1000), gamma=GAMMA, rounds=3, budget=777, visits=10, progress=False)
    assert [round_.learning_samples for round_ in got.rounds] == [777, 777, 777]


PATIENT = TRPO(updates=1_000_000, episodes=5)


@pytest.mark.parametrize("samples", [3_010, 7_777, 20_000])
def test_samples_are_spent_to_the_step(samples):
    world = TabularWorld(combination_lock(4), seed=1)
    world.walk(ResetModel([np.full((16, 4), 0.25)], gamma=GAMMA).roll_in, 10)
    before = world.samples
    policies = []
    got = explore(
        world, PATIENT, gamma=GAMMA, rounds=5, samples=samples, thresholds=linear(1 / 32), progress=False,
        watch=lambda policy, used: policies.append((policy, used)),
    )  # fmt: skip
    assert got.samples == world.samples - before == samples
    assert all(round_.learning_samples > 0 and round_.visit_samples > 0 for round_ in got.rounds)
    assert [used for _, used in policies] == [0, *np.cumsum([round_.samples for round_ in got.rounds])]
    assert all(policy is round_.learned_policy for (policy, _), round_ in zip(policies[1:], got.rounds, strict=True))


def test_samples_alone_say_how_many_rounds():
    world = TabularWorld(combination_lock(4))
    got = explore(world, PATIENT, gamma=GAMMA, samples=20_000, thresholds=linear(1 / 32), progress=False)
    assert (len(got.rounds), got.samples) == (4, 20_000)


@pytest.mark.parametrize("optimizer", [PATIENT, None])
def test_an_exploration_with_samples_goes_on_bit_for_bit(tmp_path, optimizer):
    changes = {"samples": 9_000, "rounds": 5, "visits": 30, "thresholds": linear(0.1)}
    make = (lambda: PATIENT) if optimizer else ModelBased
    expected, _ = run_to_the_end(tmp_path, optimizer=make(), **changes)
    for number in (2, 3, 4):
        (tmp_path / f"round-{number:04d}.npz").unlink()
    resumed, world = run_to_the_end(tmp_path, optimizer=make(), **changes)
    assert_same(resumed, expected)
    assert world.samples == expected.samples <= 9_000
    for other, words in (({"samples": 9_001}, "samples is 9000"), ({"rounds": 6}, "rounds is 5")):
        with pytest.raises(CheckpointError, match=words):
            run_to_the_end(tmp_path, optimizer=make(), **(changes | other))


def test_samples_need_visits_that_can_stop():
    world = TabularWorld(combination_lock(4))
    with pytest.raises(ValueError, match="cannot stop"):
        explore(world, PATIENT, gamma=GAMMA, rounds=3, samples=5_000, visits=FreshVisits(10), progress=False)
    with pytest.raises(ValueError, match="cannot stop"):
        explore(world, PATIENT, gamma=GAMMA, rounds=3, samples=5_000, visits=LearningVisits(), progress=False)
    assert world.samples == 0
    visits = LearningVisits(OccupancyVisits(20))
    got = explore(
        world, PATIENT, gamma=GAMMA, rounds=3, samples=5_000, thresholds=linear(0.1), visits=visits, progress=False
    )
    assert [round_.visit_samples for round_ in got.rounds[1:]] == [0, 0]
    assert got.samples == 5_000


def test_default_thresholds_are_half_uniform_in_every_round():
    assert schedule_values(None, 3, 10) == pytest.approx([0.05, 0.05, 0.05])
    assert schedule_values(0.2, 2, 10) == pytest.approx([0.2, 0.2])
    assert schedule_values(linear(0.2), 2, 10) == pytest.approx([0.2, 0.4])
    assert schedule_values(paper_linear(0.2), 3, 10) == pytest.approx([0.0, 0.2, 0.4])


def test_evaluation_is_measured_from_the_start_and_counted():
    mdp = crossroad_traps(3)
    world = TabularWorld(mdp, seed=1)
    result = improve(world, QUICK, None, gamma=GAMMA, evaluation_episodes=4000)
    exact = mdp.start @ evaluate(mdp, result.policy, gamma=GAMMA)
    assert abs(result.evaluation.value - exact) < 4 * result.evaluation.standard_error + 2e-4
    assert world.samples == result.samples + result.evaluation.samples
    assert improve(world, QUICK, None, gamma=GAMMA, evaluation_episodes=0).evaluation is None


def test_exploration_ends_when_nothing_is_poorly_visited():
    mdp = combination_lock(5)
    world = TabularWorld(mdp, seed=1)
    got = explore(world, TRPO(), gamma=0.95, progress=False)
    assert got.ended == EMPTY
    assert got.finished
    assert not got.rounds[-1].poorly_visited.any()
    assert got.rounds[-1].learning_samples == 0
    assert (got.total_visited > 1 / (2 * mdp.num_states)).all()
    assert got.samples == world.samples


@pytest.mark.parametrize(
    ("optimizer", "rounds", "all_of_them"),
    [(Reinforce(), None, False), (Reinforce(), 12, False), (Reinforce(updates=2), 12, True)],
)
def test_what_cannot_be_reached_is_given_up_after_trying_harder(optimizer, rounds, all_of_them):
    """One state more, into which nothing leads: a number of rounds is a limit, and all of them with given updates."""
    transitions, rewards = np.zeros((4, 2, 4)), np.zeros((4, 2))
    transitions[0, 0, 1] = transitions[0, 1, 0] = transitions[1, :, 2] = transitions[2, :, 0] = transitions[3, :, 0] = (
        1.0
    )
    world = TabularWorld(FiniteMDP(transitions, rewards, 0))
    got = explore(world, optimizer, gamma=0.9, rounds=rounds, progress=False)
    assert got.ended == (None if all_of_them else NOTHING_NEW)
    assert got.rounds[-1].poorly_visited.tolist() == [False, False, False, True]
    assert len(got.rounds) == 12 if all_of_them else 5 <= len(got.rounds) < 12  # 1, 2, 4, 8 and 16 times as much


@pytest.mark.parametrize("given", [{}, {"rounds": 500}])
def test_an_exploration_that_ends_by_itself_goes_on_bit_for_bit(tmp_path, given):
    def run():
        world = TabularWorld(crossroad_traps(8), seed=4)
        return explore(world, TRPO(), gamma=0.9, record=True, checkpoint=tmp_path, progress=False, **given), world

    expected, _ = run()
    assert expected.ended
    (tmp_path / f"round-{len(expected.rounds) - 1:04d}.npz").unlink()
    (tmp_path / f"round-{len(expected.rounds) - 2:04d}.npz").unlink()
    resumed, world = run()
    assert_same(resumed, expected)
    again, world_again = run()  # nothing is left to do
    assert_same(again, expected)
    assert world_again.samples == world.samples == expected.samples
    assert Exploration.load(tmp_path).finished


def test_effort_doubles_after_a_round_that_brought_nothing_and_halves_after_any_other():
    assert [effort_of([9, 9, 9, 9][:n]) for n in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert effort_of([9, 9, 9, 7]) == 2
    assert effort_of([9, 9, 9, 7, 6, 5]) == 1
    assert effort_of([9, 5, 7]) == 2  # more than there were before is no progress
