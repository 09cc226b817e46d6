"""Making environments: from an id, a function, or an environment that is there already."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import gymnasium

from curious_explorer.environments.naming import gymnasium_id_of, make_with, split_arguments
from curious_explorer.gym.time_limits import Env


def make_by_id(name: str, **arguments: Any) -> Env:
    """The environment of an id, with arguments after a question mark if there are any (see `split_arguments`).

    The nearest one is suggested for an id that is unknown.
    """
    identifier, given = split_arguments(name)
    _import_namespace(identifier)
    if identifier.rpartition(":")[2] not in gymnasium.registry:
        close = difflib.get_close_matches(identifier, gymnasium.registry, n=1, cutoff=0.5)
        likely = gymnasium_id_of(name) or (close[0] if close else None)
        hint = f"did you mean {likely!r}? " if likely else ""
        raise ValueError(
            f"unknown environment {name!r}; {hint}expected an id that Gymnasium knows. Ids of other packages are known "
            "once their package is imported, as in 'package:Id-v0'"
        )
    return make_with(identifier, given | arguments)


def maker_of(env: str | Env | Callable[[], Env]) -> Callable[[], Env]:
    """A function that makes another environment like this one."""
    if isinstance(env, str):
        return ById(env)
    if not isinstance(env, gymnasium.Env):
        return env
    if env.spec is None:
        raise ValueError(
            f"{env} was not made by gymnasium.make, so that no second one like it can be made; give a function that "
            "makes the environment: GymWorld(lambda: MyEnv(...), ...)"
        )
    return LikeThis(env)


class ById:
    """Makes the environment of an id; an object rather than a lambda, so that it can be sent to a process."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> Env:
        """Make one."""
        return make_by_id(self._name)


class LikeThis:
    """Makes an environment by the spec of another, wrappers included."""

    def __init__(self, env: Env) -> None:
        self._spec = env.spec
        self._spaces = (env.observation_space, env.action_space)

    def __call__(self) -> Env:
        """Make one, and check that it is alike: a wrapper that Gymnasium keeps no record of would be missing."""
        assert self._spec is not None
        made = gymnasium.make(self._spec, disable_env_checker=True)
        if (made.observation_space, made.action_space) != self._spaces:
            raise ValueError(
                f"a second environment made by the spec of {self._spec.id} has other spaces than the first: a wrapper "
                "is missing that Gymnasium keeps no record of; give a function that makes the environment: "
                "GymWorld(lambda: MyWrapper(gymnasium.make(...)), ...)"
            )
        return made


def _import_namespace(name: str) -> None:
    """Import the package whose import registers the id, for the few that everybody knows."""
    if name.startswith("MiniGrid-"):
        try:
            import minigrid  # noqa: F401
        except ModuleNotFoundError as error:
            raise ValueError(f"{name} needs the package minigrid: pip install 'curious-explorer[gym]'") from error
    elif ":" in name:
        import importlib

        package = name.partition(":")[0]
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as error:
            raise ValueError(f"{name} names the package {package}, which is not installed") from error
