"""One learner across layouts: which layout is next, how it begins, and what it costs."""

import functools

import numpy as np
import pytest
from gym_helpers import Counting
from layouts_helpers import Signposts

from curious_explorer import GymWorld, HashedCells
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.explorers.layout_exploration import LayoutExploration
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.gym.fixed_layout import FIRST_TEST
from curious_explorer.gym.layout_starts import LayoutStarts, LayoutStartsWrapper
from curious_explorer.gym.new_layouts import NewLayouts
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.sb3.label_cloning import Cloning
from curious_explorer.sb3.layout_training import LayoutTraining, train_in_layouts
from curious_explorer.sb3.recurrent_cloning import RecurrentCloning
from curious_explorer.studies.unseen_layouts import play_unseen

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")
from curious_explorer.sb3.recurrent_actor import RecurrentActor, SeenAndDone  # noqa: E402

make = functools.partial(Signposts, length=6, limit=20)


@pytest.fixture(scope="module")
def exploration():
    world = GymWorld(make, cells=HashedCells(200), layouts=range(6))
    return ManyLayouts(first_share=50, after=50).explore(world, gamma=0.95, samples=5_000)


def starts_of(exploration):
    return LayoutStarts.of(exploration)


def test_episodes_begin_in_explored_layouts_on_the_way_to_the_reward(exploration):
    env = LayoutStartsWrapper(Counting(make()), starts_of(exploration))
    seen, taken = set(), 0
    for episode in range(60):
        observation, info = env.reset(seed=3 if episode == 0 else None)
        seen.add(info["layout"])
        taken += info["roll_in_steps"]
        layout = Signposts(length=6)
        layout.reset(seed=info["layout"])
        assert np.array_equal(env.unwrapped.signs, layout.signs)
        assert observation[0] <= info["roll_in_steps"] or info["roll_in_steps"] == 0
        env.step(int(observation[1]))
        taken += 1
    assert seen == set(range(6))
    assert env.env.steps == taken  # every step of a roll-in is told


def test_layouts_in_which_something_is_learned_are_drawn_more_often(exploration):
    starts = starts_of(exploration)
    even = starts.weights()
    assert np.allclose(even, even[0])
    moving = starts.layouts[2].moving
    for _ in range(30):
        for start in (-1, *range(len(moving.states))):
            moving.tell(start, 1.0)
        starts.ended(2)
    changing = starts.weights()
    assert changing[2] > 2.0 * changing[1]
    drawn = [starts.draw(chance) for chance in np.linspace(0.0, 0.999, 400)]
    assert drawn.count(2) > drawn.count(1)
    for _ in range(300):
        starts.ended(2)
    assert starts.weights()[2] < starts.weights()[1]  # learned, and nothing changes any more
    with pytest.raises(ValueError, match="no layouts to start in"):
        LayoutStarts({})


def test_without_a_reward_there_is_nowhere_to_start(exploration):
    nothing = LayoutExploration([], 0.9, samples=0, first_reward=None)
    with pytest.raises(ValueError, match="no reward was seen"):
        LayoutStarts.of(nothing)


def test_learning_begins_with_what_was_cloned_and_counts_every_step(exploration):
    cloned = Cloning(hidden=(32, 32), most_updates=200).clone(exploration.labels, make().observation_space, range(3))
    before = play_unseen(make, cloned, range(100, 160), explored=range(6))
    settings = LayoutTraining(samples=1_500, num_envs=2, rollout=64, hidden=(32, 32), critic_share=0.9)
    told = []
    trained = train_in_layouts(
        make, starts_of(exploration), settings, cloned=cloned, watch=lambda *numbers: told.append(numbers)
    )
    assert trained.samples == 1_500
    assert trained.learning_steps < 1_500  # the rest are roll-ins
    assert 0.0 <= trained.standing <= 1.0
    assert len(told) > 3
    after = play_unseen(make, trained.policy, range(100, 160), explored=range(6))
    assert after.solved >= before.solved - 6  # the actor was held for most of the time
    with pytest.raises(ValueError, match="same widths"):
        train_in_layouts(make, starts_of(exploration), LayoutTraining(samples=100, hidden=(16,)), cloned=cloned)


@pytest.fixture(scope="module")
def remembering(exploration):
    cloning = RecurrentCloning(
        width=32, memory=32, walks=32, kept=4, longest=12, batch=16, every=5, updates=60, updates_a_layout=0
    )
    return cloning.clone(exploration.labels, make().observation_space, range(3))


def test_what_remembers_is_the_same_network_when_learning_by_reward(remembering):
    env = SeenAndDone(make(), remembering.inputs)
    learner = RecurrentActor(env.observation_space, env.action_space, lambda _: 1e-3, cloned=remembering)
    back = learner.policy(remembering.inputs, remembering.choices)
    bare, memory, same, action = make(), None, None, None
    (seen, _), (observation, _) = env.reset(seed=4), bare.reset(seed=4)
    held, first = (torch.zeros(1, 1, 32), torch.zeros(1, 1, 32)), torch.ones(1)
    for _ in range(5):
        likely, memory = remembering.look(memory, action, observation)
        again, same = back.look(same, action, observation)
        told, held = learner.get_distribution(torch.as_tensor(seen)[None], held, first)
        first = torch.zeros(1)
        assert np.allclose(likely, again, atol=1e-5)
        assert np.allclose(likely, told.distribution.probs.detach().numpy()[0], atol=1e-5)
        action = int(np.argmax(likely))
        seen, observation = env.step(action)[0], bare.step(action)[0]


def test_what_remembers_goes_on_remembering_and_learns_in_new_layouts(exploration, remembering):
    starts = LayoutStarts.of(exploration, new=0.5)
    trained = train_in_layouts(
        make, starts, LayoutTraining(samples=2_500, num_envs=4, rollout=32, critic_share=0.2), cloned=remembering
    )
    assert trained.samples == 2_500
    assert isinstance(trained.policy, RecurrentPolicy)
    before, after = (
        play_unseen(make, policy, range(100, 160), explored=range(6)) for policy in (remembering, trained.policy)
    )
    assert after.solved > before.solved


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_critic_that_knows_nothing_moves_no_actor(exploration, remembering, recurrent):
    cloned = remembering
    if not recurrent:
        cloned = Cloning(hidden=(16,), most_updates=10).clone(exploration.labels, make().observation_space, range(3))
    settings = LayoutTraining(samples=140, num_envs=2, rollout=64, hidden=(16,), critic_share=0.0)
    policy = train_in_layouts(make, LayoutStarts.of(exploration, new=1.0), settings, cloned=cloned).policy
    if recurrent:
        assert np.array_equal(policy.weights["recall"], cloned.weights["recall"])
    else:
        assert np.array_equal(policy.network.layers[0].weight, cloned.network.layers[0].weight)


def test_some_episodes_begin_in_new_layouts_at_their_own_start(exploration):
    env = LayoutStartsWrapper(make(), LayoutStarts.of(exploration, new=0.5))
    begun = [env.reset(seed=5 if episode == 0 else None)[1] for episode in range(40)]
    new = [info for info in begun if info["layout"] not in range(6)]
    assert 10 < len(new) < 30
    assert all(info["roll_in_steps"] == 0 and info["layout"] < FIRST_TEST for info in new)
    assert len({info["layout"] for info in new}) == len(new)
    with pytest.raises(ValueError, match="expected a share"):
        LayoutStarts.of(exploration, new=1.5)


def test_new_layouts_that_raise_are_named_and_the_rest_goes_on(exploration):
    first = [LayoutStartsWrapper(make(), LayoutStarts.of(exploration, new=1.0)).reset(seed=5)[1]["layout"]]
    starts = LayoutStarts.of(exploration, new=1.0)
    env = LayoutStartsWrapper(make(broken=first), starts)
    assert env.reset(seed=5)[1]["layout"] not in first
    assert list(starts.failed) == first
    env = NewLayouts(make(), seed=5)
    begun, _ = env.reset()
    env.env.step = lambda action: 1 / 0
    seen, reward, terminated, truncated, _ = env.step(0)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert np.array_equal(seen, begun)
    assert len(env.failed) == 1
    with pytest.raises(EnvironmentFailureError, match="20 layouts one after the other"):
        NewLayouts(make(broken=range(FIRST_TEST))).reset()


@pytest.mark.slow
def test_learning_across_layouts_solves_others():
    world = GymWorld(make, cells=HashedCells(200), layouts=range(12))
    exploration = ManyLayouts(first_share=50, after=50).explore(world, gamma=0.95, samples=5_000)
    settings = LayoutTraining(samples=40_000, num_envs=4, rollout=64, hidden=(64, 64), learning_rate=1e-3)
    trained = train_in_layouts(make, starts_of(exploration), settings)
    assert play_unseen(make, trained.policy, range(100, 200), explored=range(12)).solved > 80


@pytest.mark.slow
def test_a_network_can_remember(exploration):
    settings = LayoutTraining(samples=600, num_envs=2, rollout=32, hidden=(16,), recurrent=True)
    trained = train_in_layouts(make, starts_of(exploration), settings)
    assert trained.samples == 600
    assert play_unseen(make, trained.policy, range(100, 110), explored=range(6)).tested == 10
    cloned = Cloning(hidden=(16,), most_updates=10).clone(exploration.labels, make().observation_space, range(3))
    with pytest.raises(ValueError, match="without memory, whose layers are others"):
        train_in_layouts(make, starts_of(exploration), settings, cloned=cloned)
