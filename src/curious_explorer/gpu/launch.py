"""How kernels are laid out on a device, and the arguments that they share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from curious_explorer.gpu.device_model import LONG_ROW, Model, RollIns

TABLE_BYTES = 1 << 23
"""Copies of counts or sums may take this much together: they are to stay in the GPU's second-level cache."""

PROGRAMS_IN_TURN, WALKS_PER_LANE = 8, 32
"""A run's walks go to at most this many times the programs that fill the device, if each lane has so many to do: at the
end of a program most of its lanes are idle."""


class Launch(NamedTuple):
    """How kernels are laid out on the GPU; results do not depend on it, speed does."""

    block: int  # lanes of a program
    warps: int
    stride: int  # steps between looks for lanes that have finished
    programs_per_processor: int  # that run at a time
    copies: int = 32  # of an entry of a table that is added to, at most


# The fastest of those that `python -m benchmarks.gpu --tune` tries, on an H200.
WALKS = Launch(block=64, warps=1, stride=7, programs_per_processor=32)
EPISODES = Launch(block=32, warps=1, stride=4, programs_per_processor=32, copies=4)


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
    looks = [(length - 1, False) if length <= LONG_ROW else (length.bit_length(), True)
             for length in (model.num_actions, model.longest_row)]  # fmt: skip
    names = (("ACTION_STEPS", "ACTIONS_LONG"), ("ROW_STEPS", "ROWS_LONG"))
    return {
        name: value for pair, values in zip(names, looks, strict=True) for name, value in zip(pair, values, strict=True)
    }


def programs_that_fill(device: torch.device, launch: Launch) -> int:
    """How many programs fill the device; where Triton interprets, few, so that each has several things to do."""
    return _processors(device) * launch.programs_per_processor if device.type == "cuda" else 1


@lru_cache(maxsize=8)
def _processors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def programs_per_run(device: torch.device, launch: Launch, runs: int, count: int) -> int:
    """How many programs share the walks of a run.

    As many as fill the device would end at different times, and leave it half empty meanwhile. Where there is work for
    more of them, those that have not begun take the place of those that end.
    """
    filling = -(-programs_that_fill(device, launch) // max(runs, 1))
    busy = count // (launch.block * WALKS_PER_LANE)
    return max(1, min(-(-count // launch.block), max(filling, min(busy, filling * PROGRAMS_IN_TURN))))


def copies_of(launch: Launch, runs: int, entries: int, programs: int) -> tuple[int, int]:
    """How many copies of each entry stand side by side, and how many copies of the whole table there are."""
    room = TABLE_BYTES // (8 * max(runs, 1) * entries)
    copies = 1
    while copies < launch.copies and 2 * copies <= room:
        copies *= 2
    return copies, max(1, min(programs, room // copies))


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
