"""Making environments: from an id, a function, or another environment."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from curious_explorer.environments.environment_names import gymnasium_id_of, make_with
from curious_explorer.gym.cells import Env
from curious_explorer.registration import split_arguments

PACKAGES = {
    "MiniGrid-": ("minigrid", "minigrid"),
    "BabyAI-": ("minigrid", "minigrid"),
    "ALE/": ("ale_py", "ale-py"),
    "PointMaze_": ("gymnasium_robotics", "gymnasium-robotics"),
    "AntMaze_": ("gymnasium_robotics", "gymnasium-robotics"),
    "Fetch": ("gymnasium_robotics", "gymnasium-robotics"),
}
"""How ids begin that a package registers when it is imported: the module, and what it is called to install it."""
MOST_NAMED = 3


def make_by_id(name: str, **arguments: Any) -> Env:
    """The environment of an id, with arguments after a question mark if there are any (see `split_arguments`)."""
    identifier, given = split_arguments(name)
    _import_package(identifier)
    if identifier.rpartition(":")[2] not in gymnasium.registry:
        own = gymnasium_id_of(name)
        close = difflib.get_close_matches(identifier, gymnasium.registry, n=MOST_NAMED, cutoff=0.5)
        likely = [own] if own else close
        hint = f"did you mean {' or '.join(map(repr, likely))}? " if likely else ""
        raise ValueError(
            f"unknown environment {name!r}; {hint}expected an id that Gymnasium knows. Ids of other packages are known "
            "once their package is imported, as in 'package:Id-v0'"
        )
    try:
        return make_with(identifier, given | arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(f"{name} cannot be made, because a package is missing: {error}") from error


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
    """Import the package that registers an id: one of `PACKAGES`, or the one named before a colon."""
    known = next((found for begins, found in PACKAGES.items() if name.startswith(begins)), None)
    package = known[0] if known is not None else name.partition(":")[0] if ":" in name else None
    if package is None or (known is not None and name in gymnasium.registry):
        return
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if known is not None and error.name == package:
            raise ValueError(f"{name} needs the package {known[1]}: pip install {known[1]}") from error
        if error.name == package:
            raise ValueError(f"{name} names the package {package}, which is not installed") from error
        raise ValueError(f"{name} names the package {package}, which needs {error.name}, which is not there") from error
