"""A maze with one-way doors: a wrong turn may only end with the episode.

A random spanning tree of the grid's cells (each pair of neighbours draws a weight; the lightest tree is taken) makes
the passages, and a share of the remaining walls is opened to make loops. Then a share of the tree's passages becomes
doors that open only away from the start, and of the loops' passages doors that open in one direction drawn at random.
So every cell can be reached from the start, but not every cell can be left again.

Episodes begin in the top left cell. The goal is the cell that lies farthest from it (the one with the lowest number, if
several do); entering it pays 1 and ends the episode. A move against a wall, or a door from the wrong side, stays. All
of it is built in compressed rows, so a million cells are no trouble.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer.environments.grids import MOVES, neighbours
from curious_explorer.environments.labels import permute_action_labels
from curious_explorer.mdp import FiniteMDP
from curious_explorer.mdp.validation import check_count, check_seed

Indices = NDArray[np.int64]
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
        height: how many rows.
        width: how many columns; as many as rows if None.
        doors: which share of the passages opens in one direction only.
        loops: which share of the walls that the tree leaves is opened.
        seed: what the maze is drawn from.
        permute_actions: seed for the action labels of each state; None keeps the same meaning everywhere.
    """
    height = check_count(height, "height", least=2)
    width = height if width is None else check_count(width, "width", least=2)
    for name, share in (("doors", doors), ("loops", loops)):
        if not (isinstance(share, (int, float)) and math.isfinite(share) and 0.0 <= share <= 1.0):
            raise ValueError(f"{name} is {share!r}, expected a share in [0, 1]")
    num_cells = height * width
    random = np.random.default_rng(check_seed(seed))
    one, other = _passages(height, width, doors, loops, random)
    goal = _farthest(one, other, num_cells)

    grid = neighbours(height, width)
    open_ways = sparse.csr_array((np.ones(len(one)), (one, other)), shape=(num_cells, num_cells))
    cells = np.repeat(np.arange(num_cells), len(MOVES))
    passable = np.asarray(open_ways[cells, grid.ravel()]).ravel() > 0.0
    following = np.where(passable, grid.ravel(), cells)
    kept = cells != goal
    pairs = np.flatnonzero(kept)
    shape = (num_cells * len(MOVES), num_cells)
    rows = sparse.csr_array((np.ones(len(pairs)), (pairs, following[kept])), shape=shape)
    rewards = ((following == goal) & kept).astype(np.float64).reshape(num_cells, len(MOVES))
    names = None if num_cells > MOST_NAMED else [f"({cell // width}, {cell % width})" for cell in range(num_cells)]
    mdp = FiniteMDP.from_rows(rows, rewards, 0, terminal=[goal], state_names=names, action_names=tuple(MOVES))
    return permute_action_labels(mdp, permute_actions)


def _passages(
    height: int, width: int, doors: float, loops: float, random: np.random.Generator
) -> tuple[Indices, Indices]:
    """All ways from a cell to a neighbour: where they begin and where they lead; a passage open both ways is two."""
    num_cells = height * width
    cell = np.arange(num_cells)
    eastern, southern = cell[cell % width < width - 1], cell[cell < num_cells - width]
    near = np.concatenate([eastern, southern])
    far = np.concatenate([eastern + 1, southern + width])
    weights = random.permutation(len(near)) + 1.0  # distinct, so that the tree is one and the same everywhere
    tree = csgraph.minimum_spanning_tree(sparse.csr_array((weights, (near, far)), shape=(num_cells, num_cells)))
    _, parents = csgraph.breadth_first_order(tree, 0, directed=False, return_predecessors=True)
    child = np.flatnonzero(parents >= 0)
    parent = parents[child].astype(np.int64)

    in_tree = np.isin(near * num_cells + far, np.minimum(parent, child) * num_cells + np.maximum(parent, child))
    opened = ~in_tree & (random.random(len(near)) < loops)
    turned = random.random(len(near)) < 0.5
    begin = np.concatenate([parent, np.where(turned, far, near)[opened]])
    end = np.concatenate([child, np.where(turned, near, far)[opened]])
    both_ways = random.random(len(begin)) >= doors
    return np.concatenate([begin, end[both_ways]]), np.concatenate([end, begin[both_ways]])


def _farthest(one: Indices, other: Indices, num_cells: int) -> int:
    """The cell that takes the most steps to reach from cell 0."""
    ways = sparse.csr_array((np.ones(len(one)), (one, other)), shape=(num_cells, num_cells))
    order, parents = csgraph.breadth_first_order(ways, 0, directed=True, return_predecessors=True)
    distance = np.zeros(num_cells, dtype=np.int64)
    for reached in order[1:].tolist():  # parents come before their children
        distance[reached] = distance[parents[reached]] + 1
    return int(distance.argmax())
