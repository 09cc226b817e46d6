"""MDPs that stay in their file: mapped round trips, damage that is found and when, and large models that stay lean."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from file_helpers import read_arrays, write_arrays
from hypothesis import HealthCheck, given, settings
from scipy import sparse
from strategies import finite_mdps
from test_mdp_files import parts_of

from curious_explorer import FiniteMDP, TabularWorld, visit
from curious_explorer.environments import combination_lock, crossroad_traps, garnet, one_way_maze
from curious_explorer.errors import MDPFileError
from curious_explorer.storage import ALIGNMENT


def save(mdp: FiniteMDP, tmp_path: Path) -> Path:
    return mdp.save(tmp_path / "x.npz")


@pytest.mark.parametrize("check", [None, False, True])
@pytest.mark.parametrize("mmap", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None)
@given(mdp=finite_mdps(named=True))
def test_round_trip_is_exact(tmp_path: Path, mmap: bool, check: bool | None, mdp: FiniteMDP) -> None:
    loaded = FiniteMDP.load(save(mdp, tmp_path), mmap=mmap, check=check)
    assert parts_of(loaded) == parts_of(mdp)
    assert loaded == mdp


def test_a_mapped_model_is_the_file_and_cannot_be_changed(tmp_path: Path) -> None:
    mdp = garnet(1000)
    mapped = FiniteMDP.load(save(mdp, tmp_path), mmap=True)
    rows = mapped.transitions
    for array in (rows.data, rows.indices, rows.indptr, mapped.rewards, mapped.start, mapped.terminal):
        assert not array.flags.writeable
        assert array.flags.aligned
        assert not array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        rows.data.flags.writeable = True


def test_a_mapped_model_outlives_a_new_file_of_its_name(tmp_path: Path) -> None:
    mapped = FiniteMDP.load(save(garnet(1000, seed=1), tmp_path), mmap=True)
    save(garnet(1000, seed=2), tmp_path)
    assert parts_of(mapped) == parts_of(garnet(1000, seed=1))


def test_every_array_begins_where_it_can_be_mapped(tmp_path: Path) -> None:
    path = save(combination_lock(3), tmp_path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive, np.load(path) as arrays:
        for member in archive.infolist():
            data = arrays[member.filename.removesuffix(".npy")].tobytes()
            local = content[member.header_offset : member.header_offset + 30]
            begin = member.header_offset + 30 + sum(np.frombuffer(local[26:30], "<u2").tolist())
            place = begin + member.file_size - len(data)
            assert content[place : place + len(data)] == data
            assert place % ALIGNMENT == 0


def test_the_file_is_the_same_every_time(tmp_path: Path) -> None:
    first = save(combination_lock(3), tmp_path).read_bytes()
    assert save(combination_lock(3), tmp_path).read_bytes() == first


def test_the_fingerprint_of_a_mapped_model_is_taken_from_the_file_unless_checked(tmp_path: Path) -> None:
    mdp = crossroad_traps(3)
    path = save(mdp, tmp_path)
    arrays = read_arrays(path)
    header = arrays["header"]
    assert header["fingerprint"] == mdp.fingerprint
    false = "0" * 64
    path.write_bytes(path.read_bytes().replace(mdp.fingerprint.encode(), false.encode()))
    with pytest.raises(MDPFileError, match="header is damaged"):  # the header's checksum is always taken
        FiniteMDP.load(path, mmap=True)
    write_arrays(path, arrays | {"header": header | {"fingerprint": "ABC"}})
    with pytest.raises(MDPFileError, match="fingerprint is 'ABC', expected 64 hexadecimal digits"):
        FiniteMDP.load(path)


def test_a_false_fingerprint_is_found_when_asked(tmp_path: Path) -> None:
    mdp = garnet(50)
    mdp.__dict__["fingerprint"] = "0" * 64
    path = save(mdp, tmp_path)
    assert FiniteMDP.load(path, mmap=True).fingerprint == "0" * 64
    with pytest.raises(MDPFileError, match="fingerprint is not that of its arrays"):
        FiniteMDP.load(path, mmap=True, check=True)


# Damage -----------------------------------------------------------------------------------------------------------


def test_truncation_anywhere_is_noticed_without_reading_the_arrays(tmp_path: Path) -> None:
    path = save(crossroad_traps(1), tmp_path)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(MDPFileError, match=path.name):
            FiniteMDP.load(path, mmap=True)


def test_a_flipped_byte_is_noticed_when_checked(tmp_path: Path) -> None:
    mdp = crossroad_traps(1)
    path = save(mdp, tmp_path)
    content = path.read_bytes()
    for place in range(0, len(content), 11):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            found = FiniteMDP.load(path, mmap=True, check=True)
        except MDPFileError:
            continue
        assert found == mdp  # a date, say


@pytest.mark.parametrize(("array", "value"), [("indices", 10**6), ("indices", -1), ("indptr", -5), ("indptr", 10**6)])
def test_damage_that_was_not_looked_for_cannot_send_a_walk_out_of_bounds(
    tmp_path: Path, array: str, value: int
) -> None:
    mdp = garnet(200)
    path = save(mdp, tmp_path)
    good = getattr(mdp.transitions, array).tobytes()
    bad = getattr(mdp.transitions, array).copy()
    bad[7] = value
    path.write_bytes(path.read_bytes().replace(good, bad.tobytes()))
    damaged = FiniteMDP.load(path, mmap=True)
    with pytest.raises(ValueError, match=r"state [01], action \d: the model's stored transitions are damaged"):
        TabularWorld(damaged)
    with pytest.raises(MDPFileError, match=f"{array} is damaged"):
        FiniteMDP.load(path, mmap=True, check=True)


def test_members_may_not_overlap(tmp_path: Path) -> None:
    path = save(crossroad_traps(2), tmp_path)
    content = bytearray(path.read_bytes())
    entries = [place for place in range(len(content)) if content[place : place + 4] == b"PK\x01\x02"]
    for entry in entries[1:-1]:  # all but the header's claim to begin where the first array does
        content[entry + 42 : entry + 46] = content[entries[0] + 42 : entries[0] + 46]
    path.write_bytes(bytes(content))
    with pytest.raises(MDPFileError, match="no complete archive"):
        FiniteMDP.load(path, mmap=True)


def test_what_cannot_be_mapped_says_so(tmp_path: Path) -> None:
    mdp = crossroad_traps(2)
    path = mdp.save(tmp_path / "x.json")
    for arguments in ({"mmap": True}, {"check": False}):
        with pytest.raises(ValueError, match=r"is text, which is always read and checked; save the MDP as \.npz"):
            FiniteMDP.load(path, **arguments)
    path = save(mdp, tmp_path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays)  # NumPy's own archives do not care where an array begins
    assert FiniteMDP.load(path) == mdp
    with pytest.raises(MDPFileError, match="cannot be mapped; load it without mmap, and save it again"):
        FiniteMDP.load(path, mmap=True)
    with pytest.raises(FileNotFoundError):
        FiniteMDP.load(tmp_path / "none.npz", mmap=True)


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_of_another_version_names_it(tmp_path: Path, version: int, mmap: bool) -> None:
    path = save(crossroad_traps(2), tmp_path)
    arrays = read_arrays(path)
    write_arrays(path, arrays | {"header": arrays["header"] | {"version": version}})
    with pytest.raises(MDPFileError, match=f"version is {version}, .* than 3"):
        FiniteMDP.load(path, mmap=mmap)


# Large models -----------------------------------------------------------------------------------------------------


def test_a_world_of_a_mapped_model_walks_as_any_other(tmp_path: Path) -> None:
    mdp = one_way_maze(317)  # 100,489 states
    mapped = FiniteMDP.load(save(mdp, tmp_path), mmap=True)
    assert not mapped.transitions.indices.flags.owndata
    counts = [visit(TabularWorld(m, seed=3), m.uniform_policy(), gamma=0.99, count=20_000) for m in (mdp, mapped)]
    assert (counts[0] == counts[1]).all()
    assert TabularWorld(mapped).identity() == TabularWorld(mdp).identity()


def test_without_a_copy_the_arrays_become_the_models_own() -> None:
    mdp = garnet(100)
    rows = sparse.csr_array(mdp.transitions, copy=True)
    rewards, start = mdp.rewards.copy(), mdp.start.copy()
    own = FiniteMDP.from_rows(rows, rewards, start, copy=False)
    assert own == mdp
    assert np.shares_memory(own.transitions.data, rows.data)
    assert np.shares_memory(own.rewards, rewards)
    assert not rewards.flags.writeable
    copied = FiniteMDP.from_rows(mdp.transitions, mdp.rewards, mdp.start)
    assert not np.shares_memory(copied.rewards, mdp.rewards)


def test_a_list_of_matrices_is_interleaved_whatever_their_form() -> None:
    random = np.random.default_rng(0)
    dense = random.random((7, 3, 7)) * (random.random((7, 3, 7)) < 0.4)
    dense[..., 2] += 0.1
    dense /= dense.sum(axis=2, keepdims=True)
    expected = FiniteMDP(dense, np.zeros((7, 3)), 0)
    kinds = [sparse.csr_array, sparse.csc_array, sparse.coo_array]
    assert FiniteMDP([kinds[a](dense[:, a]) for a in range(3)], np.zeros((7, 3)), 0) == expected
    halves = [sparse.coo_array((np.full(2, 0.5), ([0, 0], [0, 0])), shape=(1, 1))]  # one entry, given twice
    assert FiniteMDP(halves, np.zeros((1, 1)), 0).transitions.data.tolist() == [1.0]


LEAN = """
import sys
from pathlib import Path
from curious_explorer import FiniteMDP
from curious_explorer.environments import garnet, one_way_maze

def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

garnet(10), one_way_maze(3)
before = peak()
mdp = {"garnet": lambda: garnet(400_000), "maze": lambda: one_way_maze(632)}[sys.argv[1]]()
rows = mdp.transitions
arrays = (rows.data, rows.indices, rows.indptr, mdp.rewards, mdp.start, mdp.terminal)
needed = sum(array.nbytes for array in arrays)
mdp.save(sys.argv[2])
print(needed, peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(("kind", "most"), [("garnet", 3.0), ("maze", 5.0)])
def test_building_and_saving_stay_near_what_the_arrays_need(tmp_path: Path, kind: str, most: float) -> None:
    """Blocks of a million rows weigh more here than at 10^7 states, where a Garnet takes 1.1 and a maze 1.3 times."""
    command = [sys.executable, "-c", LEAN, kind, str(tmp_path / "x.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    needed, used = map(int, done.stdout.split())
    assert used < most * needed
