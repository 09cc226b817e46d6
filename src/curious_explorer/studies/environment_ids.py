"""What there is to explore behind a name: a table of transitions, or an environment to step in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium

from curious_explorer.environments.environment_names import find_environment
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.registration import ZOO


def is_gymnasium_id(name: str) -> bool:
    """Whether a name is one of Gymnasium's ids, of this or of another package."""
    if name.endswith((".json", ".npz")) or name.partition("/")[0] in ZOO:
        return False
    return name.partition("?")[0] in gymnasium.registry or ":" in name or name.startswith("MiniGrid-")


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


def reset_model_folder(folder: str | Path) -> Path:
    """The reset model's folder, for those who name the run that it lies in."""
    inside = Path(folder) / "reset_model"
    return inside if inside.is_dir() else Path(folder)
