"""MDPs on disk: ``.json`` for people, ``.npz`` for size and speed; the ending of the name decides.

Both come back bit for bit and carry the name and the version of the format. Nothing is ever
unpickled; a file is checked as a whole before an MDP exists, and whatever is wrong with it is an `MDPFileError`.
"""

from __future__ import annotations

from pathlib import Path

from curious_explorer.errors import MDPFileError
from curious_explorer.files import write_atomically
from curious_explorer.mdp import storage_json, storage_npz
from curious_explorer.mdp.finite_mdp import FiniteMDP

_ENCODERS = {".json": storage_json.encode, ".npz": storage_npz.encode}
_DECODERS = {".json": storage_json.decode, ".npz": storage_npz.decode}


def save_mdp(mdp: FiniteMDP, path: str | Path) -> Path:
    """Write an MDP to a ``.json`` or ``.npz`` file, atomically, and return the path."""
    encode = _ENCODERS[_ending(path)]
    for kind, names in (("state", mdp.state_names), ("action", mdp.action_names)):
        for name in names:
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                raise ValueError(f"{kind} name {name!r} holds half a surrogate pair, expected valid text; rename it")
    return write_atomically(path, encode(mdp))


def load_mdp(path: str | Path) -> FiniteMDP:
    """Read what `save_mdp` wrote.

    Raises:
        MDPFileError: if the file is truncated, damaged, of another kind or version, or describes no valid MDP.
        OSError: if there is no such file, or it cannot be read.
    """
    decode = _DECODERS[_ending(path)]
    content = Path(path).read_bytes()
    try:
        return decode(content)
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        problem = str(error) or type(error).__name__
        raise MDPFileError(f"{path} cannot be read as an MDP: {problem}") from error


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix.lower()
    if ending not in _ENCODERS:
        raise ValueError(f"{str(path)!r} ends in {ending!r}, expected one of {', '.join(_ENCODERS)}")
    return ending
