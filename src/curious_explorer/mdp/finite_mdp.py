"""The model of a finite Markov decision process M = (S, rho, A, r, P), with rewards in [0, 1].

Transitions are kept row-sparse: one compressed row for each pair (state, action), the pair (s, a) being row
``s * A + a``. Nothing here ever allocates S x S, so a million states is an ordinary case.

A *terminal* state is absorbing. Its own reward (usually zero) is paid at every step from then on; that is also what
lets a reward with a shifted zero, such as CliffWalking's, keep the optimal policies it had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from curious_explorer import validation
from curious_explorer.arrays import Floats, blocks
from curious_explorer.mdp import assembly
from curious_explorer.mdp.assembly import UNSCALED, RewardScale

if TYPE_CHECKING:
    from curious_explorer.mdp.builder import MDPBuilder

__all__ = ["FiniteMDP", "RewardScale"]


class FiniteMDP:
    """An immutable finite MDP.

    Args:
        transitions: array of shape (S, A, S), or a sequence of A sparse (S, S) matrices, one for each action.
        rewards: shape (S, A) or (S, A, S), in [0, 1].
        start: a state, or a distribution over states of shape (S,).
        terminal: which states end an episode: a boolean mask of shape (S,), or a sequence of state indices. Rows of
            terminal states may be left empty; they become absorbing.
        state_names: S distinct strings, for people.
        action_names: A distinct strings, for people.
        reward_scale: how to get back to the original rewards if the ones given were rescaled.

    The caller's arrays are copied, never changed.
    """

    def __init__(
        self,
        transitions: ArrayLike | Sequence[Any],
        rewards: ArrayLike,
        start: int | ArrayLike,
        *,
        terminal: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        reward_scale: RewardScale = UNSCALED,
    ) -> None:
        rows, num_actions = assembly.as_rows(transitions)
        self._assemble(rows, num_actions, rewards, start, terminal, state_names, action_names, reward_scale)

    @classmethod
    def from_rows(
        cls,
        rows: sparse.csr_array,
        rewards: ArrayLike,
        start: int | ArrayLike,
        *,
        terminal: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        reward_scale: RewardScale = UNSCALED,
        copy: bool = True,
    ) -> FiniteMDP:
        """Build from one sparse matrix of shape (S * A, S) whose row ``s * A + a`` belongs to the pair (s, a).

        ``rewards`` may also hold one number for each stored entry of ``rows``: the reward of that transition. Then
        ``rows`` must be in canonical form (sorted, no duplicates), so that the two stay aligned.

        With ``copy=False`` the arrays become the MDP's own where they can: they may be changed to canonical form, and
        cannot be written to any more. That halves the memory that building a large MDP takes.
        """
        rows = sparse.csr_array(rows, dtype=np.float64, copy=copy)
        num_pairs, num_states = rows.shape
        if num_states == 0 or num_pairs % num_states:
            raise ValueError(
                f"rows has shape {rows.shape}, expected (S * A, S): as many rows as pairs of a state and an action"
            )
        mdp = cls.__new__(cls)
        names = (state_names, action_names)
        mdp._assemble(rows, num_pairs // num_states, rewards, start, terminal, *names, reward_scale, copy=copy)
        return mdp

    def _assemble(
        self,
        rows: sparse.csr_array,
        num_actions: int,
        rewards: ArrayLike,
        start: int | ArrayLike,
        terminal: ArrayLike | None,
        state_names: Sequence[str] | None,
        action_names: Sequence[str] | None,
        reward_scale: RewardScale,
        copy: bool = True,
    ) -> None:
        """Validate everything, then freeze it. Nothing is stored before all of it is known to be right."""
        num_states = rows.shape[1]
        validation.check_sizes(num_states, num_actions)
        states = validation.check_names(state_names, num_states, "state")
        actions = validation.check_names(action_names, num_actions, "action")
        where = validation.Where(states, actions)
        start_distribution = validation.as_distribution(start, num_states, "start", copy=copy)
        is_terminal = validation.check_states(() if terminal is None else terminal, num_states, "terminal", copy=copy)
        scale = RewardScale(*validation.check_reward_scale(*reward_scale))

        by_transition = assembly.transition_rewards(rewards, rows, num_actions, where, copy=copy)
        if not rows.has_canonical_format:
            if by_transition is not None:
                raise ValueError(
                    "rewards by transition need rows in canonical form; call rows.sum_duplicates() before aligning them"
                )
            rows.sum_duplicates()
        rows, by_transition = assembly.drop_zeros(rows, by_transition)
        rows, by_transition = assembly.absorb(rows, num_actions, is_terminal, by_transition, where)
        rows = assembly.narrow_indices(rows)
        validation.check_rows(rows, num_actions, where)
        if by_transition is None:
            table = assembly.reward_table(rewards, num_states, num_actions, copy=copy)
        else:
            table = assembly.expected_rewards(rows, by_transition, num_actions)
        validation.check_rewards(table, num_actions, where)
        self._freeze(rows, table, by_transition, start_distribution, is_terminal, states, actions, scale)

    def _freeze(
        self,
        rows: sparse.csr_array,
        rewards: Floats,
        by_transition: Floats | None,
        start: Floats,
        terminal: NDArray[np.bool_],
        state_names: tuple[str, ...] | None,
        action_names: tuple[str, ...] | None,
        reward_scale: RewardScale,
    ) -> None:
        self._rows = rows
        self._num_actions = int(rewards.shape[1])
        self._rewards = rewards
        self._transition_rewards = by_transition
        self._start = start
        self._terminal = terminal
        self._state_names = state_names
        self._action_names = action_names
        self._reward_scale = reward_scale
        for array in (rows.data, rows.indices, rows.indptr, rewards, by_transition, start, terminal):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def _trusted(
        cls,
        rows: sparse.csr_array,
        rewards: Floats,
        start: Floats,
        terminal: NDArray[np.bool_],
        texts: dict[str, Any],
        fingerprint: str | None,
    ) -> FiniteMDP:
        """What `save` wrote, unchecked: no array is looked at (rewards by transition are averaged, though)."""
        mdp = cls.__new__(cls)
        num_states = rows.shape[1]
        num_actions = rows.shape[0] // num_states
        states = validation.check_names(texts["state_names"], num_states, "state")
        actions = validation.check_names(texts["action_names"], num_actions, "action")
        rows.has_canonical_format = True
        by_transition = rewards if rewards.ndim == 1 else None
        if by_transition is not None:
            rewards = assembly.expected_rewards(rows, by_transition, num_actions)
        scale = RewardScale(*validation.check_reward_scale(*texts["reward_scale"]))
        mdp._freeze(rows, rewards, by_transition, start, terminal, states, actions, scale)
        if fingerprint is not None:
            mdp.__dict__["fingerprint"] = fingerprint
        return mdp

    # What it is made of -------------------------------------------------------------------------------------------

    @property
    def num_states(self) -> int:
        """How many states there are: S."""
        return int(self._rows.shape[1])

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state: A."""
        return self._num_actions

    @property
    def transitions(self) -> sparse.csr_array:
        """P as a sparse (S * A, S) matrix; row ``s * A + a`` is the distribution of the state after (s, a)."""
        return self._rows

    @property
    def rewards(self) -> Floats:
        """The expected reward of each pair, shape (S, A)."""
        return self._rewards

    @property
    def transition_rewards(self) -> Floats | None:
        """The reward of each stored entry of `transitions`, if rewards depend on the next state; else None."""
        return self._transition_rewards

    @property
    def start(self) -> Floats:
        """The start distribution rho, shape (S,)."""
        return self._start

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Which states are terminal (absorbing), shape (S,)."""
        return self._terminal

    @property
    def reward_scale(self) -> RewardScale:
        """How rewards map back to those of the original problem."""
        return self._reward_scale

    @property
    def has_state_names(self) -> bool:
        """Whether the states were given names."""
        return self._state_names is not None

    @property
    def has_action_names(self) -> bool:
        """Whether the actions were given names."""
        return self._action_names is not None

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of each state; its number where none was given."""
        return self._state_names or tuple(map(str, range(self.num_states)))

    @property
    def action_names(self) -> tuple[str, ...]:
        """The name of each action; its number where none was given."""
        return self._action_names or tuple(map(str, range(self.num_actions)))

    def successors(self, state: int, action: int) -> tuple[NDArray[np.int32], Floats]:
        """The states that can follow (state, action), and their probabilities."""
        self._check_index(state, self.num_states, "state")
        self._check_index(action, self.num_actions, "action")
        row = state * self.num_actions + action
        span = slice(self._rows.indptr[row], self._rows.indptr[row + 1])
        return self._rows.indices[span], self._rows.data[span]

    def dense_transitions(self) -> Floats:
        """P as an (S, A, S) array; for small MDPs only."""
        dense: Floats = self._rows.toarray().reshape(self.num_states, self.num_actions, self.num_states)
        return dense

    def uniform_policy(self) -> Floats:
        """The policy that chooses every action with the same probability, shape (S, A)."""
        return np.full((self.num_states, self.num_actions), 1.0 / self.num_actions)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of states, actions, transitions, rewards and start; equal exactly when those are equal."""
        digest = hashlib.sha256(f"{self.num_states},{self.num_actions}".encode())
        indices = (self._rows.indptr, self._rows.indices)
        numbers = (self._rows.data, self._rewards, self._start, self._terminal, self._transition_rewards)
        for array in (*indices, *numbers):
            if array is None:
                continue
            dtype = np.int64 if np.issubdtype(array.dtype, np.integer) else array.dtype
            flat = array.ravel()
            for first, stop in blocks(flat.size):
                digest.update(np.ascontiguousarray(flat[first:stop], dtype=dtype).data)
        return digest.hexdigest()

    # Variations ---------------------------------------------------------------------------------------------------

    def with_start(self, start: int | ArrayLike) -> FiniteMDP:
        """The same MDP with another start."""
        return self._replace(start=start)

    def with_rewards(self, rewards: ArrayLike) -> FiniteMDP:
        """The same MDP with other rewards, of shape (S, A) or (S, A, S)."""
        return self._replace(rewards=rewards)

    def relabel_actions(self, labels: ArrayLike) -> FiniteMDP:
        """Rename actions state by state: what action ``a`` did in ``s`` is now done by action ``labels[s, a]``.

        Action names then no longer mean the same everywhere, so they are dropped.
        """
        table = np.asarray(labels)
        shape = (self.num_states, self.num_actions)
        if table.shape != shape or not assembly.rows_are_permutations(table):
            raise ValueError(f"labels must have shape {shape} and hold a permutation of 0..{shape[1] - 1} in every row")
        old_action = np.argsort(table, axis=1)
        old_row = (np.arange(self.num_states)[:, None] * self.num_actions + old_action).ravel()
        rows = self._rows[old_row]
        if self._transition_rewards is None:
            rewards: Floats = np.take_along_axis(self._rewards, old_action, axis=1)
        else:
            tagged = sparse.csr_array(
                (self._transition_rewards, self._rows.indices, self._rows.indptr), self._rows.shape
            )
            rewards = tagged[old_row].data
        return self._replace(rows=rows, rewards=rewards, action_names=None)

    def _replace(self, **changes: Any) -> FiniteMDP:
        parts: dict[str, Any] = {
            "rows": self._rows,
            "rewards": self._rewards if self._transition_rewards is None else self._transition_rewards,
            "start": self._start,
            "terminal": self._terminal,
            "state_names": self._state_names,
            "action_names": self._action_names,
            "reward_scale": self._reward_scale,
        }
        return FiniteMDP.from_rows(**(parts | changes))

    # Ways in and out (each in a module of its own) ----------------------------------------------------------------

    builder: ClassVar[Callable[[], MDPBuilder]]
    """Start describing an MDP in words: ``builder.state("A").action("left").to("B", 0.8).to("A", 0.2)``.

    `curious_explorer.mdp.builder`, which is loaded with this package, puts it here."""

    @classmethod
    def from_gymnasium(cls, env: Any, **arguments: Any) -> FiniteMDP:
        """Read the table ``env.unwrapped.P`` of a Gymnasium environment such as FrozenLake, Taxi or CliffWalking.

        ``env`` is an environment, or an id with the ``arguments`` of ``gymnasium.make``.
        """
        from curious_explorer.mdp.gymnasium_tables import read_gymnasium

        return read_gymnasium(cls, env, **arguments)

    def save(self, path: str | Path) -> Path:
        """Write to a ``.json`` (for people) or ``.npz`` (for size) file, atomically; the ending decides."""
        from curious_explorer.mdp.mdp_files import save_mdp

        return save_mdp(self, path)

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = False, check: bool | None = None) -> FiniteMDP:
        """Read what `save` wrote; raises `MDPFileError` on anything else, and never unpickles.

        ``mmap=True`` maps an ``.npz`` file instead of reading it: ready at once, whatever its size. Then its content is
        not looked at unless ``check=True`` asks for it; see `curious_explorer.mdp.mdp_files.load_mdp`.
        """
        from curious_explorer.mdp.mdp_files import load_mdp

        return load_mdp(cls, path, mmap=mmap, check=check)

    def draw(self, **options: Any) -> Any:
        """Draw the graph with a layout that shows its structure; see `curious_explorer.mdp.drawing.draw_mdp`."""
        from curious_explorer.mdp.drawing import draw_mdp

        return draw_mdp(self, **options)

    # Python's own protocols ---------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMDP):
            return NotImplemented
        return (
            self.fingerprint == other.fingerprint
            and self._state_names == other._state_names
            and self._action_names == other._action_names
            and self._reward_scale == other._reward_scale
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return (
            f"FiniteMDP(num_states={self.num_states}, num_actions={self.num_actions}, "
            f"transitions={self._rows.nnz}, terminal={int(self._terminal.sum())})"
        )

    @staticmethod
    def _check_index(index: int, size: int, kind: str) -> None:
        if not 0 <= index < size:
            raise IndexError(f"{kind} {index} does not exist; expected an index from 0 to {size - 1}")
