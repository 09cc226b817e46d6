"""``exploration.mp4``: every round of every experiment, one a second, from the shallowest to the deepest.

An experiment's graph is drawn once, in white; a frame multiplies the colours of its round into the states' discs, so
that arrows, rims and names stay as drawn. Under the graph stand bars of mu_n(s), with the uniform distribution's line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Pixels
from curious_explorer.mdp.drawing import RADIUS, draw_mdp
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.mdp.layout import layout_states
from curious_explorer.studies.paper_results import ExperimentResults
from curious_explorer.studies.video_file import video_file

WIDTH, HEIGHT = 1280, 720
"""Even, as the yuv420p pixel format wants them."""
TITLE_HEIGHT, BARS_HEIGHT = 90, 200
MARGIN = 40
SCALE_WIDTH = 220
SMALLEST_LETTERS = 7.0
"""Points, of the names in the graph: ten pixels."""
LOWEST, HIGHEST = 0.12, 0.88
"""Not the darkest ends of the colours: names have to be read on them."""
DOTS_PER_INCH = 100
OUTPUT_RATE = 2
"""Frames a second in the file; every picture is repeated, because some players stumble over one frame a second."""
INK, FAINT, GREEN, RED = (31, 41, 51), (148, 163, 184), (21, 128, 61), (185, 28, 28)


def write_video(path: Path, results: Sequence[ExperimentResults]) -> int:
    """Write the video, the first run of each experiment; returns how many rounds it shows."""
    rounds = 0
    with video_file(path, WIDTH, HEIGHT, frames_a_second=1, output_rate=OUTPUT_RATE) as write:
        for result in sorted(results, key=_papers_order):
            for frame in experiment_frames(result):
                write(frame)
                rounds += 1
    return rounds


def _papers_order(result: ExperimentResults) -> tuple[str, int, str]:
    """By optimizer and depth, CCT before DCL."""
    return result.experiment.optimizer, result.experiment.depth, result.experiment.environment


def experiment_frames(result: ExperimentResults) -> Iterator[Pixels]:
    """One frame for each round of the first run, shape (HEIGHT, WIDTH, 3)."""
    from matplotlib import colormaps
    from PIL import Image

    canvas, same = _canvas(result.mdp), _what_all_rounds_share(result)
    colours = colormaps["RdYlGn"](LOWEST + (HIGHEST - LOWEST) * result.shares)[..., :3]
    for n in range(len(result.mu)):
        frame = same.copy()
        frame[TITLE_HEIGHT : HEIGHT - BARS_HEIGHT] = canvas.coloured(colours[n])
        picture = Image.fromarray(frame)
        _write_round(picture, result, n)
        _draw_bars(picture, result.mu[n], colours[n])
        yield np.asarray(picture)


@lru_cache(maxsize=16)
def _canvas(mdp: FiniteMDP) -> GraphCanvas:
    """One for each MDP, which several experiments share."""
    return GraphCanvas(mdp)


class GraphCanvas:
    """An MDP's graph, drawn once, whose states can be given other colours."""

    def __init__(self, mdp: FiniteMDP) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        places = layout_states(mdp)
        height = HEIGHT - TITLE_HEIGHT - BARS_HEIGHT
        figure = Figure(figsize=(WIDTH / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
        canvas = FigureCanvasAgg(figure)
        ax = draw_mdp(mdp, ax=figure.add_axes((0.0, 0.0, 1.0, 1.0)), positions=places, colorbar=False)
        white = [patch for patch in ax.patches if str(patch.get_gid()).startswith("state-")]
        for patch in white:
            patch.set_facecolor("white")
        for text in ax.texts:  # sizes are meant for paper
            text.set_fontsize(max(text.get_fontsize(), SMALLEST_LETTERS))
        canvas.draw()  # type: ignore[no-untyped-call]
        pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        self._white = np.asarray(pixels)[..., :3].copy()
        centres = ax.transData.transform(places)
        rim = ax.transData.transform(places[0] + (RADIUS, 0.0))[0] - centres[0][0]
        discs = [_disc(x, height - y, rim) for x, y in centres]
        rows, columns = (np.concatenate(axis) for axis in zip(*discs, strict=True))
        self._inside = (rows, columns)
        self._state = np.repeat(np.arange(len(discs)), [len(disc[0]) for disc in discs])

    def coloured(self, colours: Floats) -> Pixels:
        """The graph with these colours, shape (S, 3)."""
        pixels = self._white.copy()
        pixels[self._inside] = self._white[self._inside] * colours[self._state]
        return pixels


def _disc(x: float, y: float, radius: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows and columns of the pixels whose centres lie within a circle."""
    reach = int(radius) + 2
    rows, columns = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    rows, columns = rows + int(y), columns + int(x)
    inside = np.hypot(columns + 0.5 - x, rows + 0.5 - y) < radius
    return rows[inside], columns[inside]


@cache
def _font(size: int) -> Any:
    from matplotlib import font_manager
    from PIL import ImageFont

    return ImageFont.truetype(font_manager.findfont("DejaVu Sans"), size)


def _what_all_rounds_share(result: ExperimentResults) -> Pixels:
    """The title, what the colours mean, and what the bars are."""
    from matplotlib import colormaps
    from PIL import Image, ImageDraw

    frame = np.full((HEIGHT, WIDTH, 3), 255, dtype=np.uint8)
    left, top = WIDTH - MARGIN - SCALE_WIDTH, 24
    shades = colormaps["RdYlGn"](np.linspace(LOWEST, HIGHEST, SCALE_WIDTH))[:, :3]
    frame[top : top + 14, left : left + SCALE_WIDTH] = 255.0 * shades
    picture = Image.fromarray(frame)
    draw = ImageDraw.Draw(picture)
    draw.text((MARGIN, 18), f"Curious Explorer: {result.experiment.title}", font=_font(28), fill=INK)
    for x, text, anchor in ((left, "0", "la"), (left + SCALE_WIDTH, "1", "ra")):
        draw.text((x, top + 18), text, font=_font(14), fill=INK, anchor=anchor)
    draw.text((left + SCALE_WIDTH / 2, top + 18), "visits, of the threshold", font=_font(14), fill=INK, anchor="ma")
    words = "resets mu_n(s) by state; lines: uniform and half of it; bars end at five times uniform"
    draw.text((MARGIN, HEIGHT - BARS_HEIGHT + 4), words, font=_font(15), fill=INK)
    return np.asarray(picture)


def _write_round(picture: Any, result: ExperimentResults, n: int) -> None:
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    run = result.first
    poor, states = int(run.poorly_visited[n].sum()), run.poorly_visited.shape[1]
    words = f"round {n + 1} of {len(run.visited)}: {poor} of {states} states below the threshold"
    draw.text((MARGIN, 56), words, font=_font(20), fill=FAINT if poor == 0 else INK)
    done = (WIDTH - 2 * MARGIN) * (n + 1) / len(run.visited)
    draw.rectangle((MARGIN, 4, MARGIN + done, 8), fill=GREEN)


def _draw_bars(picture: Any, mu: Floats, colours: Floats) -> None:
    """Bars of mu_n(s), cut off at five times the uniform share, and the lines at that share and its half."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    floor, room = HEIGHT - 30, BARS_HEIGHT - 70
    uniform = 1.0 / len(mu)
    step = (WIDTH - 2 * MARGIN) / len(mu)
    for state, (share, colour) in enumerate(zip(np.minimum(mu / (5.0 * uniform), 1.0), colours, strict=True)):
        left = MARGIN + state * step
        fill = tuple(int(255 * part) for part in colour)
        draw.rectangle((left + 1, floor - room * share, left + max(2.0, step - 1), floor), fill=fill)
    for share, colour in ((0.2, GREEN), (0.1, FAINT)):
        y = floor - room * share
        draw.line((MARGIN, y, WIDTH - MARGIN, y), fill=colour, width=2)
