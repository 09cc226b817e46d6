"""How everything is kept on disk: whole or not at all, with a header that says what it is, and never unpickled.

Two kinds of file, both beginning with the name and version of their format:

- **JSON** for people: `write_json`, `read_json`.
- **Archives of arrays**, ``.npz`` files that ``numpy.load(allow_pickle=False)`` reads: `write_archive`,
  `read_archive`, and `encode`, `decode` for their content as bytes. The array ``header`` is JSON as bytes, with
  whatever is no array. Members are stored, not deflated, and before an array is made, the type and shape that it
  claims are compared with the bytes that are there; so no file can make its reader allocate more than it holds. The
  checksum of every member is taken while it is read. Arrays begin at multiples of `ALIGNMENT`, so that a large archive
  can be mapped into memory instead of being read.

Every ``ValueError`` raised here says what is wrong with the content; callers add which file it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import struct
import tokenize
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

# Files that are either the old one or the new one ------------------------------------------------------------------


@contextmanager
def atomic_writer(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that appears under its name, complete and on disk, when the block ends without an error.

    What is written goes to a temporary name in the same folder, since a rename is atomic only within one file system.
    If the block raises, the temporary file is removed and whatever was at ``path`` stays as it was.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing to the file; the file is what is replaced
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it before writing {target.name}")
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # The rename itself survives a power cut only where the system can flush folders.
    with contextlib.suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: str | Path, content: bytes | str) -> Path:
    """Write a whole file at once, text as UTF-8; see `atomic_writer`."""
    with atomic_writer(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)


def holds_files(folder: str | Path) -> bool:
    """Whether a folder holds anything but what a write that was killed left behind."""
    return any(not (path.name.startswith(".") and path.suffix == ".tmp") for path in Path(folder).iterdir())


# Headers -----------------------------------------------------------------------------------------------------------


class Format(NamedTuple):
    """What a file is: the name of its format, and the one version that is written and read."""

    name: str
    version: int

    def header(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """A file's header: its format and version, then the content."""
        return {"format": self.name, "version": self.version, **content}


def check_header(given: Any, kind: Format, keys: set[str]) -> dict[str, Any]:
    """The header as a dictionary with exactly these keys besides format and version."""
    if not isinstance(given, dict) or given.get("format") != kind.name:
        found = given.get("format") if isinstance(given, dict) else None
        raise ValueError(f"its format is {found!r}, expected {kind.name!r}; this is a file of another kind")
    version = given.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}, expected the whole number {kind.version}")
    if version > kind.version:
        raise ValueError(f"its version is {version}, newer than {kind.version}, which is read here; update the library")
    if version < kind.version:
        raise ValueError(
            f"its version is {version}, older than {kind.version}, which is read here; write it again with this "
            "library, or read it with the release that wrote it"
        )
    missing, unknown = keys - given.keys(), given.keys() - keys - {"format", "version"}
    if missing or unknown:
        raise ValueError(f"its header misses {sorted(missing)} and has the unknown {sorted(unknown)}")
    return given


def check_size(header: Mapping[str, Any], key: str, *, least: int = 1) -> int:
    """A whole number of the header."""
    value = header[key]
    if type(value) is not int or value < least:
        raise ValueError(f"{key} is {value!r}, expected a whole number that is at least {least}")
    return value


# JSON --------------------------------------------------------------------------------------------------------------


def write_json(path: str | Path, kind: Format, content: Mapping[str, Any]) -> Path:
    """Write a JSON file with its header, atomically."""
    return write_atomically(path, json.dumps(kind.header(content), indent=2, allow_nan=False) + "\n")


def read_json(path: str | Path, kind: Format, keys: set[str]) -> dict[str, Any]:
    """Read what `write_json` wrote, with exactly these keys besides format and version."""
    return check_header(parse_strictly(Path(path).read_bytes()), kind, keys)


def parse_strictly(content: bytes) -> Any:
    """JSON without the liberties that Python takes: no NaN or Infinity, no key twice, UTF-8 only."""
    if not content.strip():
        raise ValueError("the file is empty")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text ({error})") from error
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not complete JSON ({error})") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, expected finite numbers only")


# Archives of arrays ------------------------------------------------------------------------------------------------

HEADER = "header"
ALIGNMENT = 64
"""Arrays begin at multiples of this in the file: a cache line, and more than any type of ours needs."""
_PADDING = 0xD935
"""The ZIP extra field that Android's zipalign uses for the same purpose; readers skip it."""
_BROKEN_ZIP = (zipfile.BadZipFile, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error)
_BROKEN_NPY = (ValueError, SyntaxError, TypeError, KeyError, RecursionError, EOFError, tokenize.TokenError)


class Archive(NamedTuple):
    """The header and the arrays of a file."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def array(self, name: str, dtype: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
        """One array whose type and shape are what they have to be; ``shape`` None means flat, of any length."""
        if name not in self.arrays:
            raise ValueError(f"it has no array {name!r}")
        array = self.arrays[name]
        expected = (array.size,) if shape is None else shape
        if array.dtype.str != dtype or array.shape != expected:
            raise ValueError(
                f"{name} holds {array.dtype} of shape {array.shape}, expected {np.dtype(dtype)} of shape {expected}"
            )
        return array


def write_archive(
    stream: BinaryIO, kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write an archive to a stream that can be sought in; no array is copied as a whole."""
    text = json.dumps(kind.header(header), allow_nan=False).encode()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.CRC = 0  # not known yet; the length of what precedes the array does not depend on it
            begin = stream.tell() + len(member.FileHeader(zip64=True)) + 4
            padding = -begin % ALIGNMENT  # NumPy's own header is a multiple of it
            member.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with archive.open(member, "w", force_zip64=True) as target:
                npy.write_array(target, np.asarray(array, order="C"), allow_pickle=False)


def encode(kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An archive as bytes."""
    buffer = io.BytesIO()
    write_archive(buffer, kind, header, arrays)
    return buffer.getvalue()


def decode(content: bytes, kind: Format, header_keys: set[str], arrays: set[str] | None) -> Archive:
    """The archive in the content of a file; see `read_archive`."""
    return read_archive(io.BytesIO(content), kind, header_keys, arrays)


def read_archive(
    stream: BinaryIO,
    kind: Format,
    header_keys: set[str],
    arrays: set[str] | None,
    *,
    mapped: bool = False,
    checked: bool = True,
) -> Archive:
    """The archive in an open file.

    Args:
        stream: the file, or bytes.
        kind: what it has to be.
        header_keys: exactly the keys of its header, besides format and version.
        arrays: exactly the names of its arrays; None means any.
        mapped: whether arrays are views of the file, which cannot be written to, instead of being read.
        checked: whether every byte of mapped arrays is read once for its checksum; others' checksums are always taken.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            members = _members(archive, stream.seek(0, io.SEEK_END))
            if HEADER not in members:
                raise ValueError("it has no header; this is a file of another kind")
            text = _read_member(HEADER, members.pop(HEADER), archive, stream)
            header = parse_strictly(Archive({}, {HEADER: text}).array(HEADER, "|u1", None).tobytes())
            check_header(header, kind, header_keys)
            if arrays is not None and members.keys() != arrays:
                names, expected = (sorted(f"{name}.npy" for name in group) for group in (members, arrays))
                raise ValueError(f"it holds {names[:20]}, expected {expected}; this is a file of another kind")
            if mapped and checked and (damaged := archive.testzip()) is not None:
                raise ValueError(f"{damaged.removesuffix('.npy')} is damaged: its checksum is another")
            found = {name: _read_member(name, member, archive, stream, mapped) for name, member in members.items()}
    except _BROKEN_ZIP as error:
        raise ValueError(f"it is no complete archive of arrays ({error})") from error
    if checked or not mapped:
        for name, array in found.items():
            if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
                raise ValueError(f"{name} holds bytes other than 0 and 1, expected booleans")
    return Archive(header, found)


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Arrays only, each once, stored as they are, and together no larger than the file."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) != len(names) or not all(name.endswith(".npy") for name in names):
        raise ValueError(f"it holds {names[:20]}, expected arrays, each once; this is a file of another kind")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed, expected it stored; this library writes no other")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its arrays claim to be larger than the file")
    return {member.filename.removesuffix(".npy"): member for member in members}


def _read_member(
    name: str, member: zipfile.ZipInfo, archive: zipfile.ZipFile, stream: BinaryIO, mapped: bool = False
) -> NDArray[Any]:
    """One array, made only after what it claims to be was compared with the bytes that are there."""
    with archive.open(member):
        begin = stream.tell()  # zipfile has just read, and checked, what precedes the member
    try:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("its array format is not 1.0")
        shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    except _BROKEN_NPY as error:
        raise ValueError(f"{name} is no NumPy array ({error})") from error
    offset = stream.tell()
    if dtype.hasobject or (by_columns and len(shape) > 1):
        raise ValueError(f"{name} holds {dtype} of shape {shape}, expected plain numbers stored row by row")
    if member.file_size - (offset - begin) != dtype.itemsize * math.prod(shape):
        raise ValueError(f"{name} has {member.file_size} bytes, which is not {shape} entries of {dtype}")
    if not mapped or 0 in shape:
        try:
            with archive.open(member) as source:
                return npy.read_array(source, allow_pickle=False)
        except (zipfile.BadZipFile, ValueError) as error:
            raise ValueError(f"{name} is damaged ({error})") from error
    if offset % dtype.alignment:
        raise ValueError(
            f"{name} begins at byte {offset}, where an array of {dtype} cannot be mapped; load it without mmap, and "
            "save it again"
        )
    # The plain array of the mapping: NumPy's subclass for maps is slower in every operation.
    return np.asarray(np.memmap(cast(Any, stream), dtype=dtype, mode="r", offset=offset, shape=shape))
