"""One world's walks and episodes on the CPU: which compiled kernel suits the sizes, and on how many threads it runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Words
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds import episode_kernels as stepping
from curious_explorer.worlds import walk_kernels as walking
from curious_explorer.worlds.alias_tables import Dynamics
from curious_explorer.worlds.prepared import CACHE_BYTES, PreparedRollIn
from curious_explorer.worlds.world import EpisodeStatistics

NO_LIMIT = 1 << 62


class NumbaBackend:
    """An MDP's dynamics, and how many threads walk them."""

    def __init__(self, mdp: FiniteMDP, dynamics: Dynamics, threads: int) -> None:
        self._shape = (mdp.num_states, mdp.num_actions)
        self._dynamics = dynamics
        self._threads = threads

    def walk(self, prepared: PreparedRollIn, key: np.uint64, count: int) -> tuple[NDArray[np.int32], int]:
        """The states in which walks end, and how many steps they took."""
        ends = np.empty(count, dtype=np.int32)
        kernel = self._walker(prepared, count)
        if self._threads == 1:
            return ends, int(kernel(key, 0, ends))
        cuts = np.linspace(0, count, self._threads + 1).astype(int)
        with ThreadPoolExecutor(self._threads) as pool:
            parts = [pool.submit(kernel, key, first, ends[first:stop]) for first, stop in pairwise(cuts)]
        return ends, sum(part.result() for part in parts)

    def count_ends(
        self, prepared: PreparedRollIn, keys: Sequence[np.uint64], portions: Sequence[int]
    ) -> tuple[NDArray[np.int64], int]:
        """How many walks end in each state, and how many steps they took; each portion has a stream of its own."""
        counts = np.zeros(self._shape[0], dtype=np.int64)
        steps = 0
        for key, portion in zip(keys, portions, strict=True):
            ends, taken = self.walk(prepared, key, portion)
            counts += np.bincount(ends, minlength=self._shape[0])
            steps += taken
        return counts, steps

    def _walker(self, prepared: PreparedRollIn, count: int) -> partial[int]:
        """The kernel that suits the sizes, with its tables, ready for (key, first walk, ends)."""
        if not prepared.pays(count):
            return partial(stepping.walk_by_steps, self._dynamics, prepared.chains, prepared.thresholds)
        table = prepared.composed()
        kernel = walking.walk_in_pairs if prepared.composed_bytes <= CACHE_BYTES else walking.walk_in_lanes
        stride = self._shape[0] << table.log2_size
        return partial(kernel, prepared.chains, table.words, table.outcomes, table.log2_size, stride)

    def episodes(
        self,
        prepared: PreparedRollIn,
        key: np.uint64,
        policy: Floats,
        thresholds: Words,
        rewards: Floats,
        reward_mode: int,
        critic: Floats,
        *,
        episodes: int,
        horizon: int,
        gamma: float,
        trace: float,
        weight_decay: float,
        credited: int,
        max_samples: int | None,
        record: bool,
    ) -> tuple[EpisodeStatistics, NDArray[np.int64], int]:
        """The statistics of a batch of episodes, how often each transition was taken, and how it ended."""
        entry_counts = np.zeros(len(self._dynamics.next_state) if record else 0, dtype=np.int64)
        result = EpisodeStatistics(
            advantage_sum=np.zeros(self._shape),
            weight=np.zeros(self._shape),
            target_sum=np.zeros(self._shape[0]),
            occupancy=np.zeros(self._shape[0]),
            returns=np.zeros(episodes),
            lengths=np.zeros(episodes, dtype=np.int64),
            samples=0,
        )
        taken, run, ending = stepping.episode_statistics(
            self._dynamics,
            prepared.chains,
            prepared.thresholds,
            policy,
            thresholds,
            rewards,
            reward_mode,
            critic,
            gamma,
            trace,
            weight_decay,
            horizon,
            credited,
            NO_LIMIT if max_samples is None else max_samples,
            key,
            *result[:6],
            entry_counts,
        )
        result = result._replace(returns=result.returns[:run], lengths=result.lengths[:run], samples=int(taken))
        return result, entry_counts, int(ending)
