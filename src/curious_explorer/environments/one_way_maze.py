"""A maze with one-way doors: a wrong turn may only end with the episode.

A random spanning tree of the grid's cells (each pair of neighbours draws a weight; the lightest tree is taken) makes
the passages, and a share of the remaining walls is opened to make loops. Then a share of the tree's passages becomes
doors that open only away from the start, and of the loops' passages doors that open in one direction drawn at random.
So every cell can be reached from the start, but not every cell can be left again.

Episodes begin in the top left cell. The goal is the cell that lies farthest from it (the one with the lowest number, if
several do); entering it pays 1 and ends the episode. A move against a wall, or a door from the wrong side, stays. All
of it is built in compressed rows, so ten million cells are no trouble.

A way out of a cell is one of its four moves, so ways are marks in a table (cells, 4) rather than pairs of cells to be
looked up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer.arrays import Mask
from curious_explorer.environments.action_labels import action_labels
from curious_explorer.environments.grid_moves import MOVES, neighbours
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count, check_probability, check_seed

NORTH, EAST, SOUTH, WEST = range(4)
"""The order of `MOVES`."""
MOST_NAMED = 10_000
"""Names of cells are for people; a larger maze is not drawn."""


def one_way_maze(
    height: int,
    width: int | None = None,
    *,
    doors: float = 0.3,
    loops: float = 0.1,
    seed: int = 0,
    permute_actions: int | None = 0,
) -> FiniteMDP:
    """A random maze of ``height * width`` cells with four actions.

    Args:
        width: how many columns; as many as rows if None.
        doors: which share of the passages opens in one direction only.
        loops: which share of the walls that the tree leaves is opened.
        permute_actions: seed for the action labels of each state; None keeps the same meaning everywhere.
    """
    height = check_count(height, "height", least=2, most=20_000)
    width = height if width is None else check_count(width, "width", least=2, most=20_000)
    doors, loops = check_probability(doors, "doors"), check_probability(loops, "loops")
    num_cells = height * width
    random = np.random.default_rng(check_seed(seed))
    is_open = _ways(height, width, doors, loops, random)
    following = neighbours(height, width).astype(np.min_scalar_type(-num_cells * len(MOVES)), copy=False)
    goal = _farthest(is_open, following)
    np.copyto(following, np.arange(num_cells, dtype=following.dtype)[:, None], where=~is_open)
    following[goal] = goal
    if permute_actions is not None:
        before = following.copy()
        np.put_along_axis(following, action_labels(num_cells, len(MOVES), permute_actions), before, axis=1)
        del before
    rewards = (following == goal).astype(np.float64)
    rewards[goal] = 0.0
    names = None if num_cells > MOST_NAMED else [f"({cell // width}, {cell % width})" for cell in range(num_cells)]
    indptr = np.arange(following.size + 1, dtype=following.dtype)
    rows = sparse.csr_array((np.ones(following.size), following.reshape(-1), indptr), shape=(following.size, num_cells))
    moves = tuple(MOVES) if permute_actions is None else None  # shuffled, they mean nothing
    return FiniteMDP.from_rows(rows, rewards, 0, terminal=[goal], state_names=names, action_names=moves, copy=False)


def _ways(height: int, width: int, doors: float, loops: float, random: np.random.Generator) -> Mask:
    """Which moves lead somewhere, shape (cells, 4); a passage open both ways is two."""
    num_cells = height * width
    has_wall = np.ones((num_cells, 2), dtype=np.bool_)  # between a cell and its eastern and its southern neighbour
    has_wall[width - 1 :: width, 0] = has_wall[num_cells - width :, 1] = False
    num_eastern, num_walls = height * (width - 1), int(has_wall.sum())
    parents = _tree(has_wall, width, num_eastern, random)

    # Walls are numbered: all eastern ones by cell, then all southern ones by cell.
    child = np.arange(1, num_cells, dtype=parents.dtype)  # every cell but the root
    parent = parents[1:]
    lower = np.minimum(parent, child)
    eastern = np.abs(parent - child) == 1
    in_tree = np.zeros(num_walls, dtype=np.bool_)
    in_tree[np.where(eastern, lower - lower // width, num_eastern + lower)] = True
    opened = np.flatnonzero(~in_tree & (random.random(num_walls) < loops))
    turned = (random.random(num_walls) < 0.5)[opened]
    one_way = random.random(num_cells - 1 + len(opened)) < doors

    is_open = np.zeros((num_cells, len(MOVES)), dtype=np.bool_)
    _open_ways(is_open, parent, child, one_way[: num_cells - 1], width)
    horizontal = opened < num_eastern
    near = np.where(horizontal, opened + opened // (width - 1), opened - num_eastern)
    far = near + np.where(horizontal, 1, width)
    begin, end = np.where(turned, far, near), np.where(turned, near, far)
    _open_ways(is_open, begin, end, one_way[num_cells - 1 :], width)
    return is_open


def _tree(has_wall: Mask, width: int, num_eastern: int, random: np.random.Generator) -> NDArray[np.integer]:
    """A random spanning tree: the cell from which each cell is reached, -9999 for cell 0."""
    num_walls, num_cells = int(has_wall.sum()), len(has_wall)
    weights = np.zeros(has_wall.shape)
    order = random.permutation(num_walls)  # distinct, so that the tree is one and the same everywhere
    weights[has_wall[:, 0], 0] = order[:num_eastern] + 1.0
    weights[has_wall[:, 1], 1] = order[num_eastern:] + 1.0
    del order
    kind = np.min_scalar_type(-2 * num_cells)
    indptr = np.concatenate([[0], np.cumsum(has_wall.sum(axis=1))]).astype(kind)
    far = (np.arange(num_cells, dtype=kind)[:, None] + np.array([1, width], dtype=kind))[has_wall]
    grid = sparse.csr_array((weights[has_wall], far, indptr), shape=(num_cells, num_cells))
    del weights, far, indptr
    tree = csgraph.minimum_spanning_tree(grid, overwrite=True)
    del grid
    _, parents = csgraph.breadth_first_order(tree, 0, directed=False, return_predecessors=True)
    return np.asarray(parents)


def _open_ways(is_open: Mask, begin: NDArray[np.integer], end: NDArray[np.integer], one_way: Mask, width: int) -> None:
    """Mark the moves from ``begin`` to ``end``, and those back where a passage is not a door."""
    step = end - begin
    move = np.select([step == -width, step == 1, step == width], [NORTH, EAST, SOUTH], WEST)
    is_open[begin, move] = True
    back = ~one_way
    is_open[end[back], (move[back] + 2) % 4] = True


def _farthest(is_open: Mask, following: NDArray[np.integer]) -> int:
    """The cell that takes the most steps to reach from cell 0; the one with the lowest number, if several do."""
    num_cells = len(is_open)
    indptr = np.concatenate([[0], np.cumsum(is_open.sum(axis=1))]).astype(following.dtype)
    ways = sparse.csr_array((np.ones(indptr[-1]), following[is_open], indptr), shape=(num_cells, num_cells))
    order, parents = csgraph.breadth_first_order(ways, 0, directed=True, return_predecessors=True)
    del ways
    # Cells come in the order of their distance, and so do their parents: a level ends where the parents of the next
    # one begin.
    place = np.empty(num_cells, dtype=order.dtype)
    place[order] = np.arange(len(order), dtype=order.dtype)
    parent_place = place[parents[order[1:]]]
    begin, stop = 0, 1
    while stop < len(order):
        begin, stop = stop, 1 + int(np.searchsorted(parent_place, order.dtype.type(stop)))
    return int(order[begin:].min())
