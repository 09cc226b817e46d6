"""Which names of environments stand for a table of transitions: the zoo's, MDP files, and Gymnasium's toy texts."""

from __future__ import annotations

from typing import Any

import gymnasium

from curious_explorer.environments.environment_names import find_environment
from curious_explorer.environments.id_packages import package_of
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.registration import ZOO


def is_gymnasium_id(name: str) -> bool:
    """Whether a name is one of Gymnasium's ids, of this or of another package."""
    if name.endswith((".json", ".npz")) or name.partition("/")[0] in ZOO:
        return False
    return name.partition("?")[0] in gymnasium.registry or ":" in name or package_of(name) is not None


def table_behind(name: str) -> FiniteMDP | None:
    """The table of transitions behind a name; None for a Gymnasium environment that has none."""
    if not is_gymnasium_id(name):
        return find_environment(name)  # knows what was meant by a name that is unknown
    env = make_by_id(name)
    try:
        return FiniteMDP.from_gymnasium(env) if shows_its_table(env) else None
    finally:
        env.close()


def shows_its_table(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment carries its transitions, as Gymnasium's toy texts and this library's do."""
    bare: Any = env.unwrapped
    spaces = (bare.observation_space, bare.action_space)
    if not all(isinstance(space, gymnasium.spaces.Discrete) and space.start == 0 for space in spaces):
        return False
    return isinstance(getattr(bare, "mdp", None), FiniteMDP) or getattr(bare, "P", None) is not None
