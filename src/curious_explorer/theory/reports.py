"""What every report of this package can do: plain data for programs, words and tables for people.

A report is a frozen dataclass. `to_dict` holds its fields and derived figures as plain JSON data (infinity is the
string "inf"); `summary` is text; printing it with Rich shows the same facts, with one row a round where there are
rounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Rows = tuple[Sequence[str], list[list[str]]]


class Report:
    """Base of all reports; subclasses are dataclasses and say what they have to say in four small methods."""

    def _title(self) -> str:
        """One line that names the report."""
        raise NotImplementedError

    def _facts(self) -> list[tuple[str, str]]:
        """What it found, as pairs of a name and a value."""
        return []

    def _rounds(self) -> Rows | None:
        """Column names and cells, one row a round; None where there are no rounds."""
        return None

    def _notes(self) -> list[str]:
        """Sentences that belong under the facts: assumptions, warnings."""
        return []

    def _derived(self) -> dict[str, Any]:
        """Figures that are computed from the fields and belong in `to_dict`."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        data = {"kind": type(self).__name__, **fields, **self._derived()}
        return {name: plain(value) for name, value in data.items()}

    def summary(self) -> str:
        """The facts, the rounds and the notes as text."""
        facts = self._facts()
        width = max((len(name) for name, _ in facts), default=0)
        lines = [self._title(), *(f"  {name:<{width}}  {value}" for name, value in facts)]
        rounds = self._rounds()
        if rounds is not None:
            names, cells = rounds
            widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
            lines += [
                "  " + "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
                for row in [list(names), *cells]
            ]
        return "\n".join([*lines, *(f"  {note}" for note in self._notes())])

    def table(self) -> Any:
        """The rounds as a Rich table where there are rounds, else the facts."""
        from rich.table import Table

        rounds = self._rounds()
        if rounds is None:
            table = Table("", "", title=self._title(), show_header=False)
            for fact in self._facts():
                table.add_row(*fact)
            return table
        table = Table(*rounds[0], title=self._title())
        for row in rounds[1]:
            table.add_row(*row)
        return table

    def __rich__(self) -> Any:
        from rich.console import Group

        facts = [f"{name}: {value}" for name, value in self._facts()] if self._rounds() is not None else []
        return Group(self.table(), *facts, *self._notes())


def plain(value: Any) -> Any:
    """A value as JSON knows it: arrays as lists, numbers as Python's, infinity and nan as strings."""
    if isinstance(value, Report):
        return value.to_dict()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def figure(value: float) -> str:
    """A number for people: four significant digits."""
    return f"{value:.4g}"
