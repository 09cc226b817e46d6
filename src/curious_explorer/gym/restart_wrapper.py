"""`RestartWrapper`: train any learner from the resets that exploration found."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.actors import ActorCache, RandomStream
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.rollouts import RollInSampler, reset_by_roll_in
from curious_explorer.gym.stepped_environments import SingleEnvironment
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.worlds.roll_in import RollIn

ROLL_IN_STEPS, ROLL_IN_RESTARTS = "roll_in_steps", "roll_in_restarts"
"""What ``info`` of a reset says: the steps taken to get there, and how many roll-ins terminated and were repeated."""


class RollInWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose episodes begin where a roll-in ends, with all of their time limit ahead.

    Args:
        env: the environment.
        roll_in: how to reach a start from the environment's own.
        discretisation: the cells and actions that the roll-in's policies are tables over.
    """

    def __init__(self, env: Env, roll_in: RollIn, discretisation: Discretisation) -> None:
        super().__init__(env)
        action_set = ActionSet.from_description(discretisation.action_set.choices, env.action_space)
        self._single = SingleEnvironment(env, discretisation.frozen()._replace(action_set=action_set))
        self._sampler = RollInSampler(roll_in, ActorCache(discretisation.cells.count, action_set.choices))
        self._stream = RandomStream(int(np.random.SeedSequence().generate_state(1)[0]))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``info["roll_in_steps"]`` says how many steps it took to get there."""
        if seed is not None:
            self._stream = RandomStream(seed)
        single = self._single
        before = single.steps
        restarts = reset_by_roll_in(single, self._sampler, self._stream, seed=seed, options=options)
        roll_in_info = {ROLL_IN_STEPS: single.steps - before, ROLL_IN_RESTARTS: restarts}
        return single.observations[0], {**single.info, **roll_in_info}


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
        discretisation = Discretisation.of_reset_model(reset_model)
        discretisation.check(env)
        super().__init__(env, reset_model.roll_in, discretisation)
        self._reset_model = reset_model

    @property
    def reset_model(self) -> ResetModel:
        """Where episodes begin."""
        return self._reset_model
