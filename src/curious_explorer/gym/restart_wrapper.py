"""`RestartWrapper`: train anything from the resets that exploration found."""

from __future__ import annotations

import gymnasium

from curious_explorer.gym.roll_in_wrapper import RollInWrapper
from curious_explorer.gym.time_limits import Env
from curious_explorer.resets.reset_model import ResetModel


class RestartWrapper(RollInWrapper, gymnasium.utils.RecordConstructorArgs):
    """A Gymnasium environment whose episodes begin all over the state space, by restart and step alone.

    Works with any learner of any library, in vector environments and in subprocesses. The steps of a roll-in do not eat
    the learner's time limit, wherever the `TimeLimit` is; they are samples all the same, and ``info["roll_in_steps"]``
    of every reset says how many there were. ``reset(seed=...)`` seeds the roll-ins too.

    Args:
        env: the environment that was explored; put wrappers that change observations or actions around this one, or
            explore with them in place.
        reset_model: from `explore`, or ``ResetModel.load(folder)``.
    """

    def __init__(self, env: Env, reset_model: ResetModel) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, reset_model=reset_model)
        if not isinstance(reset_model, ResetModel):
            raise ValueError(
                f"reset_model is {type(reset_model).__name__}, expected a ResetModel: exploration.reset_model, or "
                "ResetModel.load(folder)"
            )
        if not isinstance(env, gymnasium.Env):
            raise ValueError(f"env is {env!r}, expected an environment, as gymnasium.make gives one")
        reset_model.discretisation.check(env)
        super().__init__(env, reset_model.roll_in, reset_model.discretisation)
        self._reset_model = reset_model

    @property
    def reset_model(self) -> ResetModel:
        """Where episodes begin."""
        return self._reset_model
