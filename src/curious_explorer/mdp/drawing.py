"""Drawings of an MDP's graph, made for a printed page: from the start at the left, structure before detail.

An arrow stands for all actions that lead from one state to another; its width and its strength show how likely the
uniform policy takes it, its colour that it pays. A double ring is a terminal state, an arrow from nowhere a start.

Only Matplotlib's objects are used, never pyplot, so that drawing has no side effects on the caller's figures.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.mdp.layout import layout_states
from curious_explorer.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable


PAGE_WIDTH, PAGE_HEIGHT = 7.0, 9.0
"""Inches of a printed page: the largest drawing, unless states would come closer than SMALLEST_UNIT."""
LARGEST_UNIT, SMALLEST_UNIT = 0.8, 0.16
"""Inches between neighbouring layers."""
MARGIN = (0.95, 0.8)
"""Units around the outermost states."""
TITLE_ROOM, BAR_ROOM = 0.3, 0.7
"""Inches beside the drawing for a title and for a colour bar."""
FLAT = 3.0
"""How many times wider than high a drawing is when its colour bar lies below it rather than at its right."""


def draw_mdp(
    mdp: FiniteMDP,
    *,
    ax: Axes | None = None,
    values: ArrayLike | None = None,
    cmap: Any = "RdYlGn",
    vmin: float | None = None,
    vmax: float | None = None,
    values_label: str | None = None,
    colorbar: bool = True,
    positions: ArrayLike | None = None,
    path: str | Path | None = None,
    title: str | None = None,
    max_states: int = 2000,
) -> Axes:
    """Draw the graph of an MDP and return the axes.

    Args:
        mdp: what to draw.
        ax: where to draw; a new figure of a fitting size if None.
        values: one number for each state, shape (S,), shown as its colour, with a colour bar.
        cmap: Matplotlib's colour map for the values.
        vmin: the value at the low end of the colour map; the smallest of ``values`` if None.
        vmax: the value at the high end of the colour map; the largest of ``values`` if None.
        values_label: what the colour bar measures.
        colorbar: whether to draw one; panels that share their colours need only one.
        positions: where the states are, shape (S, 2), such as `layout_states` returns (computed if None).
        path: also save the figure there; the ending decides the format (png, pdf, svg).
        title: a title for the axes.
        max_states: refuse larger MDPs, whose drawing nobody could read.
    """
    from curious_explorer.mdp import marks

    if mdp.num_states > max_states:
        raise ValueError(
            f"the MDP has {mdp.num_states} states, and drawings stop at max_states={max_states}, where nobody could "
            "read them; draw a smaller instance of the same problem, or raise max_states"
        )
    shades = None if values is None else _check_shape(values, (mdp.num_states,), "values")
    places = layout_states(mdp) if positions is None else _check_shape(positions, (mdp.num_states, 2), "positions")
    if path is not None:
        _check_ending(Path(path))
    if ax is None:
        ax = _new_axes(places, has_bar=shades is not None and colorbar, has_title=title is not None)
    _prepare(ax, places, title)
    unit = _inches_per_unit(ax)
    marks.draw_edges(ax, mdp, places, unit)
    fills = None
    if shades is not None:
        colours = _mappable(shades, cmap, vmin, vmax)
        fills = np.asarray(colours.to_rgba(shades))
        if colorbar:
            _draw_bar(ax, places, colours, values_label)
    marks.draw_states(ax, mdp, places, unit, fills)
    marks.draw_labels(ax, mdp, places, unit, fills)
    if path is not None:
        _save(ax, Path(path))
    return ax


def _check_shape(given: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(given, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite at state {np.argwhere(~np.isfinite(array))[0][0]}, expected numbers")
    return array


def _extent(places: Floats) -> tuple[Floats, Floats]:
    """The corners of the drawing, with room for start arrows, loops and labels beside the outermost states."""
    margin = np.array(MARGIN)
    low: Floats = places.min(axis=0) - margin
    high: Floats = places.max(axis=0) + margin
    return low, high


def _is_flat(places: Floats) -> bool:
    low, high = _extent(places)
    return bool(high[0] - low[0] > FLAT * (high[1] - low[1]))


def _new_axes(places: Floats, *, has_bar: bool, has_title: bool) -> Axes:
    """Axes on a figure of their own, as large as the drawing needs and a page allows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    low, high = _extent(places)
    width, height = (high - low) * max(SMALLEST_UNIT, min(LARGEST_UNIT, *((PAGE_WIDTH, PAGE_HEIGHT) / (high - low))))
    right = BAR_ROOM if has_bar and not _is_flat(places) else 0.0
    below = BAR_ROOM if has_bar and _is_flat(places) else 0.0
    whole_width = max(2.0, width) + right
    whole_height = height + below + (TITLE_ROOM if has_title else 0.0)
    figure = Figure(figsize=(whole_width, whole_height), dpi=200)
    FigureCanvasAgg(figure)
    box = (0.0, below / whole_height, 1.0 - right / whole_width, height / whole_height)
    return figure.add_axes(box)


def _prepare(ax: Axes, places: Floats, title: str | None) -> None:
    low, high = _extent(places)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title, fontsize=9.0, parse_math=False, pad=3.0)


def _inches_per_unit(ax: Axes) -> float:
    box = ax.get_window_extent()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    dots = min(box.width / abs(right - left), box.height / abs(top - bottom))
    return float(dots / ax.figure.dpi)


def _mappable(shades: Floats, cmap: Any, vmin: float | None, vmax: float | None) -> ScalarMappable:
    from matplotlib import cm, colormaps
    from matplotlib.colors import Normalize

    norm = Normalize(shades.min() if vmin is None else vmin, shades.max() if vmax is None else vmax)
    return cm.ScalarMappable(norm, colormaps.get_cmap(cmap))


def _draw_bar(ax: Axes, places: Floats, mappable: ScalarMappable, label: str | None) -> None:
    """A colour bar beside the drawing that says what the colours mean."""
    low, high = _extent(places)
    width, height = high - low
    unit = _inches_per_unit(ax)
    thickness, gap = 0.1 / unit, 0.02 / unit  # 0.1 inch and little space
    if _is_flat(places):
        place, orientation = (0.1, -(thickness + gap) / height, 0.8, thickness / height), "horizontal"
    else:
        place, orientation = (1.0 + gap / width, 0.1, thickness / width, 0.8), "vertical"
    bar = ax.figure.colorbar(mappable, cax=ax.inset_axes(place), orientation=orientation)
    bar.ax.tick_params(labelsize=7, length=2.0, width=0.5)
    bar.outline.set_linewidth(0.5)
    if label is not None:
        bar.set_label(label, fontsize=8, parse_math=False)


def _check_ending(path: Path) -> None:
    from matplotlib.backend_bases import FigureCanvasBase

    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().lstrip(".") not in known:
        raise ValueError(f"{str(path)!r} ends in {path.suffix!r}, expected one of .{', .'.join(known)}")


def _save(ax: Axes, path: Path) -> None:
    buffer = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that were drawn on are on a figure
    figure.savefig(buffer, format=path.suffix.lower().lstrip("."))
    write_atomically(path, buffer.getvalue())
