"""Files on disk: written whole or not at all, with a header that is checked, and arrays that are not believed."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from curious_explorer.storage import (
    ALIGNMENT,
    Format,
    atomic_writer,
    check_header,
    check_inside,
    check_tensors,
    decode,
    encode,
    parse_strictly,
    read_archive,
    read_json,
    read_plain,
    reading,
    tensors_header,
    write_atomically,
    write_json,
)

KIND = Format("a test", 3)

# Files ------------------------------------------------------------------------------------------------------------


def fail_half_way(path: Path) -> None:
    with atomic_writer(path) as stream:
        stream.write(b"half of it")
        raise RuntimeError("power cut")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_atomically(tmp_path / "file", "old")
    with pytest.raises(RuntimeError, match="power cut"):
        fail_half_way(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_failed_rename_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        write_atomically(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_visible_before_the_end(tmp_path: Path) -> None:
    path = write_atomically(tmp_path / "file", "old")
    with atomic_writer(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_content_is_on_disk_before_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("replace"), replace(a, b))[1])
    write_atomically(tmp_path / "file", "text")
    assert order[:2] == ["fsync", "replace"]


def test_links_and_permissions_are_kept_ordinary(tmp_path: Path) -> None:
    target = write_atomically(tmp_path / "target", "old")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    (tmp_path / "plain").write_text("")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_atomically(tmp_path, "text")


def test_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe"):  # and does not wait for a writer
        read_plain(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        read_plain(tmp_path)


def test_no_link_leads_out_of_a_folder(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    write_atomically(outside / "file", "foreign")
    (folder / "linked").symlink_to(outside / "file")
    (folder / "below").symlink_to(outside)
    for path in (folder / "linked", folder / "below" / "file"):
        assert read_plain(path) == b"foreign"  # where nothing is said of a folder
        with pytest.raises(ValueError, match="is a link"):
            read_plain(path, within=folder)
    with pytest.raises(ValueError, match="leads out"):
        check_inside(folder / ".." / "outside" / "file", folder)


def test_a_full_disk_is_explained_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = write_atomically(tmp_path / "file", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left on the disk; nothing was changed there"):
        write_atomically(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


class OurError(ValueError):
    """The error of some kind of file."""


def read_as_ours(path: Path, problem: Exception, **options: bool) -> None:
    with reading(path, OurError, "a thing", "make it anew", **options):
        raise problem


@pytest.mark.parametrize(
    "problem",
    [ValueError("v"), OSError("o"), MemoryError(), RecursionError(), KeyError("k"), IndexError(), struct.error("s")],
)
def test_whatever_a_damaged_file_causes_names_it(tmp_path: Path, problem: Exception) -> None:
    path = tmp_path / "x"
    with pytest.raises(OurError, match=r"x cannot be read as a thing: .*; make it anew") as caught:
        read_as_ours(path, problem)
    assert caught.value.__cause__ is problem
    with pytest.raises(OurError, match=r"^mine$"):
        read_as_ours(path, OurError("mine"))
    with pytest.raises(FileNotFoundError):
        read_as_ours(path, FileNotFoundError(), missing=True)


# Headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1e999}', "1e999"),
        (b'{"a": ' + b"7" * 400 + b"}", "400 digits"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"[" * 60 + b"]" * 60, "nested too deeply"),
        (b"[" * 60 + b'"' + b'\\"' * 300_000, "nested too deeply"),  # a text without an end
        (b'{"a": 1, "a": 2}', "twice"),
        (b"\xff", "UTF-8"),
        (b" ", "empty"),
    ],
)
def test_json_without_liberties(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_strictly(content)


def test_layout_is_no_part_of_the_checksum(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", KIND, {"size": 7, "share": 0.1, "names": ("a", "b"), "by": {1: 2}})
    path.write_text(json.dumps(json.loads(path.read_text()), indent=None, sort_keys=True))
    assert read_json(path, KIND, {"size", "share", "names", "by"})["size"] == 7
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(ValueError, match="checksum is another"):
        read_json(path, KIND, {"size", "share", "names", "by"})


def test_json_comes_back_with_its_header(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", KIND, {"size": 7})
    assert read_json(path, KIND, {"size"}) == json.loads(path.read_text())
    assert list(json.loads(path.read_text())) == ["format", "version", "size", "checksum"]
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, KIND, {"size": float("nan")})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "another kind"),
        ({"format": "other", "version": 3, "size": 1}, "'other'.*another kind"),
        ({"format": "a test", "version": 2, "size": 1}, "version is 2, older than 3.*write it again"),
        ({"format": "a test", "version": 4, "size": 1}, "version is 4, newer than 3.*update"),
        ({"format": "a test", "version": True, "size": 1}, "version is True"),
        ({"format": "a test", "version": 0, "size": 1}, "version is 0"),
        ({"format": "a test", "size": 1}, "version is None"),
        ({"format": "a test", "version": 3}, "misses.*size"),
        ({"format": "a test", "version": 3, "size": 1, "colour": 2}, "unknown.*colour"),
        ({"format": "a test", "version": 3, "size": 1}, "misses.*checksum"),
        (KIND.header({"size": 1}) | {"size": 2}, "checksum"),
        (KIND.header({"size": 1}) | {"checksum": None}, "checksum"),
    ],
)
def test_headers_that_do_not_fit(given: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_header(given, KIND, {"size"})


# Archives ---------------------------------------------------------------------------------------------------------

ARRAYS = {
    "floats": np.linspace(0.0, 1.0, 6).reshape(2, 3),
    "by_columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "empty": np.zeros((0, 4), dtype=np.int32),
    "scalar": np.array(3.0),
    "mask": np.array([True, False]),
}


def test_arrays_come_back_and_numpy_reads_them_too(tmp_path: Path) -> None:
    content = encode(KIND, {"note": "x"}, ARRAYS)
    archive = decode(content, KIND, {"note"}, set(ARRAYS))
    (tmp_path / "x.npz").write_bytes(content)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as loaded, open(tmp_path / "x.npz", "rb") as stream:
        mapped = read_archive(stream, KIND, {"note"}, None, mapped=True)
        for name, array in ARRAYS.items():
            for found in (archive.array(name, array.dtype.str, array.shape), mapped.arrays[name], loaded[name]):
                assert found.dtype == array.dtype
                np.testing.assert_array_equal(found, array)
                assert found.flags.c_contiguous
    assert archive.header["note"] == "x"


def test_every_array_begins_at_a_multiple_of_the_alignment() -> None:
    content = encode(KIND, {}, {f"{'x' * length}": np.arange(length, dtype=np.float64) for length in range(1, 40)})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist()[:-1]:  # the last one is the header
            data = np.arange(len(member.filename) - 4, dtype=np.float64).tobytes()
            begin = content.index(b"NUMPY", member.header_offset) - 1
            assert (begin + member.file_size - len(data)) % ALIGNMENT == 0


def test_an_object_array_is_not_written() -> None:
    with pytest.raises(ValueError, match="Object arrays"):
        encode(KIND, {}, {"x": np.array([{}])})


def test_an_array_that_does_not_fit_is_named() -> None:
    archive = decode(encode(KIND, {}, ARRAYS), KIND, set(), None)
    for arguments in (("floats", "<f4", (2, 3)), ("floats", "<f8", (3, 2)), ("floats", "<f8", None)):
        with pytest.raises(ValueError, match="floats holds float64 of shape"):
            archive.array(*arguments)
    with pytest.raises(ValueError, match="no array 'none'"):
        archive.array("none", "<f8", None)


@pytest.mark.parametrize("shape", [b"(3L,)", b"3,   ", b"(-3,)", b"(3 3)", b"(\xff3,)"])
def test_the_header_of_an_array_is_not_evaluated_and_nothing_is_warned_of(shape: bytes) -> None:
    content = encode(KIND, {}, {"a": np.arange(3.0)})
    damaged = content.replace(b"(3,), } ", shape + b", }")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match=r"^a "):
            decode(damaged, KIND, set(), None)
    assert said == []


def test_arrays_that_changed_places_are_noticed() -> None:
    content = encode(KIND, {}, {"one": np.array([1.0, 2.0]), "two": np.array([3.0, 4.0])})
    swapped = content.replace(b"one.npy", b"xxx.npy").replace(b"two.npy", b"one.npy").replace(b"xxx.npy", b"two.npy")
    with pytest.raises(ValueError, match="not those of its header"):
        decode(swapped, KIND, set(), None)


def test_tensors_have_checksums_too() -> None:
    tensors = {"a": np.arange(4.0), "b": np.zeros((2, 2), dtype=np.float32)}
    text = tensors_header(KIND, {"note": 1}, tensors).encode()
    assert check_tensors(text, KIND, {"note"}, tensors)["note"] == 1
    for changed in (
        {"a": tensors["a"] + 1e-12},
        {"b": tensors["b"].reshape(4)},
        {"b": -tensors["b"]},
        {"c": tensors["a"]},
    ):
        with pytest.raises(ValueError, match="not those of its header"):
            check_tensors(text, KIND, {"note"}, tensors | changed)
