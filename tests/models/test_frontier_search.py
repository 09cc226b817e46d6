"""The shortest way to the frontier and its bounds, against a plain breadth-first search; values against iteration."""

import numpy as np
import pytest

from curious_explorer.models.bonus_values import (
    HOPE,
    choose,
    hope_for,
    hope_terms,
    look_at_range,
    novelty_terms,
    plan_terms,
    settle,
    settle_plan,
    sweep,
    sweeps_for,
    wait,
)
from curious_explorer.models.cell_levels import CellLevels
from curious_explorer.models.frontier_search import AGAIN, FrontierSearch
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


def test_a_new_state_in_which_a_level_has_nothing_to_try_brings_no_state_nearer_on_it():
    """Else every state that is met has the whole graph searched again: KeyCorridorS6R3 took ten times as long."""
    model = GrowingModel(1)
    search = FrontierSearch(model, 2, price=0.0)
    search.meet(model.meet(0), (0,))
    for state in range(20):  # a corridor, all of one key
        search.meet(model.meet(state + 1), (0,))
        model.add(state, 0, state + 1, 0.0)
        search.changed(state, 0)
        if state > 0:  # what the search found out about the first is still so
            assert (search.levels[0].bounds[: state + 2] == FAR).all()
        assert search.way(0, 0) is None
        assert search.way(1, 0).goal == state + 1


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


def test_where_steps_may_fail_what_was_tried_once_is_not_written_off_either():
    model = GrowingModel(1)
    search = FrontierSearch(model, 1, price=10.0)
    for state in range(3):
        search.meet(model.meet(state))
    for before, after in ((0, 1), (1, 2), (2, 2)):
        model.add(before, 0, after, 0.0)
        search.changed(before, 0)
    assert search.way(0, 0) is None
    search.levels[0] = search.levels[0]._replace(rarity=2.0)
    search.begin_anew()
    assert search.way(0, 0).distance == 20 + 1  # two factors e of tries above a pair that is known to vary
    for _ in range(4):
        model.add(0, 0, 1, 0.0)
        search.changed(0, 0)
    assert (search.way(0, 0).distance, search.way(0, 0).goal) == (22, 1)  # the next one is worth more


def test_the_price_of_tries_takes_no_time_of_an_episode():
    """A pair of varying outcomes, four steps away, is further than any episode lasts, and yet within reach."""
    model = GrowingModel(1)
    search = FrontierSearch(model, 1, price=50.0)
    for state in range(5):
        search.meet(model.meet(state))
    for place in range(4):
        model.add(place, 0, place + 1, 0.0)
    for turn in range(300):
        model.add(4, 0, 4 if turn % 2 else 3, 0.0)
    for state in range(5):
        search.changed(state, 0)
    far = int(50.0 * np.log(300) + 1.0) + 4
    for room in (3, 4, 3, 10):  # bounds that a search with little room leaves do not mislead the next one
        way = search.way(0, 0, room=room)
        assert (way is None) == (room < 4)
        assert way is None or (way.distance, way.goal) == (far, 4)
    assert search.way(0, 0, most=far - 1) is None


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
    """Of what is new, of the plan, and of hopes; kept up to date while a world is seen."""
    generator = np.random.default_rng(3)
    model, gamma = GrowingModel(2), 0.9
    tables = [sweeps_for(1 << 10, terms) for terms in (novelty_terms(1e-9), plan_terms(), hope_terms())]
    novelty, plan, hopes = tables
    at = model.meet(0)
    for step in range(3_000):
        action = int(generator.integers(2))
        led = model.meet(int(generator.integers(max(0, at - 2), min(40, at + 3))))
        ended = led == 39
        model.add(at, action, ~led if ended else led, 0.5 * ended - 0.01 * (action == 1))
        if ended:
            model.end(led, 0.2)
        if step == 500:
            settle(model, novelty, gamma)
            settle_plan(model, plan, hopes, gamma)
        elif step > 500:
            for table in tables:
                wait(table, at)
            sweep(model.graph, novelty, 2, gamma, 1_000)
            sweep(model.graph, plan, 2, gamma, 1_000)
            look_at_range(plan, len(model))
            hope_for(hopes, plan)
            sweep(model.graph, hopes, 2, gamma, 1_000)
        at = 0 if ended else led
    counts, seen, ended = model.counted(), model.outcomes(), model.ended()
    chances, stops, paid = (np.zeros((len(model), 2, len(model))) for _ in range(3))
    np.add.at(chances, (seen.state, seen.action, seen.next_state), seen.times * ~ended)
    np.add.at(stops, (seen.state, seen.action, seen.next_state), seen.times * ended)
    np.add.at(paid, (seen.state, seen.action, seen.next_state), seen.times * seen.reward)
    tries = np.maximum(counts.tries, 1)
    chances, stops = chances / tries[..., None], stops / tries[..., None]
    earned, worth = (1.0 - gamma) * paid.sum(axis=2) / tries, model.graph.end_paid[: len(model)]
    new, values, known = counts.tries == 0, np.zeros(len(model)), np.zeros(len(model))
    for _ in range(500):
        values = np.where(new, 1.0, (1.0 - gamma) / np.sqrt(tries) + gamma * chances @ values).max(axis=1)
        lowest = min(0.0, known.min())
        known = np.where(new, lowest, earned + gamma * (chances @ known + stops @ worth)).max(axis=1)
    expected = {"novelty": values, "plan": known}
    hoped, end, costs = np.zeros(len(model)), 39, np.array([0.0, 1.0])
    for _ in range(500):
        ahead = np.where(np.arange(len(model)) == end, 0.5 * (1.0 - gamma) + gamma * worth, gamma * hoped)
        outcomes = ahead - 0.01 * (1.0 - gamma) * costs[:, None]  # of each action, wherever it leads: (A, M)
        got = np.einsum("san,an->sa", chances + stops, outcomes)
        squares = np.einsum("san,an->sa", chances + stops, outcomes**2)
        varies = np.sqrt(np.maximum(squares - got**2, 0.0) / tries)
        q = got + HOPE * (varies + (known.max() - min(0.0, known.min())) / tries)
        most = 2.0 * known.max() - min(0.0, known.min())
        hoped = np.minimum(np.where(new, known.max(), q).max(axis=1), most)
    expected["hopes"] = hoped
    for table, (name, wanted), most in zip(tables, expected.items(), (1e-6, 1e-3, 3e-3), strict=True):
        np.testing.assert_allclose(table.values[: len(model)], wanted, atol=most * wanted.max(), err_msg=name)
    actions = np.zeros(2, dtype=np.int32)
    q = np.where(new, 1.0, (1.0 - gamma) / np.sqrt(tries) + gamma * chances @ values)[0]
    count = choose(model.graph, novelty, 2, gamma, 0, actions)
    assert actions[:count].tolist() == np.flatnonzero(q >= q.max() - 1e-9).tolist()


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


def test_a_pair_that_may_have_failed_is_tried_again_once_what_is_new_is_further_away():
    model = GrowingModel(2)
    search = FrontierSearch(model, 2, price=0.0)
    search.levels = [level._replace(enough=3) for level in search.levels[:1]] + search.levels[1:]
    for state in range(2 * AGAIN):
        search.meet(model.meet(state), (state,))
    for state in range(2 * AGAIN - 1):  # a corridor: action 0 leads on, action 1 seems to do nothing
        for action, led in ((0, state + 1), (0, state + 1), (0, state + 1), (1, state)):
            model.add(state, action, led, 0.0)
            search.changed(state, action)
    assert search.way(0, 0).distance == AGAIN  # one more try here rather than a walk to what is new
    near = search.way(0, AGAIN + 1)
    assert (near.distance, near.goal) == (AGAIN - 2, 2 * AGAIN - 1)
    for _ in range(2):
        for state in range(2 * AGAIN - 1):
            model.add(state, 1, state, 0.0)
            search.changed(state, 1)
    assert search.way(0, 0).goal == 2 * AGAIN - 1
