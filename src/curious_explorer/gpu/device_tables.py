# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, unused-ignore"
"""What kernels on the GPU read: an MDP, policies and roll-ins of many runs, as torch tensors.

Every table is the CPU's own, built by the same functions or in the same order of operations, and copied: that the two
backends draw the same states rests on their thresholds being the same bit for bit. Unsigned 64-bit words are kept in
int64 tensors bit by bit, because torch has little arithmetic for unsigned ones.

A *run* is one agent in its own copy of one MDP: it has its own key (so its own random numbers), its own policies, its
own rewards and its own critic. What all runs of a batch share is the MDP and the shape of the roll-in: how many
policies, their discounts, and which chains of them are walked with which weight. Run b of a batch gets exactly what it
would get alone, and what the CPU kernels of `TabularWorld` give for the same key: the same integers (where walks end,
steps taken, lengths, counts), and the same floats up to the order of summation.

    model = load_model(mdp)                                          # once for an MDP
    keys = stream_keys(seeds, 0, model.device)                       # (B,); the second is the number of the call
    uniform = prepare_policies(model, policy)                        # policy: (B, S, A)
    rho = roll_in_batch(model, [])                                   # B = 1, shared by all runs
    visits = walk_batch(model, roll_in_batch(model, [uniform], [gamma], tail=1), keys, 10_000)
    batch = episode_statistics_batch(model, uniform, rho, keys, episodes=50, horizon=90, gamma=gamma)

*Packed tables.* A composed alias entry is kept once more in one 64-bit word instead of two, so that twice as many fit
the GPU's caches. A word holds the upper bits of the entry's threshold, its first outcome and its second, of
`packed_bits` each: a state below a bit that is set where the state is terminal. Draws of which the upper bits equal
those of the threshold are left to the full table, so packing changes no result; `triton_walks` says how.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from curious_explorer.gpu.device import check_memory, find_device
from curious_explorer.gpu.draws import threshold_kernel
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds import numba_backend
from curious_explorer.worlds.walk_kernels import Chains


def _signed(word: int) -> int:
    """An unsigned 64-bit word as the signed one with the same bits."""
    return word - (1 << 64) if word >> 63 else word


GOLDEN = _signed(0x9E3779B97F4A7C15)
LONG_ROW = 16
"""Rows longer than this are searched by bisection."""
LEAST_BITS, MOST_BITS = 16, 26
"""Of an outcome. With fewer than 16 the threshold would have more than half of the word, and kernels compare one half;
with more than 26 it would have so few bits that draws would often equal it."""
UNPACKED = 32
WORDS_FOR_A_MOMENT = 6
"""How many words an entry takes while it is packed: its own, and those of intermediate results."""


class Model(NamedTuple):
    """One MDP on the device: `tables.Dynamics` and the alias table of its start, as tensors."""

    num_states: int
    num_actions: int
    log2_size: int  # of a composed alias row, as `tables.composed_log2_size` says
    longest_row: int  # the most successors of a pair
    row_start: torch.Tensor  # (S * A + 1,) int32
    thresholds: torch.Tensor  # (entries,) int64 words: cumulative transition probabilities
    next_state: torch.Tensor  # (entries,) int32, complemented where terminal
    entry_rewards: torch.Tensor  # (entries,) float64: the world's own reward of each transition
    rewards: torch.Tensor  # (S, A) float64: the world's own expected rewards
    terminal: torch.Tensor  # (S,) bool
    start: torch.Tensor  # (entries, 2) int64: alias row of the start distribution
    start_table: tables.AliasTable  # the same, on the CPU
    mdp: FiniteMDP  # from which composed tables are built

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.next_state.device


class Policies(NamedTuple):
    """One policy for each of B runs, with the tables that walks draw from."""

    table: torch.Tensor  # (B, S, A) float64
    thresholds: torch.Tensor  # (B, S * A) int64 words: cumulative action probabilities
    composed: torch.Tensor | None  # (B, S * K, 2) int64: an alias row of K entries for each state; None if not built


class RollIns(NamedTuple):
    """The roll-ins of B runs: one mixture of chains (see `RollIn`), with policies of its own for each run."""

    policies: torch.Tensor  # (B, N, S * A) int64 words: thresholds
    composed: torch.Tensor | None  # (B, N, S * K, 2) int64, or None: then walks look up action and transition
    packed: torch.Tensor | None  # (B, N, S * K) int64: `composed` once more, if it can be packed
    chain: torch.Tensor  # (entries, 2) int64: alias row of the chains
    ranges: torch.Tensor  # (C, 2) int32
    stop: torch.Tensor  # (discounts * stop_size, 2) int64: a geometric alias row for each discount
    stop_offset: torch.Tensor  # (N,) int32: where a policy's discount begins in `stop`
    stop_size: int
    num_policies: int
    tail_start: int
    one_policy: bool  # whether there is one chain, which walks one policy
    expected_steps: float  # of a walk that meets no terminal state

    @property
    def runs(self) -> int:
        """B; 1 means that all runs of a call share these."""
        return int(self.policies.shape[0])


def load_model(mdp: FiniteMDP, device: str | torch.device | None = None) -> Model:
    """An MDP on a device: the GPU if None, or the CPU where Triton interprets (TRITON_INTERPRET=1).

    Raises `BackendError` where there is no usable GPU or too little of its memory is free.
    """
    where = find_device() if device is None else torch.device(device)
    entries, pairs = mdp.transitions.nnz, mdp.num_states * mdp.num_actions
    if max(entries, pairs) >= 1 << 31:
        raise ValueError(f"the MDP has {entries} transitions of {pairs} pairs, expected fewer than 2**31 of each")
    check_memory(entries * 20 + pairs * 12 + mdp.num_states * 17, where, f"an MDP of {mdp.num_states:,} states")
    dynamics = tables.dynamics(mdp)
    start = tables.alias_table(mdp.start, mdp.terminal)

    def send(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(where)

    return Model(
        num_states=mdp.num_states,
        num_actions=mdp.num_actions,
        log2_size=tables.composed_log2_size(mdp),
        longest_row=int(np.diff(dynamics.row_start).max()),
        row_start=send(dynamics.row_start.astype(np.int32)),
        thresholds=send(dynamics.thresholds.view(np.int64)),
        next_state=send(dynamics.next_state),
        entry_rewards=send(dynamics.rewards),
        rewards=send(mdp.rewards.copy()),
        terminal=send(mdp.terminal.copy()),
        start=alias_tensor(start.words, where),
        start_table=start,
        mdp=mdp,
    )


def stream_keys(seeds: ArrayLike | torch.Tensor, call: ArrayLike | torch.Tensor, device: torch.device) -> torch.Tensor:
    """The keys of stream ``call`` under each seed, shape (B,) int64: `TabularWorld`'s key for its call number ``call``.

    ``seeds`` and ``call`` broadcast against each other, so one seed with many calls gives many keys. Tensors on the
    device stay there: nothing waits.
    """
    return _mix64(_mix64(_as_words(seeds, device)) + _as_words(call, device) * GOLDEN)


def prepare_policies(model: Model, policy: torch.Tensor, *, composed: bool = True) -> Policies:
    """The tables of one policy for each run; ``policy`` has shape (B, S, A), float64, on the model's device.

    Thresholds are computed on the device. Composed tables are the CPU's own (built there, then copied), because they
    must be the same bit for bit; leave them out (``composed=False``) for policies under which only episodes are run.
    Rows must be distributions: nobody looks, because that would wait for the device.
    """
    shape = (model.num_states, model.num_actions)
    if policy.dim() != 3 or policy.shape[1:] != shape or policy.dtype != torch.float64:
        raise ValueError(f"policy has shape {tuple(policy.shape)} and type {policy.dtype}, expected float64 (B, S, A) "
                         f"with (S, A) = {shape}")  # fmt: skip
    table = policy.to(model.device).contiguous()
    thresholds = torch.empty((len(table), shape[0] * shape[1]), dtype=torch.int64, device=model.device)
    rows = len(table) * shape[0]
    threshold_kernel[(-(-rows // 128),)](table, thresholds, rows, shape[1], BLOCK=128, enable_fp_fusion=False)
    return Policies(table, thresholds, compose(model, table.cpu().numpy()) if composed else None)


def compose(model: Model, policies: NDArray[np.float64]) -> torch.Tensor:
    """The composed alias tables of B policies, (B, S * K, 2) int64."""
    entries = model.num_states << model.log2_size
    check_memory(
        len(policies) * entries * numba_backend.ENTRY_BYTES, model.device, f"tables of {len(policies):,} policies"
    )
    words = np.empty((len(policies), 2 * entries), dtype=np.uint64)
    for run, policy in enumerate(policies):
        words[run] = tables.composed_table(model.mdp, policy, model.log2_size).words
    return alias_tensor(words, model.device).view(len(policies), entries, 2)


def roll_in_batch(
    model: Model,
    policies: Sequence[Policies],
    gammas: Sequence[float] = (),
    weights: ArrayLike = (1.0,),
    chains: ArrayLike = ((0, 0),),
    *,
    tail: int = 0,
) -> RollIns:
    """The roll-ins of B runs; arguments as those of `RollIn`, but each policy is a batch of B (or 1, shared by all).

    No policies at all is rho itself. To walk ``then`` a policy: append it to ``policies`` and ``gammas``, and add one
    to ``tail``. Composed tables are stacked only if every policy has them.
    """
    if len(policies) != len(gammas):
        raise ValueError(f"{len(gammas)} gammas for {len(policies)} policies; expected one for each")
    shares, ranges = np.array(weights, dtype=np.float64), np.array(chains, dtype=np.int64).reshape(-1, 2)
    built = numba_backend.make_chains(model.start_table, gammas, shares, ranges, tail)
    composed = [policy.composed for policy in policies]
    table = _stack(composed, model) if composed and None not in composed else None  # type: ignore[arg-type]
    steps = numba_backend.expected_steps(gammas, shares, ranges, tail)
    return chains_on_device(model, built, _stack([policy.thresholds for policy in policies], model), table, steps)


def chains_on_device(
    model: Model, chains: Chains, thresholds: torch.Tensor, composed: torch.Tensor | None, expected_steps: float = 0.0
) -> RollIns:
    """Roll-ins from what the CPU kernels share and the policies' tables of B runs, (B, N, ...) each."""
    walked = (chains.ranges[:, 1] - chains.ranges[:, 0] + chains.num_policies - chains.tail_start).tolist()
    return RollIns(
        policies=thresholds,
        composed=composed,
        packed=None if composed is None else pack(composed, model.num_states),
        chain=alias_tensor(chains.chain_words, model.device),
        ranges=torch.from_numpy(np.ascontiguousarray(chains.ranges[:, :2], dtype=np.int32)).to(model.device),
        stop=alias_tensor(chains.stop_words, model.device),
        stop_offset=torch.from_numpy(chains.stop_offset.astype(np.int32)).to(model.device),
        stop_size=chains.stop_size,
        num_policies=chains.num_policies,
        tail_start=chains.tail_start,
        one_policy=chains.num_policies == 1 and walked == [1],
        expected_steps=expected_steps,
    )


def alias_tensor(words: NDArray[np.uint64], device: torch.device) -> torch.Tensor:
    """An alias table's words as a tensor of shape (entries, 2)."""
    return torch.from_numpy(words.view(np.int64).reshape(-1, 2)).to(device)


def packed_bits(num_states: int) -> int:
    """The bits of an outcome in a packed entry; `UNPACKED` where states are too many."""
    bits = max(LEAST_BITS, 1 + (num_states - 1).bit_length())
    return bits if bits <= MOST_BITS else UNPACKED


def pack(composed: torch.Tensor, num_states: int) -> torch.Tensor | None:
    """Alias entries (..., 2) as words (...); None where states are too many.

    The threshold of a certain outcome, 2**63, is one more than its bits hold; the most that they hold will do, because
    draws that equal it are left to the full table.
    """
    bits = packed_bits(num_states)
    if bits == UNPACKED:
        return None
    check_memory(8 * WORDS_FOR_A_MOMENT * (composed.numel() // 2), composed.device, "packing the tables of a roll-in")
    share, outcomes = composed.unbind(-1)
    upper_bits = 64 - 2 * bits
    certain = share < 0  # 2**63, in signed words
    packed = torch.where(certain, (1 << upper_bits) - 1, share >> (63 - upper_bits))
    for outcome in ((outcomes << 32) >> 32, outcomes >> 32):
        packed <<= bits
        packed |= torch.where(outcome < 0, ~outcome | (1 << (bits - 1)), outcome)
    return packed


def chain_arguments(model: Model, roll_ins: RollIns) -> dict[str, Any]:
    """What kernels are told of a roll-in."""
    return {
        "chain": roll_ins.chain,
        "chain_size": len(roll_ins.chain),
        "ranges": roll_ins.ranges,
        "start": model.start,
        "start_size": len(model.start),
        "stops": roll_ins.stop,
        "stop_offset": roll_ins.stop_offset,
        "stop_size": roll_ins.stop_size,
        "num_policies": roll_ins.num_policies,
        "tail_start": roll_ins.tail_start,
        "MANY_CHAINS": len(roll_ins.chain) > 1,
        "MANY_STARTS": len(model.start) > 1,
    }


def step_arguments(model: Model) -> dict[str, Any]:
    """How often to look at a policy's row, and at a row of transitions."""
    arguments: dict[str, Any] = {}
    for steps, long, length in (
        ("ACTION_STEPS", "ACTIONS_LONG", model.num_actions),
        ("ROW_STEPS", "ROWS_LONG", model.longest_row),
    ):
        arguments[long] = length > LONG_ROW
        arguments[steps] = length.bit_length() if length > LONG_ROW else length - 1
    return arguments


def check_runs(keys: torch.Tensor, **tensors: torch.Tensor) -> int:
    """B, which every tensor must have as its first size, unless that is 1."""
    runs = len(keys)
    for name, tensor in tensors.items():
        if len(tensor) not in (1, runs):
            raise ValueError(f"{name} is for {len(tensor)} runs, but there are {runs} keys; expected as many, or one")
    return runs


def zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of zeros on a device."""
    return torch.zeros(shape, dtype=dtype, device=device)


@lru_cache(maxsize=64)
def constants(numbers: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """Numbers for a kernel as a tensor, sent once: a float argument would be rounded to 32 bits."""
    return torch.tensor(numbers, dtype=torch.float64, device=device)


def _stack(parts: Sequence[torch.Tensor], model: Model) -> torch.Tensor:
    """Tables of each policy, (B or 1, ...), as (B, N, ...); a single one is not copied."""
    if not parts:
        return torch.zeros((1, 0, model.num_states * model.num_actions), dtype=torch.int64, device=model.device)
    if len(parts) == 1:
        return parts[0].unsqueeze(1)
    runs = max(len(part) for part in parts)
    return torch.stack([part.expand(runs, *part.shape[1:]) for part in parts], dim=1)


def _as_words(values: ArrayLike | torch.Tensor, device: torch.device) -> torch.Tensor:
    if isinstance(values, torch.Tensor):
        return values.to(device, torch.int64).reshape(-1)
    return torch.from_numpy(np.atleast_1d(np.array(values, dtype=np.uint64)).view(np.int64)).to(device)


def _mix64(z: torch.Tensor) -> torch.Tensor:
    """SplitMix64's finaliser of words in an int64 tensor, where products wrap and shifts must not copy the sign."""
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def _shifted(z: torch.Tensor, bits: int) -> torch.Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)
