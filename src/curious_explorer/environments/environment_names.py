"""Environments by name, as a command line gives them.

- ``dcl/20``, ``cct/10``, ``chain/8``, ``garnet/1000``, ...: the zoo (see `curious_explorer.registration.ZOO`), with
  a depth, a length or a number of states; for ``tv``, the number of pictures;
- ``FrozenLake-v1``, ``Taxi-v4``, ...: any Gymnasium environment that shows its table of transitions, with arguments
  after a question mark: ``FrozenLake-v1?map_name=8x8&is_slippery=false``;
- ``lock.json``, ``lock.npz``: a file written by `FiniteMDP.save`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curious_explorer.environments.id_packages import import_hint
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.registration import NAMESPACE, ZOO, split_arguments

if TYPE_CHECKING:
    import gymnasium

LARGEST_SIZE = 100_000_000
"""Beyond it, a machine is busy with names of states until its memory is full."""


def find_environment(name: str, *, labels: int | None = 0) -> FiniteMDP:
    """The MDP that a name stands for.

    Args:
        name: a short name with a size, a Gymnasium id, or a file; see the top of this module.
        labels: the seed that permutes the zoo's action labels (and draws a Garnet); None leaves them fixed.
    """
    if name.endswith((".json", ".npz")):
        if not Path(name).is_file():
            raise ValueError(f"there is no file {name!r}; expected an MDP written by FiniteMDP.save")
        return FiniteMDP.load(name)
    kind, _, size = name.partition("/")
    if kind in ZOO:
        if not size.isdecimal():
            raise ValueError(f"{name!r} has no size; expected a whole number after the slash, as in '{kind}/20'")
        if int(size) > LARGEST_SIZE:
            raise ValueError(
                f"{name!r} is too large to be held as a table; expected a size of at most {LARGEST_SIZE:,}"
            )
        entry = ZOO[kind]
        arguments: dict[str, Any] = {entry.size: int(size)}
        if entry.stochastic is not None:
            arguments["stochastic"] = entry.stochastic
        for argument in entry.seeds:
            arguments[argument] = labels if argument == "permute_actions" else labels or 0
        return zoo_function(entry.function)(**arguments)
    return _from_gymnasium(name)


def zoo_function(name: str) -> Callable[..., FiniteMDP]:
    """What makes an environment of the zoo: the function in the file of its name."""
    function: Callable[..., FiniteMDP] = getattr(importlib.import_module(f"curious_explorer.environments.{name}"), name)
    return function


def gymnasium_id_of(short_name: str) -> str | None:
    """What ``dcl/20`` and its kin are called as Gymnasium environments, where they are any."""
    kind, _, size = short_name.partition("/")
    if kind not in ZOO or ZOO[kind].gymnasium_name is None or not size.isdecimal():
        return None
    return f"{NAMESPACE}/{ZOO[kind].gymnasium_name}-v0?{ZOO[kind].size}={size}"


def _from_gymnasium(name: str) -> FiniteMDP:
    import gymnasium

    identifier, arguments = split_arguments(name)
    module, _, bare = identifier.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise ValueError(f"{name} names the module {module}, which cannot be imported: {error}") from error
    if bare not in gymnasium.registry:
        known = [*(f"{kind}/20" for kind in ZOO), *gymnasium.registry]
        close = difflib.get_close_matches(identifier, known, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"unknown environment {name!r}; {hint}expected a name such as 'dcl/20' or 'FrozenLake-v1', 'module:Id-v0' "
            f"for one that your own module registers, or an MDP file (.json, .npz). {import_hint(identifier)}"
        )
    return FiniteMDP.from_gymnasium(make_with(identifier, arguments))


def make_with(identifier: str, arguments: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """``gymnasium.make``, with an error that says which arguments were refused."""
    import gymnasium

    _check_switches(identifier, arguments)
    try:
        return gymnasium.make(identifier, disable_env_checker=True, **arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(f"{identifier} needs a package that is not there: {error}") from error
    except Exception as error:
        if not arguments and isinstance(error, ValueError):
            raise
        if not arguments or not isinstance(error, (TypeError, ValueError, KeyError)):  # no argument is to blame
            why = f"{type(error).__name__}: {error}"
            raise EnvironmentFailureError(f"{identifier} cannot be made, its constructor raised {why}") from error
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        why = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{identifier} cannot be made with {given}: {why}") from error


def _check_switches(identifier: str, arguments: dict[str, Any]) -> None:
    """Refuse a word where an environment takes true or false: to Python every word is true."""
    import gymnasium
    from gymnasium.envs.registration import load_env_creator

    words = {key: value for key, value in arguments.items() if isinstance(value, str)}
    if not words:
        return
    try:
        entry = gymnasium.spec(identifier).entry_point
        creator = load_env_creator(entry) if isinstance(entry, str) else entry
        expected = {} if creator is None else inspect.signature(creator).parameters
    except Exception:  # whatever is wrong with it, `gymnasium.make` says so
        return
    for key, value in words.items():
        if key in expected and isinstance(expected[key].default, bool):
            raise ValueError(f"{identifier} cannot be made with {key}={value!r}, expected true or false")
