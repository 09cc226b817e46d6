"""Settings as plain data, and folders that keep them, so that a run can go on where an earlier one stopped.

In `describe`, a dataclass is its fields; a function is a digest of its code and of what it closes over; any other
object is its attributes. What cannot be told from another by any of these is told by its class alone.

A `RunFolder` belongs to the run whose settings it holds: the same settings go on there, others are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from curious_explorer.errors import FolderInUseError, StudyError
from curious_explorer.folder_lock import folder_lock, is_held
from curious_explorer.storage import (
    DISK_IS_FULL,
    Format,
    check_plain_tree,
    checksum_of,
    holds_files,
    read_json,
    reading,
    write_json,
)

Plain = dict[str, Any]


def describe(thing: Any) -> Any:
    """A setting as plain JSON data."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (list, tuple)):
        return [describe(item) for item in thing]
    if isinstance(thing, (set, frozenset)):  # in an order that is the same in every process
        return sorted((describe(item) for item in thing), key=repr)
    if isinstance(thing, dict):
        return {str(key): describe(value) for key, value in sorted(thing.items(), key=lambda item: str(item[0]))}
    if callable(getattr(thing, "settings", None)) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **describe(thing.settings())}
    if hasattr(thing, "fingerprint"):
        return {"kind": type(thing).__name__, "digest": thing.fingerprint}
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **{f.name: describe(getattr(thing, f.name)) for f in fields(thing)}}
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        enclosed = [describe(cell.cell_contents) for cell in thing.__closure__ or ()]
        parts = (_code_parts(code), describe(thing.__defaults__), describe(thing.__kwdefaults__), enclosed)
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()
        return {"kind": thing.__qualname__, "digest": digest}
    if isinstance(thing, type):
        return {"kind": thing.__qualname__}
    plain = {key: describe(value) for key, value in getattr(thing, "__dict__", {}).items()}
    return {"kind": type(thing).__qualname__, **plain}


class Difference(NamedTuple):
    """Where two descriptions first differ, and what stands there in each, shortened to fit a line."""

    place: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.place} is {self.found} there and {self.wanted} here"


def first_difference(found: Any, wanted: Any, place: str = "") -> Difference | None:
    """Where two descriptions first differ, in the order of ``wanted``; None if they are the same."""
    if isinstance(found, dict) and isinstance(wanted, dict) and found.get("kind") == wanted.get("kind"):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            below = f"{place}.{key}" if place else str(key)
            difference = first_difference(found.get(key), wanted.get(key), below)
            if difference is not None:
                return difference
        return None
    return None if found == wanted else Difference(place, _short(found), _short(wanted))


def _short(value: Any) -> str:
    """A description that fits a line: a kind stands for the whole of it."""
    text = repr(value["kind"] if isinstance(value, dict) and "kind" in value else value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    return code.co_code.hex(), code.co_names, tuple(map(_constant, code.co_consts))


def _constant(item: Any) -> Any:
    """A constant of a function's code, written the same in every process."""
    if isinstance(item, CodeType):
        return _code_parts(item)
    if isinstance(item, tuple):
        return tuple(map(_constant, item))
    if isinstance(item, frozenset):  # its own order depends on the hashes of strings, which differ between processes
        return "set", sorted(map(repr, map(_constant, item)))
    return repr(item)


def make_folder(path: Path) -> None:
    """Make a folder for results unless it is there, or say why it cannot be."""
    if path.exists() and not path.is_dir():
        raise StudyError(f"{path} is a file, expected a folder; choose another folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        words = f"{path} cannot be written ({error.strerror or error}); choose another folder"
        raise StudyError(f"{words}, or change its permissions") from error


@dataclass(frozen=True)
class RunFolder:
    """A folder that belongs to one run, or to none yet."""

    path: Path
    file: str
    """The file that holds the settings."""
    format: Format
    what: str
    """What the folder holds, in a word for errors: study, comparison, exploration, training."""
    error: type[ValueError]
    advice: str = "choose another folder"
    """What to do about a folder that is refused."""
    growing: tuple[str, ...] = ()
    """Settings that may differ as long as one goes on where the other ends: numbers, or lists of which one begins with
    the other. The larger is kept."""

    @property
    def claimed(self) -> bool:
        """Whether it belongs to a run already."""
        return (self.path / self.file).exists()

    def settings(self) -> Plain:
        """The settings that it holds."""
        path = self.path / self.file
        with reading(path, self.error, advice=self.advice):
            settings = read_json(path, self.format, {"settings"})["settings"]
            if not isinstance(settings, dict):
                raise ValueError(f"settings is {settings!r}, expected an object")
            return settings

    def digest(self) -> str:
        """What tells its settings from others, those aside that may grow; whatever the run writes carries it."""
        return checksum_of({name: value for name, value in self.settings().items() if name not in self.growing})

    def check_digest(self, found: object) -> None:
        """Refuse what was written by a run with other settings."""
        if found != self.digest():
            raise ValueError(f"it was made with other settings than {self.path / self.file} has")

    @contextmanager
    def claim(self, settings: Plain, *, resume: bool = True, replace: bool = False) -> Iterator[None]:
        """Make the folder this run's own, or refuse it; what it holds of another is never overwritten or removed.

        Nobody else can claim it within the block.

        Args:
            settings: what the results depend on, as plain data.
            resume: whether it may belong to a run with these settings already.
            replace: whether other settings may take the place of those there, because nothing was finished with them.
        """
        if self.path.exists() and not self.path.is_dir():
            raise self.error(f"{self.path} is a file, expected a folder; {self.advice}")
        self._check_own()
        with ExitStack() as held:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                held.enter_context(folder_lock(self.path))
                check_plain_tree(self.path)
                self._write(settings, resume=resume, replace=replace)
            except FolderInUseError as error:
                raise self.error(f"{error}; wait until that is done, or {self.advice}") from None
            except OSError as error:
                if error.errno in DISK_IS_FULL:
                    raise
                words = f"{self.path} cannot be written ({error.strerror or error}); {self.advice}"
                raise self.error(f"{words}, or change its permissions") from error
            except ValueError as error:
                raise error if isinstance(error, self.error) else self.error(f"{error}, or {self.advice}") from error
            yield

    def _remove_leftovers(self) -> None:
        """Remove what was half-written when an earlier process was killed."""
        for leftover in self.path.rglob(".*.tmp"):
            if leftover.parent == self.path or not is_held(leftover.parent):
                leftover.unlink(missing_ok=True)

    def _check_own(self) -> None:
        """Refuse a folder with files in it that is not claimed: a process may be killed before it writes settings."""
        if not self.claimed and self.path.exists() and holds_files(self.path):
            raise self.error(f"{self.path} is not empty and holds no {self.what}; {self.advice}")

    def _write(self, settings: Plain, *, resume: bool, replace: bool) -> None:
        """Compare the settings with those that are there, and write what is to be there now."""
        wanted: Plain = json.loads(json.dumps(settings, allow_nan=False))
        self._check_own()
        if self.claimed:
            if not resume:
                raise self.error(
                    f"{self.path} holds {_with_article(self.what)} already; add --resume to go on with it, "
                    f"or {self.advice}"
                )
            found = self.settings()
            kept = {name: _larger(found.get(name), wanted.get(name)) for name in self.growing}
            same = {name: wanted[name] for name, larger in kept.items() if larger is not None}
            difference = None if replace else first_difference(found | same, wanted)
            if difference is not None:
                raise self.error(
                    f"{self.path} holds {_with_article(self.what)} with other settings: {difference}; {self.advice}, "
                    "or the settings it was made with"
                )
            wanted |= {name: kept[name] for name in same}
            if found == wanted:
                self._remove_leftovers()
                return
        self._remove_leftovers()
        write_json(self.path / self.file, self.format, {"settings": wanted})


def _larger(found: Any, wanted: Any) -> Any:
    """The larger of two numbers, or the longer of two lists that begin alike; None if one does not go on the other."""
    if isinstance(found, list) and isinstance(wanted, list):
        longer = max(found, wanted, key=len)
        return longer if all(a == b for a, b in zip(found, wanted, strict=False)) else None
    return max(found, wanted) if type(found) is type(wanted) is int else None


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
