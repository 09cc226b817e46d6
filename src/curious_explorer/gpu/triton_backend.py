"""One world's walks and episodes on the GPU: the batch functions with a single run, on the world's own tables.

Tables are those that the CPU kernels use, as `Preparer` keeps them; they are copied to the device when a roll-in is
first walked there.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Words
from curious_explorer.errors import BackendError
from curious_explorer.gpu.device import check_memory
from curious_explorer.gpu.device_tables import Policies, RollIns, alias_tensor, chains_on_device, load_model
from curious_explorer.gpu.triton_episodes import episode_statistics_batch
from curious_explorer.gpu.triton_walks import walk_batch
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds import episode_kernels as stepping
from curious_explorer.worlds.numba_backend import ROLL_INS_KEPT, PreparedRollIn
from curious_explorer.worlds.world import EpisodeStatistics


class TritonBackend:
    """An MDP on the device, and the roll-ins that were walked there last."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self._model = load_model(mdp)
        self._roll_ins: OrderedDict[tuple[int, bool], tuple[PreparedRollIn, RollIns]] = OrderedDict()

    def walk(self, prepared: PreparedRollIn, key: np.uint64, count: int) -> tuple[NDArray[np.int32], int]:
        """The states in which walks end, and how many steps they took."""
        composed = prepared.pays(count)
        walked = walk_batch(
            self._model,
            self._on_device(prepared, composed),
            self._keys([key]),
            count,
            composed=composed,
            ends=True,
            counts=False,
        )
        assert walked.ends is not None
        ends: NDArray[np.int32] = walked.ends[0].cpu().numpy()
        return ends, int(walked.samples[0])

    def count_ends(
        self, prepared: PreparedRollIn, keys: Sequence[np.uint64], portions: Sequence[int]
    ) -> tuple[NDArray[np.int64], int]:
        """How many walks end in each state, and how many steps they took; portions of one size share a launch."""
        counts = np.zeros(self._model.num_states, dtype=np.int64)
        steps = 0
        for count in Counter(portions):
            composed = prepared.pays(count)
            walked = walk_batch(
                self._model,
                self._on_device(prepared, composed),
                self._keys([key for key, size in zip(keys, portions, strict=True) if size == count]),
                count,
                composed=composed,
                add_runs=True,
            )
            assert walked.counts is not None
            counts += walked.counts.cpu().numpy()
            steps += int(walked.samples.sum())
        return counts, steps

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
        max_samples: int | None,
        **settings: Any,
    ) -> tuple[EpisodeStatistics, NDArray[np.int64], int]:
        """The statistics of a batch of episodes, how often each transition was taken, and how it ended."""
        batch = episode_statistics_batch(
            self._model,
            Policies(self._tensor(policy), self._tensor(thresholds.view(np.int64)), None),
            self._on_device(prepared, False),
            self._keys([key]),
            rewards=None if reward_mode == stepping.OWN_REWARDS else self._tensor(rewards),
            combine="max" if reward_mode == stepping.LARGER_REWARDS else "replace",
            critic=self._tensor(critic),
            max_samples=max_samples,
            **settings,
        )
        ran = int(batch.run[0])
        statistics = EpisodeStatistics(
            advantage_sum=batch.advantage_sum[0].cpu().numpy(),
            weight=batch.weight[0].cpu().numpy(),
            target_sum=batch.target_sum[0].cpu().numpy(),
            occupancy=batch.occupancy[0].cpu().numpy(),
            returns=batch.returns[0, :ran].cpu().numpy(),
            lengths=batch.lengths[0, :ran].cpu().numpy(),
            samples=int(batch.samples[0]),
        )
        seen = np.zeros(0, dtype=np.int64) if batch.entry_counts is None else batch.entry_counts[0].cpu().numpy()
        ending = stepping.NOWHERE_TO_START if bool(batch.nowhere_to_start[0]) else stepping.FINISHED
        return statistics, seen, ending

    def _on_device(self, prepared: PreparedRollIn, composed: bool) -> RollIns:
        """A roll-in's tables on the device, copied now or found again."""
        if prepared.roll_in.targets is not None:
            raise BackendError(
                "roll-ins to chosen states are walked on the CPU; make the world with backend='numba' for them"
            )
        known = self._roll_ins.get((id(prepared), composed))
        if known is None:
            words = prepared.composed().words if composed else prepared.thresholds
            check_memory(words.nbytes, self._model.device, f"a roll-in of {prepared.chains.num_policies} policies")
            known = (prepared, self._copied(prepared, composed))
            self._roll_ins[id(prepared), composed] = known  # holds `prepared`, so that no other can take its identity
        self._roll_ins.move_to_end((id(prepared), composed))
        while len(self._roll_ins) > ROLL_INS_KEPT:
            self._roll_ins.popitem(last=False)
        return known[1]

    def _copied(self, prepared: PreparedRollIn, composed: bool) -> RollIns:
        thresholds = self._tensor(prepared.thresholds[: 0 if composed else None].view(np.int64))
        if not composed:
            return chains_on_device(self._model, prepared.chains, thresholds, None)
        words = alias_tensor(prepared.composed().words, self._model.device)
        table = words.view(1, prepared.chains.num_policies, -1, 2)
        return chains_on_device(self._model, prepared.chains, thresholds, table)

    def _keys(self, keys: Sequence[np.uint64]) -> torch.Tensor:
        return torch.from_numpy(np.array(keys, dtype=np.uint64).view(np.int64)).to(self._model.device)

    def _tensor(self, array: NDArray[Any]) -> torch.Tensor:
        """An array as that of a single run."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._model.device).unsqueeze(0)
