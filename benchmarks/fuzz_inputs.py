"""Files that are read, ways to damage them, for `benchmarks.fuzz`, and what was read as a digest.

A mutation changes bytes (bits, truncation, moved or zeroed spans), the structure (JSON: other types, sizes, swapped,
missing and double members; archives: swapped and changed arrays, claims of type and shape), what kind of file it is
(links, pipes, folders, nothing), or puts another file in its place: one of the same folder, or that of another run of
the same shapes. Half of the structural ones are *sealed*: their checksums are put in order, as by an
enemy, so that what lies behind the checksums is reached too. Unsealed ones may not be read as anything else than what
was written; sealed ones may, if it is valid.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fuzz_files import LOADERS
from benchmarks.fuzz_samples import write_samples
from curious_explorer.storage import CHECKSUM, checksum_of

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    10**8,
    2**31,
    2**63,
    -(2**63),
    10**39,
    10**400,
    0.5,
    -0.0,
    1e308,
    1e-320,
]
ODD += ["", "x", "../x", "\ud800", "x" * 5_000, [], [[]], {}, {"kind": "grid"}, [0] * 1_000, [None], {"": None}]
NESTED = 3_000
NUMBERS = [0, 1, -1, 5, 2**31 - 1, -(2**31), 2**62, 255]


class Format(NamedTuple):
    """A kind of folder, or file, that is read."""

    name: str
    files: dict[str, bytes]
    """By their path in the folder."""
    others: dict[str, bytes]
    """The same files of another run, where both have them."""
    read: Callable[[Path], Any]
    error: type[Exception] | tuple[type[Exception], ...]


class Input(NamedTuple):
    """A damaged folder: one of its files is another, or is no file any more."""

    format: str
    file: str
    content: bytes | None
    """None for what is no plain file."""
    how: str
    sealed: bool = False


def formats(folder: Path, *, write: bool = True, as_far_as_can_be: bool = False) -> dict[str, Format]:
    """Small files of every format, written by this library in a folder, or found there; see `write_samples`."""
    if write:
        for seed in (0, 1):
            write_samples(folder / f"run-{seed}", seed=seed, as_far_as_can_be=as_far_as_can_be)
    found = {}
    for name, (read, error) in LOADERS.items():
        if not all((folder / f"run-{seed}" / name).is_dir() for seed in (0, 1)):
            continue
        files, others = (_contents(folder / f"run-{seed}" / name) for seed in (0, 1))
        found[name] = Format(name, files, {path: others[path] for path in files if path in others}, read, error)
    return found


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def damaged(format: Format, seed: int) -> Input:
    """The input of this number."""
    rng = random.Random(seed)
    file = rng.choice(sorted(format.files))
    content = format.files[file]
    kinds: list[Callable[[random.Random, bytes], tuple[bytes, str]]] = [_bits, _spans, _truncated]
    if rng.random() < 0.03:
        return Input(format.name, file, None, rng.choice(["missing", "link", "link to nothing", "pipe", "folder"]))
    if rng.random() < 0.05:
        return _exchanged(rng, format, file)
    if file.endswith((".json", ".npz", ".safetensors")) and rng.random() < 0.7:
        sealed = rng.random() < 0.5
        change = {".json": _json, ".npz": _archive, ".safetensors": _tensors}[Path(file).suffix]
        content, how = change(rng, content, sealed)
        if sealed:
            return Input(format.name, file, content, how, sealed=True)
    else:
        content, how = rng.choice(kinds)(rng, content)
    if rng.random() < 0.1:
        content, more = rng.choice(kinds)(rng, content)
        how = f"{how}, {more}"
    return Input(format.name, file, content, how)


def lay_out(given: Input, format: Format, folder: Path, *, previous: str | None = None) -> None:
    """Make the folder the damaged one; ``previous`` is the file that the input before had damaged."""
    for name, content in format.files.items():
        path = folder / name
        if name not in (given.file, previous) and path.is_file():
            continue
        _remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == given.file and given.content is None:
            _no_file(given.how, path, content, folder.parent / "outside")
        else:
            path.write_bytes(content if name != given.file or given.content is None else given.content)


def _no_file(how: str, path: Path, content: bytes, outside: Path) -> None:
    if how == "link":
        outside.write_bytes(content)
        path.symlink_to(outside)
    elif how == "link to nothing":
        path.symlink_to(path.with_name("nothing"))
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _exchanged(rng: random.Random, format: Format, file: str) -> Input:
    """Another file in the place of one."""
    if file in format.others and rng.random() < 0.5:
        return Input(format.name, file, format.others[file], "of another run")
    other = rng.choice(sorted(format.files))
    return Input(format.name, file, format.files[other], f"in its place {other}")


# Bytes -------------------------------------------------------------------------------------------------------------


def _bits(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed), "bits"


def _truncated(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    return content[: rng.randrange(len(content) + 1)], "truncated"


def _spans(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    first, second = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    span = content[first:second][: rng.choice([4, 64, 10_000])]
    rest = content[first + len(span) :]
    how = rng.choice(["zeroed", "doubled", "removed", "random", "appended", "reversed"])
    new = {
        "zeroed": bytes(len(span)),
        "doubled": span + span,
        "removed": b"",
        "random": rng.randbytes(len(span)),
        "reversed": span[::-1],
    }
    return (content + span, how) if how == "appended" else (content[:first] + new[how] + rest, how)


# JSON --------------------------------------------------------------------------------------------------------------


def _json(rng: random.Random, content: bytes, sealed: bool) -> tuple[bytes, str]:
    text, how = _changed_json(rng, json.loads(content), sealed)
    return text, f"json: {how}"


def _changed_json(rng: random.Random, value: Any, sealed: bool) -> tuple[bytes, str]:
    """The text of a value of which something was changed, sealed again or not."""
    how = "same"
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        value, how = _changed(rng, value)
    if sealed and isinstance(value, dict) and CHECKSUM in value:
        value[CHECKSUM] = _sum_of(value)
    text = json.dumps(value)
    if how == "nested":
        text = text.replace('"NESTED"', "[" * NESTED + "]" * NESTED, 1)
    elif rng.random() < 0.05:
        text, how = (
            text.replace(",", ", " + text[1 : text.index(":") + 1] + " 1,", 1) if ":" in text else text,
            "double",
        )
    elif rng.random() < 0.05:
        text, how = text.replace("0", rng.choice(["NaN", "Infinity", "1e999", "0" * 50, "-"]), 1), "text"
    return text.encode("utf-8", "surrogatepass"), how


def _changed(rng: random.Random, value: Any) -> tuple[Any, str]:
    places = list(_places(value))
    if not places:
        return _odd(rng), "all"
    parent, key = rng.choice(places)
    how = rng.choice(["odd", "odd", "number", "remove", "add", "swap", "nested"])
    old = parent[key]
    if how == "number" and isinstance(old, int | float) and not isinstance(old, bool) and abs(old) < 10**100:
        parent[key] = rng.choice([old + 1, -old, old * 1_000_003, float(old), old - 1, old / 3])
    elif how == "remove":
        del parent[key]
    elif how == "add":
        if isinstance(parent, dict):
            parent[rng.choice(["extra", "", "kind", "version"])] = _odd(rng)
        else:
            parent.append(_odd(rng))
    elif how == "swap":
        other, place = rng.choice(places)
        if other is parent:
            parent[key], other[place] = other[place], old
    elif how == "nested":
        parent[key] = "NESTED"
    else:
        parent[key] = _odd(rng)
    return value, how


def _odd(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(ODD))


def _places(value: Any) -> Any:
    """Every place in a value that can be changed, as what it is in and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield value, key
        yield from _places(below)


# Archives ----------------------------------------------------------------------------------------------------------


def _archive(rng: random.Random, content: bytes, sealed: bool) -> tuple[bytes, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(name for name in members if name != "header.npy")
    how = rng.choice(["swap", "values", "values", "header", "header", "claim", "remove", "add", "type"])
    name = rng.choice(names)
    if how == "swap":
        other = rng.choice(names)
        members[name], members[other] = members[other], members[name]
    elif how == "remove":
        del members[name]
    elif how == "add":
        members[rng.choice(["extra.npy", "../x.npy", "x"])] = members[name]
    elif how == "values":
        members[name] = _npy(_other_values(rng, _array(members[name])))
    elif how == "type":
        kind = rng.choice(["<f4", ">f8", "<i8", "|u1", "<u8", "<c16", "|S3", "<U2", "<i4", "|b1"])
        members[name] = _npy(_array(members[name]).astype(kind, copy=False))
    elif how == "claim":
        claim = rng.choice(
            [
                "{'descr': '', 'fortran_order': False, 'shape': (3,), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
                "{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 2), }",
                "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (), }",
                "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
                "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 200 + ")" * 200 + ", }",
                "__import__('os')",
            ]
        )
        padded = claim.ljust(117) + "\n"
        length = struct.pack("<H", len(padded))
        members[name] = b"\x93NUMPY\x01\x00" + length + padded.encode() + members[name][128:]
    header = json.loads(_array(members["header.npy"]).tobytes())
    text, more = json.dumps(header).encode(), ""
    if how == "header":
        arrays = header.pop("arrays")
        changed, more = _changed_json(rng, header, False)
        try:
            header = json.loads(changed) | {"arrays": arrays}
        except (ValueError, TypeError, RecursionError):
            sealed, text = False, changed
        else:
            text = json.dumps(header).encode("utf-8", "surrogatepass")
    if sealed:
        header["arrays"] = {
            key.removesuffix(".npy"): zlib.crc32(members[key]) for key in members if key != "header.npy"
        }
        text = json.dumps({**header, CHECKSUM: _sum_of(header)}).encode("utf-8", "surrogatepass")
    members["header.npy"] = _npy(np.frombuffer(text, dtype=np.uint8))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, member in members.items():
            archive.writestr(key, member)
    return buffer.getvalue(), f"archive: {how} {name} {more}"


def _sum_of(header: dict[str, Any]) -> str:
    try:
        return checksum_of(header)
    except (ValueError, TypeError, RecursionError):
        return ""


def _array(member: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _other_values(rng: random.Random, array: Any) -> Any:
    changed = np.array(array)
    flat = changed.reshape(-1)
    how = rng.randrange(4)
    if how == 0 or not flat.size:
        return changed.reshape(-1)[: rng.randrange(flat.size + 1)]
    if how == 1:
        return changed[..., None]
    for _ in range(rng.choice([1, 1, 5])):
        place = rng.randrange(flat.size)
        number: Any = rng.choice(NUMBERS)
        if changed.dtype.kind == "f":
            number = rng.choice([number, np.nan, np.inf, 1e300, -1e-300])
        with np.errstate(all="ignore"):
            flat[place] = np.array(number).astype(changed.dtype)
    return changed


# Safetensors -------------------------------------------------------------------------------------------------------


def _tensors(rng: random.Random, content: bytes, sealed: bool) -> tuple[bytes, str]:
    """A safetensors file whose header was changed; it is never sealed, since its checksums are of the tensors."""
    length = int.from_bytes(content[:8], "little")
    header, rest = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.get("__metadata__")
    if metadata is not None and rng.random() < 0.6:
        key = rng.choice(sorted(metadata))
        inside = json.loads(metadata[key])
        tensors = inside.pop("arrays", None)
        text, how = _changed_json(rng, inside, False)
        try:
            inside = json.loads(text) | {"arrays": tensors}
            if sealed:
                inside[CHECKSUM] = _sum_of(inside)
            text = json.dumps(inside).encode("utf-8", "surrogatepass")
        except (ValueError, TypeError, RecursionError):
            pass
        metadata[key] = text.decode("utf-8", "surrogatepass")
        new = json.dumps(header).encode("utf-8", "surrogatepass")
    else:
        new, how = _changed_json(rng, header, False)
    claimed = rng.choice([len(new)] * 9 + [2**62])
    return claimed.to_bytes(8, "little") + new + rest, f"tensors: {how}"
