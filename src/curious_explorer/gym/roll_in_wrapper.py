"""An environment whose episodes begin where a roll-in ends.

`reset` restarts the environment, draws a chain of policies and follows it, as `World.walk` does; then the learner's
episode begins, with all of its time ahead. A roll-in that terminates is repeated, at full cost.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.actors import ActorCache, RandomStream
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.rollouts import LOST_IN_A_ROW, RollInSampler, nowhere_to_start, roll_in_along
from curious_explorer.gym.single_environment import SingleEnvironment
from curious_explorer.gym.time_limits import Env
from curious_explorer.worlds.roll_in import RollIn

ROLL_IN_STEPS, ROLL_IN_RESTARTS = "roll_in_steps", "roll_in_restarts"
"""What `info` of a reset carries: the steps taken to get there, and how many roll-ins terminated before one did not."""


class RollInWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Rolls in at every reset.

    Args:
        env: the environment.
        roll_in: how to reach a start from the environment's own.
        discretisation: which cell an observation belongs to, and which action a number means.
    """

    def __init__(self, env: Env, roll_in: RollIn, discretisation: Discretisation) -> None:
        super().__init__(env)
        action_set = ActionSet.from_description(discretisation.action_set.choices, env.action_space)
        self._lane = SingleEnvironment(env, discretisation.frozen()._replace(action_set=action_set))
        self._sampler = RollInSampler(roll_in, ActorCache(discretisation.cells.count, action_set.choices))
        self._draws = RandomStream(int(np.random.SeedSequence().generate_state(1)[0]))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``info["roll_in_steps"]`` says how many steps it took to get there."""
        if seed is not None:
            self._draws = RandomStream(seed)
        lane = self._lane
        before = lane.steps
        for restarts in range(LOST_IN_A_ROW):
            lane.reset(seed=seed if restarts == 0 else None, options=options)
            if roll_in_along(lane, self._sampler.draw(self._draws), self._draws):
                lane.turn_back_time_limits()
                rolled = {ROLL_IN_STEPS: lane.steps - before, ROLL_IN_RESTARTS: restarts}
                return lane.observations[0], {**lane.info, **rolled}
        nowhere_to_start()
