"""A discretisation of an environment: which cell an observation belongs to, and which action a number means.

A policy learned in a `GymWorld` is a table over cells and action numbers, so it means something only together with its
discretisation. That is described as plain data, stored with the reset model, and compared with any environment that is
to be restarted by it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from curious_explorer.errors import ResetModelError
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cell_descriptions import cells_from_description
from curious_explorer.gym.cells import Cells, Env, MissingFunction, default_cells
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation

if TYPE_CHECKING:
    from curious_explorer.resets.reset_model import ResetModel


class Discretisation(NamedTuple):
    """Cells and actions of an environment.

    Args:
        cells: from observations to cells.
        action_set: from action numbers to actions.
        environment: the environment's id, or its class where it has none.
        observation_space: the observation space as text.
        action_space: the action space as text.
    """

    cells: Cells
    action_set: ActionSet
    environment: str
    observation_space: str
    action_space: str

    @staticmethod
    def of(
        env: Env, cells: Cells | None = None, actions: int | Sequence[Any] | ActionSet | None = None
    ) -> Discretisation:
        """The discretisation of an environment; see `GymWorld` for the arguments."""
        return _discretisation(environment_name(env), env.observation_space, env.action_space, cells, actions)

    @staticmethod
    def of_vector(
        envs: VectorEnv[Any, Any, Any], cells: Cells | None, actions: int | Sequence[Any] | ActionSet | None
    ) -> Discretisation:
        """The discretisation of each environment of a vector."""
        name = type(envs).__name__ if envs.spec is None else envs.spec.id
        return _discretisation(name, envs.single_observation_space, envs.single_action_space, cells, actions)

    @staticmethod
    def of_states(num_states: int, num_actions: int) -> Discretisation:
        """The discretisation of a world whose observations are state numbers, as in a `TabularWorld`."""
        return _discretisation("", spaces.Discrete(num_states), spaces.Discrete(num_actions), None, None)

    @staticmethod
    def from_stored(stored: StoredDiscretisation, *, growing: bool = False) -> Discretisation:
        """The discretisation that was stored; unless it is growing, it discovers no more cells."""
        description = stored.description
        try:
            cells = cells_from_description(description["cells"], stored.cell_function)
            names = [str(description[name]) for name in ("environment", "observation_space", "action_space")]
            action_set = ActionSet.from_description(description["actions"])
            return Discretisation(cells.recalling(stored.discovered, growing=growing), action_set, *names)
        except Exception as error:  # what damaged descriptions raise has no end of types
            raise ResetModelError(f"the cells and actions of the reset model cannot be read: {error}") from error

    @staticmethod
    def of_reset_model(reset_model: ResetModel) -> Discretisation:
        """The discretisation that a reset model was made for; states by their numbers if it has none."""
        if reset_model.discretisation is None:
            return Discretisation.of_states(reset_model.num_states, reset_model.num_actions)
        found = Discretisation.from_stored(reset_model.discretisation)
        sizes, expected = (found.cells.count, len(found.action_set)), (reset_model.num_states, reset_model.num_actions)
        if sizes != expected:
            raise ResetModelError(
                f"the reset model has {expected[0]:,} states and {expected[1]:,} actions, but {sizes[0]:,} cells and "
                f"{sizes[1]:,} actions are described; it is damaged"
            )
        return found

    def stored(self) -> StoredDiscretisation:
        """As plain data to store with a reset model, with the cells discovered so far."""
        return StoredDiscretisation(self.description(), self.cells.discovered(), self.cells.function)

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "environment": self.environment,
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "cells": self.cells.description(),
            "actions": self.action_set.description(),
        }

    def frozen(self) -> Discretisation:
        """A copy that discovers no more cells."""
        return self._replace(cells=self.cells.recalling(self.cells.discovered(), growing=False))

    def check(self, env: Env) -> None:
        """Refuse an environment that this was not made for, and cells whose function is missing."""
        function = self.cells.function
        if isinstance(function, MissingFunction):
            raise function.error()
        name = environment_name(env)
        for kind, expected, found in (
            ("action", self.action_space, space_text(env.action_space)),
            ("observation", self.observation_space, space_text(env.observation_space)),
        ):
            if expected != found:
                raise ResetModelError(
                    f"the reset model was made for the {kind} space {expected}, but the environment {name} has "
                    f"{found}; explore this environment to get a reset model for it"
                )
        if self.environment and self.environment != name:
            raise ResetModelError(
                f"the reset model was made for {self.environment}, but this environment is {name}; explore it to get a "
                "reset model for it"
            )


def _discretisation(
    name: str,
    observations: spaces.Space[Any],
    actions: spaces.Space[Any],
    cells: Cells | None,
    choices: int | Sequence[Any] | ActionSet | None,
) -> Discretisation:
    chosen = default_cells(observations) if cells is None else cells
    chosen.check_space(observations)
    action_set = ActionSet.of(actions, choices)
    return Discretisation(chosen, action_set, name, space_text(observations), space_text(actions))


def space_text(space: spaces.Space[Any]) -> str:
    """A space as text that is the same in every process, whatever NumPy's print options and addresses in memory are."""
    with np.printoptions(precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False, legacy=False):
        return without_addresses(str(space))  # MiniGrid's missions name a function, and its address


def without_addresses(text: str) -> str:
    """A ``repr`` without addresses in memory, so that it is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def environment_name(env: Env) -> str:
    """The id that an environment was made by, or the name of its class."""
    return type(env.unwrapped).__qualname__ if env.spec is None else env.spec.id
