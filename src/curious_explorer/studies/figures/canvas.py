"""What all figures share: paper sizes, quiet axes, and files that are the same bytes for the same figure."""

from __future__ import annotations

import io
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
DOTS_PER_INCH = 200


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


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem.png`` and ``stem.pdf``."""
    from matplotlib import rc_context

    saved = []
    # A date in the file would make every copy of a figure another file.
    metadata: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}}
    for ending, extra in metadata.items():
        buffer = io.BytesIO()
        with rc_context({"pdf.fonttype": 42}):
            figure.savefig(buffer, format=ending, metadata=extra)
        figure.set_layout_engine("none")  # it has found its places; finding them again would take as long as drawing
        saved.append(write_atomically(stem.with_name(f"{stem.name}.{ending}"), buffer.getvalue()))
    return saved
