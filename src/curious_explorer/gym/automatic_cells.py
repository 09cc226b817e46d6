"""Cells chosen by a look at an environment, for every space that Gymnasium has.

    one whole number                        its own cell
    what a MiniGrid shows of itself         the grid's symbolic state, of which an observation is only a part
    symbols (whole numbers, few values)     a cell for each distinct content
    up to `MOST_NUMBERS` numbers            a grid, scaled by what was seen
    more numbers                            a few features of them, and a cover of what is met
    pictures                                each distinct one, or made small and grey where too many are distinct
    several kinds                           a cell for each combination
    text                                    left out, unless there is nothing else

What is noise or a clock is left out and named (`observation_look`).

**How fine.** Cells are as fine as they can be with not more than one cell for every `STEPS_A_CELL` steps of the look,
and for pictures by the published criterion of Go-Explore: an even spread over about an eighth as many cells as there
are steps (Ecoffet et al. 2021, equation 1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.errors import CellError
from curious_explorer.gym.cells import Cells, Env, GridCells, default_cells
from curious_explorer.gym.coded_cells import ROOM, JointCells, NumberCells, SymbolCells
from curious_explorer.gym.colour_places import PlaceCells
from curious_explorer.gym.discovered_cells import MiniGridCells
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.feature_cells import FeatureCells
from curious_explorer.gym.learned_features import fit_features, held_for
from curious_explorer.gym.memory import advised_memory
from curious_explorer.gym.network_inputs import Part, parts_of
from curious_explorer.gym.observation_look import LeftOut, Look, left_out, look_around, repeat_walks, table
from curious_explorer.gym.observation_reader import Numbers, Read
from curious_explorer.gym.picture_cells import SIZES, PictureCells, channels_first, height_of
from curious_explorer.gym.steered_places import places_in

LOOK = 1_300
"""Steps of the look, those of repeated walks included."""
LEAST_LOOK = 24
"""Fewer steps tell nothing."""
MOST_NUMBERS = 8
"""From more numbers than this features are made."""
MOST_SYMBOLS = 32
"""Whole numbers of more different values than this are numbers rather than symbols."""
ALL_DIFFERENT = 0.5
"""Symbols and pictures are compared as they are unless more than this share of the look's observations differ."""
STEPS_A_CELL = 10
MOST_BINS, MOST_BINS_IN_ALL = 32, 100
PICTURE_SHARE = 0.125
"""Of small pictures there should be so many times as many as steps: the published value."""
SMALLEST_PICTURE = 8
HOLDS, FEWEST_HELD = (1, 2, 4, 8, 16), 30
SELDOM, OFTEN_ENOUGH = 0.1, 0.3
"""Where fewer than one step in ten leads to another cell, actions are held for so long that three in ten do."""
HALF = 0.5
WIDE_ENOUGH = 0.1
"""Bounds of a space are believed where what was seen takes up at least this share of them."""


class Chosen(NamedTuple):
    """Cells, and why."""

    cells: Cells
    hold: int
    """For how many steps to hold an action."""
    notes: list[str]
    """Sentences about what was left out, and what to know."""
    steps: int
    """How many steps the look took."""
    memory: int = 0
    """How many earlier contents of observations are worth remembering; see `advised_memory`."""
    repeats: bool = False
    """Whether walks by the same actions from the same start came through the same cells."""
    lives: bool = False
    """Whether exploring should end episodes when a life is lost; see `one_life`."""


def choose_cells(
    env: Env,
    discretisation: Discretisation,
    seed: int,
    layouts: tuple[int, ...] = (),
    *,
    look: int = LOOK,
    max_cells: int = ROOM,
    hold: int = 1,
) -> Chosen:
    """Cells for an environment.

    Args:
        env: the environment.
        discretisation: its actions; its cells are not looked at.
        seed: of the random actions.
        layouts: see `GymWorld`.
        look: the most steps to take.
        max_cells: the room for cells that are discovered.
        hold: for how many steps to hold an action at least, where cells are bins of numbers and one step alone seldom
            leads to another.
    """
    space = env.observation_space
    if isinstance(space, spaces.Discrete):
        return Chosen(default_cells(space), 1, [], 0)
    if shows_minigrid(env):
        notes = ["An observation of a MiniGrid shows only what is in view, so the grid itself is looked at."]
        if not layouts and draws_layouts(env, seed):
            notes.append(
                "Every reset draws another grid, and cells do not tell grids apart: give GymWorld layout= for one of "
                "them (explore --layout 0), or layouts= for many (solve --layouts 64)."
            )
        return Chosen(MiniGridCells(max_cells, things=True), 1, notes, 0)
    if look < LEAST_LOOK:
        raise CellError(
            f"{look} steps are too few to choose cells for observations in {space}; allow at least {LEAST_LOOK}, or "
            "give GymWorld cells=..., on the command line --cells"
        )
    repeated, steps = repeat_walks(env, discretisation, seed, look // 4, layouts)
    seen = look_around(env, discretisation, look - steps, seed, layouts)
    chosen = _Choice(space, seen, repeated, max_cells)
    cells = chosen.cells()
    found = _cells_of(cells, seen)
    repeats = _repeats(cells, repeated)
    memory = advised_memory(found, seen.actions) if _tells_all(cells) and repeats else 0
    if seen.lives:
        chosen.notes.append("While exploring an episode ends when a life is lost.")
    held, taken = steps_to_hold(found, seen.actions, hold if bins_numbers(cells) else 1), seen.steps + steps
    return Chosen(cells, held, chosen.notes, taken, memory, repeats, seen.lives)


def bins_numbers(cells: Cells) -> bool:
    """Whether cells are bins of numbers, so that states share one from which the same action leads elsewhere."""
    members = cells.members.values() if isinstance(cells, JointCells) else (cells,)
    return any(isinstance(each, (NumberCells, GridCells, FeatureCells)) for each in members)


def _cells_of(cells: Cells, look: Look) -> list[int]:
    """The cell of every observation of a look."""
    scratch = cells.recalling([], growing=True)
    scratch.let_room_grow()
    return [scratch.index(observation, None) for observation in look.observations]


def _tells_all(cells: Cells) -> bool:
    """Whether observations that differ in anything but noise have cells that differ."""
    if isinstance(cells, JointCells):
        return all(map(_tells_all, cells.members.values()))
    return isinstance(cells, SymbolCells) or (isinstance(cells, PictureCells) and cells.rows is None)


def _repeats(cells: Cells, repeated: Sequence[tuple[list[Any], list[Any]]]) -> bool:
    """Whether the same actions have always led to the same cells."""
    scratch = cells.recalling([], growing=True)
    scratch.let_room_grow()
    return all(
        [scratch.index(observation, None) for observation in first]
        == [scratch.index(observation, None) for observation in second]
        for first, second in repeated
    )


def steps_to_hold(cells: Sequence[int], looked: Sequence[int], least: int = 1) -> int:
    """For how many steps an action must be held so that it leads to another cell often; 1 if that is no help.

    Args:
        cells: of the observations of a look.
        looked: the actions between them.
        least: hold at least so long where fewer than half of single steps lead to another cell.
    """
    found, actions = np.array(cells), np.array(looked)
    best, first = 1, None
    for hold in HOLDS:
        places = held_for(actions, hold)
        if len(places) < FEWEST_HELD:
            break
        moved = float((found[places] != found[places + hold]).mean())
        if first is None:
            first = moved
            best = least if moved < HALF else 1
        if first >= SELDOM:
            break
        best = max(best, hold) if moved > 2.0 * first else best
        if moved >= OFTEN_ENOUGH:
            break
    return best


def shows_minigrid(env: Env) -> bool:
    """Whether observations are those that a MiniGrid makes of its own, not what a wrapper makes of it."""
    bare: Any = env.unwrapped
    return hasattr(bare, "agent_pos") and hasattr(bare, "gen_obs") and env.observation_space == bare.observation_space


def draws_layouts(env: Env, seed: int) -> bool:
    """Whether a MiniGrid has other things in other places after another reset."""
    bare: Any = env.unwrapped
    grids = []
    for each in (seed, seed + 1, seed + 2):
        env.reset(seed=each)
        grids.append(bare.grid.encode().tobytes())
    return len(set(grids)) > 1


class _Choice:
    """One choice of cells, from what was seen."""

    def __init__(
        self, space: spaces.Space[Any], look: Look, repeated: Sequence[tuple[list[Any], list[Any]]], max_cells: int
    ) -> None:
        self._space, self._look, self._max_cells = space, look, max_cells
        self.notes: list[str] = []
        self._symbols: list[Read] = []
        self._numbers: list[tuple[Part, Read]] = []
        self._pictures: list[tuple[Part, LeftOut]] = []
        text: list[Part] = []
        for part in parts_of(space):
            if isinstance(part.space, spaces.Text):
                text.append(part)
                continue
            out = left_out(part, look, repeated)
            self._tell(part, out)
            if len(out.all) < max(1, math.prod(part.space.shape or ())):
                self._sort(part, out)
        if text and self._anything:
            self.notes.append(f"Text is left out: {', '.join(part.name for part in text)}.")
        elif text:
            self._symbols = [Read(part.path) for part in text]
        if not self._anything:
            raise CellError(
                f"nothing is left of observations in {space} to tell cells apart by: {' '.join(self.notes)} Give "
                "GymWorld cells=FunctionCells(function, count), or HashedCells(key=function)"
            )

    @property
    def _anything(self) -> bool:
        return bool(self._symbols or self._numbers or self._pictures)

    def _tell(self, part: Part, out: LeftOut) -> None:
        """Name what is left out."""
        whole = max(1, math.prod(part.space.shape or ()))
        for places, why in (
            (out.noise, "other values where the same actions are repeated, and each says nothing about the next"),
            (out.clocks, "up, or down, in every step"),
        ):
            if places:
                which = "all" if len(places) == whole else f"{len(places):,} of {whole:,} elements"
                shown = (
                    "" if whole == 1 else f" ({', '.join(map(str, places[:8]))}{', ...' if len(places) > 8 else ''})"
                )
                self.notes.append(f"Left out of {part.name}: {which}{shown}, {why}.")

    def _sort(self, part: Part, out: LeftOut) -> None:
        """Take a part for symbols, numbers or a picture."""
        size = math.prod(part.space.shape or ())
        kept = None if not out.all else tuple(place for place in range(size) if place not in set(out.all))
        read = Read(part.path, kept)
        if _is_picture(part.space):
            self._pictures.append((part, out))
        elif not isinstance(part.space, spaces.Box) or _are_symbols(part, self._look):
            self._symbols.append(read)
        else:
            self._numbers.append((part, read))

    def cells(self) -> Cells:
        """Cells for all parts together."""
        members: dict[str, Cells] = {}
        if self._symbols and self._too_many_symbols():
            self._make_numbers_of_symbols()
        if self._symbols:
            members["symbols"] = SymbolCells(self._symbols, max_cells=self._max_cells)
        if self._numbers:
            members["numbers"] = self._number_cells()
        for part, out in self._pictures:
            members[part.name] = self._picture_cells(part, out)
        if len(members) == 1:
            (cells,) = members.values()
            return cells
        return JointCells(members, max_cells=self._max_cells)

    # Symbols --------------------------------------------------------------------------------------------------------

    def _too_many_symbols(self) -> bool:
        cells = SymbolCells(self._symbols)
        codes = Counter(cells.code(observation) for observation in self._look.observations)
        return len(codes) > ALL_DIFFERENT * len(self._look.observations)

    def _make_numbers_of_symbols(self) -> None:
        """Numbers can be made coarser, symbols cannot."""
        parts = {part.path: part for part in parts_of(self._space)}
        boxes = [read for read in self._symbols if _is_numeric(parts[read.path].space)]
        self._symbols = [read for read in self._symbols if read not in boxes]
        self._numbers.extend((parts[read.path], read) for read in boxes)
        if boxes:
            self.notes.append("Nearly every observation differed from all others, so whole numbers are binned, too.")
        if self._symbols and self._too_many_symbols():
            self.notes.append(
                "Nearly every observation differs from all others, so that exploring by counts will not get far; give "
                "cells=HashedCells(key=function) with a function that says what matters of an observation."
            )

    # Numbers --------------------------------------------------------------------------------------------------------

    def _number_cells(self) -> Cells:
        reads = [read for _, read in self._numbers]
        numbers = Numbers(reads)
        seen = np.array([numbers(observation) for observation in self._look.observations])
        if seen.shape[1] > MOST_NUMBERS:
            finite = np.where(np.isfinite(seen), seen, 0.0)
            return fit_features(finite, self._look, reads, STEPS_A_CELL, max_cells=self._max_cells)
        obvious = self._obvious_grid(seen)
        if obvious is not None:
            return obvious
        bounds = np.concatenate([_bounds(part, read) for part, read in self._numbers])
        widths = fit_widths(seen, bounds, self._look.steps)
        return NumberCells(widths.tolist(), reads, max_cells=self._max_cells)

    def _obvious_grid(self, seen: Floats) -> Cells | None:
        """The grid over a space with bounds, where they are believed and it is not too fine."""
        (part, read), *others = self._numbers
        if others or read != Read() or self._symbols or self._pictures:
            return None
        try:
            cells = default_cells(self._space)
        except CellError:
            return None
        space: Any = part.space
        wide = np.ptp(seen, axis=0) >= WIDE_ENOUGH * (space.high - space.low).ravel()
        return cells if bool(wide.all()) else None

    # Pictures -------------------------------------------------------------------------------------------------------

    def _picture_cells(self, part: Part, out: LeftOut) -> Cells:
        seen = self._look.observations
        most = 255.0 if part.space.dtype == np.uint8 else float(np.max(getattr(part.space, "high", 1.0)))
        most = most if math.isfinite(most) else max(1.0, float(table(part, seen).max()))
        given: dict[str, Any] = {"path": part.path, "noise": out.all, "most": most, "max_cells": self._max_cells}
        exact = PictureCells(None, **given)
        if len({exact.code(observation) for observation in seen}) <= ALL_DIFFERENT * len(seen):
            return exact
        places = places_in(self._look, path=part.path, noise=out.all, most=most)
        if places is not None:
            rows = np.array([places(observation) for observation in seen])
            widths = fit_widths(rows, np.ones(rows.shape[1]), self._look.steps)
            return PlaceCells(widths.tolist(), places, max_cells=self._max_cells)
        sizes = [(rows, levels) for rows, levels in SIZES if rows <= height_of(part.space.shape or (1,))]
        fits = [PictureCells(rows, levels, **given) for rows, levels in sizes or SIZES[-1:]]
        return max(fits, key=lambda cells: picture_fit([cells.code(observation) for observation in seen]))


def picture_fit(codes: Sequence[Any]) -> float:
    """How good cells of pictures are: evenly used, and about `PICTURE_SHARE` as many as pictures (larger is better)."""
    counts = np.array(list(Counter(codes).values()), dtype=np.float64)
    if len(counts) < 2:
        return 0.0
    shares = counts / counts.sum()
    evenness = float(-(shares * np.log(shares)).sum() / np.log(len(shares)))
    return evenness / math.sqrt(abs(len(counts) / (PICTURE_SHARE * len(codes)) - 1.0) + 1.0)


def fit_widths(seen: Floats, bounds: Floats, steps: int) -> Floats:
    """Widths of bins such that what was seen takes up as many cells as it may, shape (numbers,).

    All numbers are cut into equally many bins of what was seen of them, save for the rarest values at either end; but
    not into more than `MOST_BINS_IN_ALL` between their bounds.
    """
    least = np.where(np.isfinite(bounds), bounds, 0.0) / MOST_BINS_IN_ALL
    seen = np.where(np.isfinite(seen), seen, np.median(np.where(np.isfinite(seen), seen, 0.0), axis=0))
    low, high = np.quantile(seen, 0.01, axis=0), np.quantile(seen, 0.99, axis=0)
    full = np.ptp(seen, axis=0)
    ranges = np.where(high - low > 1e-9 * np.maximum(1.0, np.abs(high)), high - low, full)
    still = ranges <= 0.0
    ranges = np.where(still, np.where(np.isfinite(bounds), bounds, 1.0), ranges)
    for bins in range(MOST_BINS, 1, -1):
        widths = np.where(still, ranges / 4, np.maximum(ranges / bins, least))
        places = np.floor(seen / widths)
        if len(np.unique(places, axis=0)) <= max(16.0, steps / STEPS_A_CELL):
            break
    return np.asarray(widths)


def _bounds(part: Part, read: Read) -> Floats:
    """How far apart the bounds of each number are, shape (numbers,)."""
    space: Any = part.space
    low, high = (np.asarray(getattr(space, name, np.zeros(space.shape)), dtype=np.float64) for name in ("low", "high"))
    with np.errstate(over="ignore"):
        apart: Floats = np.atleast_1d((high - low).ravel())
    apart = np.where((apart > 0.0) & (apart < 1e6), apart, np.inf)
    return apart if read.kept is None else apart[list(read.kept)]


def _is_picture(space: spaces.Space[Any]) -> bool:
    shape = space.shape or ()
    first = channels_first(shape)
    if not isinstance(space, spaces.Box) or len(shape) not in (2, 3) or min(shape[first:][:2]) < SMALLEST_PICTURE:
        return False
    return (len(shape) == 3 and shape[0 if first else 2] in (1, 3, 4)) or space.dtype == np.uint8


def _is_numeric(space: spaces.Space[Any]) -> bool:
    return isinstance(space, (spaces.Box, spaces.MultiDiscrete, spaces.Discrete))


def _are_symbols(part: Part, look: Look) -> bool:
    """Whether all elements of a box are whole numbers of few different values."""
    values = table(part, look.observations)
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.floor(values)).all()):
        return False
    ranges = values.max(axis=0).astype(np.float64) - values.min(axis=0).astype(np.float64)
    return bool((ranges < MOST_SYMBOLS).all())
