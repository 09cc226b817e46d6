"""Drawings of an MDP's graph, made for a printed page: from the start at the left, structure before detail.

An arrow stands for all actions that lead from one state to another; its width and its strength show how likely the
uniform policy takes it, its colour that it pays. A double ring is a terminal state, an arrow from nowhere a start.
Where things stand is found in `curious_explorer.mdp.layout`; lengths here are in units of the distance between layers.

Only Matplotlib's objects are used, never pyplot, so that drawing has no side effects on the caller's figures.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import cm, colormaps
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path as Curve
from matplotlib.textpath import TextPath
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.mdp.arrow_labels import ROOM, Box, arrow_texts, has_room_for_labels, label_arrows
from curious_explorer.mdp.layout import Edges, edges_of, layout_states
from curious_explorer.storage import write_atomically
from curious_explorer.validation import check_finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from curious_explorer.mdp.finite_mdp import FiniteMDP

PAGE_WIDTH, PAGE_HEIGHT = 7.0, 9.0
"""Inches of a printed page: the largest drawing, unless states would come closer than SMALLEST_UNIT."""
LARGEST_UNIT, SMALLEST_UNIT = 0.8, 0.16
"""Inches between neighbouring layers."""
MARGIN = (0.95, 0.8)
"""Units around the outermost states."""
LABELLED_MARGIN = (0.95, 1.1)
"""The same where arrows have labels, which stand above loops and below arrows that pass around."""
TITLE_ROOM, BAR_ROOM = 0.3, 0.7
"""Inches beside the drawing for a title and for a colour bar."""
FLAT = 3.0
"""How many times wider than high a drawing is when its colour bar lies below it rather than at its right."""
RADIUS = 0.31
"""Of a state, where neighbouring layers are 1 apart."""
OUTER_RING = 1.2
"""Radius of a terminal state's second ring, in radii; outside, so that no fill hides it."""
LARGEST_FONT, SMALLEST_FONT = 9.0, 4.5
"""Points. A label that would have to be smaller moves under its state; where even short ones would, there are none."""
MOST_REWARD_LABELS = 24
"""If there would be more, the colour of the arrows has to say it."""
Corners = tuple[Floats, Floats]
"""The lowest and the highest coordinates of a drawing."""
INK, PAPER = "#1f2933", "#eef2f6"
PAYS, COSTS = "#c2410c", "#6d28d9"


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
    actions: bool | None = None,
) -> Axes:
    """Draw the graph of an MDP and return the axes.

    Args:
        ax: where to draw; a new figure of a fitting size if None.
        values: one number for each state, shape (S,), shown as its colour, with a colour bar.
        vmin: the value at the low end of the colour map; the smallest of ``values`` if None.
        vmax: the value at the high end of the colour map; the largest of ``values`` if None.
        values_label: what the colour bar measures.
        colorbar: whether to draw one; panels that share their colours need only one.
        positions: where the states are, shape (S, 2), such as `layout_states` returns (computed if None).
        path: also save the figure there; the ending decides the format (png, pdf, svg).
        max_states: refuse larger MDPs, whose drawing would be unreadable.
        actions: whether to write beside arrows which actions take them and how likely; by default in a figure of its
            own, where the MDP is small enough for them to be read.
    """
    if mdp.num_states > max_states:
        raise ValueError(
            f"the MDP has {mdp.num_states} states, and drawings stop at max_states={max_states}, where nobody could "
            "read them; draw a smaller instance of the same problem, or raise max_states"
        )
    shades = None if values is None else check_finite(values, (mdp.num_states,), "values")
    places = (
        layout_states(mdp)
        if positions is None
        else check_finite(positions, (mdp.num_states, 2), "positions", ("state", "axis"))
    )
    edges = edges_of(mdp)
    if actions is None:
        actions = ax is None and has_room_for_labels(mdp, len(edges.tail))
    if actions and positions is None:
        places = places * ROOM
    corners = _extent(places, LABELLED_MARGIN if actions else MARGIN)
    if path is not None:
        _check_ending(Path(path))
    if ax is None:
        ax = _new_axes(corners, has_bar=shades is not None and colorbar, has_title=title is not None)
    _prepare(ax, corners, title)
    unit = _inches_per_unit(ax)
    curves = _draw_edges(ax, mdp, edges, places, unit)
    rewards = _label_rewards(ax, edges, places, unit)
    fills = None
    if shades is not None:
        colours = _mappable(shades, cmap, vmin, vmax)
        fills = np.asarray(colours.to_rgba(shades))
        if colorbar:
            _draw_bar(ax, corners, colours, values_label)
    _draw_states(ax, mdp, places, unit, fills)
    _draw_labels(ax, mdp, places, unit, fills)
    if actions:
        label_arrows(ax, arrow_texts(mdp), curves, places, OUTER_RING * RADIUS, 1.0 / (72.0 * unit), rewards, _width_of)
    if path is not None:
        _save(ax, Path(path))
    return ax


def _extent(places: Floats, margin: tuple[float, float]) -> Corners:
    """The corners of the drawing, with room for start arrows, loops and labels beside the outermost states."""
    low: Floats = places.min(axis=0) - margin
    high: Floats = places.max(axis=0) + margin
    return low, high


def _is_flat(corners: Corners) -> bool:
    low, high = corners
    return bool(high[0] - low[0] > FLAT * (high[1] - low[1]))


def _new_axes(corners: Corners, *, has_bar: bool, has_title: bool) -> Axes:
    """Axes on a figure of their own, as large as the drawing needs and a page allows."""
    low, high = corners
    width, height = (high - low) * max(SMALLEST_UNIT, min(LARGEST_UNIT, *((PAGE_WIDTH, PAGE_HEIGHT) / (high - low))))
    right = BAR_ROOM if has_bar and not _is_flat(corners) else 0.0
    below = BAR_ROOM if has_bar and _is_flat(corners) else 0.0
    whole_width = max(2.0, width) + right
    whole_height = height + below + (TITLE_ROOM if has_title else 0.0)
    figure = Figure(figsize=(whole_width, whole_height), dpi=200)
    FigureCanvasAgg(figure)
    box = (0.0, below / whole_height, 1.0 - right / whole_width, height / whole_height)
    return figure.add_axes(box)


def _prepare(ax: Axes, corners: Corners, title: str | None) -> None:
    low, high = corners
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title, fontsize=9.0, parse_math=False, pad=3.0, y=1.0)  # where it is, so that nothing searches


def _inches_per_unit(ax: Axes) -> float:
    box = ax.get_window_extent()
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    dots = min(box.width / abs(right - left), box.height / abs(top - bottom))
    return float(dots / ax.figure.dpi)


def _mappable(shades: Floats, cmap: Any, vmin: float | None, vmax: float | None) -> cm.ScalarMappable:
    norm = Normalize(shades.min() if vmin is None else vmin, shades.max() if vmax is None else vmax)
    return cm.ScalarMappable(norm, colormaps.get_cmap(cmap))


def _draw_bar(ax: Axes, corners: Corners, mappable: cm.ScalarMappable, label: str | None) -> None:
    """A colour bar beside the drawing that says what the colours mean."""
    low, high = corners
    width, height = high - low
    unit = _inches_per_unit(ax)
    thickness, gap = 0.1 / unit, 0.02 / unit  # 0.1 inch and little space
    if _is_flat(corners):
        place, orientation = (0.1, -(thickness + gap) / height, 0.8, thickness / height), "horizontal"
    else:
        place, orientation = (1.0 + gap / width, 0.1, thickness / width, 0.8), "vertical"
    bar = ax.figure.colorbar(mappable, cax=ax.inset_axes(place), orientation=orientation)
    bar.ax.tick_params(labelsize=7, length=2.0, width=0.5)
    bar.outline.set_linewidth(0.5)
    if label is not None:
        bar.set_label(label, fontsize=8, parse_math=False)


def _check_ending(path: Path) -> None:
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().lstrip(".") not in known:
        raise ValueError(f"{str(path)!r} ends in {path.suffix!r}, expected one of .{', .'.join(known)}")


def _save(ax: Axes, path: Path) -> None:
    buffer = io.BytesIO()
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that were drawn on are on a figure
    figure.savefig(buffer, format=path.suffix.lower().lstrip("."))
    write_atomically(path, buffer.getvalue())


# Arrows, states and labels ------------------------------------------------------------------------------------------


def _draw_edges(ax: Axes, mdp: FiniteMDP, edges: Edges, places: Floats, unit: float) -> dict[tuple[int, int], Curve]:
    """Draw an arrow for each two states that can follow each other, and a loop for states that can stay."""
    curves: dict[tuple[int, int], Curve] = {}
    dearest = float(np.abs(edges.reward).max(initial=0.0))
    rim = np.where(mdp.terminal, OUTER_RING, 1.0) * RADIUS
    for tail, head, probability, reward, has_reverse in zip(*edges, strict=True):
        if tail == head:
            path = _loop(places[tail], rim[tail], upwards=not _has_neighbour_above(places, tail))
        else:
            bend = _bend(places, tail, head, bool(has_reverse))
            path = _arc(places[tail], places[head], bend, rim[tail], rim[head])
        # An arrow that pays is worth seeing however unlikely it is.
        importance = abs(reward) / dearest if reward != 0.0 else 0.0
        strength = max(probability, 0.5 * importance)
        arrow = FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=float(np.clip(11.0 * unit, 2.0, 8.0)),
            linewidth=float((0.5 + 1.6 * np.sqrt(strength)) * np.clip(1.6 * unit, 0.3, 1.0)),
            color=to_rgba(_blend(importance, PAYS if reward > 0.0 else COSTS), float(0.25 + 0.7 * np.sqrt(strength))),
            zorder=1.0 + importance,
            joinstyle="miter",
            capstyle="butt",
        )
        _add(ax, arrow, f"edge-{tail}-{head}")
        curves[int(tail), int(head)] = path
    return curves


def _blend(importance: float, colour: str) -> tuple[float, float, float]:
    """From ink, for what pays nothing, to the colour, for what pays most."""
    share = np.sqrt(importance)
    red, green, blue = share * np.array(to_rgb(colour)) + (1.0 - share) * np.array(to_rgb(INK))
    return float(red), float(green), float(blue)


def _has_neighbour_above(places: Floats, state: int) -> bool:
    across, up = (places - places[state]).T
    return bool(((np.abs(across) < 0.5) & (up > 0.0) & (up < 1.5)).any())


def _bend(places: Floats, tail: int, head: int, has_reverse: bool) -> float:
    """How far an arrow swings out to its left, as a part of its length: round states in its way, or its own reverse."""
    step = places[head] - places[tail]
    length = max(float(np.hypot(*step)), 1e-9)
    others = places - places[tail]
    along, aside = others @ step / length, others @ np.array([-step[1], step[0]]) / length
    in_the_way = (np.abs(aside) < 0.8 * RADIUS) & (along > RADIUS) & (along < length - RADIUS)
    if in_the_way.any():
        return min(0.28, 1.5 / length)  # far enough, and not off the page
    return 0.14 if has_reverse else 0.0


def _arc(tail: Floats, head: Floats, bend: float, tail_rim: float, head_rim: float) -> Curve:
    """A quadratic curve between the rims of two states."""
    step = head - tail
    control = (tail + head) / 2.0 + bend * np.array([-step[1], step[0]])
    begin = tail + _towards(tail, control, 1.03 * tail_rim)
    end = head + _towards(head, control, head_rim + 0.08 * RADIUS)
    return Curve([begin, control, end], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])


def _towards(start: Floats, goal: Floats, distance: float) -> Floats:
    direction = goal - start
    step: Floats = direction * (distance / max(float(np.hypot(*direction)), 1e-12))
    return step


def _loop(place: Floats, rim: float, *, upwards: bool) -> Curve:
    """A small loop over the state, or under it."""
    sign = 1.0 if upwards else -1.0
    rim, far = 1.05 * rim, rim + 1.5 * RADIUS
    ends = [np.array([side * rim * np.sin(0.5), sign * rim * np.cos(0.5)]) for side in (-1.0, 1.0)]
    controls = [np.array([side * 0.75 * far * np.sin(0.75), sign * far * np.cos(0.35)]) for side in (-1.0, 1.0)]
    points = [place + offset for offset in (ends[0], controls[0], controls[1], ends[1])]
    return Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])


def _label_rewards(ax: Axes, edges: Edges, places: Floats, unit: float) -> list[Box]:
    """Write what arrows pay: once beside a state, if all arrows out of it or all paying ones into it pay the same.

    Returns where.
    """
    labels: dict[tuple[float, float], float] = {}
    for tail, head, _, reward, _ in zip(*edges, strict=True):
        if reward == 0.0:
            continue
        at_state = np.array([0.95, 0.85]) * RADIUS
        if (edges.reward[edges.tail == tail] == reward).all():
            place = places[tail] + at_state
        elif np.isin(edges.reward[edges.head == head], (0.0, reward)).all():
            place = places[head] + at_state
        else:
            place = 0.6 * places[tail] + 0.4 * places[head]
        labels[float(place[0]), float(place[1])] = float(reward)
    if len(labels) > MOST_REWARD_LABELS:
        return []
    boxes = []
    size = float(np.clip(11.0 * unit, SMALLEST_FONT, 7.5))
    for (x, y), reward in labels.items():
        shown = f"{reward:+,.0f}" if 1_000.0 <= abs(reward) < 1e6 else f"{reward:+.3g}"
        shown = shown.replace("-", "\N{MINUS SIGN}")
        colour = PAYS if reward > 0.0 else COSTS
        text = ax.text(x, y, shown, fontsize=size, color=colour, ha="left", va="bottom", zorder=5, parse_math=False)
        text.set_bbox({"boxstyle": "round,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.75})
        half = 0.5 * _width_of(shown) * size / (72.0 * unit), 0.6 * size / (72.0 * unit)
        boxes.append(Box(x + half[0], y + half[1], *half))
    return boxes


def _draw_states(ax: Axes, mdp: FiniteMDP, places: Floats, unit: float, fills: Floats | None) -> None:
    """Draw a circle for each state, a second ring if it is terminal, an arrow from nowhere if it is a start."""
    width = float(np.clip(1.6 * unit, 0.35, 1.0))
    for state, place in enumerate(places):
        fill = PAPER if fills is None else tuple(fills[state])
        _add(ax, Circle(place, RADIUS, facecolor=fill, edgecolor=INK, linewidth=width, zorder=3), f"state-{state}")
        if mdp.terminal[state]:
            ring = Circle(place, OUTER_RING * RADIUS, fill=False, edgecolor=INK, linewidth=0.8 * width, zorder=3)
            _add(ax, ring, f"terminal-{state}")
    for state in map(int, np.flatnonzero(mdp.start > 0.0)):
        tip = places[state] - (1.05 * RADIUS, 0.0)
        arrow = FancyArrowPatch(
            path=Curve([tip - (0.45, 0.0), tip]),
            arrowstyle="-|>",
            mutation_scale=float(np.clip(16.0 * unit, 3.0, 11.0)),
            linewidth=1.8 * width,
            color=INK,
            zorder=2,
        )
        _add(ax, arrow, f"start-{state}")


def _add(ax: Axes, patch: Any, gid: str) -> None:
    patch.set_gid(gid)
    ax.add_artist(patch)  # `add_patch` would look for its extent, which takes longer than all else; limits are set


def _draw_labels(ax: Axes, mdp: FiniteMDP, places: Floats, unit: float, fills: Floats | None) -> None:
    """Write each state's name inside its circle, or under it where it is too long for that."""
    inner = 1.65 * RADIUS * unit * 72.0  # points across that text may take
    shown = [_printable(name) for name in mdp.state_names]
    widths = np.array([_width_of(name) for name in shown])
    fits = inner / widths
    is_inside = fits >= SMALLEST_FONT
    # Most names share one size, so that the drawing looks even; a few long ones may be smaller.
    common = min(LARGEST_FONT, 0.62 * inner, np.quantile(fits[is_inside], 0.2) if is_inside.any() else LARGEST_FONT)
    if common < SMALLEST_FONT:
        return
    for state in np.flatnonzero(is_inside):
        dark = fills is not None and is_dark(fills[state])
        colour = "white" if dark else INK
        _write(ax, places[state], shown[state], min(common, fits[state]), colour, "center_baseline")
    outside = np.flatnonzero(~is_inside)
    for state in outside:
        across, along = np.abs(places[outside] - places[state]).T
        nearest = across[(along < 0.5) & (across > 0.0)].min(initial=1.9)
        name, room = shown[state], 0.95 * nearest * unit * 72.0 / SMALLEST_FONT
        if widths[state] > room:
            name = name[: max(1, int(len(name) * room / widths[state]) - 1)] + "…"
        _write(ax, places[state] - (0.0, 1.3 * RADIUS), name, SMALLEST_FONT, INK, "top")


def _write(ax: Axes, place: Floats, shown: str, size: float, colour: str, va: str) -> None:
    x, y = map(float, place)
    ax.text(x, y, shown, fontsize=float(size), color=colour, ha="center", va=va, zorder=4, parse_math=False)


def _printable(name: str) -> str:
    """The name on one line; what cannot be printed appears as an escape."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)


@cache
def _width_of(shown: str) -> float:
    """How wide a text is, in multiples of its font size; kept, because panels of one figure share their names."""
    if not shown:
        return 1e-3
    # As text, not as mathematics: a name may contain a dollar sign.
    path = TextPath((0.0, 0.0), shown.replace("$", r"\$"), size=10.0, prop=FontProperties())
    # Corners of curves lie a little outside of them: wide enough, and much faster than their exact extent.
    return max(1e-3, float(np.ptp(path.vertices[:, 0])) / 10.0) if len(path.vertices) else 0.3 * len(shown)


def is_dark(colour: Floats) -> bool:
    """Whether names on this colour have to be white."""
    return float(np.dot(colour[:3], (0.299, 0.587, 0.114))) < 0.45
