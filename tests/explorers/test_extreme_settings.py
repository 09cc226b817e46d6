"""Settings beyond what can be computed with are refused by name; all others run, within their samples."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from curious_explorer import TRPO, ModelBased, TabularWorld, explore, improve
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.explorers.methods import METHODS
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.registration import ZOO
from curious_explorer.theory import reinforce_rate, weissman_radius

ODD = (0, -1, 1e-320, 1e-300, 1e308, float("inf"), float("nan"), "x", None, 1.5, 2**63, 10**40, True)
EXPLORERS = sorted({type(make()) for make in METHODS.values()} | {Frontier}, key=lambda each: each.__name__)
SAMPLES = 60


@pytest.mark.parametrize("kind", EXPLORERS)
def test_extreme_constants_of_explorers(kind: type[Any]) -> None:
    mdp = combination_lock(2)
    for setting in fields(kind):
        for value in ODD:
            try:
                explorer = kind(**{setting.name: value})
            except ValueError as error:
                assert setting.name in str(error)  # noqa: PT017
                continue
            world = TabularWorld(mdp)
            explore(world, explorer, gamma=0.9, samples=SAMPLES)
            assert world.samples <= SAMPLES


@pytest.mark.parametrize("kind", [TRPO, Reinforce])
def test_extreme_constants_of_learners(kind: type[Any]) -> None:
    mdp = combination_lock(2)
    for setting in fields(kind):
        for value in ODD:
            try:
                optimizer = kind(**{setting.name: value})
            except ValueError as error:
                assert setting.name in str(error)  # noqa: PT017
                continue
            improve(TabularWorld(mdp), optimizer, None, gamma=0.9, budget=200)


@pytest.mark.parametrize("name", sorted(ZOO))
def test_sizes_without_end_are_refused_at_once(name: str) -> None:
    with pytest.raises((ValueError, MemoryError)):
        find_environment(f"{name}/99999999999")


@pytest.mark.parametrize("visits", [1.5, "5", float("nan"), 0, 2**63, True])
def test_visits_that_are_no_number_of_walks(visits: Any) -> None:
    with pytest.raises(ValueError, match="visits"):
        explore(TabularWorld(crossroad_traps(2)), ModelBased(), gamma=0.5, rounds=1, visits=visits)


@pytest.mark.parametrize(
    "changed", [{"delta": 0}, {"delta": None}, {"num_states": 0}, {"num_actions": 1.5}, {"tries": [-1.0]}]
)
def test_radii_of_nonsense_are_refused(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {"tries": [1.0], "num_states": 3, "num_actions": 2, "delta": 0.05} | changed
    with pytest.raises(ValueError, match=next(iter(changed))):
        weissman_radius(given.pop("tries"), **given)


@pytest.mark.parametrize(
    "changed", [{"episodes": 0}, {"delta": 1e400}, {"gamma": 1}, {"mismatch": -1}, {"constant": "x"}]
)
def test_rates_of_nonsense_are_refused(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "num_states": 3,
        "num_actions": 2,
        "gamma": 0.9,
        "episodes": 100,
        "delta": 0.05,
        "mismatch": 2.0,
    }
    assert reinforce_rate(**given) > 0.0
    with pytest.raises(ValueError, match=next(iter(changed))):
        reinforce_rate(**given | changed)
