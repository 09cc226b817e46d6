"""The same drawing of an MDP many times over, each with other colours: a template, and cheap copies of it.

`draw_mdp` makes an object of each arrow, state and name, which Matplotlib places and draws one by one. Panels that
differ in nothing but colours need that once: here the outlines of all of them are taken from one drawing, and each copy
is a handful of collections. Names are drawn as outlines too, which spares the search for their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path as Curve
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from curious_explorer.arrays import Floats
from curious_explorer.mdp.drawing import INK, draw_mdp, is_dark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    from curious_explorer.mdp.finite_mdp import FiniteMDP

CAPITAL, DESCENT = 0.73, 0.24
"""Height of a capital letter, and how far letters reach below the line, in font sizes."""
HALO = 1.5
"""Points of white around a name that stands on arrows."""


class RepeatedDrawing:
    """An MDP's graph on axes of one size, to be drawn in any colours as often as one likes."""

    def __init__(self, mdp: FiniteMDP, size: tuple[float, float], dpi: float, positions: Floats) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, dpi=dpi)
        template = draw_mdp(mdp, ax=figure.add_axes((0.0, 0.0, 1.0, 1.0)), positions=positions)
        self._limits = template.get_xlim(), template.get_ylim()
        (left, right), inches = template.get_xlim(), template.get_window_extent().width / dpi
        per_point = (right - left) / (72.0 * inches)
        by_kind: dict[str, list[Patch]] = {"edge": [], "state": [], "terminal": [], "start": []}
        for patch in sorted(template.patches, key=lambda patch: patch.get_zorder()):
            by_kind[str(patch.get_gid()).split("-")[0]].append(patch)
        self._states = by_kind["state"]
        self._rings = by_kind["terminal"]
        self._arrows = [*by_kind["edge"], *by_kind["start"]]
        self._widths = [arrow.get_linewidth() for arrow in self._arrows]
        self._parts = [_shaft_and_head(arrow, dpi) for arrow in self._arrows if isinstance(arrow, FancyArrowPatch)]
        self._names: list[tuple[Curve, int | None, Any, bool]] = []
        at = {tuple(map(float, place)): state for state, place in enumerate(positions)}
        for text in template.texts:
            inside = at.get(tuple(map(float, text.get_position())))
            self._names.append((_outline(text, per_point), inside, text.get_color(), text.get_zorder() > 4))

    def draw(self, ax: Axes, fills: Floats, title: str) -> None:
        """A copy on axes of the template's size, the states in these colours, shape (S, 4)."""
        ax.set_xlim(*self._limits[0])
        ax.set_ylim(*self._limits[1])
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_title(title, fontsize=9.0, parse_math=False, pad=3.0, y=1.0)
        colours = [arrow.get_edgecolor() for arrow in self._arrows]
        shafts, heads = zip(*self._parts, strict=True) if self._parts else ((), ())
        self._add(ax, shafts, "none", colours, self._widths, 1.0)
        self._add(ax, heads, colours, colours, self._widths, 1.5)
        self._add(ax, [_placed(ring) for ring in self._rings], "none", INK, self._width(self._rings), 3.0)
        self._add(ax, [_placed(state) for state in self._states], fills, INK, self._width(self._states), 3.0)
        haloed = [outline for outline, _, _, on_arrows in self._names if on_arrows]
        self._add(ax, haloed, "white", "white", 2.0 * HALO, 4.0)
        shades = [colour if inside is None else _ink_on(fills[inside]) for _, inside, colour, _ in self._names]
        self._add(ax, [outline for outline, *_ in self._names], shades, "none", 0.0, 5.0)

    @staticmethod
    def _width(patches: list[Patch]) -> float:
        return float(patches[0].get_linewidth()) if patches else 0.0

    @staticmethod
    def _add(ax: Axes, paths: Sequence[Curve], fill: Any, rim: Any, width: Any, zorder: float) -> None:
        if paths:
            collection = PathCollection(paths, facecolors=fill, edgecolors=rim, linewidths=width, zorder=zorder)
            collection.set_transform(ax.transData)
            ax.add_collection(collection, autolim=False)


def _shaft_and_head(arrow: FancyArrowPatch, dpi: float) -> tuple[Curve, Curve]:
    """The two parts of an arrow's outline, of which only the head is filled."""
    for size in ("linewidth", "mutation_scale"):  # in points, which a path that is asked for before drawing ignores
        arrow.set(**{size: getattr(arrow, f"get_{size}")() * dpi / 72.0})
    path = arrow.get_path()
    assert path.codes is not None
    second = int(np.flatnonzero(np.asarray(path.codes) == Curve.MOVETO)[1])
    points, codes = np.asarray(path.vertices), np.asarray(path.codes)
    return Curve(points[:second], codes[:second]), Curve(points[second:], codes[second:])


def _placed(patch: Patch) -> Curve:
    return patch.get_patch_transform().transform_path(patch.get_path())


def _outline(text: Text, per_point: float) -> Curve:
    """The letters of a text where it stands, in the units of the axes."""
    size = float(text.get_fontsize())
    # As text, not as mathematics: a name may contain a dollar sign.
    outline = TextPath((0.0, 0.0), text.get_text().replace("$", r"\$"), size=size, prop=FontProperties())
    across = np.asarray(outline.vertices)[:, 0]
    low, high = (float(across.min()), float(across.max())) if len(across) else (0.0, 0.0)
    left = {"center": (low + high) / 2.0, "left": low, "right": high}[text.get_horizontalalignment()]
    upright = text.get_verticalalignment()
    line = {"center_baseline": CAPITAL / 2.0, "center": CAPITAL / 2.0, "top": CAPITAL, "bottom": -DESCENT}[upright]
    x, y = map(float, text.get_position())
    to_its_place = Affine2D().translate(-left, -line * size).scale(per_point).translate(x, y)
    return to_its_place.transform_path(outline)


def _ink_on(fill: Floats) -> str:
    return "white" if is_dark(fill) else INK
