"""Symbols as one-hot vectors, and files of what was labelled."""

import numpy as np
import pytest
from gymnasium import spaces
from layouts_helpers import Signposts

from curious_explorer.errors import CheckpointError, ObservationError
from curious_explorer.explorers.layout_files import read_labels, write_labels
from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.gym.symbols import SymbolObservations, Symbols

VIEW = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (2, 2, 3), np.uint8),
        "direction": spaces.Discrete(4),
        "mission": spaces.Text(20),
    }
)


def view(kind, direction=1):
    image = np.zeros((2, 2, 3), np.uint8)
    image[..., 0] = kind
    return {"image": image, "direction": direction, "mission": "go"}


def test_each_number_of_each_channel_has_its_place_and_one_never_seen_has_the_last():
    symbols = Symbols.of(VIEW, [view(2), view(5, 3)])
    assert symbols.width == 4 * (7 + 2 + 2) + 4
    rows = symbols.rows([view(2), view(5), view(9), view(30)])
    assert (rows.sum(axis=1) == 4 * 3 + 1).all()
    assert not np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[2], rows[3])
    described = Symbols.from_description(symbols.description(), VIEW)
    assert np.array_equal(described.rows([view(5)]), symbols.rows([view(5)]))
    with pytest.raises(ObservationError, match="no part"):
        Symbols.from_description(symbols.description(), spaces.Discrete(3))


def test_words_of_a_text_that_changes_are_symbols():
    told = [{**view(1), "mission": mission} for mission in ("go to the key", "go to the red ball")]
    symbols = Symbols.of(VIEW, told)
    rows = symbols.rows(told)
    assert symbols.width - Symbols.of(VIEW, [view(1)]).width == 5 * (6 + 2)
    assert (rows.sum(axis=1) == 4 * 3 + 1 + 5).all()
    assert np.abs(rows[0] - rows[1]).sum() == 4  # the fourth word, and whether there is a fifth
    never = symbols.rows([{**view(1), "mission": f"go to the {word}"} for word in ("box", "door")])
    assert np.array_equal(*never)
    described = Symbols.from_description(symbols.description(), VIEW)
    assert np.array_equal(described.rows(told), rows)
    many = [{**view(1), "mission": f"word{number}"} for number in range(300)]
    assert Symbols.of(VIEW, many).width == Symbols.of(VIEW, [view(1)]).width


def test_what_symbols_stood_for_when_fewer_were_seen():
    few = Symbols.of(VIEW, [view(2)])
    told = [{**view(4), "mission": mission} for mission in ("a b", "a")]
    many = Symbols.of(VIEW, told)
    known = many.known_as(few)
    assert known[4:10].tolist() == [4, 5, 6, 7, 7, 7]  # four directions first; then the last is what was never seen
    assert (known[-2 * 4 :] == -1).all()  # text was always the same
    assert many.known_as(many).tolist() == list(range(many.width))


def test_what_is_no_symbol_is_left_to_others():
    assert Symbols.of(spaces.Box(-1.0, 1.0, (3,)), [np.zeros(3)]) is None
    assert Symbols.of(spaces.Box(0, 255, (2, 2, 3), np.uint8), [np.full((2, 2, 3), 200, np.uint8)]) is None
    assert Symbols.of(spaces.Text(5), ["a"]) is None


def test_an_environment_shows_symbols_as_one_row():
    env = Signposts()
    seen = [env.reset(seed=seed)[0] for seed in range(20)]
    shown = SymbolObservations(Signposts(), Symbols.of(env.observation_space, seen))
    assert shown.observation_space.contains(shown.reset(seed=2)[0])
    assert shown.reset(seed=3)[0].sum() == 2.0


def test_labels_are_stored_without_pickle(tmp_path):
    likely = np.array([[0.5, 0.5], [1.0, 0.0]])
    labels = [Labelled([view(1), view(2, 3)], likely, [4, 7]), Labelled([], np.zeros((0, 2)), [])]
    read = read_labels(write_labels(tmp_path / "labels.npz", labels))
    assert [each.states for each in read] == [[4, 7], []]
    assert np.array_equal(read[0].probabilities, likely)
    for one, other in zip(read[0].observations, labels[0].observations, strict=True):
        assert np.array_equal(one["image"], other["image"])
        assert (int(one["direction"]), one["mission"]) == (other["direction"], other["mission"])
    pairs = [Labelled([(1, "a"), (2, "b")], likely, [0, 1])]
    assert read_labels(write_labels(tmp_path / "pairs.npz", pairs))[0].observations[1][1] == "b"
    with pytest.raises(CheckpointError, match="cannot be stored"):
        write_labels(tmp_path / "odd.npz", [Labelled([object()], likely[:1], [0])])
    (tmp_path / "labels.npz").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="explore anew"):
        read_labels(tmp_path / "labels.npz")
