"""The paper's cells: an optimizer on an environment at a depth; how they are called and which there are."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count

ENVIRONMENTS: dict[str, Callable[..., FiniteMDP]] = {"cct": crossroad_traps, "dcl": combination_lock}
OPTIMIZERS: dict[str, type[TRPO] | type[Reinforce]] = {"reinforce": Reinforce, "trpo": TRPO}
DEPTHS = (5, 10, 20)
DEEPEST = 200
"""Beyond this an exact check of every round would take longer than the round."""
TITLES = {"cct": "Consecutive Crossroad Traps", "dcl": "Diabolical Combination Lock"}
OPTIMIZER_TITLES = {"reinforce": "REINFORCE", "trpo": "TRPO"}


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; its name, such as ``dcl/20/trpo``, is how results call it."""

    environment: str
    depth: int
    optimizer: str

    def __post_init__(self) -> None:
        check_name(self.environment, ENVIRONMENTS, "environment")
        check_name(self.optimizer, OPTIMIZERS, "optimizer")
        if check_count(self.depth, "depth", least=1) > DEEPEST:
            raise ValueError(f"depth is {self.depth}, expected at most {DEEPEST}")

    @property
    def name(self) -> str:
        """The cell as a string id."""
        return f"{self.environment}/{self.depth}/{self.optimizer}"

    @property
    def title(self) -> str:
        """The cell as the paper calls it, such as ``TRPO on DCL20``."""
        return f"{OPTIMIZER_TITLES[self.optimizer]} on {self.environment.upper()}{self.depth}"

    def mdp(self, seed: int) -> FiniteMDP:
        """The cell's MDP; action labels are permuted from the seed."""
        return ENVIRONMENTS[self.environment](self.depth, permute_actions=seed)

    def best_return(self, gamma: float) -> float:
        """The best return as the paper plots it: discounted on CCT, undiscounted on the lock, where it is 1.

        Every episode of the lock has the same length, so there the undiscounted return is the fraction of the best
        discounted one, too.
        """
        return float(gamma ** (self.depth - 1)) if self.environment == "cct" else 1.0


def grid(
    environments: Iterable[str] = ("cct", "dcl"),
    depths: Iterable[int] = DEPTHS,
    optimizers: Iterable[str] = ("reinforce", "trpo"),
) -> Iterator[Cell]:
    """The cells of a grid, by default the paper's twelve."""
    environments, depths = list(environments), list(depths)
    for optimizer in optimizers:
        for environment in environments:
            for depth in depths:
                yield Cell(environment, depth, optimizer)


def check_name(given: str, known: Iterable[str], what: str) -> str:
    """A name that is known; otherwise the error suggests the nearest one that is."""
    names = list(known)
    if given in names:
        return given
    nearest = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.4)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(f"{what} is {given!r}, expected one of {', '.join(map(repr, names))}{hint}")
