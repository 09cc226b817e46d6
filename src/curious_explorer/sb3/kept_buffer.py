"""The replay buffer of a training, kept beside its checkpoint: an off-policy learner that goes on has its own steps.

What it began with (see `step_log.recall`) is not kept: whoever gave it gives it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.errors import CheckpointError
from curious_explorer.storage import Format, decode, encode, read_plain, reading, write_atomically

BUFFER, BUFFER_FILE = Format("curious-explorer/replay-buffer", 1), "buffer.npz"
COLUMNS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
MOST_BYTES = 1 << 27
"""Larger buffers, of pictures say, are not kept: a learner goes on without them."""


def keep_buffer(model: Any, begun: int, folder: Path) -> None:
    """Keep what a model's buffer has from row ``begun`` on; the episode in progress ends there."""
    buffer = model.replay_buffer
    if isinstance(buffer.observations, dict):
        return
    last = buffer.pos - 1
    buffer.timeouts[last] = np.maximum(buffer.timeouts[last], buffer.dones[last] == 0.0)
    buffer.dones[last] = 1.0
    order = np.arange(begun, buffer.pos)
    if buffer.full:  # what it began with is gone, or will be next
        order = np.arange(buffer.pos, buffer.pos + buffer.buffer_size) % buffer.buffer_size
    if len(order) * sum(getattr(buffer, name)[:1].nbytes for name in COLUMNS) > MOST_BYTES:
        (folder / BUFFER_FILE).unlink(missing_ok=True)  # it would be behind its checkpoint
        return
    rows = {name: getattr(buffer, name)[order] for name in COLUMNS}
    write_atomically(folder / BUFFER_FILE, encode(BUFFER, {}, rows))


def restore_buffer(model: Any, folder: Path) -> None:
    """Put what was kept behind what a model's buffer has."""
    path = folder / BUFFER_FILE
    buffer = model.replay_buffer
    if isinstance(buffer.observations, dict) or not os.path.lexists(path):  # a folder or a pipe there is refused
        return
    with reading(path, CheckpointError, "the replay buffer of this training", "delete it to go on without it"):
        _, rows = decode(read_plain(path, within=folder), BUFFER, set(), set(COLUMNS))
        count = len(rows["dones"])
        for name, array in rows.items():
            held = getattr(buffer, name)
            if array.dtype != held.dtype or array.shape != (count, *held.shape[1:]):
                raise ValueError(f"{name} are {array.dtype} of shape {array.shape}, not of this training")
        count = min(count, buffer.buffer_size - buffer.pos)
        for name, array in rows.items():
            getattr(buffer, name)[buffer.pos : buffer.pos + count] = array[len(array) - count :]
        buffer.pos, buffer.full = (buffer.pos + count) % buffer.buffer_size, buffer.pos + count == buffer.buffer_size
