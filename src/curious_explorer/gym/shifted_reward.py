"""Rewards without the price of every step, so that what pays anything can be told from what only costs less."""

from __future__ import annotations

from typing import Any

import gymnasium

from curious_explorer.gym.cells import Env

END_OF_COSTS = 1.0
"""What the end of an episode pays in which every step costs something: there is nothing better to be had."""


class ShiftedReward(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose every step is paid back its price, and that pays for ending what costs.

    With MountainCar's price of -1 a step pays nothing, and one that reaches the goal pays 1: time is left to the
    discount.

    Args:
        env: the environment.
        price: what a step pays whatever it leads to; negative.
    """

    def __init__(self, env: Env, price: float) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, price=price)
        super().__init__(env)
        self.price = float(price)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        paid = float(reward) - self.price + (END_OF_COSTS if terminated else 0.0)
        return observation, paid, terminated, truncated, info


def without_price(env: Env, price: float) -> Env:
    """The environment, its steps paid back where they cost something."""
    return ShiftedReward(env, price) if price < 0.0 else env
