"""Walks and episodes on the CPU: roll-ins made ready for the kernels, and which kernel runs, on how many threads.

Policies are recognised by identity, which is safe because those of a `RollIn` are read-only. An
exploration of N rounds visits with chains of 1, 2, ..., N policies; only the newest one needs new tables.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter
from threading import Event

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Words
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_policy
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds.alias_tables import AliasTable, Dynamics
from curious_explorer.worlds.episode_kernels import FINISHED, episode_statistics, walk_by_steps
from curious_explorer.worlds.episodes import EpisodeStatistics
from curious_explorer.worlds.roll_in import NO_GOAL, RollIn
from curious_explorer.worlds.targets import Targets
from curious_explorer.worlds.walk_kernels import Chains, walk_in_lanes, walk_in_pairs

ROLL_INS_KEPT = 8
MOST_BYTES_KEPT = 1 << 29
CACHE_BYTES = 1 << 20
"""Composed tables up to this size stay in a core's own cache: two interleaved walks are then fastest, above it many."""
MOST_COMPOSED_BYTES = 4 << 30
"""Composed tables past this size are not built; the walk then looks up policy and transitions one after the other."""
STEPS_PER_ENTRY_IN_CACHE, STEPS_PER_ENTRY_BEYOND = 4.0, 0.25
"""A composed table pays for its building once walks take this many steps for each of its entries (measured: 64 states
break even at 4; past the cache the prefetching walk gains so much more that a quarter of a step is enough)."""
ENTRY_BYTES = 16
NO_LIMIT = 1 << 62
STEPS_AT_ONCE = 1 << 26
"""About so many steps a compiled call takes, some tenths of a second, so that Ctrl-C need not wait for millions of
walks."""


def composing_pays(expected_steps: float, count: int, entries: int) -> bool:
    """Whether ``count`` walks go through composed tables of so many entries, or look up action and next state.

    The two ways take other draws, so every backend asks here: the choice is part of what a seed means.
    """
    nbytes = ENTRY_BYTES * entries
    steps_to_pay = entries * (STEPS_PER_ENTRY_IN_CACHE if nbytes <= CACHE_BYTES else STEPS_PER_ENTRY_BEYOND)
    return expected_steps * count > steps_to_pay and nbytes <= MOST_COMPOSED_BYTES


def expected_steps(gammas: Sequence[float], weights: Floats, chains: Integers, tail: int) -> float:
    """How many steps a walk takes on average if it meets no terminal state."""
    ahead = np.array([gamma / (1.0 - gamma) for gamma in gammas])
    until = np.concatenate([[0.0], np.cumsum(ahead)])
    first, stop = chains.T
    return float(weights @ (until[stop] - until[first])) + float(ahead[len(ahead) - tail :].sum())


def make_chains(
    start: AliasTable,
    gammas: Sequence[float],
    weights: Floats,
    ranges: Integers,
    tail: int,
    targets: Targets | None = None,
    goals: Integers | None = None,
) -> Chains:
    """What the kernels share of a mixture of chains; see `RollIn` for the arguments."""
    chain = tables.alias_table(weights)
    discounts = sorted(set(gammas)) or [0.0]
    size = max(map(tables.geometric_size, discounts))
    stops = np.concatenate([tables.geometric_table(gamma, size).words for gamma in discounts])
    return Chains(
        chain_words=chain.words,
        chain_outcomes=chain.outcomes,
        ranges=np.column_stack([ranges, np.full(len(ranges), NO_GOAL) if goals is None else goals]),
        tail_start=len(gammas) - tail,
        num_policies=len(gammas),
        start_words=start.words,
        start_outcomes=start.outcomes,
        stop_words=stops,
        stop_outcomes=stops.view(np.int32),
        stop_offset=np.array([discounts.index(gamma) * size for gamma in gammas], dtype=np.int64),
        stop_size=size,
        targets=np.zeros((0, 3), dtype=np.int64) if targets is None else targets.table,
        actions=np.zeros((0, 0), dtype=np.int16) if targets is None else targets.all_actions(),
        tally=np.zeros((1, 3), dtype=np.int64) if targets is None else targets.counts,
    )


class _PolicyTables:
    """One policy's tables, each built when first asked for."""

    def __init__(self, mdp: FiniteMDP, policy: Floats, log2_size: int) -> None:
        self.policy = policy  # held, so that no other array can take its identity
        self._mdp = mdp
        self._log2_size = log2_size
        self.thresholds = tables.policy_thresholds(check_policy(policy, mdp.num_states, mdp.num_actions).copy())
        self._composed: AliasTable | None = None
        self.nbytes = self.thresholds.nbytes

    def composed(self) -> AliasTable:
        if self._composed is None:
            self._composed = tables.composed_table(self._mdp, self.policy, self._log2_size)
            self.nbytes += self._composed.words.nbytes
        return self._composed


class PreparedRollIn:
    """A roll-in as the kernels take it."""

    def __init__(
        self, roll_in: RollIn, chains: Chains, policies: list[_PolicyTables], mdp: FiniteMDP, size: int
    ) -> None:
        self.roll_in = roll_in  # held, so that no other roll-in can take its identity
        self.chains = chains
        self._policies = policies
        self.thresholds: Words = np.empty((len(policies), mdp.num_states * mdp.num_actions), dtype=np.uint64)
        for index, policy in enumerate(policies):
            self.thresholds[index] = policy.thresholds.ravel()
        self.composed_entries = len(policies) * mdp.num_states * size
        self.composed_bytes = ENTRY_BYTES * self.composed_entries
        self._composed: AliasTable | None = None

    @property
    def nbytes(self) -> int:
        """How much memory its tables take, beside those of its policies."""
        return self.thresholds.nbytes + (0 if self._composed is None else self._composed.words.nbytes)

    @cached_property
    def expected_steps(self) -> float:
        """How many steps a walk takes on average if it meets no terminal state."""
        roll_in = self.roll_in
        return expected_steps(roll_in.gammas, roll_in.weights, roll_in.chains, roll_in.tail)

    def pays(self, count: int) -> bool:
        """Whether ``count`` walks go through composed tables; never to chosen states, for which there are none."""
        roll_in = self.roll_in
        return roll_in.targets is None and composing_pays(self.expected_steps, count, self.composed_entries)

    def composed(self) -> AliasTable:
        """The composed tables of all policies, one after the other."""
        if self._composed is None:
            parts = [policy.composed() for policy in self._policies]
            words = np.concatenate([part.words for part in parts]) if len(parts) > 1 else parts[0].words
            self._composed = AliasTable(words, words.view(np.int32), parts[0].log2_size)
        return self._composed


class Preparer:
    """Builds and keeps the tables of one MDP's policies and roll-ins."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self._mdp = mdp
        self._start = tables.alias_table(mdp.start, mdp.terminal)
        self._log2_size = tables.composed_log2_size(mdp)
        self._policies: OrderedDict[int, _PolicyTables] = OrderedDict()
        self._roll_ins: OrderedDict[int, PreparedRollIn] = OrderedDict()

    def prepare(self, roll_in: RollIn) -> PreparedRollIn:
        """The roll-in's tables, built now or found again."""
        known = self._roll_ins.get(id(roll_in))
        if known is not None:
            self._roll_ins.move_to_end(id(roll_in))
            return known
        policies = [self._policy(policy) for policy in roll_in.policies]
        kept_bytes = sum(map(attrgetter("nbytes"), self._policies.values()))
        while len(self._policies) > 1 and kept_bytes > MOST_BYTES_KEPT:
            _, dropped = self._policies.popitem(last=False)
            kept_bytes -= dropped.nbytes
        chains = make_chains(
            self._start,
            roll_in.gammas,
            roll_in.weights,
            roll_in.chains,
            roll_in.tail,
            roll_in.targets,
            roll_in.goals,
        )
        prepared = PreparedRollIn(roll_in, chains, policies, self._mdp, 1 << self._log2_size)
        self._roll_ins[id(roll_in)] = prepared
        while len(self._roll_ins) > ROLL_INS_KEPT or (
            len(self._roll_ins) > 1 and sum(kept.nbytes for kept in self._roll_ins.values()) > MOST_BYTES_KEPT
        ):
            self._roll_ins.popitem(last=False)
        return prepared

    def _policy(self, policy: Floats) -> _PolicyTables:
        known = self._policies.get(id(policy))
        if known is None:
            known = self._policies[id(policy)] = _PolicyTables(self._mdp, policy, self._log2_size)
        self._policies.move_to_end(id(policy))
        return known


class NumbaBackend:
    """An MDP's dynamics, and how many threads walk them."""

    def __init__(self, mdp: FiniteMDP, dynamics: Dynamics, threads: int) -> None:
        self._shape = (mdp.num_states, mdp.num_actions)
        self._dynamics = dynamics
        self._threads = threads

    def walk(self, prepared: PreparedRollIn, key: np.uint64, count: int) -> tuple[Indices, int]:
        """The states in which walks end, and how many steps they took."""
        ends = np.empty(count, dtype=np.int32)
        kernel = self._walker(prepared, count)
        at_once = max(1, int(STEPS_AT_ONCE / max(1.0, prepared.expected_steps)))
        interrupted = Event()

        def walks(first: int, stop: int) -> int:
            steps = 0
            for begin in range(first, stop, at_once):
                if interrupted.is_set():
                    break
                steps += int(kernel(key, begin, ends[begin : min(begin + at_once, stop)]))
            return steps

        if self._threads == 1 or prepared.roll_in.targets is not None:  # tries are counted, which threads would spoil
            return ends, walks(0, count)
        cuts = np.linspace(0, count, self._threads + 1).astype(int)
        with ThreadPoolExecutor(self._threads) as pool:
            parts = [pool.submit(walks, first, stop) for first, stop in pairwise(cuts.tolist())]
            try:
                return ends, sum(part.result() for part in parts)
            finally:
                interrupted.set()

    def count_ends(
        self, prepared: PreparedRollIn, keys: Sequence[np.uint64], portions: Sequence[int]
    ) -> tuple[Integers, int]:
        """How many walks end in each state, and how many steps they took; each portion has a stream of its own."""
        counts = np.zeros(self._shape[0], dtype=np.int64)
        steps = 0
        for key, portion in zip(keys, portions, strict=True):
            ends, taken = self.walk(prepared, key, portion)
            if prepared.roll_in.targets is not None:
                ends = ends[ends >= 0]  # the others gave up on their way to a target
            counts += np.bincount(ends, minlength=self._shape[0])
            steps += taken
        return counts, steps

    def _walker(self, prepared: PreparedRollIn, count: int) -> partial[int]:
        """The kernel that suits the sizes, with its tables, ready for (key, first walk, ends)."""
        if not prepared.pays(count):
            return partial(walk_by_steps, self._dynamics, prepared.chains, prepared.thresholds)
        table = prepared.composed()
        kernel = walk_in_pairs if prepared.composed_bytes <= CACHE_BYTES else walk_in_lanes
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
    ) -> tuple[EpisodeStatistics, Integers, int]:
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
        most = NO_LIMIT if max_samples is None else max_samples
        at_once = max(1, int(STEPS_AT_ONCE / (horizon + prepared.expected_steps)))
        taken = run = 0
        ending = FINISHED
        while ending == FINISHED and run < episodes:
            part = slice(run, run + at_once)
            steps, finished, ending = episode_statistics(
                self._dynamics,
                prepared.chains,
                prepared.thresholds,
                thresholds,
                reward_mode,
                horizon,
                most - taken,
                key,
                run,
                *(policy, rewards, critic, gamma, trace, weight_decay, credited),
                *result[:4],
                result.returns[part],
                result.lengths[part],
                entry_counts,
            )
            taken, run = taken + int(steps), run + int(finished)
        result = result._replace(returns=result.returns[:run], lengths=result.lengths[:run], samples=taken)
        return result, entry_counts, int(ending)
