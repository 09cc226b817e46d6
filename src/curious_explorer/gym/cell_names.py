"""Cells by name, as the command line's ``--cells`` gives them.

- ``identity``: a `Discrete` observation is its own cell;
- ``20``, ``20x20``, ``20x20:-1.2,-0.07:0.6,0.07``: a grid, with the observation space's bounds or with these;
- ``quantiles:10``, ``quantiles:10x5``: cut at the quantiles of the observations of a warm-up;
- ``hash``, ``hash:0.1``, ``hash:0.1,0.5``: one cell for each distinct observation, as it is or rounded to this width;
- ``minigrid``: a MiniGrid's symbolic state;
- ``module:function:COUNT``: an imported function with ``COUNT`` cells.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from gymnasium import spaces

from curious_explorer.errors import CellError
from curious_explorer.gym.cells import Cells, DiscreteCells, Env, FunctionCells, GridCells, QuantileCells
from curious_explorer.gym.discovered_cells import HashedCells, MiniGridCells

FORMS = (
    "identity, 20, 20x20, 20x20:-1.2,-0.07:0.6,0.07, quantiles:10, hash, hash:0.1, minigrid or module:function:COUNT"
)


def named_cells(name: str | None, env: Env, *, max_cells: int | None = None) -> Cells | None:
    """The cells that a name stands for.

    Args:
        name: see the top of this module; None: a MiniGrid's symbolic state, or None for `GymWorld` to choose.
        env: the environment whose observations are mapped.
        max_cells: how many cells may be discovered (``hash``, ``minigrid``).
    """
    kind, _, rest = (name or "").partition(":")
    limit: dict[str, Any] = {} if max_cells is None else {"max_cells": max_cells}
    if max_cells is not None and kind not in ("", "hash", "minigrid"):
        raise CellError(f"--max-cells is for cells that are discovered (hash, minigrid), but --cells is {name}")
    if name is None:
        return MiniGridCells(**limit) if hasattr(env.unwrapped, "agent_pos") else None
    if name == "identity":
        if not isinstance(env.observation_space, spaces.Discrete):
            raise CellError(f"--cells identity is for Discrete observations, but these are {env.observation_space}")
        return DiscreteCells(int(env.observation_space.n), int(env.observation_space.start))
    if name == "minigrid":
        return MiniGridCells(**limit)
    if kind == "hash":
        widths = _numbers(rest, name) if rest else None
        return HashedCells(width=widths[0] if widths and len(widths) == 1 else widths, **limit)
    if kind == "quantiles":
        return QuantileCells(_bins(rest, name))
    if kind.replace("x", "").isdecimal():
        return _grid(_bins(kind, name), rest, name, env.observation_space)
    module, _, last = rest.rpartition(":")
    if module and last.isdecimal():
        return FunctionCells(named_function(f"{kind}:{module}"), int(last))
    raise _unknown(name)


def named_function(name: str) -> Callable[[Any], Any]:
    """The function of ``module:function``."""
    module, _, function = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except Exception as error:  # of any kind, because it is the user's module that runs
        raise CellError(f"{name!r} is no function that can be imported: {error}; expected module:function") from error
    if not callable(found):
        raise CellError(f"{name!r} is {found!r}, expected a function of an observation")
    return found


def _grid(bins: int | list[int], bounds: str, name: str, space: spaces.Space[Any]) -> GridCells:
    if bounds:
        low, _, high = bounds.partition(":")
        return GridCells(bins, _numbers(low, name), _numbers(high, name))
    if not isinstance(space, spaces.Box):
        raise CellError(f"--cells {name} is a grid over numbers, but observations are in {space}; expected {FORMS}")
    if not space.is_bounded("both"):
        raise CellError(
            f"--cells {name} has no bounds, and neither has the observation space {space}; give them, as in "
            f"{name}:LOW,LOW,...:HIGH,HIGH,..., or use quantiles:{name}"
        )
    return GridCells(bins, space.low, space.high)


def _bins(text: str, name: str) -> int | list[int]:
    parts = text.split("x")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise _unknown(name)
    return int(text) if len(parts) == 1 else [int(part) for part in parts]


def _numbers(text: str, name: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise _unknown(name) from None


def _unknown(name: str) -> CellError:
    return CellError(f"--cells is {name!r}; expected {FORMS}")
