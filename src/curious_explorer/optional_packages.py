"""Packages that only some parts need: asked for when used, with an error that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from curious_explorer.errors import MissingPackageError


def installing(extra: str) -> str:
    """How to get the packages of an extra."""
    return f"in a checkout of curious-explorer: pip install '.[{extra}]'"


def require(module: str, extra: str = "report") -> Any:
    """Import a package of an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"this needs the package {(error.name or module)!r}, which is not installed; {installing(extra)}"
        ) from error
