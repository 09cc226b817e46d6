"""MDPs on disk: ``.json`` for people, ``.npz`` for size and speed; the ending of the name decides.

Both come back bit for bit and carry the name and the version of the format. Nothing is ever
unpickled; a file is checked as a whole before an MDP exists, unless it is mapped (see `storage_npz`), and whatever is
wrong with it is an `MDPFileError`.
"""

from __future__ import annotations

from pathlib import Path

from curious_explorer.errors import MDPFileError
from curious_explorer.files import atomic_writer, write_atomically
from curious_explorer.mdp import mdp_json as storage_json
from curious_explorer.mdp import mdp_npz as storage_npz
from curious_explorer.mdp.finite_mdp import FiniteMDP

_ENDINGS = (".json", ".npz")


def save_mdp(mdp: FiniteMDP, path: str | Path) -> Path:
    """Write an MDP to a ``.json`` or ``.npz`` file, atomically, and return the path."""
    ending = _ending(path)
    for kind, names in (("state", mdp._state_names), ("action", mdp._action_names)):
        for name in names or ():
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                raise ValueError(f"{kind} name {name!r} holds half a surrogate pair, expected valid text; rename it")
    if ending == ".json":
        return write_atomically(path, storage_json.encode(mdp))
    with atomic_writer(path) as stream:
        storage_npz.write(mdp, stream)
    return Path(path)


def load_mdp(path: str | Path, *, mmap: bool = False, check: bool | None = None) -> FiniteMDP:
    """Read what `save_mdp` wrote.

    Args:
        path: the file.
        mmap: whether to map the arrays of an ``.npz`` file into memory instead of reading them: ready at once, however
            large; pages are read when they are used, and shared between processes.
        check: whether to look at every byte (checksums, and that it is a valid MDP). By default a mapped file is not
            looked at and any other is.

    Raises:
        MDPFileError: if the file is truncated, damaged, of another kind or version, or describes no valid MDP.
        OSError: if there is no such file, or it cannot be read.
    """
    ending = _ending(path)
    if ending == ".json" and (mmap or check is False):
        raise ValueError(f"{str(path)!r} is text, which is always read and checked; save the MDP as .npz to map it")
    with open(path, "rb") as stream:
        try:
            if ending == ".json":
                return storage_json.decode(stream.read())
            return storage_npz.read(stream, mapped=mmap, check=not mmap if check is None else check)
        except (ValueError, OverflowError, RecursionError, MemoryError) as error:
            problem = str(error) or type(error).__name__
            raise MDPFileError(f"{path} cannot be read as an MDP: {problem}") from error


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(f"{str(path)!r} ends in {ending!r}, expected one of {', '.join(_ENDINGS)}")
    return ending
