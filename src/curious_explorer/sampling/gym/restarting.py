"""An environment whose episodes begin where a roll-in ends.

`reset` restarts the environment, draws a chain of policies and follows it, as `World.walk` does; then the learner's
episode begins, with all of its time ahead. A roll-in that terminates is repeated, at full cost.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from curious_explorer.sampling.gym.actors import Actors, Draws
from curious_explorer.sampling.gym.clocks import Env
from curious_explorer.sampling.gym.journeys import LOST_IN_A_ROW, Routes, follow_route, nowhere_to_start
from curious_explorer.sampling.gym.menu import ActionMenu
from curious_explorer.sampling.gym.senses import Senses
from curious_explorer.sampling.gym.solo import SoloLane
from curious_explorer.sampling.roll_in import RollIn

ROLL_IN_STEPS, ROLL_IN_RESTARTS = "roll_in_steps", "roll_in_restarts"
"""What `info` of a reset carries: the steps taken to get there, and how many roll-ins terminated before one did not."""


class RolledIn(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Rolls in at every reset.

    Args:
        env: the environment.
        roll_in: how to reach a start from the environment's own.
        senses: which cell an observation belongs to, and which action a number means.
    """

    def __init__(self, env: Env, roll_in: RollIn, senses: Senses) -> None:
        super().__init__(env)
        menu = ActionMenu.from_description(senses.menu.choices, env.action_space)
        self._lane = SoloLane(env, senses.frozen()._replace(menu=menu))
        self._routes = Routes(roll_in, Actors(senses.cells.count, menu.choices))
        self._draws = Draws(int(np.random.SeedSequence().generate_state(1)[0]))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``info["roll_in_steps"]`` says how many steps it took to get there."""
        if seed is not None:
            self._draws = Draws(seed)
        lane = self._lane
        before = lane.steps
        for restarts in range(LOST_IN_A_ROW):
            lane.reset(seed=seed if restarts == 0 else None, options=options)
            if follow_route(lane, self._routes.draw(self._draws), self._draws):
                lane.turn_back_clocks()
                rolled = {ROLL_IN_STEPS: lane.steps - before, ROLL_IN_RESTARTS: restarts}
                return lane.observations[0], {**lane.info, **rolled}
        nowhere_to_start()
