"""Episodes in what was counted: a learner walks in the steps known of many layouts, without taking a sample.

The counted steps of a layout are a small world of their own. A learner that acts there meets the histories that its own
actions lead to, its mistakes among them, and for each state on the way the best action is known: the labels of DAgger
(Ross, Gordon and Bagnell 2011), without asking the environment. What was never tried cannot be walked, so an action is
drawn among those that were tried in the state.

All walks go side by side, as tensors. States of all layouts stand in one table, and so do their views, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.gym.seen_inputs import SeenInputs, distinct


class Walks(NamedTuple):
    """Episodes side by side, as tensors of shape (T, B)."""

    states: Any
    actions: Any  # the number of the action that led here; A at the beginning
    alive: Any  # whether the episode was still going on


class KnownSteps:
    """The labelled states of some layouts, and the steps between them.

    Args:
        labels: of layouts, each with a start.
        inputs: what a network sees.
        device: where tensors lie.
    """

    def __init__(self, labels: Sequence[Labelled], inputs: SeenInputs, device: Any) -> None:
        import torch

        self.device, self.num_actions = device, labels[0].probabilities.shape[1]
        sizes = [len(each.states) for each in labels]
        first = np.cumsum([0, *sizes])
        different, view = distinct(observation for each in labels for observation in each.observations)
        wanted = np.concatenate([each.probabilities for each in labels]).astype(np.float32)
        steps = np.concatenate(
            [each.steps + np.array([begin, 0, 0, 0]) for each, begin in zip(labels, first, strict=False)]
        )
        following = np.concatenate(
            [
                np.where(each.steps[:, 2] < 0, -1, each.steps[:, 2] + begin)
                for each, begin in zip(labels, first, strict=False)
            ]
        )
        pair = steps[:, 0] * self.num_actions + steps[:, 1]
        order = np.argsort(pair, kind="stable")
        pair, following, times = pair[order], following[order], steps[order, 3].astype(np.float64)
        pairs = len(wanted) * self.num_actions
        tried = np.bincount(pair, minlength=pairs) > 0
        bounds = np.searchsorted(pair, np.arange(pairs + 1))
        cumulative = np.concatenate([[0.0], np.cumsum(times)])
        starts = [each.starts + begin for each, begin in zip(labels, first, strict=False)]

        def tensor(array: Any) -> Any:
            return torch.as_tensor(np.ascontiguousarray(array), device=device)

        self.views, self.view, self.wanted = tensor(inputs.given(different)), tensor(view), tensor(wanted)
        self.tried = tensor(tried.reshape(-1, self.num_actions))
        self._following, self._cumulative = tensor(following), tensor(cumulative)
        self._low, self._total = tensor(cumulative[bounds[:-1]]), tensor(np.diff(cumulative[bounds]))
        self._starts, self._of_layout = tensor(np.concatenate(starts)), [len(each) for each in starts]
        self._first_start = tensor(np.cumsum([0, *self._of_layout])[:-1])
        self._num_starts = tensor(np.array(self._of_layout))

    def walk(self, count: int, longest: int, noise: float, likely: Callable[[Any, Any], Any] | None) -> Walks:
        """Episodes from the starts of layouts that are drawn evenly.

        Args:
            count: how many.
            longest: after so many steps they are cut off.
            noise: how often an action is drawn evenly from those tried.
            likely: by views and the actions that led to them, shape (B,), how likely each action is, shape (B, A);
                asked in order. None: the best actions are taken.
        """
        import torch

        layout = torch.randint(len(self._of_layout), (count,), device=self.device)
        draw = torch.rand(count, device=self.device)
        state = self._starts[self._first_start[layout] + (draw * self._num_starts[layout]).long()]
        action = torch.full((count,), self.num_actions, device=self.device)
        alive = torch.ones(count, dtype=torch.bool, device=self.device)
        walks: list[tuple[Any, Any, Any]] = []
        for _ in range(longest):
            tried = self.tried[state].float()
            alive = alive & (tried.sum(dim=1) > 0)
            if not alive.any():
                break
            walks.append((state, action, alive))
            chosen = (self.wanted[state] if likely is None else likely(self.view[state], action)) * tried
            even = tried / tried.sum(dim=1, keepdim=True).clamp(min=1.0)
            total = chosen.sum(dim=1, keepdim=True)
            chosen = torch.where(total > 1e-6, chosen / total.clamp(min=1e-6), even)
            chosen = (1.0 - noise) * chosen + noise * even
            chosen[~alive, 0] = 1.0
            action = torch.multinomial(chosen, 1)[:, 0]
            pair = state * self.num_actions + action
            goal = self._low[pair] + torch.rand(count, device=self.device, dtype=torch.float64) * self._total[pair]
            place = torch.searchsorted(self._cumulative, goal, right=True) - 1
            following = self._following[place.clamp(max=len(self._following) - 1)]
            alive = alive & (following >= 0)
            state = torch.where(alive, following, state)
        columns = zip(*walks, strict=True)
        return Walks(*(torch.stack(column) for column in columns))
