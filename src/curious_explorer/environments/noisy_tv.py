"""A grid with a noisy TV: a screen that always shows something new, and teaches nothing.

A grid of height x width cells, four moves (a move against the border stays) and a fifth action, "watch". Episodes begin
in the top left corner; entering the bottom right corner pays 1 and ends the episode. One cell, by default two steps
from the start, has a TV: there the state is the cell together with what is on the screen. Walking in finds the first
picture on; watching switches to one of all pictures, uniformly at random; anywhere else it does nothing. The pictures
have no influence on anything, so the best policy never watches, and its value does not depend on how many there are.

To a learner that seeks what it has seldom seen, every picture is a state of its own, and all of them together are as
many as the learner's notion of novelty cares to count. With one picture there is nothing to see: that is the control.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.environments.grid_moves import MOVES, neighbours
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count

ACTIONS = (*MOVES, "watch")
WATCH = len(MOVES)


def noisy_tv(
    screens: int,
    *,
    height: int = 10,
    width: int = 10,
    tv: tuple[int, int] = (1, 1),
    permute_actions: int | None = 0,
) -> FiniteMDP:
    """A grid with a TV; ``height * width - 1 + screens`` states and five actions.

    Args:
        screens: how many different pictures the TV shows.
        tv: row and column of the TV's cell, which is neither the start nor the goal.
        permute_actions: seed for the action labels of each state; None keeps the same meaning everywhere.
    """
    screens = check_count(screens, "screens", least=1)
    height, width = check_count(height, "height", least=2), check_count(width, "width", least=2)
    cell = _tv_cell(tv, height, width)
    num_cells, goal = height * width, height * width - 1
    num_states = num_cells - 1 + screens
    tv_states = np.concatenate([[cell], np.arange(num_cells, num_states)])  # the first picture is the cell itself

    grid = neighbours(height, width)
    moves = np.concatenate([grid, np.repeat(grid[[cell]], screens - 1, axis=0)])
    following = np.column_stack([moves, np.arange(num_states)])  # watching stays where it is, except at the TV
    state, action = np.divmod(np.arange(num_states * len(ACTIONS)), len(ACTIONS))
    quiet = ~((action == WATCH) & np.isin(state, tv_states)) & (state != goal)
    watched = tv_states * len(ACTIONS) + WATCH
    pairs = np.concatenate([np.flatnonzero(quiet), np.repeat(watched, screens)])
    columns = np.concatenate([following.ravel()[quiet], np.tile(tv_states, screens)])
    chances = np.concatenate([np.ones(int(quiet.sum())), np.full(screens * screens, 1.0 / screens)])
    rows = sparse.csr_array((chances, (pairs, columns)), shape=(num_states * len(ACTIONS), num_states))

    rewards = (following == goal).astype(np.float64)
    rewards[goal] = 0.0
    names = [f"({cell_ // width}, {cell_ % width})" for cell_ in range(num_cells)]
    names[cell] += " picture 1"
    names += [f"({cell // width}, {cell % width}) picture {picture}" for picture in range(2, screens + 1)]
    mdp = FiniteMDP.from_rows(rows, rewards, 0, terminal=[goal], state_names=names, action_names=ACTIONS)
    return permute_action_labels(mdp, permute_actions)


def _tv_cell(tv: tuple[int, int], height: int, width: int) -> int:
    row, column = (check_count(index, "tv") for index in tv)
    cell = row * width + column
    if row >= height or column >= width or cell in (0, height * width - 1):
        raise ValueError(
            f"tv is {tv!r}, expected (row, column) inside the {height} x {width} grid, and neither the start (0, 0) "
            f"nor the goal ({height - 1}, {width - 1})"
        )
    return cell
