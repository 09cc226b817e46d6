"""What every report of this package can do, and the checks of what a report is asked about.

A report is a frozen dataclass. `to_dict` holds its fields and derived figures as plain JSON data (infinity is the
string "inf"); `summary` is text; printing it with Rich shows the same facts, with one row a round where there are
rounds. A `CertificateReport` says in one sentence what is guaranteed, and in another what that rests on.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_gamma, check_policy
from curious_explorer.worlds.world import World

Rows = tuple[Sequence[str], list[list[str]]]


class Report(ABC):
    """Base of all reports; subclasses are dataclasses and fill in these small methods."""

    computed: ClassVar[tuple[str, ...]] = ()
    """Properties that belong in `to_dict` beside the fields."""

    @abstractmethod
    def _title(self) -> str:
        """One line that names the report."""

    def _facts(self) -> list[tuple[str, str]]:
        """What it found, as pairs of a name and a value."""
        return []

    def _rounds(self) -> Rows | None:
        """Column names and cells, one row a round; None where there are no rounds."""
        return None

    def _notes(self) -> list[str]:
        """Sentences that belong under the facts: assumptions, warnings."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data."""
        names = (*(field.name for field in dataclasses.fields(self)), *self.computed)  # type: ignore[arg-type]
        return {"kind": type(self).__name__, **{name: plain(getattr(self, name)) for name in names}}

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


class CertificateReport(Report):
    """A report that guarantees something from samples, with a stated confidence."""

    computed: ClassVar[tuple[str, ...]] = ("statement", "assumption")

    @property
    @abstractmethod
    def statement(self) -> str:
        """What is guaranteed, in one sentence."""

    @property
    @abstractmethod
    def assumption(self) -> str:
        """What the guarantee rests on."""

    def _notes(self) -> list[str]:
        return [self.statement, self.assumption]


class BoundReport(Report):
    """A report on an inequality: one left side, and its right side in several forms; one entry a round, or one number.

    Subclasses have a field ``left`` and one for each of the `forms`.
    """

    left: Any
    forms: ClassVar[tuple[str, ...]]
    computed: ClassVar[tuple[str, ...]] = ("vacuous",)

    @property
    @abstractmethod
    def largest(self) -> float:
        """What the left side never exceeds, whatever is true."""

    @property
    def vacuous(self) -> dict[str, bool]:
        """For each form, whether its bound (after the last round) says nothing: it is at least `largest`."""
        return {form: bool(np.ravel(getattr(self, form))[-1] >= self.largest) for form in self.forms}

    def slack(self, form: str = "repaired") -> Any:
        """Right side minus left side; not negative where the theorem holds."""
        if form not in self.forms:
            raise ValueError(f"form is {form!r}, expected one of {', '.join(map(repr, self.forms))}")
        return getattr(self, form) - self.left

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON data, with the slack of each form."""
        slacks = {f"{form}_slack": plain(self.slack(form)) for form in self.forms if self.left is not None}
        return {**super().to_dict(), **slacks}


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


def round_rows(names: Sequence[str], *columns: Floats) -> Rows:
    """A table with one row a round, from one column of figures for each name."""
    return ("round", *names), [[str(n), *map(figure, row)] for n, row in enumerate(zip(*columns, strict=True))]


def check_probability(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    if not (_is_number(value) and 0.0 < value < 1.0):
        raise ValueError(f"{name} is {value!r}, expected a number strictly between 0 and 1, such as 0.05")
    return float(value)


def check_not_negative(value: Any, name: str) -> float:
    """A finite number that is not negative."""
    if not (_is_number(value) and math.isfinite(value) and value >= 0.0):
        raise ValueError(f"{name} is {value!r}, expected a finite number that is not negative")
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    if check_not_negative(value, name) == 0.0:
        raise ValueError(f"{name} is 0, expected a number above zero")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_per_round(values: ArrayLike, rounds: int, name: str) -> Floats:
    """One finite number that is not negative for each round; a single number is repeated."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim == 0:
        given = np.full(rounds, float(given))
    if given.shape != (rounds,):
        raise ValueError(f"{name} has shape {given.shape}, expected ({rounds},): one for each round")
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0.0)))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {given[bad[0]]}, expected a finite number that is not negative")
    return given


def check_exploration(exploration: Exploration, home: FiniteMDP | World, gamma: float | None = None) -> float:
    """Refuse an exploration without rounds or policies, of another world, or with another discount; returns gamma."""
    if not isinstance(exploration, Exploration):
        raise ValueError(f"exploration is a {type(exploration).__name__}, expected what explore() returns")
    if not exploration.rounds:
        raise ValueError("the exploration has no rounds; run explore(..., rounds=N) with N at least 1")
    shape = (home.num_states, home.num_actions)
    for index, round_ in enumerate(exploration.rounds):
        for name in ("policy", "learned_policy", "visited", "poorly_visited"):
            table = getattr(round_, name)
            if table is None:
                raise ValueError(
                    f"round {index} has no stored {name}; load the run with Exploration.load, or repeat it"
                )
            expected = shape if name.endswith("policy") else shape[:1]
            if np.shape(table) != expected:
                raise ValueError(
                    f"round {index}: {name} has shape {np.shape(table)}, expected {expected} for a world of {shape[0]} "
                    f"states and {shape[1]} actions; give the world that was explored"
                )
        check_policy(round_.learned_policy, *shape, name=f"round {index}: learned_policy")
        if index and not np.array_equal(round_.policy, exploration.rounds[index - 1].learned_policy):
            raise ValueError(
                f"round {index} does not visit the policy that round {index - 1} learned; is a round lost?"
            )
    own = check_gamma(exploration.gamma)
    if gamma is not None and check_gamma(gamma) != own:
        raise ValueError(
            f"gamma is {gamma}, but the exploration was made with gamma {own}; leave gamma out, or use {own}"
        )
    return own


def check_round(number: int | None, rounds: int) -> int:
    """The number of a round that exists; None is the last, and negative ones count from the end."""
    if number is None:
        return rounds - 1
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not -rounds <= number < rounds:
        raise ValueError(f"round_number is {number!r}, expected a round from 0 to {rounds - 1}")
    return int(number) % rounds
