"""One writer a folder: others are refused and told who writes there, and nobody is kept out by a dead process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from curious_explorer.errors import CheckpointError, FolderInUseError
from curious_explorer.folder_lock import folder_lock, is_held
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import LOCK_FILE, Format

HOLDER = """
import sys, time
from curious_explorer.folder_lock import folder_lock
with folder_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    """A process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def run_folder(path: Path) -> RunFolder:
    return RunFolder(path, "run.json", Format("a run", 1), "run", CheckpointError, growing=("samples",))


def test_another_process_is_named_and_a_killed_one_keeps_nobody_out(tmp_path: Path) -> None:
    with hold(tmp_path) as process:
        assert is_held(tmp_path)
        with pytest.raises(CheckpointError, match=f"in use by process {process.pid} on .*, since 20"):
            run_folder(tmp_path).claim({"seed": 1}).__enter__()
        assert not (tmp_path / "run.json").exists()
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK_FILE).exists()  # it had no time to remove it
    with run_folder(tmp_path).claim({"seed": 1}):
        pass
    assert not is_held(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_fork_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    program = HOLDER.replace('print("held"', 'import os\n    os.fork() or time.sleep(5)\n    print("held"')
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    with folder_lock(tmp_path):
        pass


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    refused: list[str] = []

    def second() -> None:
        try:
            with folder_lock(tmp_path / "." / ".." / tmp_path.name):
                pass
        except FolderInUseError as error:
            refused.append(str(error))

    with folder_lock(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert "this very process" in refused[0]
    with folder_lock(tmp_path):
        pass


COUNTER = """
import sys
from pathlib import Path
from curious_explorer.folder_lock import folder_lock
counter = Path(sys.argv[1]) / "counter"
for _ in range(40):
    with folder_lock(sys.argv[1], patience=60.0):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_who_waits_comes_after_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    writers = [subprocess.Popen([sys.executable, "-c", COUNTER, str(tmp_path)]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "120"


def test_temporary_files_of_the_living_are_kept_and_of_the_dead_removed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with run_folder(tmp_path / "x").claim({}):
        pass
    os.rename(tmp_path / "x" / "run.json", tmp_path / "run.json")
    for folder in (tmp_path, inside):
        (folder / ".abc.tmp").write_text("half")
    with folder_lock(inside), run_folder(tmp_path).claim({}):
        assert (inside / ".abc.tmp").exists()
        assert not (tmp_path / ".abc.tmp").exists()
    with run_folder(tmp_path).claim({}):
        assert not (inside / ".abc.tmp").exists()


def test_settings_grow_and_their_digest_does_not(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    with folder.claim({"seed": 1, "samples": 5}):
        first = folder.digest()
    with folder.claim({"seed": 1, "samples": 9}):
        assert folder.digest() == first
        assert folder.settings()["samples"] == 9
    with pytest.raises(CheckpointError, match="seed is 1 there and 2 here"):
        folder.claim({"seed": 2, "samples": 9}).__enter__()
    with folder.claim({"seed": 2, "samples": 9}, replace=True):  # nothing was finished with the others
        assert folder.digest() != first


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "link to nothing", "pipe"])
def test_only_plain_files_are_claimed(tmp_path: Path, kind: str) -> None:
    folder, outside = run_folder(tmp_path / "run"), tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("foreign")
    with folder.claim({}):
        pass
    place = folder.path / "deep" / "place"
    place.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to({"file": outside / "file", "folder": outside, "nothing": outside / "none"}[kind.split()[-1]])
    with pytest.raises(CheckpointError, match=r"place is a (link|pipe)"):
        folder.claim({}).__enter__()
    assert (outside / "file").read_text() == "foreign"


def test_the_lock_file_is_no_way_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK_FILE).symlink_to(tmp_path / "precious")
    with pytest.raises(CheckpointError, match="cannot be written"):
        run_folder(folder).claim({}).__enter__()
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_lock_file_that_is_a_pipe_hangs_nobody(tmp_path: Path) -> None:
    with run_folder(tmp_path).claim({}):
        pass
    os.mkfifo(tmp_path / LOCK_FILE)
    with pytest.raises(CheckpointError, match="cannot be written"):
        run_folder(tmp_path).claim({}).__enter__()
