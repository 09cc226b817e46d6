"""The page of a single run: words, tables, pictures and videos in one file, without a script.

Pictures and videos are part of the file, so that it can be sent to somebody as it is.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from curious_explorer.studies.page.page_assembly import page_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_VIDEO = 30 << 20
"""Bytes of a video above which it is left beside the page."""
DOTS_PER_INCH = 130


class Section(NamedTuple):
    """A part of the page."""

    anchor: str
    title: str
    html: str


def run_page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The page of a run."""
    body = "\n".join(
        f'<section id="{each.anchor}">\n<h2>{escape(each.title)}</h2>\n{each.html}\n</section>' for each in sections
    )
    return page_html(title, lead, [(each.anchor, each.title) for each in sections], body, [])


def words(*sentences: str) -> str:
    """Paragraphs of plain text."""
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)


def picture(figure: Figure, alternative: str) -> str:
    """A drawing as part of the page; ``alternative`` says what is to be seen."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return f'<img class="picture" alt="{escape(alternative)}" src="{_data("image/png", buffer.getvalue())}">'


def drawing(draw: Callable[[], Figure], alternative: str) -> str:
    """The same of what is yet to be drawn; a sentence where Matplotlib is missing, for want of which no run is lost."""
    try:
        return picture(draw(), alternative)
    except ModuleNotFoundError as error:
        return words(f"{alternative}: no drawing, because the package {error.name} is not installed.")


def film_of(path: Path, alternative: str) -> str:
    """A video as part of the page, or the name of one that is too large."""
    content = path.read_bytes()
    if len(content) > MOST_VIDEO:
        return words(f"{alternative}: {path.name} lies beside this page ({len(content) >> 20} MB).")
    source = _data("video/mp4", content)
    return f'<video controls muted loop playsinline aria-label="{escape(alternative)}" src="{source}"></video>'


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
