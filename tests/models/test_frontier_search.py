"""The shortest way to the frontier and its bounds, against a plain breadth-first search; values against iteration."""

import numpy as np
import pytest

from curious_explorer.models.bonus_values import BonusValues
from curious_explorer.models.cell_levels import CellLevels
from curious_explorer.models.frontier_search import FrontierSearch
from curious_explorer.models.growing_model import FAR, NONE, GrowingModel


def random_world(seed, states=60, actions=3, ends=0.05):
    """Where each pair leads; ~state where the episode ends."""
    generator = np.random.default_rng(seed)
    table = generator.integers(0, states, (states, actions))
    table[generator.random((states, actions)) < 0.3] = 0
    return np.where(generator.random((states, actions)) < ends, ~table, table), generator


def by_breadth(tries, following, start, keys=None, tried=None):
    """Steps to the nearest state with a new pair, by looking at everything."""

    def new(state):
        return any(
            tries[state, action] == 0 and (keys is None or (keys[state], action) not in tried)
            for action in range(tries.shape[1])
        )

    layer, seen, steps = [start], {start}, 0
    while layer:
        if any(map(new, layer)):
            return steps
        ahead = [int(following[s, a]) for s in layer for a in range(tries.shape[1]) if tries[s, a] > 0]
        layer = [state for state in dict.fromkeys(ahead) if state >= 0 and state not in seen]
        seen.update(layer)
        steps += 1
    return FAR


@pytest.mark.parametrize("seed", range(6))
def test_ways_are_the_shortest_on_every_level_while_a_world_is_seen(seed):
    """Pairs are tried along ways of all levels in turn, so that bounds fall as well as rise."""
    table, generator = random_world(seed)
    model = GrowingModel(3)
    search = FrontierSearch(model, 2, price=50.0)
    numbers, key_of, tried = {}, {}, set()

    def meet(state):
        before = len(model)
        index = model.meet(state)
        if index == before:
            numbers[index] = state
            key_of[index] = state % 7
            search.meet(index, (state % 7,))
        return index

    at, tries, following = meet(0), np.zeros((60, 3), dtype=int), np.full((60, 3), NONE)
    for step in range(400):
        level = step % 2
        expected = by_breadth(tries, following, at, None if level else key_of, tried)
        way = search.way(level, at)
        assert (FAR if way is None else way.distance) == expected
        assert way is None or way.distance == len(way.pairs) == len(way.states)
        bound = search.levels[level].bounds[at]
        assert bound == min(expected, FAR) or expected == 0
        if way is None:
            at = meet(0)
            action = int(generator.integers(3))
        elif way.pairs:
            assert way.pairs[0] // 3 == at
            action = way.pairs[0] % 3
        else:
            action = search.exits(level, at)[0]
        led = int(table[numbers[at], action])
        index = meet(led if led >= 0 else ~led)
        if model.add(at, action, index if led >= 0 else ~index, 0.0):
            tries[at, action] += 1
            following[at, action] = index if led >= 0 else ~index
            tried.add((key_of[at], action))
            search.changed(at, action)
        at = index if led >= 0 else meet(0)


def test_a_pair_of_varying_outcomes_is_never_written_off():
    model = GrowingModel(1)
    search = FrontierSearch(model, 1, price=10.0)
    for state in range(2):
        search.meet(model.meet(state))
    for times in (1, 1, 4):
        for _ in range(times):
            model.add(0, 0, 1, 0.0)
            model.add(1, 0, 0, 0.0)
            search.changed(0, 0)
            search.changed(1, 0)
    assert search.way(0, 0) is None  # everything was tried, and did the same every time
    model.add(0, 0, 0, 0.0)
    search.changed(0, 0)
    for _ in range(3):
        price = int(10.0 * np.log(model.tries[0, 0]) + 1.0)
        assert search.way(0, 0).distance == price  # which grows with every try
        assert search.way(0, 1).distance == price + 1
        for _ in range(10):
            model.add(0, 0, 1, 0.0)
            search.changed(0, 0)


def test_a_way_costs_the_tries_that_it_takes():
    """One step that works once in ten tries is longer than a detour of three."""
    model = GrowingModel(2)
    search = FrontierSearch(model, 1, price=0.0)
    for state in range(5):
        search.meet(model.meet(state))
    for _ in range(9):
        model.add(0, 0, 0, 0.0)
    model.add(0, 0, 4, 0.0)
    for before, after in ((0, 1), (1, 2), (2, 4)):
        model.add(before, 1, after, 0.0)
        model.add(before, 0, before, 0.0)
    search.changed(0, 0)
    way = search.way(0, 0)
    assert (way.distance, way.goal, way.states) == (3, 4, [1, 2, 4])
    assert model.distances(4)[:5].tolist() == [3, 2, 1, FAR, 0]
    assert model.way_to(4)[0].tolist() == [0.0, 1.0]


def test_values_are_those_of_value_iteration():
    generator = np.random.default_rng(3)
    model = GrowingModel(2)
    values = None
    model.meet(0)
    at = 0
    for step in range(3_000):
        action = int(generator.integers(2))
        led = model.meet(int(generator.integers(max(0, at - 2), min(40, at + 3))))
        model.add(at, action, led, 0.0)
        if step == 500:
            values = BonusValues(model, gamma=0.9, least=1e-9, backups=100_000, every=1)
        elif values is not None:
            values.best_actions(at, led)
        at = led
    counts = model.counted()
    best = np.ones(len(model))
    chances = np.zeros((len(model), 2, len(model)))
    seen = model.outcomes()
    chances[seen.state, seen.action, seen.next_state] = seen.times / counts.tries[seen.state, seen.action]
    with np.errstate(divide="ignore"):
        bonus = 0.1 / np.sqrt(counts.tries)
    for _ in range(500):
        q = np.where(counts.tries == 0, 1.0, bonus + 0.9 * chances @ best)
        best = q.max(axis=1)
    np.testing.assert_allclose([values.value(index) for index in range(len(model))], best, atol=1e-6)
    assert values.best_actions(NONE, 0) == np.flatnonzero(q[0] >= q[0].max() - 1e-9).tolist()


def test_a_model_is_stored_and_counted_as_it_was_seen():
    model = GrowingModel(2)
    generator = np.random.default_rng(1)
    for _ in range(5_000):
        one, two = (model.meet(int(state)) for state in generator.integers(0, 10**9, 2) % 3_000)
        model.add(one, int(generator.integers(2)), two if generator.random() < 0.9 else ~two, 0.5)
    model.start(0)
    again = GrowingModel.from_arrays(model.arrays(), 2)
    assert again.starts == {0: 1}
    for old, new in zip(model.outcomes(), again.outcomes(), strict=True):
        np.testing.assert_array_equal(old, new)
    table = again.counted(3_000)
    assert table.tries.sum() == model.tries.sum() == 5_000
    assert (table.tries[model.states] == model.tries).all()
    assert model.index(int(model.states[7])) == 7
    assert model.index(-5) is None


def test_levels_leave_out_what_lies_about():
    """A place moves on all the time, a door has two values, a key may lie in any of forty places next."""
    levels = CellLevels()
    generator = np.random.default_rng(0)
    place, door, key = 0, 0, 5
    levels.meet({"place": place, "door": door, "key": key})
    for step in range(400):
        place = (place + int(generator.integers(1, 3))) % 40
        if step % 100 == 10:
            door = 1 - door
        if step % 25 == 20:
            key = int(generator.integers(40)) if key is None else None
        levels.meet({"place": place, "door": door, "key": key})
        levels.moved(step, step + 1)
    assert levels.look()
    assert not levels.look()
    assert (levels.jumping, levels.rare) == ({"key"}, {"door"})
    coarsest, coarse, finer = (len(set(keys)) for keys in levels.all_keys())
    assert coarsest == 40 < coarse <= 80 < finer <= 160
