"""A world whose episodes begin in starts that move with what is learned from them.

An optimizer asks for a batch of episodes from a reset model, and gets back sums in which starts are not told apart. So
the batch is run in groups (`MovingStarts.groups`): from the own start, from the far part of the level, from nearer
starts. Their statistics are added up, and the returns of each group say how the learner fares from there. Whoever
begins episodes in another way (one step at a time, or compiled) gets the reset model as it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curious_explorer.resets.moving_starts import Group, MovingStarts
from curious_explorer.worlds.compiled_steps import CompiledSteps
from curious_explorer.worlds.episodes import merge_transitions
from curious_explorer.worlds.policies import Policy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, World
from curious_explorer.worlds.wrappers import WorldWrapper


class MovingStartsWorld(WorldWrapper):
    """The world itself, but for batches that ask for ``roll_in`` and the world's own reward.

    Args:
        world: where to act.
        starts: where such episodes begin, and who is told how they went.
        roll_in: what an optimizer asks for when it means these starts.
    """

    def __init__(self, world: World, starts: MovingStarts, roll_in: RollIn) -> None:
        super().__init__(world)
        self.starts, self._asked_for = starts, roll_in

    def compiled_steps(self) -> CompiledSteps | None:
        """The world's own."""
        return self.world.compiled_steps()

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes, in groups of starts."""
        if batch.reset is not self._asked_for or batch.reward is not None or batch.episodes == 0:
            return self.world.episodes(policy, batch)
        groups = self.starts.groups()
        left = batch.max_samples
        parts = []
        for group, count in zip(groups, _shared_out(batch.episodes, groups), strict=True):
            if count == 0 or left == 0:
                continue
            horizon = batch.horizon if group.cut is None else min(batch.horizon, group.cut)
            asked = replace(batch, episodes=count, horizon=horizon, reset=group.roll_in, max_samples=left)
            part = self.world.episodes(policy, asked)
            parts.append(part)
            left = None if left is None else left - part.samples
            self.starts.tell_group(group, part.returns, self._least_return(horizon, batch.gamma))
        return _merged(parts, self.num_states, self.num_actions)

    def _least_return(self, horizon: int, gamma: float) -> float:
        """What an episode returns at the least."""
        return self.starts.least_reward * (1.0 - gamma**horizon) / (1.0 - gamma)


def _shared_out(episodes: int, groups: list[Group]) -> list[int]:
    """How many episodes each group has; together all of them, and at least one each where there are enough."""
    ends = np.round(np.cumsum([group.share for group in groups]) * episodes).astype(int)
    ends[-1] = episodes
    counts: list[int] = np.diff(ends, prepend=0).tolist()
    return counts


def _merged(parts: list[EpisodeStatistics], num_states: int, num_actions: int) -> EpisodeStatistics:
    """The statistics of all episodes together."""
    seen = [part.seen for part in parts if part.seen is not None]
    sums = {
        name: np.sum([getattr(part, name) for part in parts], axis=0)
        for name in ("advantage_sum", "weight", "target_sum", "occupancy")
    }
    return EpisodeStatistics(
        **sums,
        returns=np.concatenate([part.returns for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        samples=sum(part.samples for part in parts),
        seen=merge_transitions(seen, num_states, num_actions) if seen else None,
    )
