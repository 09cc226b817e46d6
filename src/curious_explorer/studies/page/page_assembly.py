"""A page put together from parts: one template, one style, Plotly, and each part's text, data and script."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import metadata, resources
from string import Template
from typing import Any

from curious_explorer import __version__
from curious_explorer.optional_packages import require


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
    """The whole page; ``body`` holds the parts' sections in whatever order tells the story."""
    return Template(read_part("template.html")).substitute(
        title=escape(title),
        lead=escape(lead),
        first=links[0][0],
        links="\n".join(f'<a href="#{anchor}">{escape(words)}</a>' for anchor, words in links),
        body=body,
        css=read_part("page.css"),
        plotly=require("plotly.offline").get_plotlyjs(),
        data=json_in_html({part.name: part.data for part in parts}),
        js="\n".join(read_part(f"{name}.js") for name in ("common", *(part.name for part in parts))),
    )


def json_in_html(value: Any) -> str:
    """JSON that no HTML parser can mistake for markup, wherever it stands."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def versions() -> dict[str, str]:
    """What the results were made with."""
    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "matplotlib", "plotly")}
    return {"curious-explorer": __version__, "Python": platform.python_version(), **packages}


def read_part(name: str) -> str:
    """The text of a file beside this module."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
