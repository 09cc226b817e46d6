"""Reminders: after each update of PPO some batches of demonstrations are cloned once more, fewer and fewer.

A policy that imitates the plan may succeed now and then only, where views look alike or the world is noisy. Then most
steps are of long episodes that fail, in states that no demonstration shows, and what PPO learns there spoils what the
policy does on the way: success went from every other episode to none within two updates (docs/starts.md). Reminded, it
keeps the way until PPO has something better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

FIRST, LASTING = 3.0, 0.97
"""How many batches there are after the first update, and what is left of that after each: the 37th is the last with
one. There are fewer where the world is random, because a plan on few counts is no certainty there."""
BATCH = 256
MOST_BYTES = 1 << 24
"""Demonstrations that take more, as of large pictures, are not kept for reminders."""

_SEEN, _ALONE = "seen.", ""


class Reminders:
    """What demonstrations advise, for as long as a policy is reminded of it.

    Args:
        seen: what was seen, as the network sees it before it is shifted and scaled; a dict has a row for each, too.
        advised: the network's action that was advised.
        choices: the network's actions among which the plan chose.
        soft: the share of random actions among those that are cloned.
        first: how many batches there are after the first update.
        updates: after how many updates there were reminders already.
    """

    def __init__(
        self,
        seen: NDArray[Any] | dict[str, NDArray[Any]],
        advised: NDArray[Any],
        choices: NDArray[Any],
        soft: float,
        *,
        first: float,
        updates: int = 0,
    ) -> None:
        self._seen, self._first, self._updates, self.soft = seen, first, updates, soft
        self.advised, self._choices = torch.as_tensor(advised), torch.as_tensor(choices)

    @property
    def bytes(self) -> int:
        """What is kept of observations."""
        parts = self._seen.values() if isinstance(self._seen, dict) else [self._seen]
        return sum(part.nbytes for part in parts)

    @property
    def over(self) -> bool:
        """Whether no more batches come."""
        return self._first * LASTING**self._updates < 1.0

    def inputs(self, policy: Any, normalizer: Any) -> Any:
        """What the policy sees of it, with the statistics of observations as they are now."""
        seen = self._seen if normalizer is None else normalizer.normalize_obs(self._seen)
        return policy.obs_to_tensor(seen)[0]

    def batch(self, inputs: Any, size: int = BATCH) -> tuple[torch.Tensor, Any, torch.Tensor]:
        """Which examples, what is seen in them, and what is to be done; drawn by PyTorch's own generator."""
        places = torch.randint(len(self.advised), (min(size, len(self.advised)),))
        cloned = self.advised[places]
        if self.soft > 0.0:
            drawn = self._choices[torch.randint(len(self._choices), (len(places),))]
            other = torch.rand(len(places)) < self.soft
            cloned = torch.where(other.reshape(-1, *[1] * (cloned.ndim - 1)), drawn, cloned)
        seen = {name: part[places] for name, part in inputs.items()} if isinstance(inputs, dict) else inputs[places]
        return places, seen, cloned

    def remind(self, model: Any, normalizer: Any) -> None:
        """Clone as many batches as are due after this update of a model."""
        policy, due = model.policy, int(self._first * LASTING**self._updates)
        self._updates += 1
        inputs = self.inputs(policy, normalizer)
        policy.set_training_mode(True)
        for _ in range(due):
            _, seen, cloned = self.batch(inputs)
            _, log_probability, _ = policy.evaluate_actions(seen, cloned)
            policy.optimizer.zero_grad()
            (-log_probability.mean()).backward()
            policy.optimizer.step()
        policy.set_training_mode(False)

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """All of it, as tensors by name and plain data."""
        parts = self._seen if isinstance(self._seen, dict) else {_ALONE: self._seen}
        tensors = {_SEEN + name: torch.as_tensor(part) for name, part in parts.items()}
        tensors |= {"advised": self.advised, "choices": self._choices}
        return tensors, {"soft": self.soft, "first": self._first, "updates": self._updates}

    @classmethod
    def restored(cls, tensors: Mapping[str, torch.Tensor], plain: Mapping[str, Any]) -> Reminders:
        """What `state` said."""
        parts = {name.removeprefix(_SEEN): part.numpy() for name, part in tensors.items() if name.startswith(_SEEN)}
        seen: Any = parts.get(_ALONE, parts)
        advised, choices = tensors["advised"].numpy(), tensors["choices"].numpy()
        seen = np.copy(seen) if isinstance(seen, np.ndarray) else seen
        soft, first, updates = float(plain["soft"]), float(plain["first"]), int(plain["updates"])
        return cls(seen, advised, choices, soft, first=first, updates=updates)
