"""What all figures share (paper sizes, quiet axes, the same bytes for the same figure), and the curve of a training."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curious_explorer.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_WIDTH = 7.0
"""Inches between the margins of a printed page."""
WITH_CE, WITHOUT_CE = "#15803d", "#b91c1c"
"""Green and red, as in the paper, dark enough to be told apart from the paper's white."""
FAINT = "#64748b"
DOTS_PER_INCH = 200
QUICK_PNG = 3
"""How hard to compress: 6, the default, takes half as long again and leaves these files no smaller."""


def new_figure(width: float, height: float, *, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """A figure of its own, in inches, that leaves the caller's pyplot alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout, dpi=DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    return figure


def quiet(ax: Axes) -> None:
    """Axes without a box, with small labels and a faint grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=7, length=2.5, width=0.6)
    ax.grid(visible=True, linewidth=0.3, color="#cbd5e1")
    ax.set_axisbelow(True)


def save_figure(figure: Figure, stem: Path, *, pdf: bool = True, dpi: float | None = None) -> list[Path]:
    """Write ``stem.png`` and, unless told otherwise, ``stem.pdf``."""
    from matplotlib import rc_context

    saved = []
    # A date, or the name of the software, would make every copy of a figure another file.
    metadata: dict[str, dict[str, Any]] = {"png": {"Software": None}} | ({"pdf": {"CreationDate": None}} if pdf else {})
    for ending, extra in metadata.items():
        buffer = io.BytesIO()
        with rc_context({"pdf.fonttype": 42}):
            options: dict[str, Any] = {"pil_kwargs": {"compress_level": QUICK_PNG}} if ending == "png" else {}
            figure.savefig(buffer, format=ending, metadata=extra, dpi="figure" if dpi is None else dpi, **options)
        figure.set_layout_engine("none")  # it has found its places; finding them again would take as long as drawing
        saved.append(write_atomically(stem.with_name(f"{stem.name}.{ending}"), buffer.getvalue()))
    return saved


def draw_evaluations(samples: Sequence[int], returns: Sequence[float], title: str) -> Figure:
    """How a training went: mean returns from the environment's own start."""
    figure = new_figure(0.75 * PAGE_WIDTH, 2.8)
    ax = figure.add_subplot()
    ax.plot(samples, returns, color=WITH_CE, marker=".")
    ax.set_xlabel("samples of the training, roll-ins included", fontsize=8)
    ax.set_ylabel("mean return from the start", fontsize=8)
    ax.set_title(title, fontsize=9)
    quiet(ax)
    return figure
