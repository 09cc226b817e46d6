"""Every step of an exploration, kept so that a learner of values (DQN) begins with all of them in its replay buffer.

Counts forget where in a cell a step began. Where cells mix states (a grid over numbers), a learner of values that sees
the numbers themselves gets more out of the same steps, and takes none for it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.errors import CheckpointError
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cells import Env
from curious_explorer.sb3.network_view import PERCEPTRON, SpaceView
from curious_explorer.storage import Format, decode, encode, read_plain, reading, write_atomically

STEPS, STEPS_FILE = Format("curious-explorer/steps", 1), "steps.npz"
MOST_STEPS = 500_000
"""The first so many are kept."""
MOST_NUMBERS = 64
"""Of an observation; where there are more, steps would fill the memory."""
FIRST_ROOM = 4_096
FITTED_AT_ONCE = 200
"""Updates of a learner of values between two copies of its network that its targets are computed by."""
GOOD_SHARE, MOST_TIMES = 0.25, 20
"""Steps of episodes that paid are repeated until they are so large a share of a replay buffer, at most so often."""
_ARRAYS = ("seen", "acted", "paid", "following", "ended", "cut")


class StepLog:
    """Steps in the order in which they were taken, as a network sees and takes them.

    Args:
        env: the environment, for its spaces.

    Attributes:
        noting: whether steps are kept.
        hold: for how many steps of the environment an action is held; they are kept as one.
    """

    def __init__(self, env: Env) -> None:
        self._view = SpaceView(env.observation_space, env.action_space)
        width = int(np.prod(self._view.observation_space.shape or (1,)))
        shapes = (width,), (1,), (), (width,), (), ()
        types = np.float32, np.int64, np.float32, np.float32, np.bool_, np.bool_
        self._kept: dict[str, NDArray[Any]] = {
            name: np.zeros((FIRST_ROOM, *shape), kind) for name, shape, kind in zip(_ARRAYS, shapes, types, strict=True)
        }
        self._count, self.noting, self.hold = 0, False, 1
        self._numbers: dict[bytes, int] = {}

    @staticmethod
    def of(env: Env) -> StepLog | None:
        """A log for an environment of numbers; None for others."""
        view = SpaceView(env.observation_space, env.action_space)
        seen = view.observation_space
        numbers = view.kind == PERCEPTRON and isinstance(seen, spaces.Box) and seen.shape[0] <= MOST_NUMBERS
        return StepLog(env) if numbers else None

    def begin(self, actions: ActionSet) -> None:
        """Keep steps from now on; these are the actions that are taken."""
        self._numbers = {np.asarray(choice).tobytes(): number for number, choice in enumerate(actions.choices)}
        self.noting, self.hold = True, actions.hold

    def __len__(self) -> int:
        return self._count

    def around(self, env: Env) -> Env:
        """The environment, whose steps are kept from when ``noting`` is set."""
        return _Noted(env, self)

    def note(self, seen: NDArray[Any], action: Any, paid: float, following: NDArray[Any], ended: bool) -> None:
        """Keep one step."""
        if self._count >= MOST_STEPS:
            return
        if self._count == len(self._kept["ended"]):
            self._kept = {name: np.concatenate([array, np.zeros_like(array)]) for name, array in self._kept.items()}
        for name, value in zip(_ARRAYS, (seen, action, paid, following, ended, False), strict=True):
            self._kept[name][self._count] = value
        self._count += 1

    def cut(self) -> None:
        """The next step is of another episode."""
        if 0 < self._count < MOST_STEPS:
            self._kept["cut"][self._count - 1] = not self._kept["ended"][self._count - 1]

    def arrays(self, count: int | None = None) -> dict[str, NDArray[Any]]:
        """The first so many steps, or all."""
        stop = self._count if count is None else min(count, self._count)
        return {name: array[:stop] for name, array in self._kept.items()}

    def save(self, folder: Path) -> None:
        """Replace what a folder has of it."""
        write_atomically(folder / STEPS_FILE, encode(STEPS, {}, self.arrays()))

    def load(self, folder: Path, count: int) -> None:
        """Take over the first so many steps that a folder has, if it has any."""
        path = folder / STEPS_FILE
        if not os.path.lexists(path):  # a folder or a pipe there is refused
            return
        with reading(path, CheckpointError, "the steps of an exploration", "delete it, and explore again elsewhere"):
            _, arrays = decode(read_plain(path, within=folder), STEPS, set(), set(_ARRAYS))
            for name, array in arrays.items():
                wanted = self._kept[name]
                if array.dtype != wanted.dtype or array.shape != (len(arrays["ended"]), *wanted.shape[1:]):
                    raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not of this environment")
            self._count = min(count, len(arrays["ended"]), MOST_STEPS)
            room = max(FIRST_ROOM, self._count)
            for name, array in arrays.items():
                self._kept[name] = np.zeros((room, *array.shape[1:]), array.dtype)
                self._kept[name][: self._count] = array[: self._count]

    def see(self, observation: Any) -> NDArray[Any]:
        """What a network sees of an observation."""
        seen: NDArray[Any] = np.asarray(self._view.see(observation), np.float32)
        return seen

    def number(self, action: Any) -> int:
        """The number of an action."""
        return self._numbers[np.asarray(action).tobytes()]


class _Noted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose steps are kept."""

    def __init__(self, env: Env, log: StepLog) -> None:
        super().__init__(env)
        self._log = log

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._log.cut()
        self._begin(observation)
        return observation, info

    def _begin(self, observation: Any) -> None:
        self._seen, self._held, self._paid = self._log.see(observation), 0, 0.0

    def step(self, action: Any) -> Any:
        """Take one action, and keep the step."""
        event = self.env.step(action)
        self._held, self._paid = self._held + 1, self._paid + float(event[1])
        if self._log.noting and (self._held == self._log.hold or event[2] or event[3]):
            before, paid = self._seen, self._paid
            self._begin(event[0])
            self._log.note(before, self._log.number(action), paid, self._seen, bool(event[2]))
        return event


def recall(learner: Any, steps: dict[str, NDArray[Any]], reward_scale: float) -> None:
    """Put steps into the replay buffer of a learner, and their mean and variance into its normalizer."""
    buffer = learner.model.replay_buffer
    if learner.normalizer is not None:
        learner.statistics.update(steps["seen"])
    order = _with_good_ones_again(steps)[-buffer.buffer_size :]
    count = len(order)
    cut = steps["cut"][order]
    cut[-1] |= not steps["ended"][order[-1]]
    rows = {
        "observations": steps["seen"][order],
        "next_observations": steps["following"][order],
        "actions": steps["acted"][order],
        "rewards": reward_scale * steps["paid"][order],
        "dones": steps["ended"][order] | cut,
        "timeouts": cut,
    }
    for name, array in rows.items():
        held = getattr(buffer, name)
        held[:count, 0] = array.reshape(count, *held.shape[2:])
    buffer.pos, buffer.full = count % buffer.buffer_size, count == buffer.buffer_size


def _with_good_ones_again(steps: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    """The order of steps in a buffer, episodes that paid several times, because they may be few of very many."""
    ends = np.flatnonzero(steps["ended"] | steps["cut"]) + 1
    ends = ends if len(ends) and ends[-1] == len(steps["ended"]) else np.append(ends, len(steps["ended"]))
    starts = np.concatenate([[0], ends[:-1]])
    paid = np.add.reduceat(steps["paid"], starts)
    good = [np.arange(first, last) for first, last, sum_ in zip(starts, ends, paid, strict=True) if sum_ > 0.0]
    every = np.arange(len(steps["ended"]))
    size = sum(map(len, good))
    if not size:
        return every
    times = min(MOST_TIMES, int(GOOD_SHARE / (1.0 - GOOD_SHARE) * max(0, len(every) - size) / size))
    return np.concatenate([*(good * times), every])


def fit(learner: Any, updates: int) -> None:
    """So many updates from the replay buffer, before anything new is done."""
    from stable_baselines3.common.utils import polyak_update

    model = learner.model
    for done in range(0, updates, FITTED_AT_ONCE):
        model.train(gradient_steps=min(FITTED_AT_ONCE, updates - done), batch_size=model.batch_size)
        polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), 1.0)
