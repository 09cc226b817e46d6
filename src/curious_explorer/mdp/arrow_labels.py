"""What stands beside the arrows of a small MDP's drawing: which actions take them, and how likely they do.

A label looks for a place along its arrow, on either side, where it lies on no state and on no other label; where there
is none, it is left out. "rest" is an action that leads there for sure, "climb 0.7" one that does so seven times in ten,
and "any" stands for all actions alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.path import Path as Curve

from curious_explorer.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from curious_explorer.mdp.finite_mdp import FiniteMDP

MOST_STATES, MOST_ARROWS = 12, 40
"""Larger drawings have no room."""
ROOM = (1.6, 1.2)
"""How much farther apart states stand where arrows have labels."""
FONT = 6.5
"""Points."""
LINE = 1.25
"""Height of a line, in font sizes."""
GAP = 0.04
"""Between an arrow and its label, in units of the distance between layers."""
PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.82)
"""Where along an arrow a label may stand, the best first."""
ALONG = np.linspace(0.0, 1.0, 25)
"""Where arrows are looked at, so that no label lies on one."""
MOST_LETTERS = 24
COLOUR = "#475569"


class Box(NamedTuple):
    """A rectangle by its middle and half of its sides."""

    x: float
    y: float
    half_width: float
    half_height: float

    def meets(self, other: Box) -> bool:
        """Whether two lie on each other."""
        across, up = abs(self.x - other.x), abs(self.y - other.y)
        return across < self.half_width + other.half_width and up < self.half_height + other.half_height

    def holds_any(self, points: Floats) -> bool:
        """Whether any of some points, shape (N, 2), lies in it."""
        away = np.abs(points - (self.x, self.y))
        return bool(((away[:, 0] < self.half_width) & (away[:, 1] < self.half_height)).any())

    def meets_circle(self, place: Floats, radius: float) -> bool:
        """Whether it lies on a circle."""
        across = max(abs(float(place[0]) - self.x) - self.half_width, 0.0)
        up = max(abs(float(place[1]) - self.y) - self.half_height, 0.0)
        return bool(np.hypot(across, up) < radius)


def has_room_for_labels(mdp: FiniteMDP, arrows: int) -> bool:
    """Whether labels of arrows can be read in a drawing of this MDP."""
    return mdp.num_states <= MOST_STATES and arrows <= MOST_ARROWS


def arrow_texts(mdp: FiniteMDP) -> dict[tuple[int, int], str]:
    """The label of each arrow, by its tail and its head."""
    rows, taken = mdp.transitions, dict[tuple[int, int], list[tuple[float, str]]]()
    for row in range(rows.shape[0]):
        tail, action = divmod(row, mdp.num_actions)
        for at in range(rows.indptr[row], rows.indptr[row + 1]):
            if rows.data[at] > 0.0:
                found = taken.setdefault((tail, int(rows.indices[at])), [])
                found.append((round(float(rows.data[at]), 9), _name(mdp.action_names[action])))
    return {arrow: _text(actions, mdp.num_actions) for arrow, actions in taken.items()}


def _name(action: str) -> str:
    """The name of an action, which is not taken for a probability."""
    return f"a{action}" if action.isdecimal() else action


def _text(actions: Sequence[tuple[float, str]], num_actions: int) -> str:
    lines = []
    for chance, alike in groupby(sorted(actions, key=lambda each: -each[0]), key=lambda each: each[0]):
        names = [name for _, name in alike]
        words = "any" if len(names) == num_actions and num_actions > 1 else ", ".join(names)
        lines.append(words if chance == 1.0 else f"{words} {chance:.2g}")
    return "\n".join(lines)


def label_arrows(
    ax: Axes,
    texts: Mapping[tuple[int, int], str],
    curves: Mapping[tuple[int, int], Curve],
    places: Floats,
    radius: float,
    per_point: float,
    taken: Sequence[Box],
    width_of: Callable[[str], float],
) -> None:
    """Write the labels for which there is room.

    Args:
        ax: where to.
        texts: see `arrow_texts`.
        curves: the arrows.
        places: of the states.
        radius: of a state, with its ring.
        per_point: units of the drawing in a point.
        taken: where other labels are already.
        width_of: how wide a text is, in multiples of its font size.
    """
    occupied = list(taken)
    drawn = np.array([_point(np.asarray(curve.vertices), along)[0] for curve in curves.values() for along in ALONG])
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    unit = FONT * per_point
    for arrow, curve in curves.items():
        lines = texts[arrow].split("\n")
        if max(map(len, lines)) > MOST_LETTERS:
            continue
        half = 0.5 * max(map(width_of, lines)) * unit, 0.5 * LINE * len(lines) * unit
        for x, y in _candidates(curve, half):
            box = Box(x, y, *half)
            outside = x - half[0] < left or x + half[0] > right or y - half[1] < bottom or y + half[1] > top
            if outside or box.holds_any(drawn) or any(map(box.meets, occupied)):
                continue
            if any(box.meets_circle(place, radius) for place in places):
                continue
            occupied.append(box)
            text = ax.text(
                x, y, "\n".join(lines), fontsize=FONT, color=COLOUR, ha="center", va="center", zorder=5,
                parse_math=False, linespacing=LINE - 0.25,
            )  # fmt: skip
            text.set_gid(f"label-{arrow[0]}-{arrow[1]}")
            break


def _candidates(curve: Curve, half: tuple[float, float]) -> list[tuple[float, float]]:
    """Where a label of this size may stand beside a curve, the best place first."""
    points = np.asarray(curve.vertices)
    found = []
    for side in (1.0, -1.0):
        for along in PLACES:
            at, direction = _point(points, along)
            normal = side * np.array([-direction[1], direction[0]]) / max(float(np.hypot(*direction)), 1e-12)
            if len(points) == 3 and abs(normal[1]) > 0.2 and np.allclose(points[1], (points[0] + points[2]) / 2.0):
                normal = normal * np.sign(normal[1]) * side  # above a straight arrow first
            away = abs(normal[0]) * half[0] + abs(normal[1]) * half[1] + GAP
            found.append((float(at[0] + away * normal[0]), float(at[1] + away * normal[1])))
    return found


def _point(points: Floats, along: float) -> tuple[Floats, Floats]:
    """A point of a quadratic or cubic curve, and its direction there."""
    rest = points
    while len(rest) > 2:
        rest = (1.0 - along) * rest[:-1] + along * rest[1:]
    return (1.0 - along) * rest[0] + along * rest[1], rest[1] - rest[0]
