"""Making environments: from an id, a function, or another environment."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from curious_explorer.environments.environment_names import gymnasium_id_of, make_with
from curious_explorer.environments.id_packages import import_hint, package_of
from curious_explorer.gym.cells import Env
from curious_explorer.registration import split_arguments

MOST_NAMED = 3


def make_by_id(name: str, **arguments: Any) -> Env:
    """The environment of an id, with arguments after a question mark if there are any (see `split_arguments`).

    A MiniGrid draws what the agent sees the fast way, which shows the same.
    """
    identifier, given = split_arguments(name)
    _import_package(identifier)
    package, colon, alone = identifier.rpartition(":")
    if alone not in gymnasium.registry:
        own = gymnasium_id_of(name)
        close = difflib.get_close_matches(alone, gymnasium.registry, n=MOST_NAMED, cutoff=0.5)
        likely = [own] if own else [f"{package}{colon}{each}" for each in close]
        hint = f"did you mean {' or '.join(map(repr, likely))}? " if likely else ""
        raise ValueError(
            f"unknown environment {name!r}; {hint}expected an id that Gymnasium knows. {import_hint(identifier)}"
        )
    try:
        env = make_with(identifier, given | arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(f"{name} cannot be made, because a package is missing: {error}") from error
    for kind in ("observation_space", "action_space"):
        if not isinstance(getattr(env.unwrapped, kind, None), gymnasium.Space):
            raise ValueError(f"{name} has no {kind}; set self.{kind} to one of gymnasium.spaces in its __init__")
    if "minigrid" in sys.modules:
        from curious_explorer.gym.minigrid_views import draw_faster  # it imports MiniGrid

        draw_faster(env)
    return env


def maker_of(env: str | Env | Callable[[], Env]) -> Callable[[], Env]:
    """A function that makes another environment like this one; it can be pickled unless the user's own cannot."""
    if isinstance(env, str):
        return partial(make_by_id, env)
    if not isinstance(env, gymnasium.Env):
        return env
    if env.spec is None:
        raise ValueError(
            f"{env} was not made by gymnasium.make, so that no second one like it can be made; give a function that "
            "makes the environment: GymWorld(lambda: MyEnv(...), ...)"
        )
    return partial(_make_by_spec, env.spec, env.observation_space, env.action_space)


def _make_by_spec(spec: EnvSpec, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> Env:
    """An environment by the spec of another, wrappers included, unless Gymnasium has kept no record of one."""
    made = gymnasium.make(spec, disable_env_checker=True)
    if (made.observation_space, made.action_space) != (observation_space, action_space):
        raise ValueError(
            f"a second environment made by the spec of {spec.id} has other spaces than the first: a wrapper is missing "
            "that Gymnasium keeps no record of; give a function that makes the environment: "
            "GymWorld(lambda: MyWrapper(gymnasium.make(...)), ...)"
        )
    return made


def _import_package(name: str) -> None:
    """Import the package that registers an id: the one named before a colon, or the one whose ids begin so."""
    named, colon, identifier = name.rpartition(":")
    if identifier in gymnasium.registry and not colon:
        return
    known = None if colon else package_of(identifier)
    package = named.partition(":")[0] if known is None else known.module
    if not package:
        return
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if known is not None and error.name == package:
            raise ValueError(f"{name} needs the package {known.name}: {known.installing}") from error
        if error.name == package:
            raise ValueError(f"{name} names the package {package}, which is not installed") from error
        raise ValueError(f"{name} names the package {package}, which needs {error.name}, which is not there") from error
    except Exception as error:
        raise ValueError(
            f"{name} names the package {package}, which cannot be imported: {type(error).__name__}: {error}"
        ) from error
