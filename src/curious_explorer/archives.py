"""Arrays with a header, in one file that can be trusted before it is read: how everything larger than text is stored.

An archive is an ``.npz`` file (a ZIP of plain NumPy arrays, readable by ``numpy.load(allow_pickle=False)``) with one
member more, ``header``: JSON as bytes, with the name and version of the format and whatever else is not an array.

Members are stored, not deflated. A reader that refuses anything else cannot be made to allocate more than the file
itself holds: what an array claims about its type and shape is compared with what is expected and with the bytes that
are there, before the array is made. Nothing is ever unpickled. Every ``ValueError`` raised here says what is wrong
with the content; callers add which file it is.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

HEADER = "header"


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


def encode(kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of a file."""
    described = {"format": kind.name, "version": kind.version, **header}
    text = json.dumps(described, allow_nan=False).encode()
    buffer = io.BytesIO()
    members: dict[str, Any] = {HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}
    np.savez(buffer, **members)
    return buffer.getvalue()


def decode(content: bytes, kind: Format, header_keys: set[str], arrays: set[str] | None) -> Archive:
    """The header and the arrays in the content of a file.

    The header must have exactly ``header_keys``, and the file exactly ``arrays``, or any if that is None.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive, len(content))
            members = {info.filename.removesuffix(".npy"): archive.read(info) for info in archive.infolist()}
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error) as error:
        raise ValueError(f"it is no complete archive of arrays ({error})") from error
    if HEADER not in members:
        raise ValueError("it has no header; this is a file of another kind")
    header = _read_array(HEADER, members.pop(HEADER), "|u1", None)
    if arrays is not None and members.keys() != arrays:
        expected = sorted(f"{name}.npy" for name in arrays)
        found = sorted(f"{name}.npy" for name in members)
        raise ValueError(f"it holds {found[:20]}, expected {expected}; this is a file of another kind")
    return Archive(check_header(parse_strictly(header.tobytes()), kind, header_keys), members)


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


def check_header(given: Any, kind: Format, keys: set[str]) -> dict[str, Any]:
    """The header as a dictionary with exactly these keys besides format and version."""
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
    expected = keys | {"format", "version"}
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


def _read_array(name: str, content: bytes, dtype: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("its array format is not 1.0")
        found_shape, fortran, found_dtype = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, EOFError) as error:
        raise ValueError(f"{name} is no NumPy array ({error})") from error
    data = memoryview(content)[stream.tell() :]
    expected = (data.nbytes // np.dtype(dtype).itemsize,) if shape is None else shape
    if found_dtype.str != dtype or found_shape != expected or (fortran and len(expected) > 1):
        raise ValueError(
            f"{name} holds {found_dtype} of shape {found_shape}, expected {np.dtype(dtype)} of shape {expected}"
        )
    if data.nbytes % np.dtype(dtype).itemsize or data.nbytes // np.dtype(dtype).itemsize != np.prod(
        expected, dtype=object
    ):
        raise ValueError(f"{name} has {data.nbytes} bytes, which is not {expected} entries of {np.dtype(dtype)}")
    array: NDArray[Any] = np.frombuffer(data, dtype=dtype)
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{name} holds bytes other than 0 and 1, expected booleans")
    return array.reshape(expected)
