"""A page put together from parts: one template, one style, Plotly, tables, and each part's text, data and script."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import metadata, resources
from string import Template
from typing import Any

from curious_explorer import __version__
from curious_explorer.optional_packages import require

COLUMNS_OF_WORDS = ("the paper: CE brings", "here", "version", "constants", "how much", "chosen", "worth")
"""Columns whose text is read, not compared: aligned to the left."""


@dataclass(frozen=True)
class Part:
    """What a study brings to a page."""

    name: str
    """Its script is ``name.js``, and finds its data under this name."""
    links: Sequence[tuple[str, str]]
    """The ids and the titles of its sections, for the page's navigation."""
    html: str
    data: Any
    """What its drawings show, as plain data."""


def page_html(title: str, lead: str, links: Sequence[tuple[str, str]], body: str, parts: Sequence[Part]) -> str:
    """The whole page; ``body`` holds the parts' sections in the order in which they are read.

    Without parts it has no script.
    """
    return fill(
        "template.html",
        title=escape(title),
        lead=escape(lead),
        first=links[0][0],
        links="\n".join(f'<a href="#{anchor}">{escape(words)}</a>' for anchor, words in links),
        body=body,
        css=_read("page.css"),
        plotly=require("plotly.offline").get_plotlyjs() if parts else "",
        data=json_in_html({part.name: part.data for part in parts}),
        js="\n".join(_read(f"{name}.js") for name in ("common", *(part.name for part in parts))) if parts else "",
    )


def fill(name: str, **values: str) -> str:
    """The text of a file beside this module, with its places filled in."""
    return Template(_read(name)).substitute(values)


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def json_in_html(value: Any) -> str:
    """JSON that no HTML parser can mistake for markup, wherever it stands."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str, *, sortable: bool = False) -> str:
    """A table; on a narrow screen a list for each row, or if it is sortable, in a box that scrolls sideways.

    Its fields are HTML already.

    Fields of a sortable one say by ``data-sort`` where they belong.
    """
    columns = "".join(
        f'<th scope="col"{" class=words" if name in COLUMNS_OF_WORDS else ""}>{escape(name)}</th>' for name in head
    )
    lines = []
    for first, *rest in rows:
        name = first if first.startswith("<th") else f'<th scope="row">{first}</th>'
        # A narrow screen shows a row as a list, in which each field says what it is.
        fields = "".join(
            (field if field.startswith("<td") else f"<td>{field}</td>").replace(
                "<td", f'<td data-head="{escape(named)}"', 1
            )
            for named, field in zip(head[1:], rest, strict=True)
        )
        lines.append(f"<tr>{name}{fields}</tr>")
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table{kind}><thead><tr>{columns}'
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def text_table(head: tuple[str, str], rows: dict[str, str], label: str) -> str:
    """A table of names and texts."""
    fields = [[escape(name), f'<td class="words">{escape(text)}</td>'] for name, text in rows.items()]
    return table(head, fields, label)


def sorted_field(value: float, text: str) -> str:
    """A field of a sortable table."""
    return f'<td data-sort="{value:.9g}">{text}</td>'


def bar_field(share: float, text: str) -> str:
    """A share with a bar behind it, which is for the eye only."""
    return f'<td class="bar" data-sort="{share:.9g}" style="--share:{min(max(share, 0.0), 1.0):.1%}">{text}</td>'


def versions_table() -> str:
    """What the results were made with."""
    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "matplotlib", "plotly")}
    versions = {"curious-explorer": __version__, "Python": platform.python_version(), **packages}
    return text_table(("what", "version"), versions, "Versions")
