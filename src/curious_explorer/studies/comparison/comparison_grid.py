"""A comparison: methods x environments x seeds, each environment with its budget, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any

from curious_explorer import __version__
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.studies.comparison.comparison_run import Job
from curious_explorer.studies.comparison.methods import DEFAULT_METHODS, least_budget, make_method
from curious_explorer.studies.comparison.scoring import Scorer
from curious_explorer.validation import check_count, check_gamma

OWN_BUDGET = "@"
"""Stands between the name of an environment and a budget of its own: ``dcl/20@4000000``."""
TARGET = 0.95
"""The share of V* whose first reaching is timed in samples."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What to compare."""

    methods: tuple[str, ...] = DEFAULT_METHODS
    environments: tuple[str, ...] = ("cct/10", "dcl/10")
    """Names as `find_environment` knows them, with ``@`` and a budget of its own where the common one does not suit."""
    seeds: int = 20
    """How many; they are 0, 1, 2, ... A seed permutes the action labels (and draws mazes, trees and Garnets)."""
    budget: int = 100_000
    gamma: float = 0.95

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_count(self.seeds, "seeds", least=1)
        check_count(self.budget, "budget", least=1)
        for kind, given in (("methods", self.methods), ("environments", tuple(self.budgets))):
            if not given:
                raise ValueError(f"{kind} is empty, expected at least one; curious-explorer compare --list shows all")
        for kind, listed in (("methods", self.methods), ("environments", self.environments)):
            names = [name.partition(OWN_BUDGET)[0] for name in listed]
            if len(set(names)) != len(names):
                raise ValueError(f"{kind} is {', '.join(listed)}, expected each only once")
        for method in self.methods:
            make_method(method)
        for environment, budget in self.budgets.items():
            _check_environment(environment, self.gamma)
            self._check_budget(environment, budget)

    @property
    def budgets(self) -> dict[str, int]:
        """The environments and the samples that each method may take in them."""
        found = {}
        for given in self.environments:
            name, separator, own = given.partition(OWN_BUDGET)
            if separator and not own.isdecimal():
                raise ValueError(
                    f"environment {given!r} has the budget {own!r}, expected a whole number after the {OWN_BUDGET!r}"
                )
            found[name] = int(own) if separator else self.budget
        return found

    @property
    def jobs(self) -> list[Job]:
        """All runs, in the order of environments, methods and seeds."""
        return [
            Job(method, environment, seed, budget, self.gamma)
            for environment, budget in self.budgets.items()
            for method in self.methods
            for seed in range(self.seeds)
        ]

    def described(self) -> dict[str, Any]:
        """Everything that the results depend on, as plain data."""
        return {
            "library": __version__,
            "methods": {name: repr_of(make_method(name)) for name in self.methods},
            "environments": self.budgets,
            "seeds": self.seeds,
            "gamma": self.gamma,
            "target": TARGET,
        }

    def _check_budget(self, environment: str, budget: int) -> None:
        for method in self.methods:
            least = least_budget(method, self.gamma)
            if budget < least:
                raise ValueError(
                    f"the budget of {environment} is {budget:,} samples, too few for {method}, which needs at least "
                    f"{least:,} at gamma {self.gamma:g} for one episode of each kind it runs; raise --budget"
                )


def _check_environment(name: str, gamma: float) -> None:
    """Refuse an environment that does not exist, has no finite table, or in which nothing can be gained."""
    try:
        mdp = find_environment(name)
        Scorer.of(mdp, gamma)
    except ValueError as error:
        raise ValueError(f"environment {name!r} cannot be compared on: {error}") from error


def repr_of(method: Any) -> str:
    """The settings of a method as text, the same in every process; optimizers within it are described too."""
    settings = [f"{key}={_setting(value)}" for key, value in sorted(vars(method).items()) if not key.startswith("_")]
    return f"{type(method).__name__}({', '.join(settings)})"


def _setting(value: Any) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return repr_of(value)
    return repr_of(value()) if callable(value) else repr(value)
