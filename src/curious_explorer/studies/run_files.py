"""The files of one run of a grid: an ``.npz`` with what depends on its job alone, and how long it took, beside it.

The first is the same bytes wherever and whenever it is made; the time is not, so it stands in a small file of its own,
written first. Both are written whole or not at all, and checked before they are believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from curious_explorer.errors import StudyError
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import (
    Archive,
    Format,
    decode,
    encode,
    read_json,
    read_plain,
    reading,
    write_atomically,
    write_json,
)
from curious_explorer.studies.runner import finite_number


@dataclass(frozen=True)
class RunFiles:
    """How the runs of a study are stored."""

    run: Format
    time: Format

    def write(
        self,
        folder: RunFolder,
        path: Path,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        seconds: float,
    ) -> Path:
        """Write both files; ``header`` begins with what tells the run's job from others."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(_timed(path), self.time, {"seconds": seconds})
        return write_atomically(path, encode(self.run, {**header, "settings": folder.digest()}, arrays))

    @contextmanager
    def open(
        self, folder: RunFolder, path: Path, job: dict[str, Any], keys: set[str], arrays: set[str]
    ) -> Iterator[tuple[Archive, float]]:
        """A run's content and how long it took; what is found wrong within the block is told of its file.

        Args:
            folder: of the study.
            path: of the run.
            job: what its header has to say of its job.
            keys: what else the header has.
            arrays: what the archive has.
        """
        advice = f"delete {path.name} and its .time.json there and use --resume to do only this run again"
        with reading(_timed(path), StudyError, advice=advice):
            seconds = finite_number(read_json(_timed(path), self.time, {"seconds"})["seconds"], "seconds")
        with reading(path, StudyError, advice=advice):
            archive = decode(read_plain(path, within=folder.path), self.run, {*job, *keys, "settings"}, arrays)
            folder.check_digest(archive.header["settings"])
            found = {key: archive.header[key] for key in job}
            if found != job:
                raise ValueError(f"it is the run {found}, expected {job}")
            yield archive, seconds


def _timed(path: Path) -> Path:
    """Where the time of a run is kept."""
    return path.with_suffix(".time.json")
