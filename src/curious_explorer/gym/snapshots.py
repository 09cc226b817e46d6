"""Snapshots: a roll-in to a chosen cell by restoring a saved state of the simulator, which takes no steps.

The first roll-in to a cell is made by steps, which count; where it arrives, the state is saved. From then on a roll-in
to that cell restores it. Starts are distributed as they are without snapshots: a roll-in that arrives with probability
p by the counted model is restored with probability p, and else drawn anew, as one that misses. What happens from there
is not repeated: the random numbers of the environment are seeded anew at every restore. But where a cell holds many
states, a restore always leads to the same one of them.

States are kept in memory alone: they are neither written nor pickled. A restore follows an ordinary reset through all
wrappers, so that those which count episodes or steps go on counting; of wrappers, only the state of
`EPISODE_WRAPPERS` is saved. Whether a snapshot holds all that matters is checked before the first one is used.
"""

from __future__ import annotations

import copy
import random
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.wrappers import (
    AtariPreprocessing,
    DelayObservation,
    FrameStackObservation,
    StickyAction,
    TimeAwareObservation,
)

from curious_explorer.errors import SnapshotError
from curious_explorer.gym.actors import RandomStream, TargetActor
from curious_explorer.gym.cells import Env
from curious_explorer.gym.stepped_environments import SingleEnvironment

EPISODE_WRAPPERS = (
    AtariPreprocessing,
    DelayObservation,
    FrameStackObservation,
    StickyAction,
    TimeAwareObservation,
)
"""Wrappers that remember something of the episode, and nothing that must go on from one to the next."""
CHECKED_ACTIONS = 20
CHECKS = ((0, 0), (10, 1))
"""How many actions are taken before a state is saved, and how many more before it is restored: two numbers one apart,
so that no hidden count is found where it was by coincidence."""
MOST_KEPT = 10_000
"""No more states are saved than this; roll-ins to other cells are made by steps."""


class Simulator(Protocol):
    """What can be saved and restored of an environment that was reset before."""

    def save(self) -> Any:
        """The state, which later steps leave as it is."""

    def restore(self, saved: Any, seed: int | None) -> None:
        """Go back to a state; its random numbers are as they were if ``seed`` is None, and seeded by it otherwise."""


class PythonSimulator:
    """Environments whose state is in their attributes, which are copied; MiniGrid and most that are written in Python.

    Args:
        layers: the environment and the wrappers whose attributes are their state.
        chain: the environment and all of its wrappers; those stay themselves where attributes refer to them.
        apart: names of attributes that are not copied, because somebody else saves them.
    """

    def __init__(self, layers: list[Any], chain: list[Any], apart: frozenset[str] = frozenset()) -> None:
        self._layers, self._chain, self._apart = layers, chain, apart

    def save(self) -> list[dict[str, Any]]:
        """Copies of the attributes."""
        return copy.deepcopy([self._state(layer) for layer in self._layers], self._shared())

    def restore(self, saved: list[dict[str, Any]], seed: int | None) -> None:
        """Copy them back."""
        memo = self._shared()
        for layer, state in zip(self._layers, copy.deepcopy(saved, memo), strict=True):
            for name in self._state(layer).keys() - state.keys():
                delattr(layer, name)
            vars(layer).update(state)
        if seed is not None:
            _seed_all([copied for copied in memo.values() if isinstance(copied, GENERATORS)], seed)

    def _state(self, layer: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(layer).items() if name not in self._apart}

    def _shared(self) -> dict[int, Any]:
        """What `deepcopy` is to take for copied already: environments, spaces and specifications are no state."""
        fixed = [value for layer in self._layers for value in vars(layer).values() if isinstance(value, NOT_STATE)]
        return {id(one): one for one in [*self._chain, *fixed]}


NOT_STATE = (gymnasium.Space, EnvSpec)
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def _seed_all(generators: list[Any], seed: int) -> None:
    """Seed random number generators of any kind, each with another number."""
    numbers = np.random.SeedSequence(seed).generate_state(len(generators)).tolist()
    for generator, number in zip(generators, numbers, strict=True):
        if isinstance(generator, np.random.Generator):
            kind = type(generator.bit_generator)
            generator.bit_generator.state = kind(number).state
        else:
            generator.seed(number)


class AtariSimulator:
    """The Arcade Learning Environment, which saves its own state.

    The console's own random numbers go on and are not seeded; those of the environment, which wrappers use, are.
    """

    def __init__(self, base: Any, wrappers: PythonSimulator) -> None:
        self._base, self._wrappers = base, wrappers

    def save(self) -> tuple[Any, Any, Any, Any]:
        """The state with and without its random numbers, those of the environment, and the wrappers'."""
        clone, generator = self._base.clone_state, copy.deepcopy(self._base.np_random)
        return clone(include_rng=True), clone(include_rng=False), generator, self._wrappers.save()

    def restore(self, saved: tuple[Any, Any, Any, Any], seed: int | None) -> None:
        """Go back to one of them."""
        exact, without_random_numbers, generator, wrappers = saved
        self._base.restore_state(exact if seed is None else without_random_numbers)
        self._base.np_random = copy.deepcopy(generator) if seed is None else np.random.default_rng(seed)
        self._wrappers.restore(wrappers, seed)


MUJOCO_OBJECTS = frozenset({"data", "model", "mujoco_renderer"})


class MujocoSimulator:
    """MuJoCo: every array of numbers of its data; other attributes are copied.

    Positions and velocities would do for what comes next. But environments read what was computed from those of the
    step before (where a body was, for a reward of how far it has come), and that is restored, too.
    """

    def __init__(self, base: Any, attributes: PythonSimulator) -> None:
        self._base, self._attributes = base, attributes

    def save(self) -> Any:
        """The state."""
        data = self._base.data
        numbers = {name: np.copy(value) for name, value in self._arrays().items()}
        return numbers, float(data.time), self._attributes.save()

    def restore(self, saved: Any, seed: int | None) -> None:
        """Go back to it; all that setting a state computes is overwritten by what it was."""
        numbers, time, attributes = saved
        self._attributes.restore(attributes, seed)
        data = self._base.data
        for name in MUJOCO_FIRST & numbers.keys():
            getattr(data, name)[...] = numbers[name]
        self._base.set_state(numbers["qpos"], numbers["qvel"])
        for name, value in self._arrays().items():
            if name in numbers and value.shape == numbers[name].shape:
                value[...] = numbers[name]
        data.time = time

    def _arrays(self) -> dict[str, Any]:
        """The arrays of its data by name, but for those of contacts, which every step makes anew."""
        data = self._base.data
        named = {name: getattr(data, name) for name in dir(data) if not name.startswith(MUJOCO_CONTACTS)}
        return {
            name: value for name, value in named.items() if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        }


MUJOCO_FIRST = frozenset({"act", "ctrl", "mocap_pos", "mocap_quat", "qfrc_applied", "userdata", "xfrc_applied"})
"""What must be in place before a state is set, because forces are computed from it."""
MUJOCO_CONTACTS = ("_", "contact", "efc_", "iefc_")


def simulator_of(env: Env) -> Simulator:
    """The way in which this environment can be saved, by what it has."""
    chain: list[Any] = [env]
    while isinstance(chain[-1], gymnasium.Wrapper):
        chain.append(chain[-1].env)
    base = chain[-1]
    wrappers = [layer for layer in chain if isinstance(layer, EPISODE_WRAPPERS)]
    if hasattr(base, "ale") and hasattr(base, "clone_state"):
        _refuse_sticky(base)
        return AtariSimulator(base, PythonSimulator(wrappers, chain))
    if hasattr(base, "data") and hasattr(base, "set_state"):
        return MujocoSimulator(base, PythonSimulator([base, *wrappers], chain, MUJOCO_OBJECTS))
    return PythonSimulator([base, *wrappers], chain)


def _refuse_sticky(base: Any) -> None:
    """The console of Atari games saves all but the action that it may repeat."""
    setting = getattr(base.ale, "getFloat", None)
    sticky = 0.0 if setting is None else float(setting("repeat_action_probability"))
    if sticky > 0.0:
        raise SnapshotError(
            f"its console repeats the last action with probability {sticky:g} and does not save which one that was, so "
            "that a restored state would go on differently; make it with repeat_action_probability=0.0 and wrap it in "
            f"gymnasium.wrappers.StickyAction(env, {sticky:g}), which is saved, or leave snapshots off"
        )


class _Snapshot(NamedTuple):
    """A state, and what was seen there."""

    saved: Any
    observation: Any
    info: dict[str, Any]
    cell: int
    steps: int  # that the roll-in took which arrived there


class Snapshots:
    """The saved states of one environment, by cell.

    Args:
        single: the environment, with its steps counted.
    """

    def __init__(self, single: SingleEnvironment) -> None:
        self._single, self._simulator = single, simulator_of(single.env)
        self._kept: dict[int, _Snapshot] = {}
        self._checked = False
        self.restored = 0
        """How many roll-ins were restores."""
        self.steps_saved = 0
        """How many steps they would have taken at least: those of the roll-ins that first arrived there."""

    def __len__(self) -> int:
        return len(self._kept)

    def prepare(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """To be called before a reset: checks the environment the first time, and forgets all states where seeded.

        So what follows a seeded reset depends on its seed alone.
        """
        if seed is not None:
            self._kept.clear()
        if not self._checked:
            self._check(seed, options)
            self._checked = True

    def restore(self, actor: TargetActor, stream: RandomStream) -> bool | None:
        """Go where this actor would go, if its target was saved; the environment must have been reset before.

        Returns whether it arrived, which is drawn by the counted model's probability; None where nothing is saved.
        """
        snapshot = self._kept.get(actor.target)
        if snapshot is None:
            return None
        if actor.arrival < 1.0 and stream.uniform() >= actor.arrival:
            return False
        self._put_back(snapshot, seed=int(stream.generator.integers(2**32)))
        self.restored += 1
        self.steps_saved += snapshot.steps
        return True

    def keep(self, cell: int, steps: int) -> None:
        """Save the current state, where a roll-in of so many steps arrived in a cell."""
        if steps > 0 and len(self._kept) < MOST_KEPT:
            self._kept[cell] = self._take(steps)

    def _take(self, steps: int = 0) -> _Snapshot:
        single = self._single
        try:
            saved = self._simulator.save()
            observation, info = copy.deepcopy((single.observations[0], single.info))
        except Exception as error:  # copying may call anything
            raise self._refusal(f"cannot be saved ({type(error).__name__}: {error})") from error
        return _Snapshot(saved, observation, info, single.cells[0], steps)

    def _put_back(self, snapshot: _Snapshot, seed: int | None) -> None:
        try:
            self._simulator.restore(snapshot.saved, seed)
        except Exception as error:
            raise self._refusal(f"cannot be restored ({type(error).__name__}: {error})") from error
        observation, info = copy.deepcopy((snapshot.observation, snapshot.info))
        self._single.put_back(snapshot.cell, observation, info)

    # The check at the start -------------------------------------------------------------------------------------------

    def _check(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """From the start and from the middle of an episode: the same actions after a restore must do the same."""
        single, generator = self._single, np.random.default_rng(0)
        choices = single.discretisation.action_set.choices
        for lead, more in CHECKS:
            compared = 0
            while compared < CHECKED_ACTIONS:
                actions = [choices[number] for number in generator.integers(len(choices), size=CHECKED_ACTIONS)]
                single.reset(seed=seed, options=options)
                if len(_act(single, actions[:lead])) < lead or single.terminated or single.truncated:
                    single.reset(options=options)
                single.restart_time_limits()
                snapshot = self._take()
                expected = _act(single, actions)
                if not (single.terminated or single.truncated):
                    _act(single, actions[:more])
                single.reset(options=options)
                self._put_back(snapshot, seed=None)
                single.restart_time_limits()
                self._compare(expected, _act(single, actions[: len(expected)]), actions)
                compared += len(expected)
                seed = None

    def _compare(self, expected: list[Any], found: list[Any], actions: list[Any]) -> None:
        for place, (before, after) in enumerate(zip(expected, found, strict=False)):
            for name, one, other in zip(("observation", "reward", "end"), before, after, strict=True):
                if not data_equivalence(one, other, exact=True):
                    seen = "other numbers" if name == "observation" else f"{other!r} where it was {one!r}"
                    raise self._refusal(
                        f"restored and given the same actions again, differs: the {name} of step {place + 1} (action "
                        f"{actions[place]!r}) is {seen}, so that it has state outside of what can be saved"
                    )

    def _refusal(self, fault: str) -> SnapshotError:
        return SnapshotError(
            f"{self._single.discretisation.environment} {fault}; leave snapshots off, and roll-ins take steps"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}  # a copy saves its own


def _act(single: SingleEnvironment, actions: list[Any]) -> list[tuple[Any, float, tuple[bool, bool]]]:
    """The observation, reward and end of each action, up to the end of the episode."""
    seen = []
    for action in actions:
        step = single.step(action)
        seen.append((copy.deepcopy(single.observations[0]), step.reward, (step.terminated, step.truncated)))
        if step.terminated or step.truncated:
            break
    return seen
