"""When cells that were chosen by a look turn out to be too fine or too coarse, and what becomes of them.

With T samples since cells were chosen or forgotten, M cells met and A actions, cells are

    too fine    if M > T / `TOO_MANY`: counts say little where nearly everything is new. They are made coarser until
                M <= T / `ENOUGH`; where bins are put together, counts are put together with them. Pictures that are
                compared as they are may be symbols of a game, in which every try shows something new for a while: they
                are too fine if M > T / `TOO_MANY_EXACT`;
    too coarse  if nothing is left to try, or if every pair was tried more than `TOO_OFTEN` times on average. They are
                made finer, and all counts begin anew: unless a reward was seen, to which a way is known by these cells.

Small pictures are too coarse, if anything is left to try, where every pair was tried more than `OFTEN_ENOUGH` times on
average, and the last steps (`LATELY_LEAST` or more) met fewer cells than `TOO_FEW` for each of them. Together with the
first rule this keeps them in a band: of sixty-four steps one at least meets a cell of its own, and of four one at most.

Symbols have no coarser or finer cells, and stay what they are. All steps stay counted.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Integers
from curious_explorer.gym.cells import Cells, GridCells
from curious_explorer.gym.coded_cells import JointCells, NumberCells
from curious_explorer.gym.feature_cells import FeatureCells
from curious_explorer.gym.picture_cells import PictureCells

TOO_MANY, ENOUGH = 4.0, 8.0
"""Go-Explore aims at a cell for every eight pictures; twice that is left alone."""
TOO_MANY_EXACT = 2.0
TOO_OFTEN = 50.0
OFTEN_ENOUGH, TOO_FEW, LATELY_LEAST = 10.0, 1.0 / 64.0, 500
LEAST_SAMPLES = 1_000


def refitted(
    cells: Cells,
    met: int,
    samples: int,
    num_actions: int,
    *,
    exhausted: bool,
    rewarded: bool,
    lately: tuple[int, int] | None = None,
) -> tuple[Cells, Integers] | None:
    """Other cells, and what each old one is now (nothing: counts begin anew); None if these will do.

    Args:
        cells: as they are.
        met: how many of them were met.
        samples: since they were chosen, or since all was forgotten.
        num_actions: how many actions there are.
        exhausted: whether nothing is left to try.
        rewarded: whether a reward was seen.
        lately: of small pictures, how many different ones were seen of late, in how many steps.
    """
    if not exhausted and samples < LEAST_SAMPLES:
        return None
    too_many = TOO_MANY_EXACT if _exact(cells) else TOO_MANY
    if met * too_many > samples and not exhausted:
        return _coarser(cells, samples / ENOUGH, forget=not rewarded)
    often = samples > met * num_actions * (TOO_OFTEN if lately is None else OFTEN_ENOUGH)
    few = lately is None or (lately[1] >= LATELY_LEAST and lately[0] < TOO_FEW * lately[1])
    if rewarded or not (exhausted or (often and few)):
        return None
    finer = cells.finer()
    return None if finer is None else (finer, np.zeros(0, dtype=np.int64))


def _exact(cells: Cells) -> bool:
    """Whether all that can be made coarser are pictures that are compared as they are."""
    if isinstance(cells, JointCells):
        return all(map(_exact, cells.members.values()))
    return not isinstance(cells, (NumberCells, FeatureCells, GridCells)) and not (
        isinstance(cells, PictureCells) and cells.rows is not None
    )


def _coarser(cells: Cells, most: float, *, forget: bool) -> tuple[Cells, Integers] | None:
    """Cells of which not more than ``most`` would have been met, as far as there are any."""
    now: Integers | None = None
    current = cells
    while len(current.discovered()) > most and (made := current.coarser()) is not None:
        coarser, keys = made
        if keys is None:
            return (coarser, np.zeros(0, dtype=np.int64)) if forget else None
        names = list(dict.fromkeys(keys))
        number = {key: place for place, key in enumerate(names)}
        step = np.array([number[key] for key in keys], dtype=np.int64)
        now = step if now is None else step[now]
        current = coarser.recalling(names, growing=True)
    return None if now is None else (current, now)
