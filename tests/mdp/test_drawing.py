"""Drawings: the layout shows the structure, and the marks say what they should."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium
import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from strategies import finite_mdps

from curious_explorer.environments import agarwal_chain, combination_lock, crossroad_traps, garnet, river_swim
from curious_explorer.mdp.drawing import RADIUS, draw_mdp
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.mdp.layout import edges_of, layout_states


def shuffled(mdp: FiniteMDP, seed: int) -> tuple[FiniteMDP, np.ndarray]:
    """The same graph with its states renumbered and without names; and the new number of each old state."""
    new = np.random.default_rng(seed).permutation(mdp.num_states)
    transitions = np.zeros_like(mdp.dense_transitions())
    transitions[new[:, None, None], np.arange(mdp.num_actions)[:, None], new] = mdp.dense_transitions()
    start, rewards, terminal = np.empty_like(mdp.start), np.empty_like(mdp.rewards), np.empty_like(mdp.terminal)
    start[new], rewards[new], terminal[new] = mdp.start, mdp.rewards, mdp.terminal
    return FiniteMDP(transitions, rewards, start, terminal=terminal), new


def marks(ax, kind: str) -> dict[str, object]:
    """Patches of one kind, by what follows the kind in their identifier."""
    return {p.get_gid().split("-", 1)[1]: p for p in ax.patches if (p.get_gid() or "").startswith(f"{kind}-")}


# Layout -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mdp", [crossroad_traps(5), crossroad_traps(60), agarwal_chain(5)])
@pytest.mark.parametrize("seed", [None, 1])
def test_a_chain_is_a_straight_line(mdp: FiniteMDP, seed: int | None) -> None:
    order = np.arange(mdp.num_states)
    if seed is not None:
        mdp, order = shuffled(mdp, seed)
    x, y = layout_states(mdp)[order].T
    np.testing.assert_allclose(y, y[0])
    np.testing.assert_allclose(np.diff(x), 1.0)


@pytest.mark.parametrize("depth", [1, 2, 5, 20])
def test_the_lock_has_three_straight_lanes(depth: int) -> None:
    mdp = combination_lock(depth)
    place = dict(zip(mdp.state_names, layout_states(mdp), strict=True))
    lanes = {
        lane: np.array([place[f"{lane}{level}"] for level in range(1, depth + 1)] + [place[end]])
        for lane, end in (("A", "endA"), ("B", "endB"), ("L", "lockedEnd"))
    }
    for lane in lanes.values():
        np.testing.assert_allclose(lane[:, 1], lane[0, 1])
        np.testing.assert_allclose(lane[:, 0], np.arange(1, depth + 2))
    assert lanes["A"][0, 1] > lanes["B"][0, 1] > lanes["L"][0, 1]
    assert place["start"][0] == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_lanes_come_from_the_graph_and_not_from_names(seed: int) -> None:
    mdp, new = shuffled(combination_lock(6), seed)
    positions = layout_states(mdp)[new]  # in the order start, A, B, L, endA, endB, lockedEnd
    lanes = [positions[[*range(1 + 6 * lane, 7 + 6 * lane), 19 + lane]] for lane in range(3)]
    heights = np.array([lane[:, 1] for lane in lanes])
    locked = heights[2]
    np.testing.assert_allclose(locked, locked[0])
    # A and B are mirror images for a graph, so they may change places between levels; the locked lane stays outside.
    open_lanes = np.sort(heights[:2], axis=0)
    np.testing.assert_allclose(np.diff(open_lanes, axis=1), 0.0)
    assert locked[0] < open_lanes[0, 0] or locked[0] > open_lanes[1, 0]


def test_a_grid_is_a_lozenge() -> None:
    """Without holes a slippery lake is a grid: away from the corner is right, the two directions are up and down."""
    env = gymnasium.make("FrozenLake-v1", desc=["SFFF", "FFFF", "FFFF", "FFFG"])
    positions = layout_states(FiniteMDP.from_gymnasium(env)).reshape(4, 4, 2)
    row, column = np.indices((4, 4))
    np.testing.assert_allclose(positions[:, :, 0], row + column)
    np.testing.assert_allclose(positions[:, :, 1] / positions[0, 1, 1], column - row)


def test_unreachable_states_stand_apart() -> None:
    builder = FiniteMDP.builder()
    builder.state("A").action("x").to("B").state("B").action("x").to("A")
    builder.state("lost").action("x").to("A")
    positions = layout_states(builder.start("A").build())
    assert positions[2, 1] < positions[:2, 1].min() - 2.0


@settings(max_examples=60)
@given(finite_mdps())
def test_no_two_states_overlap(mdp: FiniteMDP) -> None:
    positions = layout_states(mdp)
    assert np.isfinite(positions).all()
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    distance[np.diag_indices(mdp.num_states)] = np.inf
    assert distance.min() > 2.4 * RADIUS


@pytest.mark.parametrize("mdp", [garnet(40), garnet(150, 2, 1, seed=3)])
def test_no_two_states_overlap_in_larger_graphs(mdp: FiniteMDP) -> None:
    positions = layout_states(mdp)
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    distance[np.diag_indices(mdp.num_states)] = np.inf
    assert distance.min() > 2.4 * RADIUS


def test_ordering_removes_crossings_that_can_be_removed() -> None:
    """Two levels of a tree with the children numbered in a mean order: a planar drawing exists and is found."""
    builder = FiniteMDP.builder().states("r", "a", "b", "c", "c1", "a1", "b1", "a2", "c2", "b2").missing_actions_stay()
    for action, (branch, leaves) in enumerate({"a": "a1 a2", "b": "b1 b2", "c": "c1 c2"}.items()):
        builder.state("r").action(str(action)).to(branch)
        for number, leaf in enumerate(leaves.split()):
            builder.state(branch).action(str(number)).to(leaf)
    mdp = builder.start("r").build()
    height = dict(zip(mdp.state_names, layout_states(mdp)[:, 1], strict=True))
    for high, low in ("ab", "bc", "ac"):
        if height[high] < height[low]:
            high, low = low, high
        assert min(height[f"{high}1"], height[f"{high}2"]) > max(height[f"{low}1"], height[f"{low}2"])


# Marks ------------------------------------------------------------------------------------------------------------


def test_states_terminals_and_starts_are_marked() -> None:
    mdp = combination_lock(3).with_start(np.eye(13)[0] * 0.5 + np.eye(13)[4] * 0.5)
    ax = draw_mdp(mdp)
    assert set(marks(ax, "state")) == {str(state) for state in range(13)}
    assert set(marks(ax, "terminal")) == {"10", "11", "12"}
    assert set(marks(ax, "start")) == {"0", "4"}


def test_an_edge_for_each_two_states_and_none_for_ends() -> None:
    mdp = crossroad_traps(3)
    expected = {"0-0", "0-1", "1-0", "1-2", "2-1", "2-3"}
    assert set(marks(draw_mdp(mdp), "edge")) == expected


def test_both_directions_do_not_hide_each_other() -> None:
    edges = marks(draw_mdp(crossroad_traps(3)), "edge")
    # Of the path of an arrow, the first three points are its shaft; the second is where that bends to.
    there, back, alone = (edges[name].get_path().vertices[1, 1] for name in ("1-2", "2-1", "2-3"))
    assert there > 0.1
    assert back < -0.1
    assert alone == pytest.approx(0.0)


def test_likely_edges_are_wider_and_stronger() -> None:
    edges = marks(draw_mdp(crossroad_traps(4)), "edge")
    back, forward = edges["2-1"], edges["1-2"]  # three actions of four, and one
    assert back.get_linewidth() > forward.get_linewidth()
    assert back.get_edgecolor()[3] > forward.get_edgecolor()[3]


def test_edges_that_pay_are_coloured_and_labelled() -> None:
    ax = draw_mdp(crossroad_traps(4))
    edges = marks(ax, "edge")
    assert edges["3-4"].get_edgecolor()[:3] != edges["2-3"].get_edgecolor()[:3]
    assert "+1" in [text.get_text() for text in ax.texts]


def test_rewards_are_told_in_original_units() -> None:
    edges = edges_of(FiniteMDP.from_gymnasium("CliffWalking-v1"))
    assert set(edges.reward.tolist()) == {-1.0, -100.0}
    into_start = (edges.head == 36) & (edges.tail > 24) & (edges.tail != 36) & (edges.tail < 36)
    assert set(edges.reward[into_start].tolist()) == {-100.0}


@settings(max_examples=40)
@given(finite_mdps())
def test_edge_probabilities_are_those_of_the_uniform_policy(mdp: FiniteMDP) -> None:
    edges = edges_of(mdp)
    expected = mdp.dense_transitions().mean(axis=1)
    drawn = np.zeros_like(expected)
    drawn[edges.tail, edges.head] = edges.probability
    hidden = np.diag(mdp.terminal & (drawn.diagonal() == 0.0))
    np.testing.assert_allclose(drawn[~hidden], expected[~hidden], atol=1e-12)
    pairs = set(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))
    assert all(both == ((head, tail) in pairs) for tail, head, _, _, both in zip(*edges, strict=True) if tail != head)


def test_values_colour_the_states() -> None:
    values = np.linspace(0.0, 1.0, 6)
    ax = draw_mdp(crossroad_traps(5), values=values, values_label="visits $x")
    states = marks(ax, "state")
    cmap = matplotlib.colormaps["RdYlGn"]
    for state, value in enumerate(values):
        np.testing.assert_allclose(states[str(state)].get_facecolor(), cmap(value), atol=1e-9)
    (bar,) = ax.child_axes
    assert "visits $x" in (bar.get_xlabel(), bar.get_ylabel())
    pinned = marks(draw_mdp(crossroad_traps(5), values=values, vmin=0.0, vmax=2.0, cmap="viridis"), "state")
    np.testing.assert_allclose(pinned["5"].get_facecolor(), matplotlib.colormaps["viridis"](0.5), atol=1e-9)


@pytest.mark.parametrize("name", ["$x", "$a$", r"$\frac{", "<script>", "a&b", "two\nlines", "_", "^", "%", "\\", "{"])
def test_names_are_text(tmp_path: Path, name: str) -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[0.5]], 0, state_names=[name])
    ax = draw_mdp(mdp, path=tmp_path / "x.svg", title=name)
    shown = name.replace("\n", r"\n")
    label = next(text for text in ax.texts if text.get_text() == shown)
    assert not label.get_parse_math()
    assert ax.get_title() == name
    assert "<script>" not in (tmp_path / "x.svg").read_text()


def test_labels_stay_inside_the_picture_and_apart() -> None:
    for mdp in (
        combination_lock(5),
        combination_lock(20),
        crossroad_traps(20),
        FiniteMDP.from_gymnasium("FrozenLake-v1"),
    ):
        ax = draw_mdp(mdp)
        canvas = FigureCanvasAgg(ax.figure)
        canvas.draw()
        boxes = [text.get_window_extent() for text in ax.texts]
        names = [text.get_text() for text in ax.texts]
        assert set(mdp.state_names) <= set(names)
        for index, box in enumerate(boxes):
            assert box.x0 >= 0
            assert box.x1 <= ax.figure.bbox.x1
            assert not any(box.overlaps(other) for other in boxes[:index]), names[index]
        smallest = min(text.get_fontsize() for text in ax.texts)
        assert smallest >= 4.5
        assert ax.figure.get_figwidth() <= 7.01


def test_large_graphs_drop_their_labels_rather_than_their_legibility() -> None:
    assert len(draw_mdp(garnet(600, 2, 1)).texts) == 0


def test_drawing_on_given_axes_leaves_pyplot_alone() -> None:
    figure = Figure(figsize=(3.0, 2.0))
    ax = figure.add_subplot()
    assert draw_mdp(crossroad_traps(3), ax=ax) is ax
    assert len(figure.axes) == 1
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_saved_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"picture.{ending}"
    combination_lock(2).draw(path=path)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"%PDF-", b"<?xml")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    if ending == "png":
        assert image.imread(path).std() > 0.05


def test_bad_arguments(tmp_path: Path) -> None:
    mdp = crossroad_traps(3)
    with pytest.raises(ValueError, match=r"2002 states.*max_states=2000.*smaller"):
        draw_mdp(crossroad_traps(2001))
    with pytest.raises(ValueError, match="4 states"):
        draw_mdp(mdp, max_states=3)
    with pytest.raises(ValueError, match=r"values has shape \(3,\), expected \(4,\)"):
        draw_mdp(mdp, values=np.zeros(3))
    with pytest.raises(ValueError, match="values, state 1: nan"):
        draw_mdp(mdp, values=[0.0, np.nan, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"positions has shape \(4,\)"):
        draw_mdp(mdp, positions=np.zeros(4))
    with pytest.raises(ValueError, match=r"ends in '\.doc', expected one of"):
        draw_mdp(mdp, path=tmp_path / "x.doc")


def test_equal_values_can_be_drawn() -> None:
    draw_mdp(crossroad_traps(2), values=np.zeros(3)).figure.canvas.draw()


def _labels(ax) -> dict[str, str]:
    return {text.get_gid(): text.get_text() for text in ax.texts if (text.get_gid() or "").startswith("label-")}


def test_small_drawings_say_which_actions_take_an_arrow_and_how_likely() -> None:
    builder = FiniteMDP.builder()
    builder.state("foot").action("rest").to("foot")
    builder.state("foot").action("climb").to("hut", 0.7, reward=1.0).to("foot", 0.3)
    mdp = builder.terminal("hut").start("foot").build()
    foot, hut = mdp.state_names.index("foot"), mdp.state_names.index("hut")
    found = _labels(draw_mdp(mdp))
    assert found == {f"label-{foot}-{foot}": "rest\nclimb 0.3", f"label-{foot}-{hut}": "climb 0.7"}
    assert not _labels(draw_mdp(mdp, actions=False))
    assert not _labels(draw_mdp(combination_lock(20))), "no room"


@pytest.mark.parametrize("mdp", [crossroad_traps(4), combination_lock(2), river_swim(6)])
def test_labels_of_arrows_lie_on_no_state_and_on_no_other_label(mdp: FiniteMDP) -> None:
    ax = draw_mdp(mdp)
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in ax.texts if (text.get_gid() or "").startswith("label-")]
    assert boxes
    circles = [patch.get_window_extent(renderer) for patch in ax.patches if str(patch.get_gid()).startswith("state-")]
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
        middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
        assert all(np.hypot(*(middle - circle.get_points().mean(axis=0))) > circle.width / 2 for circle in circles)
