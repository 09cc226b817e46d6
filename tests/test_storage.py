"""Files on disk: written whole or not at all, with a header that is checked, and arrays that are not believed."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from curious_explorer.storage import (
    ALIGNMENT,
    Format,
    atomic_writer,
    check_header,
    decode,
    encode,
    read_archive,
    read_json,
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


# Headers ----------------------------------------------------------------------------------------------------------


def test_json_comes_back_with_its_header(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", KIND, {"size": 7})
    assert read_json(path, KIND, {"size"}) == {"format": "a test", "version": 3, "size": 7}
    assert list(json.loads(path.read_text())) == ["format", "version", "size"]
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
        for member in archive.infolist()[1:]:
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
