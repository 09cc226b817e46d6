"""Arrays with a header, in one file that can be trusted before it is read: how everything larger than text is stored.

An archive is an ``.npz`` file (a ZIP of plain NumPy arrays, readable by ``numpy.load(allow_pickle=False)``) with one
member more, ``header``: JSON as bytes, with the name and version of the format and whatever else is not an array.

Members are stored, not deflated. A reader that refuses anything else cannot be made to allocate more than the file
itself holds: what an array claims about its type and shape is compared with what is expected and with the bytes that
are there, before the array is made. Nothing is ever unpickled. Every ``ValueError`` raised here says what is wrong
with the content; callers add which file it is.

Because members are stored, and each array is padded to begin at a multiple of `ALIGNMENT` in the file, a large archive
need not be read to be used: `open_archive` finds where the arrays are and hands them out mapped into memory, or read
straight into arrays of their own, and never holds the file's content twice.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

HEADER = "header"
ALIGNMENT = 64
"""Arrays begin at multiples of this in the file: a cache line, and more than any type of ours needs."""
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
"""What precedes the name of a member in a ZIP file; the last two numbers are the lengths of name and extra field."""
BLOCK = 1 << 24
"""How many bytes are read at a time while a checksum is taken."""
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error)


class Format(NamedTuple):
    """What a file is: the name of its format and the newest version known here."""

    name: str
    version: int


class Archive(NamedTuple):
    """A decoded archive: its header, and its arrays, still as bytes."""

    header: dict[str, Any]
    members: dict[str, bytes]

    def array(self, name: str, dtype: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
        """One array whose type, shape and length are what they have to be; ``shape`` None means flat, of any length."""
        if name not in self.members:
            raise ValueError(f"it has no array {name!r}")
        return _read_array(name, self.members[name], dtype, shape)


class StoredArchive(NamedTuple):
    """An archive that stays in its file: its header, and where in the file its arrays are."""

    header: dict[str, Any]
    members: dict[str, zipfile.ZipInfo]
    stream: BinaryIO
    mapping: mmap.mmap

    def array(self, name: str, dtype: str, shape: tuple[int, ...] | None, *, mapped: bool) -> NDArray[Any]:
        """One array, checked as `Archive.array` does: a view of the file if mapped, else read into its own memory.

        What is mapped cannot be written to, and is not read before it is used: its checksum is not taken.
        """
        if name not in self.members:
            raise ValueError(f"it has no array {name!r}")
        found = _locate(name, self.members[name], self.stream, dtype, shape)
        if not mapped:
            array = np.empty(found.shape, dtype=dtype)
            _read_into(array, found, self.stream, name)
            check_booleans(name, array)
            return array
        if found.offset % np.dtype(dtype).alignment:
            raise ValueError(
                f"{name} begins at byte {found.offset}, where an array of {np.dtype(dtype)} cannot be mapped; load it "
                "without mmap, and save it again"
            )
        if found.size == 0:
            return np.empty(found.shape, dtype=dtype)
        count = found.size // np.dtype(dtype).itemsize
        return np.frombuffer(self.mapping, dtype=dtype, count=count, offset=found.offset).reshape(found.shape)

    def check_sums(self) -> None:
        """Read everything once, and refuse an archive of which a byte has changed."""
        for name, member in self.members.items():
            offset = _data_offset(member, self.stream)
            total = 0
            for begin in range(offset, offset + member.file_size, BLOCK):
                # A view of the mapping cannot be closed under a pending error; a block of bytes can.
                total = zlib.crc32(self.mapping[begin : min(begin + BLOCK, offset + member.file_size)], total)
            _check_sum(name, member, total)


def write(stream: BinaryIO, kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an archive to a stream that can be sought in; arrays go from their memory to the stream without a copy."""
    described = {"format": kind.name, "version": kind.version, **header}
    text = json.dumps(described, allow_nan=False).encode()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(_array_header(array, stream.tell()))
                member.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def encode(kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of a file."""
    buffer = io.BytesIO()
    write(buffer, kind, header, arrays)
    return buffer.getvalue()


def decode(content: bytes, kind: Format, header_keys: set[str], arrays: set[str] | None) -> Archive:
    """The header and the arrays in the content of a file.

    The header must have exactly ``header_keys``, and the file exactly ``arrays``, or any if that is None.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive, len(content))
            members = {info.filename.removesuffix(".npy"): archive.read(info) for info in archive.infolist()}
    except _BROKEN as error:
        raise ValueError(f"it is no complete archive of arrays ({error})") from error
    header = _read_array(HEADER, members.pop(HEADER, b""), "|u1", None) if HEADER in members else None
    return Archive(_check_contents(header, set(members), kind, header_keys, arrays), members)


@contextmanager
def open_archive(
    stream: BinaryIO, kind: Format, header_keys: Mapping[int, set[str]], arrays: set[str]
) -> Iterator[StoredArchive]:
    """An archive in an open file, of which only the directory and the header are read; see `StoredArchive`.

    ``header_keys`` says for each version which keys its header has.
    """
    size = stream.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(stream) as archive:
            _check_members(archive, size)
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        _check_places(members, stream, archive.start_dir)
        header = None
        if HEADER in members:
            found = _locate(HEADER, members[HEADER], stream, "|u1", None)
            header = np.empty(found.shape, dtype=np.uint8)
            _read_into(header, found, stream, HEADER)
            del members[HEADER]
        mapping = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except _BROKEN as error:
        raise ValueError(f"it is no complete archive of arrays ({error})") from error
    # Arrays keep the mapping open for as long as they live, so it is not closed here.
    yield StoredArchive(_check_contents(header, set(members), kind, header_keys, arrays), members, stream, mapping)


def _check_contents(
    header: NDArray[Any] | None,
    found: set[str],
    kind: Format,
    header_keys: set[str] | Mapping[int, set[str]],
    arrays: set[str] | None,
) -> dict[str, Any]:
    """The header, if there is one and it and the names of the arrays are those of this kind of file."""
    if header is None:
        raise ValueError("it has no header; this is a file of another kind")
    if arrays is not None and found != arrays:
        names, expected = (sorted(f"{name}.npy" for name in group) for group in (found, arrays))
        raise ValueError(f"it holds {names[:20]}, expected {expected}; this is a file of another kind")
    return check_header(parse_strictly(header.tobytes()), kind, header_keys)


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


def check_header(given: Any, kind: Format, keys: set[str] | Mapping[int, set[str]]) -> dict[str, Any]:
    """The header as a dictionary with exactly these keys, or those of its version, besides format and version."""
    if not isinstance(given, dict) or given.get("format") != kind.name:
        found = given.get("format") if isinstance(given, dict) else None
        raise ValueError(f"its format is {found!r}, expected {kind.name!r}; this is a file of another kind")
    version = given.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}, expected a whole number from 1 to {kind.version}")
    if version > kind.version:
        raise ValueError(
            f"its version is {version}, newer than {kind.version}, the newest known here; update the library"
        )
    expected = (keys if isinstance(keys, set) else keys[version]) | {"format", "version"}
    if given.keys() != expected:
        missing, unknown = sorted(expected - given.keys()), sorted(given.keys() - expected)
        raise ValueError(f"its header misses {missing} and has the unknown {unknown}")
    return given


def check_size(header: Mapping[str, Any], key: str, *, least: int = 1) -> int:
    """A whole number of the header."""
    value = header[key]
    if type(value) is not int or value < least:
        raise ValueError(f"{key} is {value!r}, expected a whole number that is at least {least}")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, expected finite numbers only")


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Arrays only, each once, stored as they are, and together no larger than the file."""
    found = [member.filename for member in archive.infolist()]
    if len(set(found)) != len(found) or not all(name.endswith(".npy") for name in found):
        raise ValueError(f"it holds {found[:20]}, expected arrays, each once; this is a file of another kind")
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed, expected it stored; this library writes no other")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError("its arrays claim to be larger than the file")


class _Place(NamedTuple):
    """Where the entries of an array are in a file, and what remains to be checked of them."""

    offset: int
    size: int
    shape: tuple[int, ...]
    member: zipfile.ZipInfo
    preamble: bytes  # what the checksum covers before the entries


def _array_header(array: NDArray[Any], position: int) -> bytes:
    """NumPy's own header for an array, padded so that its entries begin at a multiple of `ALIGNMENT`."""
    described = np.lib.format.header_data_from_array_1_0(array)
    described["fortran_order"] = False  # always written row by row
    text = repr(described)
    length = len(text) + 1
    length += -(position + 10 + length) % ALIGNMENT
    return np.lib.format.magic(1, 0) + struct.pack("<H", length) + text.ljust(length - 1).encode("latin1") + b"\n"


def _data_offset(member: zipfile.ZipInfo, stream: BinaryIO) -> int:
    """Where the bytes of a member begin."""
    stream.seek(member.header_offset)
    signature, *_, name_length, extra_length = LOCAL_HEADER.unpack(stream.read(LOCAL_HEADER.size))
    if signature != b"PK\x03\x04" or stream.read(name_length) != member.filename.encode():
        raise zipfile.BadZipFile(f"{member.filename} is not where the directory says")
    return member.header_offset + LOCAL_HEADER.size + int(name_length) + int(extra_length)


def _check_places(members: Mapping[str, zipfile.ZipInfo], stream: BinaryIO, directory: int) -> None:
    """Members that lie one after the other, before the directory: none in the middle of another."""
    free = 0
    for member in sorted(members.values(), key=lambda member: member.header_offset):
        if member.header_offset < free:
            raise zipfile.BadZipFile(f"{member.filename} overlaps another array")
        free = _data_offset(member, stream) + member.file_size
    if free > directory:
        raise zipfile.BadZipFile("its arrays reach past their end")


def _locate(name: str, member: zipfile.ZipInfo, stream: BinaryIO, dtype: str, shape: tuple[int, ...] | None) -> _Place:
    offset = _data_offset(member, stream)
    stream.seek(offset)
    preamble = stream.read(min(member.file_size, 1 << 16))
    length, found = _parse_array_header(name, preamble, member.file_size, dtype, shape)
    return _Place(offset + length, member.file_size - length, found, member, preamble[:length])


def _read_into(array: NDArray[Any], place: _Place, stream: BinaryIO, name: str) -> None:
    """Fill an array from the file, block by block, and check the sum of what was read."""
    stream.seek(place.offset)
    total = zlib.crc32(place.preamble)
    target = array.reshape(-1).view(np.uint8).data
    for begin in range(0, place.size, BLOCK):
        block = target[begin : begin + BLOCK]
        if stream.readinto(block) != len(block):  # type: ignore[attr-defined]
            raise zipfile.BadZipFile(f"{name} ends early")
        total = zlib.crc32(block, total)
    _check_sum(name, place.member, total)


def _check_sum(name: str, member: zipfile.ZipInfo, found: int) -> None:
    if found != member.CRC:
        raise ValueError(f"{name} is damaged: its checksum is {found:#010x}, expected {member.CRC:#010x}")


def _parse_array_header(
    name: str, content: bytes, size: int, dtype: str, shape: tuple[int, ...] | None
) -> tuple[int, tuple[int, ...]]:
    """The length of an array's own header and its shape, if type, shape and size in bytes are what they have to be."""
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("its array format is not 1.0")
        found_shape, fortran, found_dtype = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, EOFError, tokenize.TokenError) as error:
        raise ValueError(f"{name} is no NumPy array ({error})") from error
    nbytes, itemsize = size - stream.tell(), np.dtype(dtype).itemsize
    expected = (nbytes // itemsize,) if shape is None else shape
    if found_dtype.str != dtype or found_shape != expected or (fortran and len(expected) > 1):
        raise ValueError(
            f"{name} holds {found_dtype} of shape {found_shape}, expected {np.dtype(dtype)} of shape {expected}"
        )
    if nbytes != itemsize * np.prod(expected, dtype=object):
        raise ValueError(f"{name} has {nbytes} bytes, which is not {expected} entries of {np.dtype(dtype)}")
    return stream.tell(), expected


def _read_array(name: str, content: bytes, dtype: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    length, expected = _parse_array_header(name, content[: 1 << 16], len(content), dtype, shape)
    array: NDArray[Any] = np.frombuffer(memoryview(content)[length:], dtype=dtype)
    check_booleans(name, array)
    return array.reshape(expected)


def check_booleans(name: str, array: NDArray[Any]) -> None:
    """Refuse an array of booleans that has other bytes than 0 and 1."""
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{name} holds bytes other than 0 and 1, expected booleans")
