"""What the states and actions of a world of observations stand for, as plain data.

A table learned in a Gymnasium environment means something only together with the cells and actions that it is a table
over. The core stores that description with a reset model, compares it and hands it on, but does not look inside:
`curious_explorer.gym.Discretisation.from_stored` makes cells and actions of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from curious_explorer.errors import ResetModelError


@dataclass(frozen=True, eq=False)
class StoredDiscretisation:
    """A discretisation as it is stored.

    Args:
        description: what `Discretisation.description` says.
        discovered: the keys of the cells that were discovered, in order.
        cell_function: the user's function that makes cells, if there is one; it is never stored.
    """

    description: dict[str, Any]
    discovered: Sequence[str] = ()
    cell_function: Callable[[Any], Any] | None = None

    @property
    def environment(self) -> str:
        """The id of the environment, or its class."""
        return str(self.description["environment"])

    def check_alike(self, world: StoredDiscretisation) -> None:
        """Refuse a world whose cells or actions mean something else, though there may be as many of them."""
        for part, ours in self.description.items():
            theirs = world.description.get(part)
            if ours != theirs and part != "environment":
                raise ResetModelError(
                    f"the reset model was made for {part} {ours}, but this world has {theirs}; explore this world to "
                    "get a reset model for it"
                )
        if list(world.discovered[: len(self.discovered)]) != list(self.discovered):
            raise ResetModelError(
                f"the reset model was made for {len(self.discovered):,} discovered cells, which this world has not "
                "discovered in the same order; give it cells=Discretisation.of_reset_model(...).cells"
            )
