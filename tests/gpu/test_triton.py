"""The Triton kernels, interpreted on the CPU: the same bits as Numba's kernels and as the slow oracle."""

import numpy as np
import pytest
import sampling_oracle as oracle
from random_mdps import random_mdp, random_policy

from curious_explorer import FiniteMDP, TabularWorld
from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds import episode_kernels as stepping
from curious_explorer.worlds import walk_kernels as walking
from curious_explorer.worlds.numba_backend import Preparer
from curious_explorer.worlds.roll_in import RollIn

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

# ruff: noqa: E402  (needs the extra)
from curious_explorer.gpu import device_tables, draws
from curious_explorer.gpu.device import Launch
from curious_explorer.gpu.device_tables import load_model, prepare_policies, roll_in_batch, stream_keys
from curious_explorer.gpu.triton_episodes import episode_statistics_batch
from curious_explorer.gpu.triton_walks import walk_batch
from curious_explorer.worlds.world import EpisodeBatch, Reward

KEY = oracle.stream_key(5, 0)
WALKS = 40
LAUNCH = Launch(block=32, warps=1, stride=2, programs_per_processor=32)
CASES = {
    "CCT": crossroad_traps(3),
    "DCL": combination_lock(2),
    "Garnet": garnet(9, 3, 2),
    "random": random_mdp(4),
    "random, paid by transition": random_mdp(2, transition_rewards=True),
    "long rows": random_mdp(1, num_states=20, num_actions=18, terminal=False),
}


def mixture(mdp, seed=0):
    """Empty chains, chains of several lengths, and a tail."""
    policies = [random_policy(mdp, seed + k) for k in range(2)]
    return RollIn.mixture(policies, 0.3, [0.3, 0.3, 0.4], [(0, 0), (0, 2), (1, 2)]).then(
        random_policy(mdp, seed + 9), 0.6
    )


def oracle_tables(mdp, roll_in):
    size = max((tables.geometric_size(gamma) for gamma in roll_in.gammas), default=64)
    return {
        "chains": tables.alias_table(roll_in.weights),
        "start": tables.alias_table(mdp.start, mdp.terminal),
        "stops": [tables.geometric_table(gamma, size) for gamma in roll_in.gammas],
        "policies": [tables.composed_table(mdp, p, tables.composed_log2_size(mdp)) for p in roll_in.policies],
    }


def on_device(model, roll_in):
    policies = [prepare_policies(model, torch.tensor(policy)[None]) for policy in roll_in.policies]
    return roll_in_batch(model, policies, roll_in.gammas, roll_in.weights, roll_in.chains, tail=roll_in.tail)


def words(tensor):
    return tensor.numpy().view(np.uint64)


@triton.jit
def mix_kernel(given, mixed, keys, SIZE: tl.constexpr):
    place = tl.arange(0, SIZE)
    word = tl.load(given + place).to(tl.uint64, bitcast=True)
    tl.store(mixed + place, draws.mix64(word).to(tl.int64, bitcast=True))
    tl.store(keys + place, draws.walk_key(word, place).to(tl.int64, bitcast=True))


def test_bits_are_those_of_python():
    given = np.random.default_rng(0).integers(2**64, size=64, dtype=np.uint64)
    given[:4] = 0, 1, 2**63, 2**64 - 1
    mixed, keys = torch.empty(64, dtype=torch.int64), torch.empty(64, dtype=torch.int64)
    mix_kernel[(1,)](torch.from_numpy(given.view(np.int64)), mixed, keys, SIZE=64)
    assert words(mixed).tolist() == [oracle.mix64(int(word)) for word in given]
    assert words(keys).tolist() == [oracle.RandomStream(int(word), walk).counter for walk, word in enumerate(given)]
    seeds = [0, 1, 2**63 + 5, 2**64 - 1]
    cpu = torch.device("cpu")
    assert words(stream_keys(seeds, 3, cpu)).tolist() == [oracle.stream_key(seed, 3) for seed in seeds]
    calls = torch.arange(4)
    assert words(stream_keys(7, calls, cpu)).tolist() == [oracle.stream_key(7, call) for call in range(4)]


@pytest.mark.parametrize("case", CASES)
def test_thresholds_are_those_of_the_cpu(case):
    mdp = CASES[case]
    given = np.stack([mdp.uniform_policy(), *(random_policy(mdp, seed) for seed in range(3))])
    got = prepare_policies(load_model(mdp), torch.from_numpy(given))
    assert [words(table).tolist() for table in got.thresholds] == [
        tables.policy_thresholds(policy).ravel().tolist() for policy in given
    ]
    composed = [tables.composed_table(mdp, policy, tables.composed_log2_size(mdp)).words for policy in given]
    assert np.array_equal(words(got.composed).reshape(4, -1), np.stack(composed))


@pytest.mark.parametrize("composed", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_walks(case, composed):
    mdp = CASES[case]
    roll_in = mixture(mdp)
    prepared = Preparer(mdp).prepare(roll_in)
    ends = np.empty(WALKS, dtype=np.int32)
    by_hand = oracle_tables(mdp, roll_in)
    if composed:
        table = prepared.composed()
        stride = mdp.num_states << table.log2_size
        arguments = (prepared.chains, table.words, table.outcomes, table.log2_size, stride, np.uint64(KEY), 0, ends)
        steps = walking.walk_in_pairs(*arguments)
        expected = [oracle.walk_composed(by_hand, mdp, roll_in, KEY, walk) for walk in range(WALKS)]
    else:
        arguments = (tables.dynamics(mdp), prepared.chains, prepared.thresholds, np.uint64(KEY), 0, ends)
        steps = stepping.walk_by_steps(*arguments)
        expected = [
            oracle.roll_in_by_steps(by_hand, mdp, roll_in, oracle.RandomStream(KEY, walk)) for walk in range(WALKS)
        ]
    model = load_model(mdp)
    keys = stream_keys(5, 0, model.device)
    got = walk_batch(model, on_device(model, roll_in), keys, WALKS, composed=composed, ends=True, launch=LAUNCH)
    assert got.ends[0].tolist() == ends.tolist() == [end for end, _ in expected]
    assert int(got.samples[0]) == steps == sum(steps for _, steps in expected)
    assert got.counts[0].tolist() == np.bincount(ends, minlength=mdp.num_states).tolist()


@pytest.mark.parametrize("bits", [21, 29, 31, device_tables.UNPACKED])
@pytest.mark.parametrize("case", ["DCL", "Garnet", "random"])
def test_walks_with_few_bits_for_thresholds(case, bits, monkeypatch):
    """The fewer bits, the oftener draws equal thresholds; with 31 every fourth does."""
    mdp = CASES[case]
    model = load_model(mdp)
    keys = stream_keys(5, 0, model.device)
    one = RollIn.from_start().then(random_policy(mdp, 3), 0.9)
    for roll_in in (mixture(mdp), one):
        got = []
        for least in (device_tables.LEAST_BITS, bits):
            monkeypatch.setattr(device_tables, "LEAST_BITS", least)
            monkeypatch.setattr(device_tables, "MOST_BITS", 31)
            roll_ins = on_device(model, roll_in)
            assert (roll_ins.packed is None) == (least == device_tables.UNPACKED)
            got.append(walk_batch(model, roll_ins, keys, WALKS, composed=True, ends=True, launch=LAUNCH))
        monkeypatch.undo()
        assert got[0].ends.tolist() == got[1].ends.tolist()
        assert got[0].samples.tolist() == got[1].samples.tolist()


def test_packed_entries():
    share = [0, 5 << 31, (5 << 31) + 7, 2**63 - 1, 2**63]
    outcomes = [(0, 1), (2, ~3), (~0, 4), (2**15 - 1, ~(2**15 - 1)), (6, 6)]
    entries = [[word, (chosen & 0xFFFFFFFF) | ((other & 0xFFFFFFFF) << 32)]
               for word, (chosen, other) in zip(share, outcomes, strict=True)]  # fmt: skip
    packed = words(
        device_tables.pack(torch.from_numpy(np.array(entries, dtype=np.uint64).view(np.int64)), 2**15)
    ).tolist()
    assert [word >> 32 for word in packed] == [0, 5, 5, 2**32 - 1, 2**32 - 1]
    assert [word >> 16 & 0xFFFF for word in packed] == [0, 2, 0x8000, 0x7FFF, 6]
    assert [word & 0xFFFF for word in packed] == [1, 0x8003, 4, 0xFFFF, 6]
    sizes = [2**15, 2**15 + 1, 10**6, 2**25, 2**25 + 1]
    assert [device_tables.packed_bits(size) for size in sizes] == [16, 17, 21, 26, device_tables.UNPACKED]


def numba_and_triton(mdp, roll_in, policy, settings, seed=5):
    return [
        world.episodes(policy, EpisodeBatch(reset=roll_in, record=True, **settings))
        for world in (TabularWorld(mdp, seed=seed), TabularWorld(mdp, seed=seed, backend="triton"))
    ]


def assert_same(ours, theirs):
    assert ours.samples == theirs.samples
    assert ours.lengths.tolist() == theirs.lengths.tolist()
    for mine, other in zip(ours[:5], theirs[:5], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)
    if theirs.seen is not None:
        assert all(map(np.array_equal, ours.seen, theirs.seen))


@pytest.mark.parametrize(
    ("case", "reward", "weight_decay"),
    [
        ("CCT", "own", 1.0),
        ("DCL", "replace", 0.9),
        ("random", "replace", 1.0),
        ("random, paid by transition", "max", 0.9),
    ],
)
def test_episode_statistics(case, reward, weight_decay):
    mdp = CASES[case]
    random = np.random.default_rng(3)
    settings = {
        "episodes": 20,
        "horizon": 4,
        "gamma": 0.9,
        "reward": None if reward == "own" else Reward(random.random((mdp.num_states, mdp.num_actions)), reward),
        "critic": random.random(mdp.num_states),
        "trace": 0.8,
        "weight_decay": weight_decay,
        "credited": 3,
    }
    roll_in, policy = mixture(mdp, 20), random_policy(mdp, 50)
    ours, theirs = numba_and_triton(mdp, roll_in, policy, settings)
    assert_same(ours, theirs)
    expected = oracle.episode_statistics(oracle_tables(mdp, roll_in), mdp, roll_in, policy, KEY, **settings)
    for mine, other in zip(theirs[:5], expected[:5], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)
    assert theirs.lengths.tolist() == expected[5].tolist()
    assert theirs.samples == expected[6]


@pytest.mark.parametrize("budget", [0, 1, 17, 100_000])
def test_budget_is_kept_to_the_step(budget):
    mdp = CASES["CCT"]
    settings = {"episodes": 12, "horizon": 4, "gamma": 0.9, "max_samples": budget}
    ours, theirs = numba_and_triton(mdp, mixture(mdp), mdp.uniform_policy(), settings)
    assert_same(ours, theirs)
    assert (theirs.samples == budget) == (budget < 100_000)


def test_a_batch_is_its_runs_one_by_one():
    mdp = CASES["CCT"]
    model = load_model(mdp)
    runs, seeds = 3, torch.tensor([4, 9, 2])
    learned = [np.stack([random_policy(mdp, 10 * k + run) for run in range(runs)]) for k in range(2)]
    ready = [prepare_policies(model, torch.from_numpy(policy)) for policy in learned]
    mix = {"gammas": [0.3, 0.4], "weights": [0.6, 0.4], "chains": [(0, 0), (0, 1)], "tail": 1}
    roll_ins = roll_in_batch(model, ready, **mix)
    random = np.random.default_rng(8)
    rewards, critic = random.random((runs, mdp.num_states, mdp.num_actions)), random.random((runs, mdp.num_states))
    settings = {"episodes": 11, "horizon": 3, "gamma": 0.9, "trace": 0.5}
    budgets = torch.tensor([1_000, 9, 0])
    walked = walk_batch(model, roll_ins, stream_keys(seeds, 0, model.device), 20, ends=True)
    added = walk_batch(model, roll_ins, stream_keys(seeds, 0, model.device), 20, add_runs=True)
    batch = episode_statistics_batch(
        model, ready[0], roll_ins, stream_keys(seeds, 1, model.device), rewards=torch.from_numpy(rewards),
        critic=torch.from_numpy(critic), max_samples=budgets, launch=LAUNCH, **settings,
    )  # fmt: skip
    for run in range(runs):
        policies = [table[run] for table in learned]
        alone = RollIn(tuple(policies), (0.3, 0.4), np.array([0.6, 0.4]), np.array([(0, 0), (0, 1)]), 1)
        world = TabularWorld(mdp, seed=int(seeds[run]))
        assert walked.ends[run].tolist() == world.walk(alone, 20).tolist()
        assert int(walked.samples[run]) == world.samples
        one = world.episodes(
            learned[0][run], EpisodeBatch(reset=alone, reward=Reward(rewards[run]), critic=critic[run],
            max_samples=int(budgets[run]), **settings,))  # fmt: skip
        ran = int(batch.run[run])
        assert int(batch.samples[run]) == one.samples
        assert batch.lengths[run, :ran].tolist() == one.lengths.tolist()
        got = (batch.advantage_sum, batch.weight, batch.target_sum, batch.occupancy, batch.returns[:, :ran])
        for mine, other in zip(got, one[:5], strict=True):
            np.testing.assert_allclose(mine[run].numpy(), other, rtol=1e-12, atol=1e-12)
    assert added.counts.tolist() == walked.counts.sum(dim=0).tolist()


def test_nowhere_to_start_is_noticed(monkeypatch):
    monkeypatch.setattr(stepping, "TERMINAL_STARTS_IN_A_ROW", 4)
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0, 1] = 1.0
    world = TabularWorld(FiniteMDP(transitions, np.zeros((2, 1)), 1, terminal=[1]), backend="triton")
    with pytest.raises(ValueError, match="ending in terminal states"):
        world.episodes(np.ones((2, 1)), EpisodeBatch(episodes=3, horizon=5, gamma=0.9))
