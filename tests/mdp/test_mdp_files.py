"""MDPs on disk: exact round trips, and files that were damaged or made to do harm."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from file_helpers import read_arrays, write_arrays
from hypothesis import HealthCheck, given, settings
from strategies import finite_mdps

from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.errors import MDPFileError
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.mdp.mdp_files import save_mdp

ENDINGS = [".json", ".npz"]


def parts_of(mdp: FiniteMDP) -> list:
    """Everything an MDP is made of, as bytes, so that -0.0 and 0.0 differ."""
    own = mdp.transition_rewards
    arrays = [
        mdp.transitions.indptr,
        mdp.transitions.indices,
        mdp.transitions.data,
        mdp.rewards,
        mdp.start,
        mdp.terminal,
    ]
    return [
        *(array.tobytes() for array in arrays),
        None if own is None else own.tobytes(),
        mdp.has_state_names,
        mdp.state_names,
        mdp.has_action_names,
        mdp.action_names,
        np.array(mdp.reward_scale).tobytes(),
    ]


@pytest.mark.parametrize("ending", ENDINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(mdp=finite_mdps(named=True))
def test_round_trip_is_exact(tmp_path: Path, ending: str, mdp: FiniteMDP) -> None:
    path = save_mdp(mdp, tmp_path / f"mdp{ending}")
    assert parts_of(FiniteMDP.load(path)) == parts_of(mdp)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("mdp", [crossroad_traps(4), combination_lock(3), garnet(300)])
def test_the_zoo_survives(tmp_path: Path, ending: str, mdp: FiniteMDP) -> None:
    path = mdp.save(tmp_path / f"mdp{ending}")
    assert FiniteMDP.load(path) == mdp
    assert FiniteMDP.load(str(path)) == mdp


@pytest.mark.parametrize("ending", ENDINGS)
def test_odd_but_legal_contents(tmp_path: Path, ending: str) -> None:
    mdp = FiniteMDP(
        np.array([[[1.0]]]),
        np.array([[-0.0]]),
        np.array([1.0]),
        state_names=["a\x00"],  # NumPy's own text arrays would drop the NUL
        action_names=['\N{GREEK SMALL LETTER PI}\n"</script>'],
        reward_scale=RewardScale(-0.0, 1e-300),
    )
    assert parts_of(FiniteMDP.load(save_mdp(mdp, tmp_path / f"x{ending}"))) == parts_of(mdp)
    two = FiniteMDP(np.ones((2, 1, 2)) / 2, np.zeros((2, 1)), np.array([-0.0, 1.0]), terminal=None)
    assert parts_of(FiniteMDP.load(save_mdp(two, tmp_path / f"y{ending}"))) == parts_of(two)


def test_json_reads_well(tmp_path: Path) -> None:
    builder = FiniteMDP.builder()
    builder.state("A").action("left").to("B", 0.8).to("A", 0.2)
    text = save_mdp(builder.terminal("B").start("A").build(), tmp_path / "x.json").read_text()
    assert (
        '    {"state": "A", "action": "left", "reward": 0.0, "to": [["A", 0.2], ["B", 0.8]]}' in text.splitlines()[11]
    )
    assert json.loads(text)["version"] == 1


def test_npz_needs_no_pickle(tmp_path: Path) -> None:
    path = save_mdp(combination_lock(2), tmp_path / "x.npz")
    with np.load(path, allow_pickle=False) as arrays:
        assert json.loads(arrays["header"].tobytes())["format"] == "curious-explorer/finite-mdp"
        assert arrays["start"].tolist() == combination_lock(2).start.tolist()


@pytest.mark.parametrize("name", ["mdp", "mdp.txt", "mdp.json.gz", "mdp.pkl", ".npz"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"expected one of \.json, \.npz"):
        save_mdp(crossroad_traps(1), tmp_path / name)
    with pytest.raises(ValueError, match=r"expected one of \.json, \.npz"):
        FiniteMDP.load(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_file_is_a_missing_file(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FileNotFoundError):
        FiniteMDP.load(tmp_path / f"none{ending}")
    with pytest.raises(FileNotFoundError, match="does not exist; create it"):
        save_mdp(crossroad_traps(1), tmp_path / "no" / f"x{ending}")


def test_half_a_surrogate_is_no_name(tmp_path: Path) -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[0.0]], 0, state_names=["\ud800"])
    for ending in ENDINGS:
        with pytest.raises(ValueError, match="surrogate"):
            save_mdp(mdp, tmp_path / f"x{ending}")
    assert list(tmp_path.iterdir()) == []


# Damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncation_anywhere_is_noticed(tmp_path: Path, ending: str) -> None:
    path = save_mdp(crossroad_traps(1), tmp_path / f"x{ending}")
    content = path.read_bytes().rstrip(b"\n")  # the last line's end says nothing
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(MDPFileError, match=path.name):
            FiniteMDP.load(path)


def test_a_flipped_byte_in_an_archive_is_noticed_or_harmless(tmp_path: Path) -> None:
    mdp = crossroad_traps(1)
    path = save_mdp(mdp, tmp_path / "x.npz")
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            found = FiniteMDP.load(path)
        except MDPFileError:
            continue
        assert found == mdp  # a date, say


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"[]", b"null", b"7", b"\x00" * 64, b"\xff\xfe{}", b"PK\x05\x06"]
)
def test_files_of_another_kind(tmp_path: Path, ending: str, content: bytes) -> None:
    path = tmp_path / f"x{ending}"
    path.write_bytes(content)
    with pytest.raises(MDPFileError):
        FiniteMDP.load(path)


def test_formats_are_not_mixed_up(tmp_path: Path) -> None:
    mdp = crossroad_traps(1)
    (tmp_path / "x.json").write_bytes(save_mdp(mdp, tmp_path / "a.npz").read_bytes())
    (tmp_path / "x.npz").write_bytes(save_mdp(mdp, tmp_path / "a.json").read_bytes())
    for ending in ENDINGS:
        with pytest.raises(MDPFileError):
            FiniteMDP.load(tmp_path / f"x{ending}")


# Hostile JSON -----------------------------------------------------------------------------------------------------


def named_json(tmp_path: Path) -> tuple[Path, str]:
    builder = FiniteMDP.builder()
    builder.state("A").action("x", reward=0.5).to("A", 0.25).to("B", 0.75)
    path = save_mdp(builder.terminal("B").start("A").build(), tmp_path / "x.json")
    return path, path.read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"version": 1', '"version": 2', "newer"),
        ('"version": 1', '"version": 0', "version is 0"),
        ('"version": 1', '"version": true', "version is True"),
        ('"version": 1', '"version": 1.0', "version is 1.0"),
        ('"version": 1', '"version": "1"', "version is '1'"),
        ("curious-explorer/finite-mdp", "something/else", "another kind"),
        ('["A", 0.25]', '["A", NaN]', "NaN"),
        ('["A", 0.25]', '["A", -Infinity]', "-Infinity"),
        ('["A", 0.25]', '["A", 1e999]', "1e999"),
        ('["A", 0.25]', '["A", true]', "True"),
        ('["A", 0.25]', '["A", "0.25"]', "'0.25'"),
        ('["A", 0.25]', '["A", 0.25, 1.0]', "list of 2"),
        ('["A", 0.25]', '["C", 0.25]', "'C'"),
        ('["A", 0.25]', "[0, 0.25]", "the state 0 is mentioned"),
        ('["A", 0.25]', '[["A"], 0.25]', "is mentioned"),
        ('["A", 0.25]', '["A", 0.125], ["A", 0.125]', "'A' is listed twice"),
        ('["A", 0.25]', '["A", 0.5]', "sum to 1.25"),
        ('["A", 0.25]', '["A", -0.25]', "-0.25"),
        ('["A", 0.25]', '["A", 1' + "0" * 400 + "]", "cannot be read"),
        ('"reward": 0.5', '"reward": 1.5', "1.5"),
        ('"reward": 0.5', '"reward": null', "None"),
        ('"reward": 0.5, ', "", "reward"),
        ('"reward": 0.5', '"reward": 0.5, "reward": 0.25', "'reward' occurs twice"),
        ('"version": 1', '"version": 1, "version": 1', "'version' occurs twice"),
        ('"version": 1', '"version": 1, "colour": 1', "colour"),
        ('  "start": [["A", 1.0]],\n', "", "misses ['start']"),
        ('[["A", 1.0]]', '[["A", 0.5], ["A", 0.5]]', "'A' twice"),
        ('[["A", 1.0]]', '[["A", 0.5]]', "sums to 0.5"),
        ('[["A", 1.0]]', '{"A": 1.0}', "expected a list"),
        ('"terminal": ["B"]', '"terminal": ["Z"]', "'Z'"),
        ('"terminal": ["B"]', '"terminal": ["A"]', "terminal"),
        ('"states": ["A", "B"]', '"states": ["A", "A"]', "distinct"),
        ('"states": ["A", "B"]', '"states": ["A", "B", "C"]', "expected 3"),
        ('"states": ["A", "B"]', '"states": 1000000000000', "expected 1000000000000"),
        ('"states": ["A", "B"]', '"states": true', "states is True"),
        ('"states": ["A", "B"]', '"states": 0', "states is 0"),
        ('"states": ["A", "B"]', '"states": 2', "a state is 'A'"),
        ('"actions": ["x"]', '"actions": []', "distinct"),
        ('"by pair"', '"by transition"', "expected an object"),
        ('"by pair"', '"by heart"', "by heart"),
        ('"offset": 0.0', '"offset": null', "offset"),
        ('"factor": 1.0', '"factor": 0.0', "factor 0.0"),
        ('"state": "B"', '"state": "A"', "described twice"),
        ('[["B", 1.0]]', "[]", "leads nowhere"),
        ('[["B", 1.0]]', "[" * 100_000 + "]" * 100_000, "cannot be read"),
    ],
)
def test_hostile_json(tmp_path: Path, old: str, new: str, words: str) -> None:
    path, text = named_json(tmp_path)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(MDPFileError) as caught:
        FiniteMDP.load(path)
    assert words in str(caught.value)


# Hostile archives -------------------------------------------------------------------------------------------------


def arrays_of(mdp: FiniteMDP, tmp_path: Path) -> dict[str, Any]:
    return read_arrays(save_mdp(mdp, tmp_path / "good.npz"))


def header_with(arrays: dict[str, Any], **changes: object) -> dict[str, Any]:
    return arrays["header"] | changes


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda a: {"start": np.array([{"harm": 1}, None, None])}, "start holds {'descr': '|O'"),
        (lambda a: {"header": header_with(a, version=4)}, "newer"),
        (lambda a: {"header": header_with(a, format="other")}, "another kind"),
        (lambda a: {"header": header_with(a, num_states=True)}, "num_states is True"),
        (lambda a: {"header": header_with(a, num_states=10**12)}, "indptr holds"),
        (lambda a: {"header": header_with(a, num_transitions=-1)}, "num_transitions is -1"),
        (lambda a: {"header": header_with(a, state_names="ABC")}, "state_names"),
        (lambda a: {"header": header_with(a, state_names=["A", "A", "B"])}, "names must differ"),
        (lambda a: {"header": header_with(a, rewards="by transition")}, "rewards holds"),
        (lambda a: {"header": np.frombuffer(json.dumps(a["header"])[:-1].encode(), dtype=np.uint8)}, "complete JSON"),
        (lambda a: {"header": np.array(1, dtype=np.uint8)}, "header holds"),
        (lambda a: {"start": a["start"].astype(np.float32)}, "start holds float32"),
        (lambda a: {"start": a["start"].astype(">f8")}, "start holds"),
        (lambda a: {"start": a["start"][:, None]}, "shape (3, 1)"),
        (lambda a: {"start": np.array(1.0)}, "shape ()"),
        (lambda a: {"start": a["start"] * np.nan}, "start[0] is nan"),
        (lambda a: {"terminal": a["terminal"].astype(np.uint8)}, "terminal holds uint8"),
        (lambda a: {"terminal": np.array([0, 2, 1], dtype=np.uint8).view(np.bool_)}, "other than 0 and 1"),
        (lambda a: {"indices": a["indices"] + 1}, "outside 0 to 2"),
        (lambda a: {"indices": a["indices"] - 5}, "outside 0 to 2"),
        (lambda a: {"indptr": a["indptr"][::-1].copy()}, "indptr"),
        (lambda a: {"indptr": a["indptr"] * 0}, "indptr"),
        (lambda a: {"probabilities": a["probabilities"] * 0.5}, "sum to 0.5"),
        (lambda a: {"probabilities": -a["probabilities"]}, "-1.0"),
        (lambda a: {"rewards": a["rewards"] + 1.0}, "expected a finite number in [0, 1]"),
        (lambda a: {"extra": np.zeros(1)}, "extra.npy"),
    ],
)
def test_hostile_arrays(tmp_path: Path, spoil, words: str) -> None:
    arrays = arrays_of(crossroad_traps(2), tmp_path)
    path = tmp_path / "bad.npz"
    write_arrays(path, arrays | spoil(arrays))
    with pytest.raises(MDPFileError) as caught:
        FiniteMDP.load(path)
    assert words in str(caught.value)


def test_an_object_array_is_never_unpickled(tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> tuple:
            return (os.mkdir, (str(tmp_path / "harmed"),))

    arrays = arrays_of(crossroad_traps(2), tmp_path)
    path = tmp_path / "bad.npz"
    write_arrays(path, arrays | {"start": np.array([Harm(), None, None], dtype=object)})
    with pytest.raises(MDPFileError, match=r"start holds .*'\|O'"):
        FiniteMDP.load(path)
    assert not (tmp_path / "harmed").exists()


def rezip(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy_header(description: str) -> bytes:
    padded = description.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()


def test_a_claimed_shape_is_not_believed(tmp_path: Path) -> None:
    path = save_mdp(crossroad_traps(2), tmp_path / "x.npz")
    members = members_of(path)
    huge = npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }")
    for name in ("start.npy", "rewards.npy", "header.npy"):
        rezip(path, list((members | {name: huge}).items()))
        with pytest.raises(MDPFileError, match=name.removesuffix(".npy")):
            FiniteMDP.load(path)
    # Right in its own header, too short in its data.
    short = npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }") + b"\x00" * 16
    rezip(path, list((members | {"start.npy": short}).items()))
    with pytest.raises(MDPFileError, match="start"):
        FiniteMDP.load(path)


@pytest.mark.parametrize(
    "descr", ["__import__('os')", "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "{}"]
)
def test_an_array_header_is_not_executed(tmp_path: Path, descr: str) -> None:
    path = save_mdp(crossroad_traps(2), tmp_path / "x.npz")
    rezip(path, list((members_of(path) | {"start.npy": npy_header(descr)}).items()))
    with pytest.raises(MDPFileError, match="start"):
        FiniteMDP.load(path)


def test_bombs_are_refused(tmp_path: Path) -> None:
    path = save_mdp(crossroad_traps(2), tmp_path / "x.npz")
    members = members_of(path)
    rezip(path, list((members | {"start.npy": b"\x00" * 50_000_000}).items()), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(MDPFileError, match="is compressed"):
        FiniteMDP.load(path)


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = save_mdp(crossroad_traps(2), tmp_path / "x.npz")
    members = list(members_of(path).items())
    with pytest.warns(UserWarning, match="Duplicate name"):
        rezip(path, [*members, members[0]])
    with pytest.raises(MDPFileError, match="expected"):
        FiniteMDP.load(path)
