"""How an agent takes part in an environment: which cell an observation belongs to, and which action a number means.

A policy learned in a `GymWorld` is a table over cells and action numbers, so it means something only together with
these. They are described as plain data, stored with the reset model, and checked against any environment that is to be
restarted by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from curious_explorer.errors import CellError, ResetModelError
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cells import (
    Cells,
    DiscreteCells,
    Env,
    FunctionCells,
    GridCells,
    QuantileCells,
    default_cells,
)
from curious_explorer.gym.hashed_cells import HashedCells, MiniGridCells


class Discretisation(NamedTuple):
    """Cells and actions of an environment.

    Args:
        cells: from observations to cells.
        action_set: from action numbers to actions.
        environment: the environment's id, or its class where it has none.
        observation_space: the observation space, in words.
        action_space: the action space, in words.
    """

    cells: Cells
    action_set: ActionSet
    environment: str
    observation_space: str
    action_space: str

    @staticmethod
    def of(env: Env, cells: Cells | None = None, actions: int | Sequence[Any] | None = None) -> Discretisation:
        """The discretisation of an agent in this environment; see `GymWorld` for the arguments."""
        return _discretisation(environment_name(env), env.observation_space, env.action_space, cells, actions)

    @staticmethod
    def of_vector(
        envs: VectorEnv[Any, Any, Any], cells: Cells | None, actions: int | Sequence[Any] | None
    ) -> Discretisation:
        """The discretisation of an agent in each environment of a vector."""
        name = type(envs).__name__ if envs.spec is None else envs.spec.id
        return _discretisation(name, envs.single_observation_space, envs.single_action_space, cells, actions)

    @staticmethod
    def of_states(num_states: int, num_actions: int) -> Discretisation:
        """The discretisation of an agent that sees states by their numbers, as in a `TabularWorld`."""
        return _discretisation("", spaces.Discrete(num_states), spaces.Discrete(num_actions), None, None)

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
        """These discretisation with no cell discovered any more."""
        return self._replace(cells=self.cells.recalling(self.cells.discovered(), growing=False))

    def check(self, env: Env) -> None:
        """Refuse an environment that these discretisation were not made for, and cells whose function is missing."""
        function = self.cells.function
        if isinstance(function, _Missing):
            raise function.error()
        for kind, made_for, found in (
            ("action", self.action_space, in_words(env.action_space)),
            ("observation", self.observation_space, in_words(env.observation_space)),
        ):
            if made_for != found:
                raise ResetModelError(
                    f"the reset model was made for the {kind} space {made_for}, but the environment "
                    f"{environment_name(env)} has {found}; explore this environment to get a reset model for it"
                )
        name = environment_name(env)
        if self.environment and self.environment != name:
            raise ResetModelError(
                f"the reset model was made for {self.environment}, but this environment is {name}; explore it to get a "
                "reset model for it"
            )

    def check_alike(self, world: Discretisation) -> None:
        """Refuse a world whose cells or actions mean something else, though there may be as many of them."""
        for place, ours in self.description().items():
            theirs = world.description()[place]
            if ours != theirs and place != "environment":
                raise ResetModelError(
                    f"the reset model was made for {place} {ours}, but this world has {theirs}; explore this world to "
                    "get a reset model for it"
                )
        discovered = self.cells.discovered()
        if world.cells.discovered()[: len(discovered)] != discovered:
            raise ResetModelError(
                f"the reset model was made for {len(discovered):,} discovered cells, which this world has not "
                "discovered in the same order; make it with GymWorld(env, cells=reset_model.discretisation.cells)"
            )


def _discretisation(
    name: str,
    seen: spaces.Space[Any],
    acted: spaces.Space[Any],
    cells: Cells | None,
    actions: int | Sequence[Any] | None,
) -> Discretisation:
    chosen = default_cells(seen) if cells is None else cells
    chosen.check_space(seen)
    return Discretisation(chosen, ActionSet.of(acted, actions), name, in_words(seen), in_words(acted))


def in_words(space: spaces.Space[Any]) -> str:
    """A space in the same words in every process: whatever NumPy's print options are, wherever things are in memory."""
    with np.printoptions(precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False, legacy=False):
        return re.sub(r" at 0x[0-9a-f]+", "", str(space))  # MiniGrid's missions name a function, and its address


@runtime_checkable
class Discretised(Protocol):
    """A world of observations."""

    @property
    def discretisation(self) -> Discretisation:
        """Cells and actions."""


def discretisation_of(world: object) -> Discretisation | None:
    """The discretisation of a world of observations, with no cell discovered any more; None for a world of states."""
    return world.discretisation.frozen() if isinstance(world, Discretised) else None


def environment_name(env: Env) -> str:
    """The id that an environment was made by, or the name of its class."""
    return type(env.unwrapped).__qualname__ if env.spec is None else env.spec.id


def discretisation_from_description(
    description: Mapping[str, Any],
    discovered: list[str],
    *,
    growing: bool = False,
    function: Callable[[Any], Any] | None = None,
) -> Discretisation:
    """The discretisation that a description and the cells discovered so far stand for.

    Args:
        description: what `Discretisation.description` said.
        discovered: what `Cells.discovered` said.
        growing: whether new cells may still be discovered.
        function: the user's function, where the cells were made by one.
    """
    cells = _cells_from_description(dict(description["cells"]), function).recalling(discovered, growing=growing)
    names = {name: str(description[name]) for name in ("environment", "observation_space", "action_space")}
    return Discretisation(cells=cells, action_set=ActionSet(list(description["actions"])), **names)


def _cells_from_description(described: dict[str, Any], function: Callable[[Any], Any] | None) -> Cells:
    kind = described.pop("kind", None)
    try:
        if kind == "discrete":
            return DiscreteCells(described["count"], described["start"])
        if kind == "grid":
            return GridCells(described["bins"], described["low"], described["high"])
        if kind == "quantiles":
            return QuantileCells(described["bins"], warm_up=described["warm_up"], edges=described["edges"])
        if kind == "minigrid":
            return MiniGridCells(described["max_cells"], things=described["things"])
        if kind == "hashed":
            if described["key"] is not None:
                function = _needed(function, described["key"])
            return HashedCells(described["max_cells"], width=described["width"], key=function)
        if kind == "function":
            return FunctionCells(_needed(function, described["function"]), described["count"])
    except KeyError as error:
        raise CellError(f"the description of {kind} cells has no {error}") from None
    raise CellError(f"unknown kind of cells {kind!r}; a newer version may know it")


def _needed(function: Callable[[Any], Any] | None, name: str) -> Callable[[Any], Any]:
    if function is not None:
        return function

    return _Missing(name)


class _Missing:
    """Stands for a function that made cells and was not given again."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, observation: Any) -> Any:
        raise self.error()

    def error(self) -> CellError:
        """What to do about it."""
        return CellError(
            f"the cells were made by the function {self.name}, which cannot be stored; give it again: "
            f"ResetModel.load(folder, cell_function=...), or --cell-function {self.name} on the command line"
        )
