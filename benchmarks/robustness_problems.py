"""Problems that the robustness suite adds to the zoo: small, of many kinds, made from a size and a seed.

Each is a function of a size and a seed that returns a `FiniteMDP`; `problem` finds one by name. Labels of actions are
permuted by the seed, state by state, and what is random about a problem (walls, goals, costs) is drawn from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from benchmarks.fresh_problems import FRESH_KINDS
from benchmarks.outcomes import Outcome, from_outcomes
from curious_explorer import FiniteMDP
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.environments.grid_moves import MOVES, neighbours

# Chains and cycles ----------------------------------------------------------------------------------------------------


def comb(depth: int, seed: int, actions: int = 3) -> FiniteMDP:
    """A one-way tree: in each of ``depth`` states one action goes on, the others end in a dead leaf; the last pays."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        return [(1.0, state + 1 if action == 0 else depth + 1, float(action == 0 and state == depth - 1))]

    return from_outcomes(depth + 2, actions, outcomes, 0, seed, terminal=(depth, depth + 1))


def reset_lock(actions: int, seed: int, depth: int = 8) -> FiniteMDP:
    """A lock of many actions: one goes on, all others back to the start."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        return [(1.0, state + 1 if action == 0 else 0, float(action == 0 and state == depth - 1))]

    return from_outcomes(depth + 1, actions, outcomes, 0, seed, terminal=(depth,))


def corridor(length: int, seed: int) -> FiniteMDP:
    """Left or right in a corridor whose far end pays."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        return [(1.0, state + 1 if action == 0 else max(state - 1, 0), float(action == 0 and state == length - 1))]

    return from_outcomes(length + 1, 2, outcomes, 0, seed, terminal=(length,))


def tempting_chain(length: int, seed: int) -> FiniteMDP:
    """One action goes on to where 1 is paid and all begins anew; two pay a hundredth and go back to the start."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        if action > 0:
            return [(1.0, 0, 0.01)]
        return [(1.0, 0, 1.0)] if state == length - 1 else [(1.0, state + 1, 0.0)]

    return from_outcomes(length, 3, outcomes, 0, seed)


def ring(size: int, seed: int) -> FiniteMDP:
    """A circle without an end: on, back or stay; each full turn pays 1, and a move fails once in ten times."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        after = (state + (1, -1, 0)[action]) % size
        return [(0.9, after, float(action == 0 and after == 0)), (0.1, state, 0.0)]

    return from_outcomes(size, 3, outcomes, 0, seed)


def two_loops(length: int, seed: int) -> FiniteMDP:
    """Dearden's loops: one goes round whatever is done and pays 1, the other pays 2 to whoever never errs."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        if state == 0:
            return [(1.0, 1 if action == 0 else length, 0.0)]
        if state < length:  # the easy loop
            return [(1.0, 0, 1.0)] if state == length - 1 else [(1.0, state + 1, 0.0)]
        if action == 1:
            return [(1.0, 0, 0.0)]
        return [(1.0, 0, 2.0)] if state == 2 * length - 2 else [(1.0, state + 1, 0.0)]

    return from_outcomes(2 * length - 1, 2, outcomes, 0, seed)


def six_arms(arms: int, seed: int) -> FiniteMDP:
    """SixArms (Strehl and Littman 2008): the arm that is hardest to enter pays the most to whoever stays in it."""
    enter = np.array([1.0, 0.15, 0.1, 0.05, 0.03, 0.01])[:arms]
    pays = np.array([50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0])[:arms]

    def outcomes(state: int, action: int) -> list[Outcome]:
        if state == 0:
            return [(enter[action], action + 1, 0.0), (1.0 - enter[action], 0, 0.0)]
        return [(1.0, state, pays[state - 1])] if action == state - 1 else [(1.0, 0, 0.0)]

    return from_outcomes(arms + 1, arms, outcomes, 0, seed)


def casino(length: int, seed: int) -> FiniteMDP:
    """A corridor on which every step wins or loses 1 by a coin, and the far end pays 5: noise that means nothing."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        place = state // 2
        after = place + 1 if action == 0 else max(place - 1, 0)
        end = 2 * length
        if after == length:
            return [(1.0, end, 5.0)]
        return [(0.5, 2 * after, 1.0), (0.5, 2 * after + 1, -1.0)]

    return from_outcomes(2 * length + 1, 3, outcomes, 0, seed, terminal=(2 * length,))


# Grids ----------------------------------------------------------------------------------------------------------------


def grid(
    size: int,
    seed: int,
    *,
    slip: float = 0.0,
    ends: dict[int, float],
    cost: Callable[[int], float] = lambda cell: 0.0,
) -> FiniteMDP:
    """A square grid, from its top left cell; with ``slip`` a move turns to a side. ``ends`` says which cells end it."""
    following = neighbours(size, size)

    def outcomes(state: int, action: int) -> list[Outcome]:
        ways = [(1.0 - slip, action)] + [(slip / 2, (action + turn) % len(MOVES)) for turn in (1, 3) if slip > 0.0]
        after = [(probability, int(following[state, way])) for probability, way in ways]
        return [(probability, cell, ends.get(cell, 0.0) - cost(cell)) for probability, cell in after]

    return from_outcomes(size * size, len(MOVES), outcomes, 0, seed, terminal=ends)


def slippery_grid(size: int, seed: int) -> FiniteMDP:
    """A goal in the far corner; every fifth move slips to a side."""
    return grid(size, seed, slip=0.2, ends={size * size - 1: 1.0})


def decoys(size: int, seed: int) -> FiniteMDP:
    """Small goals nearby, a large one in the far corner; all of them end the episode."""
    return grid(size, seed, slip=0.1, ends={3: 0.1, size * (size // 2): 0.2, size * size - 1: 1.0})


def toll_grid(size: int, seed: int) -> FiniteMDP:
    """Every move costs 1, in a third of the cells 5; nothing pays, but the far corner ends it."""
    dear = np.random.default_rng(seed).random(size * size) < 1.0 / 3.0
    return grid(size, seed, ends={size * size - 1: 0.0}, cost=lambda cell: 5.0 if dear[cell] else 1.0)


def pits(size: int, seed: int, pays: float = 0.0, slip: float = 0.1) -> FiniteMDP:
    """A goal in the far corner; pits in a tenth of the cells (but for a way along two sides) end the episode."""
    dug = np.flatnonzero(np.random.default_rng(seed).random(size * size) < 0.1)
    cells = {int(cell): pays for cell in dug if cell % size > 1 and cell // size < size - 2}
    return grid(size, seed, slip=slip, ends={**cells, size * size - 1: 1.0})


def lake(size: int, seed: int) -> FiniteMDP:
    """FrozenLake on a map of its own: two thirds of the moves slip, holes in a fifth of the cells end the episode."""
    cells = "".join(generate_random_map(size=size, p=0.8, seed=seed))
    ends = {place: float(cell == "G") for place, cell in enumerate(cells) if cell in "HG"}
    return grid(size, seed, slip=2.0 / 3.0, ends=ends)


def mines(size: int, seed: int) -> FiniteMDP:
    """Pits that cost a hundred times what the goal pays; moves never slip."""
    return pits(size, seed, pays=-100.0, slip=0.0)


def four_rooms(size: int, seed: int) -> FiniteMDP:
    """Four rooms of size x size, a door in each wall, a goal in the far corner; a third of the moves go astray."""
    random, wide = np.random.default_rng(seed), 2 * size + 1
    first, second = (int(place) for place in random.integers(size, size=2))
    third, fourth = (int(place) + size + 1 for place in random.integers(size, size=2))
    doors = {(first, size), (third, size), (size, second), (size, fourth)}
    places = [place for place in itertools.product(range(wide), repeat=2) if size not in place or place in doors]
    number = {place: state for state, place in enumerate(places)}
    goal = number[wide - 1, wide - 1]

    def outcomes(state: int, action: int) -> list[Outcome]:
        found = []
        for turn, probability in enumerate((2.0 / 3.0, 1.0 / 9.0, 1.0 / 9.0, 1.0 / 9.0)):
            down, right = ((-1, 0), (0, 1), (1, 0), (0, -1))[(action + turn) % 4]
            after = number.get((places[state][0] + down, places[state][1] + right), state)
            found.append((probability, after, float(after == goal)))
        return found

    return from_outcomes(len(places), 4, outcomes, 0, seed, terminal=[goal])


def key_and_door(size: int, seed: int) -> FiniteMDP:
    """Two rooms of size x size, a door that only opens to whoever has been at the key, and a goal behind it."""
    random = np.random.default_rng(seed)
    moves = [((-1, 0), (0, 1), (1, 0), (0, -1))[place] for place in random.permutation(4)]
    door, key, goal = (
        (int(random.integers(size)), size),
        (int(random.integers(size)), int(random.integers(size))),
        (int(random.integers(size)), size + 1 + int(random.integers(size))),
    )
    places = [(row, column) for row in range(size) for column in range(2 * size + 1) if column != size] + [door]
    states = [(place, has_key) for has_key in (False, True) for place in places if has_key or place[1] < size]
    number = {state: place for place, state in enumerate(states)}
    end = len(states)
    transitions, rewards = np.zeros((end + 1, 4, end + 1)), np.zeros((end + 1, 4))
    transitions[end, :, end] = 1.0
    for (place, has_key), state in number.items():
        for action, (down, right) in enumerate(moves):
            wanted = (place[0] + down, place[1] + right)
            after = wanted if wanted in places and (has_key or wanted[1] < size) else place
            arrived = has_key and after == goal
            transitions[state, action, end if arrived else number[after, has_key or after == key]] = 1.0
            rewards[state, action] = float(arrived)
    start = number[(0, 0), key == (0, 0)]
    return FiniteMDP(transitions, rewards, start, terminal=np.arange(end + 1) == end)


def flags(size: int, seed: int) -> FiniteMDP:
    """Dearden's maze: the far corner pays a third for each of three flags that were met on the way."""
    cells = size * size
    following = neighbours(size, size)
    places = np.random.default_rng(seed).choice(np.arange(1, cells - 1), 3, replace=False)

    def outcomes(state: int, action: int) -> list[Outcome]:
        met, cell = divmod(state, cells)
        after = int(following[cell, action])
        met |= sum(1 << flag for flag in range(3) if places[flag] == after)
        return [(1.0, met * cells + after, met.bit_count() / 3.0 if after == cells - 1 else 0.0)]

    return from_outcomes(8 * cells, 4, outcomes, 0, seed, terminal=[met * cells + cells - 1 for met in range(8)])


def windy_grid(scale: int, seed: int) -> FiniteMDP:
    """Sutton and Barto's: every step costs 1, and in the middle a wind of chance blows upwards."""
    rows, columns, wind = 7 * scale, 10 * scale, (0, 0, 0, 1, 1, 1, 2, 2, 1, 0)
    goal = 3 * scale * columns + 7 * scale

    def outcomes(state: int, action: int) -> list[Outcome]:
        row, column = divmod(state, columns)
        down, right = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        blown = wind[column // scale]
        found = []
        for gust in (-1, 0, 1) if blown else (0,):
            there = min(max(row + down - blown - gust, 0), rows - 1), min(max(column + right, 0), columns - 1)
            found.append((1.0 / (3.0 if blown else 1.0), there[0] * columns + there[1], -1.0))
        return found

    return from_outcomes(rows * columns, 4, outcomes, 3 * scale * columns, seed, terminal=[goal])


# Everything else ------------------------------------------------------------------------------------------------------


def momentum(size: int, seed: int) -> FiniteMDP:
    """A car in a valley that has to swing to get out: places and speeds on a grid, a third of the moves one off."""
    speeds = 7

    def outcomes(state: int, action: int) -> list[Outcome]:
        place, speed = divmod(state, speeds)
        x = place / (size - 1)
        push = (action - 1) * 0.6 - 1.5 * math.sin(2.0 * math.pi * (x - 0.1) - math.pi / 2) * 0.5
        found = []
        for probability, luck in ((2 / 3, 0.0), (1 / 6, 0.5), (1 / 6, -0.5)):
            faster = int(np.clip(round(speed - 3 + push + luck), -3, 3))
            after = place + faster
            if after >= size - 1:
                return [(1.0, (size - 1) * speeds, 1.0)]
            found.append((probability, max(after, 0) * speeds + (3 if after < 0 else faster + 3), 0.0))
        return found

    return from_outcomes(
        size * speeds, 3, outcomes, (size // 3) * speeds + 3, seed, terminal=range((size - 1) * speeds, size * speeds)
    )


def hanoi(discs: int, seed: int) -> FiniteMDP:
    """The towers of Hanoi: six moves from peg to peg, those that are not allowed do nothing."""
    ways = [(one, other) for one in range(3) for other in range(3) if one != other]

    def outcomes(state: int, action: int) -> list[Outcome]:
        pegs = [state // 3**disc % 3 for disc in range(discs)]  # the smallest disc first
        tops = [next((disc for disc in range(discs) if pegs[disc] == peg), discs) for peg in range(3)]
        one, other = ways[action]
        after = state + (other - one) * 3 ** tops[one] if tops[one] < tops[other] else state
        return [(1.0, after, float(after == 3**discs - 1))]

    return from_outcomes(3**discs, 6, outcomes, 0, seed, terminal=(3**discs - 1,))


def gambler(goal: int, seed: int) -> FiniteMDP:
    """A gambler with half of what he wants, whose every stake is lost with probability 0.6."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        stake = min(action + 1, state, goal - state)
        return [(0.4, state + stake, float(state + stake == goal)), (0.6, state - stake, 0.0)]

    return from_outcomes(goal + 1, max(2, goal // 2), outcomes, goal // 2, seed, terminal=(0, goal))


def inventory(room: int, seed: int) -> FiniteMDP:
    """Order what may be sold: a sale earns 1, an order costs 1 and 0.5 for each piece, a piece in stock 0.05."""
    demand = np.array([math.exp(-room / 3) * (room / 3) ** number / math.factorial(number) for number in range(room)])
    demand = np.append(demand, 1.0 - demand.sum())

    def outcomes(state: int, action: int) -> list[Outcome]:
        stock = min(state + action, room)
        paid = (1.0 + 0.5 * (stock - state) if stock > state else 0.0) + 0.05 * stock
        chances: dict[int, tuple[float, float]] = {}
        for wanted, probability in enumerate(demand):
            left = max(stock - wanted, 0)
            before, earned = chances.get(left, (0.0, 0.0))
            chances[left] = (before + probability, earned + probability * (stock - left))
        return [(chance, left, earned / chance - paid) for left, (chance, earned) in chances.items() if chance > 0.0]

    return from_outcomes(room + 1, room + 1, outcomes, 0, seed)


def queue(room: int, seed: int) -> FiniteMDP:
    """Customers come and wait; to serve them faster costs more, and so does it to let many wait."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        served, price = (0.2, 0.45, 0.7)[action], (0.0, 0.3, 0.9)[action]
        chances: dict[int, float] = {}
        for (came, comes), (left, leaves) in itertools.product(((0.4, 1), (0.6, 0)), ((served, 1), (1.0 - served, 0))):
            after = min(max(state + comes - leaves, 0), room)
            chances[after] = chances.get(after, 0.0) + came * left
        return [(chance, after, -price - 3.0 * state / room) for after, chance in chances.items()]

    return from_outcomes(room + 1, 3, outcomes, 0, seed)


def levers(count: int, seed: int) -> FiniteMDP:
    """Levers that each action turns one of; all of them up at once pays."""
    up = 2**count - 1
    return from_outcomes(
        up + 1,
        count,
        lambda state, action: [(1.0, state ^ (1 << action), float(state ^ (1 << action) == up))],
        0,
        seed,
        terminal=[up],
    )


def bottleneck(states: int, seed: int) -> FiniteMDP:
    """Two random graphs; one pair of the first leads into the second, where one pair pays."""
    random = np.random.default_rng(seed)
    following, chance = random.integers(states, size=(2, states, 3, 2)), random.random((2, states, 3))
    gate, paying = (int(place) for place in random.integers(states, size=2))

    def outcomes(state: int, action: int) -> list[Outcome]:
        part, place = divmod(state, states)
        first, second = (int(after) + part * states for after in following[part, place, action])
        pays = float((part, place, action) == (1, paying, 1))
        if (part, place, action) == (0, gate, 0):
            return [(1.0, states + first, 0.0)]
        if first == second:
            return [(1.0, first, pays)]
        likely = chance[part, place, action]
        return [(likely, first, pays), (1.0 - likely, second, pays)]

    return from_outcomes(2 * states, 3, outcomes, 0, seed)


def dense(states: int, seed: int) -> FiniteMDP:
    """Every pair leads anywhere, and pays something between 0 and 1."""
    random = np.random.default_rng(seed)
    chances, pays = random.dirichlet(np.full(states, 0.1), (states, 4)), random.random((states, 4))

    def outcomes(state: int, action: int) -> list[Outcome]:
        return [(chances[state, action, after], after, pays[state, action]) for after in range(states)]

    return from_outcomes(states, 4, outcomes, 0, seed)


def one_reward(states: int, seed: int) -> FiniteMDP:
    """A random graph in which every pair leads to one of two states, one pair pays, and ten states are starts."""
    random = np.random.default_rng(seed)
    following, chance = random.integers(states, size=(states, 3, 2)), random.random((states, 3))
    start, paying = random.choice(states, 10, replace=False), int(random.integers(states))

    def outcomes(state: int, action: int) -> list[Outcome]:
        first, second = (int(after) for after in following[state, action])
        pays = float((state, action) == (paying, 0))
        if first == second:
            return [(1.0, first, pays)]
        return [(chance[state, action], first, pays), (1.0 - chance[state, action], second, pays)]

    return from_outcomes(states, 3, outcomes, [int(state) for state in start], seed)


def out_of_reach(states: int, seed: int) -> FiniteMDP:
    """Ten states in a row that matter, the last of which pays, and ``states`` more that nothing leads to."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        if state > 10:
            return [(1.0, state, 0.0)]
        return [(1.0, state + 1 if action == 0 else 0, float(action == 0 and state == 9))]

    return from_outcomes(states + 11, 4, outcomes, 0, seed, terminal=(10,))


def bandit(arms: int, seed: int) -> FiniteMDP:
    """One state, and actions that pay more or less."""
    return from_outcomes(1, arms, lambda state, action: [(1.0, 0, (action + 1.0) / arms)], 0, seed)


def handful(states: int, seed: int) -> FiniteMDP:
    """Very few states, of which nothing is special: two actions, two successors, rewards from 0 to 1."""
    random = np.random.default_rng(seed)
    chances, pays = random.dirichlet(np.ones(states), (states, 2)), random.random((states, 2))

    def outcomes(state: int, action: int) -> list[Outcome]:
        return [(chances[state, action, after], after, pays[state, action]) for after in range(states)]

    return from_outcomes(states, 2, outcomes, 0, seed)


KINDS: dict[str, Callable[[int, int], FiniteMDP]] = {
    "bandit": bandit,
    "bottleneck": bottleneck,
    "casino": casino,
    "comb": comb,
    "corridor": corridor,
    "decoys": decoys,
    "dense": dense,
    "flags": flags,
    "four-rooms": four_rooms,
    "gambler": gambler,
    "handful": handful,
    "hanoi": hanoi,
    "inventory": inventory,
    "key-door": key_and_door,
    "lake": lake,
    "levers": levers,
    "mines": mines,
    "momentum": momentum,
    "one-reward": one_reward,
    "out-of-reach": out_of_reach,
    "pits": pits,
    "queue": queue,
    "reset-lock": reset_lock,
    "ring": ring,
    "six-arms": six_arms,
    "slippery-grid": slippery_grid,
    "tempting-chain": tempting_chain,
    "toll-grid": toll_grid,
    "two-loops": two_loops,
    "windy-grid": windy_grid,
    **FRESH_KINDS,
}


def problem(name: str, seed: int) -> FiniteMDP:
    """The problem behind a name: one of `KINDS` with a size, or of the zoo; ``0.001*dcl/10`` has its rewards scaled."""
    scale, star, rest = name.rpartition("*")
    kind, _, size = rest.partition("/")
    mdp = KINDS[kind](int(size), seed) if kind in KINDS else find_environment(rest, labels=seed)
    return mdp.with_rewards(float(scale) * mdp.rewards) if star else mdp
