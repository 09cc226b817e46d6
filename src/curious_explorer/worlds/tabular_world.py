"""A world backed by a `FiniteMDP`, walked by compiled kernels.

This is the only place where an agent's world touches transition probabilities, and the only place where its steps are
counted (`TabularWorld._count`). Each call takes the next stream of random numbers, so what a call returns depends on
the seed and on how many calls came before it, never on threads or timing.
"""

from __future__ import annotations

import os

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Words
from curious_explorer.backends import BACKENDS, choose_backend
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count, check_policy, check_seed
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds import episode_kernels as stepping
from curious_explorer.worlds import random_streams as random
from curious_explorer.worlds.compiled_steps import NOWHERE_TO_START, CompiledSteps, StepTables, begin_episode
from curious_explorer.worlds.episodes import check_reward
from curious_explorer.worlds.numba_backend import NumbaBackend, Preparer
from curious_explorer.worlds.policies import Policy, as_table
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import (
    EpisodeBatch,
    EpisodeStatistics,
    Reward,
    Step,
    TransitionCounts,
    World,
    check_arrivals,
    nowhere_to_start,
    portions,
)

STATES_FOR_THREADS = 100_000
"""Below this size one thread is faster, and is never held up by a busy neighbour (measured)."""
NO_LIMIT = 1 << 62


class TabularWorld(World):
    """A finite MDP as an agent sees it: restart, step, look, and pay for every step.

    Args:
        mdp: the model. Learners never get to see it.
        seed: where all of this world's randomness comes from.
        backend: "numba", kernels compiled for the CPU; "triton", for a GPU (needs the extra ``gpu``); or "auto", the
            GPU where there is one. Results do not depend on it but for the rounding of sums, so a run may move from one
            to another. Single steps are serial and stay on the CPU in any case.
        threads: how many threads walk; None means one below 100,000 states and one for each core above.
    """

    def __init__(self, mdp: FiniteMDP, *, seed: int = 0, backend: str = "numba", threads: int | None = None) -> None:
        if not isinstance(mdp, FiniteMDP):
            raise ValueError(
                f"mdp is {type(mdp).__name__}, expected a FiniteMDP; FiniteMDP.from_gymnasium reads environments that "
                "have a table of transitions"
            )
        self._seed = np.uint64(check_seed(seed))
        if threads is None:
            threads = len(os.sched_getaffinity(0)) if mdp.num_states >= STATES_FOR_THREADS else 1
        self._threads = check_count(threads, "threads", least=1)
        self._mdp = mdp
        self._backend = choose_backend(backend)
        self._dynamics = tables.dynamics(mdp)
        self._kernels: NumbaBackend = (
            NumbaBackend(mdp, self._dynamics, self._threads)
            if self._backend == "numba"
            else BACKENDS[self._backend]().kernels(mdp)
        )
        self._rewards = mdp.rewards.copy()  # kernels are compiled anew for arrays that are read-only
        self._preparer = Preparer(mdp)
        self._samples = 0
        self._calls = 0
        self._state: int | None = None  # of the episode in progress
        self._counter = np.uint64(0)
        self._end_rewards: Floats = np.where(mdp.terminal, self._rewards.mean(axis=1), 0.0)

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return self._mdp.num_states

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state."""
        return self._mdp.num_actions

    @property
    def samples(self) -> int:
        """How many steps have been taken so far."""
        return self._samples

    @property
    def backend(self) -> str:
        """What walks: "numba" or "triton"."""
        return self._backend

    def identity(self) -> dict[str, str | int]:
        """What tells this world from others, as plain data."""
        return {
            "kind": "tabular",
            "num_states": self.num_states,
            "num_actions": self.num_actions,
            "seed": int(self._seed),
            "digest": self._mdp.fingerprint,
        }

    def position(self) -> dict[str, int]:
        """Where this world stands: samples paid for, streams used, and the episode in progress, if there is one."""
        position = {"samples": self._samples, "calls": self._calls}
        if self._state is not None:
            position |= {"state": self._state, "counter": int(self._counter)}
        return position

    def restore(self, position: dict[str, int]) -> None:
        """Go back, or on, to a `position`, exactly."""
        self._samples = check_count(position["samples"], "samples")
        self._calls = check_count(position["calls"], "calls")
        self._state = check_count(position["state"], "state") if "state" in position else None
        self._counter = np.uint64(position.get("counter", 0))

    # One step at a time -------------------------------------------------------------------------------------------

    def restart(self) -> int:
        """Begin an episode from the start distribution; returns its state."""
        prepared = self._preparer.prepare(RollIn.from_start())
        start = np.empty(1, dtype=np.int32)
        key = self._next_key()
        stepping.walk_by_steps(self._dynamics, prepared.chains, prepared.thresholds, key, 0, start)
        self._counter = np.uint64(random.walk_key(key, 1))
        self._state = int(start[0])
        return self._state

    def step(self, action: int) -> Step:
        """Take one action in the current episode."""
        if self._state is None:
            raise RuntimeError("no episode is in progress; call restart() first")
        if self._mdp.terminal[self._state]:
            raise RuntimeError(f"the episode has ended in the terminal state {self._state}; call restart() first")
        if not isinstance(action, (int, np.integer)) or not 0 <= action < self.num_actions:
            raise ValueError(f"action is {action!r}, expected an index from 0 to {self.num_actions - 1}")
        self._counter = np.uint64((int(self._counter) + int(random.GOLDEN)) % 2**64)
        entry = stepping.step_once(self._dynamics, self._state * self.num_actions + action, self._counter)
        self._count(1)
        self._state = int(self._mdp.transitions.indices[entry])
        terminated = bool(self._mdp.terminal[self._state])
        end_reward = float(self._end_rewards[self._state]) if terminated else 0.0
        return Step(self._state, float(self._dynamics.rewards[entry]), terminated, end_reward)

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends; see `World.begin`."""
        most = NO_LIMIT if max_samples is None else check_count(max_samples, "max_samples")
        tables = self._step_tables(reset, None)
        first = np.uint64(random.walk_key(self._next_key(), 0))
        state, taken, counter = begin_episode(tables, first, most)
        self._count(taken)
        if state == NOWHERE_TO_START:
            nowhere_to_start(reset)
        self._state, self._counter = (int(state), np.uint64(counter)) if state >= 0 else (None, np.uint64(0))
        return self._state

    # Many walks at once -------------------------------------------------------------------------------------------

    def walk(self, roll_in: RollIn, count: int) -> Indices:
        """The states in which ``count`` independent walks end, shape (count,)."""
        count = check_count(count, "count")
        prepared = self._preparer.prepare(roll_in)
        ends, steps = self._kernels.walk(prepared, self._next_key(), count)
        self._count(steps)
        check_arrivals(roll_in)
        return ends

    def count_ends(self, roll_in: RollIn, count: int) -> Integers:
        """In how many of ``count`` walks each state is the end, shape (S,), counted where the walks are made."""
        parts = portions(count)
        prepared = self._preparer.prepare(roll_in)
        counts, steps = self._kernels.count_ends(prepared, [self._next_key() for _ in parts], parts)
        self._count(steps)
        check_arrivals(roll_in)
        return counts

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes under a policy and return their statistics; see `EpisodeBatch`."""
        mode, paid = self._reward(batch.reward)
        values = np.array(batch.values(self.num_states))
        table, thresholds = self._policy_tables(policy)
        prepared = self._preparer.prepare(batch.reset or RollIn.from_start())
        result, entry_counts, ending = self._kernels.episodes(
            prepared,
            self._next_key(),
            table,
            thresholds,
            paid,
            mode,
            values,
            episodes=batch.episodes,
            horizon=batch.horizon,
            gamma=float(batch.gamma),
            trace=float(batch.trace),
            weight_decay=float(batch.weight_decay),
            credited=batch.horizon if batch.credited is None else batch.credited,
            max_samples=batch.max_samples,
            record=batch.record,
        )
        self._count(result.samples)
        if ending == stepping.NOWHERE_TO_START:
            nowhere_to_start(batch.reset)
        return result._replace(seen=self._seen(entry_counts)) if batch.record else result

    # One step at a time, compiled ---------------------------------------------------------------------------------

    def compiled_steps(self) -> CompiledSteps:
        """`restart` and `step` as compiled functions, on tables that only they look into."""
        return CompiledSteps(
            num_transitions=len(self._dynamics.next_state),
            end_rewards=self._end_rewards,
            tables=self._step_tables,
            next_key=self._next_key,
            finish=self._finish_steps,
        )

    def _step_tables(self, reset: RollIn | None, reward: Reward | None) -> StepTables:
        prepared = self._preparer.prepare(reset or RollIn.from_start())
        mode, paid = self._reward(reward)
        ends = self._end_rewards if reward is None else np.where(self._mdp.terminal, paid.mean(axis=1), 0.0)
        return StepTables(*self._dynamics, self._dynamics, prepared.chains, prepared.thresholds, mode, paid, ends)

    def _finish_steps(self, samples: int, state: int, entry_counts: Integers) -> TransitionCounts:
        self._count(samples)
        self._state = state if state >= 0 else None
        if self._state is not None:  # a `step` may go on from here, on draws of its own
            self._counter = np.uint64(random.walk_key(self._next_key(), 1))
        return self._seen(entry_counts)

    # What kernels are given, and what they leave --------------------------------------------------------------------

    def _policy_tables(self, policy: Policy) -> tuple[Floats, Words]:
        """A policy, checked, and its flat table of thresholds."""
        table = np.array(as_table(policy, "TabularWorld"), dtype=np.float64)
        thresholds = np.empty(self._rewards.shape, dtype=np.uint64)
        if table.shape != thresholds.shape or not tables.fill_policy_thresholds(table, thresholds):
            check_policy(table, *self._rewards.shape)
        return table, thresholds.ravel()

    def _reward(self, reward: Reward | None) -> tuple[int, Floats]:
        """Which reward a step earns, and the table that goes with it."""
        given = check_reward(reward, (self.num_states, self.num_actions))
        if given is None:
            return stepping.OWN_REWARDS, self._rewards
        table = np.array(given.table)
        if given.combine == "replace":
            return stepping.GIVEN_REWARDS, table
        table[self._mdp.terminal] = np.maximum(table, self._rewards)[self._mdp.terminal]
        return stepping.LARGER_REWARDS, table

    def _seen(self, entry_counts: Integers) -> TransitionCounts:
        """The transitions that were counted, as an agent that took notes would have them."""
        entries = np.flatnonzero(entry_counts)
        row = np.searchsorted(self._dynamics.row_start, entries, side="right") - 1
        state, action = np.divmod(row, self.num_actions)
        next_state = self._mdp.transitions.indices[entries].astype(np.int64)
        return TransitionCounts(state, action, next_state, entry_counts[entries], self._dynamics.rewards[entries])

    # Bookkeeping --------------------------------------------------------------------------------------------------

    def _count(self, steps: int) -> None:
        """The one place where samples are counted."""
        self._samples += int(steps)

    def _next_key(self) -> np.uint64:
        """The key of a stream that no call has used before."""
        key = np.uint64(random.stream_key(self._seed, np.uint64(self._calls)))
        self._calls += 1
        return key
