"""The picture of cells that are no grid: placed near those that follow them, however many there are."""

import numpy as np
import pytest

from curious_explorer import GymWorld, TabularWorld, explore
from curious_explorer.environments import one_way_maze
from curious_explorer.studies import cell_graph
from curious_explorer.studies.visited_figures import draw_visited_cells


@pytest.fixture(scope="module")
def model():
    mdp = one_way_maze(12, doors=0.0, loops=0.3, seed=0)
    return explore(TabularWorld(mdp, seed=0), gamma=0.99, samples=20_000).model


def pairs_of(model):
    seen = model.outcomes()
    pairs = np.stack([seen.state, seen.next_state], axis=1)
    return np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)


@pytest.mark.parametrize("placed", [cell_graph._by_springs, cell_graph._by_landmarks])
def test_cells_lie_near_those_that_follow_them(model, placed):
    pairs = pairs_of(model)
    places = placed(pairs, len(model))
    assert np.isfinite(places).all()
    random = np.random.default_rng(0).permutation(len(model))[: 2 * (len(model) // 2)].reshape(-1, 2)
    near, far = (np.linalg.norm(places[at[:, 0]] - places[at[:, 1]], axis=1).mean() for at in (pairs, random))
    assert near < 0.5 * far


def test_parts_that_are_apart_are_placed_too():
    pairs = np.array([[0, 1], [1, 2], [3, 4]])
    places = cell_graph._by_landmarks(pairs, 6)
    assert np.isfinite(places).all()
    assert np.linalg.norm(places[0] - places[1]) < np.linalg.norm(places[0] - places[3])


def test_many_cells_are_a_graph_and_not_only_a_curve(monkeypatch):
    monkeypatch.setattr(cell_graph, "MOST_SPRINGS", 10)
    world = GymWorld("FrozenLake-v1", seed=0)
    exploration = explore(world, gamma=0.95, samples=1_000)
    figure = draw_visited_cells(exploration, world.discretisation)
    axes = figure.axes[0]
    drawn = [len(each.get_offsets()) for each in axes.collections if len(each.get_offsets()) > 1]
    assert drawn == [int((exploration.total_visited > 0).sum())]
    assert axes.get_legend().get_texts()[0].get_text() == "start"
