"""Problems that were made after the defaults were, to see what these do where nobody has looked yet.

Each is a function of a size and a seed, like those of `benchmarks.robustness_problems`, and has what those have not:
resources that run out, doors that shut behind one, actions of which most do the same or nothing, goals that are never
done with. `FRESH` in `benchmarks/robustness.py` says at which sizes and discounts they are run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.outcomes import Outcome, from_outcomes
from curious_explorer import FiniteMDP
from curious_explorer.environments.grid_moves import neighbours


def trapdoors(length: int, seed: int) -> FiniteMDP:
    """One or two places on, three back, or down a shaft that takes six climbs and ends at the start; the end pays."""
    top, shaft = length + 1, 6

    def outcomes(state: int, action: int) -> list[Outcome]:
        if state >= top:  # in the shaft, where climbing fails half of the time
            up = 0 if state == top + shaft - 1 else state + 1
            return [(0.5, up, 0.0), (0.5, state, 0.0)] if action == 0 else [(1.0, top, 0.0)]
        if action == 3:
            return [(1.0, top, 0.0)]
        after = max(state + (1, 2, -3)[action], 0)
        if action == 1 and state % 3 == 1:  # a leap that ends in the shaft
            return [(1.0, top, 0.0)]
        return [(1.0, min(after, length), float(after >= length))]

    return from_outcomes(top + shaft, 4, outcomes, 0, seed, terminal=(length,))


def two_goals(distance: int, seed: int) -> FiniteMDP:
    """A goal at hand pays a fifth of what the far one pays; ways to both fork at the start, and steps may fail."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        if state == 0:
            return [(1.0, (1, distance, 0)[action], 0.0)]
        if state < distance:  # the long way: on, back to the start, or nothing
            pays = float(action == 0 and state == distance - 1)
            after = (end if pays else state + 1, 0, state)[action]
            return [(0.8, after, pays), (0.2, state, 0.0)]
        pays = 0.2 if action == 0 and state == distance + 2 else 0.0
        after = (end if pays else state + 1, 0, state)[action]
        return [(0.8, after, pays), (0.2, state, 0.0)]

    end = distance + 3
    return from_outcomes(distance + 4, 3, outcomes, 0, seed, terminal=(end,))


def climb(height: int, seed: int) -> FiniteMDP:
    """Every step up costs 1, staying costs nothing, and so does rolling down; the top pays four times the way up."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        if action == 0:
            return [
                (0.9, state + 1, 4.0 * height - 1.0 if state == height - 1 else -1.0),
                (0.1, max(state - 2, 0), -1.0),
            ]
        return [(1.0, state if action == 1 else max(state - 1, 0), 0.0)]

    return from_outcomes(height + 1, 3, outcomes, 0, seed, terminal=(height,))


def aliases(length: int, seed: int) -> FiniteMDP:
    """Sixteen actions of three kinds: one goes on, five go back by two, ten do nothing; at the end all begins anew."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        if action == 0:
            return [(1.0, (state + 1) % length, float(state == length - 1))]
        return [(1.0, max(state - 2, 0) if action < 6 else state, 0.0)]

    return from_outcomes(length, 16, outcomes, 0, seed)


def sticky(states: int, seed: int) -> FiniteMDP:
    """A random graph whose pairs stay where they are nine times in ten; one state pays as long as one stays in it."""
    random = np.random.default_rng(seed)
    following, paying = random.integers(states, size=(states, 4)), int(random.integers(1, states))

    def outcomes(state: int, action: int) -> list[Outcome]:
        pays, after = float(state == paying), int(following[state, action])
        return [(1.0, state, pays)] if after == state else [(0.9, state, pays), (0.1, after, pays)]

    return from_outcomes(states, 4, outcomes, 0, seed)


def fuel(size: int, seed: int) -> FiniteMDP:
    """A delivery on a square: fetch, refuel and bring; each move burns one of twelve units, and empty is the end."""
    tank, cells = 12, size * size
    following = neighbours(size, size)
    parcel, house, pump = (int(cell) for cell in np.random.default_rng(seed).choice(np.arange(1, cells), 3, False))

    def number(cell: int, left: int, has_parcel: bool) -> int:
        return (int(has_parcel) * (tank + 1) + left) * cells + cell

    def outcomes(state: int, action: int) -> list[Outcome]:
        rest, cell = divmod(state, cells)
        has_parcel, left = divmod(rest, tank + 1)
        after = int(following[cell, action])
        left = tank if after == pump else left - 1
        if has_parcel and after == house:
            return [(1.0, done, 1.0)]
        return [(1.0, done if left == 0 else number(after, left, bool(has_parcel) or after == parcel), 0.0)]

    done = number(cells - 1, tank, True) + 1
    return from_outcomes(done + 1, 4, outcomes, number(0, tank, False), seed, terminal=(done,))


def patrol(length: int, seed: int) -> FiniteMDP:
    """Walk to and fro: each end pays to whoever was at the other end before, and there is no last time."""

    def outcomes(state: int, action: int) -> list[Outcome]:
        last, place = divmod(state, length)
        after = min(max(place + (1, -1, 0)[action], 0), length - 1)
        met = after == (0 if last == 1 else length - 1)
        where = (1 - last) * length + after if met else state - place + after
        return [(0.9, where, float(met)), (0.1, state, 0.0)]

    return from_outcomes(2 * length, 3, outcomes, length // 2, seed)


def layers(width: int, seed: int, depth: int = 20) -> FiniteMDP:
    """A random graph in layers that nobody climbs back: three successors a pair; one state in ten of the last pays."""
    random = np.random.default_rng(seed)
    following = random.integers(width, size=(depth, width, 3, 3))
    chance = random.dirichlet(np.ones(3), (depth, width, 3))
    pays = random.random(width) * (random.random(width) < 0.1)
    pays[int(random.integers(width))] = 1.0
    end = depth * width

    def outcomes(state: int, action: int) -> list[Outcome]:
        layer, place = divmod(state, width)
        if layer == depth - 1:
            return [(1.0, end, float(pays[place]))]
        found: dict[int, float] = {}
        for after, likely in zip(following[layer, place, action], chance[layer, place, action], strict=True):
            found[int(after)] = found.get(int(after), 0.0) + float(likely)
        return [(likely, (layer + 1) * width + after, 0.0) for after, likely in found.items()]

    return from_outcomes(end + 1, 3, outcomes, 0, seed, terminal=(end,))


def sliding(columns: int, seed: int) -> FiniteMDP:
    """The sliding puzzle of two rows, begun in a random order; only the goal pays, and against a wall nothing moves."""
    goal = tuple(range(2 * columns))
    found, queue = {goal: 0}, [goal]
    for board in queue:
        for action in range(4):
            after = _slide(board, action, columns)
            if after not in found:
                found[after] = len(found)
                queue.append(after)
    start = int(np.random.default_rng(seed).integers(len(found) // 2, len(found)))

    def outcomes(state: int, action: int) -> list[Outcome]:
        after = found[_slide(queue[state], action, columns)]
        return [(1.0, after, float(after == 0))]

    return from_outcomes(len(found), 4, outcomes, start, seed, terminal=(0,))


def _slide(board: tuple[int, ...], action: int, columns: int) -> tuple[int, ...]:
    """The board after the gap (0) has moved up, down, left or right; the same where it cannot."""
    row, column = divmod(board.index(0), columns)
    down, right = ((-1, 0), (1, 0), (0, -1), (0, 1))[action]
    if not (0 <= row + down < 2 and 0 <= column + right < columns):
        return board
    tiles, gap, other = list(board), row * columns + column, (row + down) * columns + column + right
    tiles[gap], tiles[other] = tiles[other], tiles[gap]
    return tuple(tiles)


def ice_maze(size: int, seed: int) -> FiniteMDP:
    """Walls in a quarter of the cells of a square, a goal where it is far, and a third of the moves slips to a side."""
    random = np.random.default_rng(seed)
    following, cells = neighbours(size, size), size * size
    walls: set[int] = set()
    for wall in random.permutation(np.arange(1, cells))[: cells // 4]:
        if len(_reached(following, walls | {int(wall)})) == cells - len(walls) - 1:
            walls.add(int(wall))
    goal = _reached(following, walls)[-1]

    def outcomes(state: int, action: int) -> list[Outcome]:
        found: dict[int, float] = {}
        for likely, turn in ((2 / 3, 0), (1 / 6, 1), (1 / 6, 3)):
            there = int(following[state, (action + turn) % 4])
            after = state if there in walls else there
            found[after] = found.get(after, 0.0) + likely
        return [(likely, after, float(after == goal)) for after, likely in found.items()]

    return from_outcomes(cells, 4, outcomes, 0, seed, terminal=(goal,))


def _reached(following: np.ndarray, walls: set[int]) -> list[int]:
    """The cells that the first one leads to, nearest first."""
    found = [0]
    for cell in found:
        found += [int(after) for after in dict.fromkeys(following[cell]) if after not in walls and after not in found]
    return found


def shifts(workers: int, seed: int) -> FiniteMDP:
    """Give each step's work to one of ``workers`` or to nobody; they tire by it, and who is worn out costs."""
    levels = 4
    random = np.random.default_rng(seed)
    earns = 0.5 + random.random(workers)

    def outcomes(state: int, action: int) -> list[Outcome]:
        tired = [state // levels**one % levels for one in range(workers)]
        pays = 0.0 if action == workers else float(earns[action]) * (1.0 - tired[action]) + 0.2
        after = [min(level + 1, levels - 1) if one == action else max(level - 1, 0) for one, level in enumerate(tired)]
        lazy = sum(level * levels**one for one, level in enumerate(after))
        return [(0.7, lazy, pays), (0.3, state, pays)] if lazy != state else [(1.0, state, pays)]

    return from_outcomes(levels**workers, workers + 1, outcomes, 0, seed)


FRESH_KINDS: dict[str, Callable[[int, int], FiniteMDP]] = {
    "aliases": aliases,
    "climb": climb,
    "fuel": fuel,
    "ice-maze": ice_maze,
    "layers": layers,
    "patrol": patrol,
    "shifts": shifts,
    "sliding": sliding,
    "sticky": sticky,
    "trapdoors": trapdoors,
    "two-goals": two_goals,
}
