"""Formulas become MathML when the site is built, so that pages show them offline and without a script."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', flags=re.DOTALL)
"""What `pymdownx.arithmatex` leaves of $...$ and $$...$$."""


def on_page_content(content: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return FORMULA.sub(_as_mathml, content)


def _as_mathml(found: re.Match[str]) -> str:
    kind, inline, block = found.groups()
    source = html.unescape(inline if inline is not None else block).strip()
    mathml = convert(source, display="inline" if inline is not None else "block")
    return f'<{kind} class="formula" title="{html.escape(source)}">{mathml}</{kind}>'
