"""Cells made again from their description, as it is stored with reset models and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from curious_explorer.errors import CellError
from curious_explorer.gym.cells import Cells, DiscreteCells, FunctionCells, GridCells, MissingFunction, QuantileCells
from curious_explorer.gym.coded_cells import JointCells, NumberCells, SymbolCells
from curious_explorer.gym.colour_places import ColourPlaces, PlaceCells
from curious_explorer.gym.discovered_cells import HashedCells, LayoutCells, MiniGridCells
from curious_explorer.gym.feature_cells import FeatureCells
from curious_explorer.gym.observation_reader import Read
from curious_explorer.gym.picture_cells import PictureCells


def cells_from_description(description: Mapping[str, Any], function: Callable[[Any], Any] | None = None) -> Cells:
    """The cells of which `Cells.description` said this; ``function`` is the user's, if they were made by one."""
    kind = dict(description).get("kind")
    try:
        if kind == "discrete":
            return DiscreteCells(description["count"], description["start"])
        if kind == "grid":
            return GridCells(description["bins"], description["low"], description["high"])
        if kind == "quantiles":
            return QuantileCells(description["bins"], warm_up=description["warm_up"], edges=description["edges"])
        if kind == "minigrid":
            return MiniGridCells(description["max_cells"], things=description["things"])
        if kind == "hashed":
            key = None if description["key"] is None else function or MissingFunction(description["key"])
            return HashedCells(description["max_cells"], width=description["width"], key=key)
        if kind == "layouts":
            return LayoutCells(cells_from_description(description["cells"], function), description["layouts"])
        if kind == "function":
            return FunctionCells(function or MissingFunction(description["function"]), description["count"])
        if kind == "joint":
            members = {name: cells_from_description(each) for name, each in description["members"].items()}
            return JointCells(members, max_cells=description["max_cells"])
        if kind in ("symbols", "numbers", "features"):
            given = {name: value for name, value in description.items() if name not in ("kind", "reads")}
            reads = [Read.from_description(read) for read in description["reads"]]
            made: dict[str, Callable[..., Cells]] = {
                "symbols": SymbolCells,
                "numbers": NumberCells,
                "features": FeatureCells,
            }
            return made[kind](reads=reads, **given)
        if kind == "places":
            places = ColourPlaces.from_description(description["places"])
            return PlaceCells(description["widths"], places, max_cells=description["max_cells"])
        if kind == "picture":
            given = {name: value for name, value in description.items() if name not in ("kind", "path")}
            return PictureCells(path=tuple(description["path"]), **given)
    except KeyError as error:
        raise CellError(f"the description of {kind} cells has no {error}") from None
    raise CellError(f"unknown kind of cells {kind!r}; a newer version may know it")
