"""How everything is kept on disk: whole or not at all, with a header that says what it is, and never unpickled.

Every file has a header: JSON with the name and version of its format, and a checksum of all that it says.

- **JSON** for people: `write_json`, `read_json`.
- **Archives of arrays**, ``.npz`` files that ``numpy.load(allow_pickle=False)`` reads: `write_archive`,
  `read_archive`, and `encode`, `decode` for their content as bytes. The array ``header`` is JSON as bytes, with
  whatever is no array, and the checksum of every array by name. Members are stored, not deflated, and before an array
  is made, the type and shape that it claims are compared with the bytes that are there; so no file can make its reader
  allocate more than it holds. Arrays begin at multiples of `ALIGNMENT`, so that a large archive can be mapped into
  memory instead of being read.
- **Safetensors**, written by their own library, carry such a header too: `tensors_header`, `check_tensors`.

Files are opened by `read_plain` and `open_plain`, which read plain files alone. What is wrong with a content is a
``ValueError``; `reading` says which file it is, and makes the error of its kind out of whatever was raised.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from curious_explorer.errors import MissingPackageError

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)

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
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
            words = "no space left on the disk; nothing was changed there, so free some space and do the same again"
            raise OSError(error.errno, words, str(path)) from error
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


LOCK_FILE = ".lock"
"""The file in a folder that says who writes there; see `folder_lock`."""


def holds_files(folder: str | Path) -> bool:
    """Whether a folder holds anything but what a process that was killed left behind."""
    names = (path.name for path in Path(folder).iterdir())
    return any(name != LOCK_FILE and not (name.startswith(".") and name.endswith(".tmp")) for name in names)


# Plain files and nothing else --------------------------------------------------------------------------------------


@contextmanager
def open_plain(path: str | Path, *, within: str | Path | None = None) -> Iterator[BinaryIO]:
    """A file open for reading, if it is a plain one: a pipe would hang its reader, and a device never end.

    ``within`` is a folder below which the file must lie by plain folders: no link leads out of it.
    """
    if within is not None:
        check_inside(path, within)
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))  # not every system has them
    descriptor = os.open(path, os.O_RDONLY | sum(flags))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder, expected a file", str(path))
        raise ValueError("it is a pipe, a socket or a device, expected a plain file")
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def read_plain(path: str | Path, *, within: str | Path | None = None) -> bytes:
    """The content of a plain file; see `open_plain`."""
    with open_plain(path, within=within) as stream:
        return stream.read()


def check_inside(path: str | Path, folder: str | Path) -> None:
    """Refuse a file that a link leads to, and one that does not lie below a folder at all."""
    place = Path(folder)
    parts = Path(path).relative_to(place).parts
    if ".." in parts:
        raise ValueError(f"{path} leads out of {folder}")
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise ValueError(f"{place} is a link, expected a plain file or folder; put what it points to in its place")


def check_plain_tree(folder: str | Path) -> None:
    """Refuse a folder in which, at any depth, something is neither a plain file nor a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                check_plain_tree(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                kind = "a link" if entry.is_symlink() else "a pipe, a socket or a device"
                raise ValueError(f"{entry.path} is {kind}, expected plain files and folders only; remove it")


@contextmanager
def reading(
    path: str | Path, error: type[ValueError], what: str = "", advice: str = "", *, missing: bool = False
) -> Iterator[None]:
    """Make one kind of error out of everything that a damaged file can cause, and say which file it is.

    Args:
        path: the file or folder that is read.
        error: what to raise.
        what: what it should have been, with an article.
        advice: what to do.
        missing: whether a file that is not there stays a ``FileNotFoundError``.
    """
    try:
        yield
    except (error, MissingPackageError):
        raise
    except Exception as problem:  # what decoders raise on damaged content has no end of types
        if missing and isinstance(problem, FileNotFoundError):
            raise
        words = str(problem) if isinstance(problem, ValueError | OSError) else f"{type(problem).__name__}: {problem}"
        purpose, hint = f" as {what}" if what else "", f"; {advice}" if advice else ""
        raise error(f"{path} cannot be read{purpose}: {words[:2_000]}{hint}") from problem


# Headers -----------------------------------------------------------------------------------------------------------

CHECKSUM = "checksum"
"""The key of a header's checksum: of its content, not of how that is written, so that it may be laid out anew."""


class Format(NamedTuple):
    """What a file is: the name of its format, the version that is written, and the oldest that is still read."""

    name: str
    version: int
    oldest: int | None = None
    """The version that is written, if None."""

    def header(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """A file's header: its format and version, then the content, and a checksum of it all."""
        plain = json.loads(json.dumps({"format": self.name, "version": self.version, **content}, allow_nan=False))
        return {**plain, CHECKSUM: checksum_of(plain)}


def checksum_of(header: Mapping[str, Any]) -> str:
    """The checksum of a header, which is plain JSON data, without its own entry."""
    plain = {key: value for key, value in header.items() if key != CHECKSUM}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, allow_nan=False).encode()).hexdigest()


def check_header(
    given: Any, kind: Format, keys: set[str], *, by_hand: bool = False, since: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The header as a dictionary with exactly these keys besides format, version and checksum, which is checked.

    ``since`` names the keys that older versions of the format do not have, each with the first version that has it.
    ``by_hand`` says that people may write such files, without a checksum; whoever reads one checks it with
    `check_checksum` when all else was found right, which says more.
    """
    if not isinstance(given, dict) or given.get("format") != kind.name:
        found = given.get("format") if isinstance(given, dict) else None
        raise ValueError(f"its format is {found!r}, expected {kind.name!r}; this is a file of another kind")
    version = given.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}, expected the whole number {kind.version}")
    if version > kind.version:
        raise ValueError(f"its version is {version}, newer than {kind.version}, which is read here; update the library")
    oldest = kind.version if kind.oldest is None else kind.oldest
    if version < oldest:
        raise ValueError(
            f"its version is {version}, older than {oldest}, which is read here; write it again with this "
            "library, or read it with the release that wrote it"
        )
    keys = {key for key in keys if version >= (since or {}).get(key, 1)}
    expected = keys if by_hand and CHECKSUM not in given else keys | {CHECKSUM}
    missing, unknown = expected - given.keys(), given.keys() - expected - {"format", "version"}
    if missing or unknown:
        raise ValueError(f"its header misses {sorted(missing)} and has the unknown {sorted(unknown)}")
    if not by_hand:
        check_checksum(given)
    return given


def check_checksum(header: Mapping[str, Any], advice: str = "") -> None:
    """Refuse a header that is not what was written, by its checksum if it has one."""
    if CHECKSUM in header and header[CHECKSUM] != checksum_of(header):
        raise ValueError(f"its checksum is another: it is damaged, or was changed after it was written{advice}")


def check_size(header: Mapping[str, Any], key: str, *, least: int = 1) -> int:
    """A whole number of the header."""
    value = header[key]
    if type(value) is not int or value < least:
        raise ValueError(f"{key} is {value!r}, expected a whole number that is at least {least}")
    return value


def check_types(content: Mapping[str, Any], expected: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse entries that are not there, or of other types than these; a truth value is no number."""
    for name, types in expected.items():
        if type(content.get(name)) not in types:
            words = " or ".join(each.__name__ for each in types)
            raise ValueError(f"{name} is {content.get(name)!r:.200}, expected {words}")


# JSON --------------------------------------------------------------------------------------------------------------

DEEPEST = 50
"""Lists and objects in one another."""
_BRACKETS = re.compile(r'"(?:[^"\\]+|\\.)*"?|([\[{])|([\]}])', re.DOTALL)
"""Texts, so that what is in them is passed over, and brackets that open and close."""
LONGEST_NUMBER = 40
"""Digits of a whole number: those of the 128 bits in which NumPy's generators keep where they stand."""


def write_json(path: str | Path, kind: Format, content: Mapping[str, Any]) -> Path:
    """Write a JSON file with its header, atomically."""
    return write_atomically(path, json.dumps(kind.header(content), indent=2, allow_nan=False) + "\n")


def read_json(
    path: str | Path, kind: Format, keys: set[str], *, since: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Read what `write_json` wrote, with exactly these keys besides those of `check_header`."""
    return check_header(parse_strictly(read_plain(path)), kind, keys, since=since)


def parse_strictly(content: bytes) -> Any:
    """JSON without the liberties that Python takes: finite numbers, no key twice, UTF-8 only, no endless nesting."""
    if not content.strip():
        raise ValueError("the file is empty")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text ({error})") from error
    if _depth(text) > DEEPEST:  # Python refuses what is nested too deeply, and each version something else
        raise ValueError(f"its lists and objects are nested too deeply, expected at most {DEEPEST} in one another")
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_whole_number,
            parse_float=_finite_number,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not complete JSON ({error})") from error


def _depth(text: str) -> int:
    """How deeply lists and objects are nested."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0
    deepest = depth = 0
    for found in _BRACKETS.finditer(text):
        if found[1]:
            depth += 1
            deepest = max(deepest, depth)
        elif found[2]:
            depth -= 1
    return deepest


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, expected finite numbers only")


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"it holds a whole number of {len(digits)} digits, expected at most {LONGEST_NUMBER}")
    return int(digits)


def _finite_number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _refuse_constant(digits[:50])
    return number


# Archives of arrays ------------------------------------------------------------------------------------------------

HEADER = "header"
_CHECKSUMS = "arrays"
"""The key under which a header has the checksums of the arrays, by name."""
ALIGNMENT = 64
"""Arrays begin at multiples of this in the file: a cache line, and more than any type of ours needs."""
_PADDING = 0xD935
"""The ZIP extra field that Android's zipalign uses for the same purpose; readers skip it."""
_BROKEN_ZIP = (zipfile.BadZipFile, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error)
_ARRAY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biuf][1248])', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n"
)
"""Of booleans, whole numbers, and floats: there are no others in files of ours."""


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
    """Write an archive to a stream that can be sought in; no array is copied as a whole.

    The header is written last, since it has the checksums of the arrays.
    """
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        checksums = {name: _write_member(archive, stream, name, array) for name, array in arrays.items()}
        text = json.dumps(kind.header({**header, _CHECKSUMS: checksums}), allow_nan=False).encode()
        _write_member(archive, stream, HEADER, np.frombuffer(text, dtype=np.uint8))


def _write_member(archive: zipfile.ZipFile, stream: BinaryIO, name: str, array: NDArray[Any]) -> int:
    """Write one array; returns its checksum, which zipfile takes while it writes, type and shape included."""
    member = zipfile.ZipInfo(f"{name}.npy")
    member.CRC = 0  # not known yet; the length of what precedes the array does not depend on it
    begin = stream.tell() + len(member.FileHeader(zip64=True)) + 4
    padding = -begin % ALIGNMENT  # NumPy's own header is a multiple of it
    member.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    with archive.open(member, "w", force_zip64=True) as target:
        npy.write_array(target, np.asarray(array, order="C"), allow_pickle=False)
    return member.CRC


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
            check_header(header, kind, header_keys | {_CHECKSUMS}, by_hand=True)
            if arrays is not None and members.keys() != arrays:
                names, expected = (sorted(f"{name}.npy" for name in group) for group in (members, arrays))
                raise ValueError(f"it holds {names[:20]}, expected {expected}; this is a file of another kind")
            if mapped and checked and (damaged := archive.testzip()) is not None:
                raise ValueError(f"{damaged.removesuffix('.npy')} is damaged: its checksum is another")
            found = {name: _read_member(name, member, archive, stream, mapped) for name, member in members.items()}
            if header[_CHECKSUMS] != {name: member.CRC for name, member in members.items()}:
                raise ValueError("its arrays are not those of its header: it is damaged, or was changed after writing")
    except _BROKEN_ZIP as error:
        raise ValueError(f"it is no complete archive of arrays ({error})") from error
    if checked or not mapped:
        for name, array in found.items():
            if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
                raise ValueError(f"{name} holds bytes other than 0 and 1, expected booleans")
    check_header(header, kind, header_keys | {_CHECKSUMS})
    return Archive({key: value for key, value in header.items() if key != _CHECKSUMS}, found)


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
    dtype, shape = _claimed(name, stream)
    offset = stream.tell()
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


def _claimed(name: str, stream: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The type and shape in the header of an array, which is read as NumPy writes it, and never evaluated.

    NumPy itself takes any literal of Python's, repairs what looks like Python 2, and warns of that.
    """
    try:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("its array format is not 1.0")
        (length,) = struct.unpack("<H", stream.read(2))
        text = stream.read(length)
        found = _ARRAY_HEADER.fullmatch(text)
        if found is not None:
            return np.dtype(found[1].decode()), tuple(int(size) for size in found[2].split(b",") if size.strip())
    except (ValueError, TypeError, struct.error) as error:
        raise ValueError(f"{name} is no NumPy array ({error})") from error
    words = text.decode("latin1").strip()[:200]
    raise ValueError(f"{name} holds {words}, expected plain numbers stored row by row")


# Tensors -----------------------------------------------------------------------------------------------------------


def tensors_header(kind: Format, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> str:
    """The header of a safetensors file as text: what is no tensor, and the checksum of every tensor by name."""
    checksums = {name: _tensor_checksum(tensor) for name, tensor in tensors.items()}
    return json.dumps(kind.header({**header, _CHECKSUMS: checksums}), sort_keys=True, allow_nan=False)


def check_tensors(
    text: bytes, kind: Format, header_keys: set[str], tensors: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """The header that `tensors_header` gave, once it and the tensors are found to be what was written."""
    header = check_header(parse_strictly(text), kind, header_keys | {_CHECKSUMS})
    if header.pop(_CHECKSUMS) != {name: _tensor_checksum(tensor) for name, tensor in tensors.items()}:
        raise ValueError("its tensors are not those of its header: it is damaged, or was changed after writing")
    return header


def _tensor_checksum(tensor: NDArray[Any]) -> int:
    begun = zlib.crc32(f"{tensor.dtype.str} {tensor.shape}".encode())
    return zlib.crc32(np.ascontiguousarray(tensor).tobytes(), begun)
