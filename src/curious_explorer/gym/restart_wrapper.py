"""`RestartWrapper`: train any learner from the resets that exploration found."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium
import numpy as np

from curious_explorer.errors import NoRewardWarning, UnfinishedEpisodesWarning
from curious_explorer.gym.actors import Actor, ActorCache, RandomStream
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.rollouts import RollInSampler, reset_by_roll_in
from curious_explorer.gym.snapshots import Snapshots
from curious_explorer.gym.stepped_environments import SingleEnvironment
from curious_explorer.gym.time_limits import time_limit_of
from curious_explorer.resets.moving_starts import OWN, MovingStarts
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.starts import ADAPTIVE, shared_starts
from curious_explorer.worlds.roll_in import RollIn

ROLL_IN_STEPS, ROLL_IN_RESTARTS = "roll_in_steps", "roll_in_restarts"
"""What ``info`` of a reset says: the steps taken to get there, and how many roll-ins terminated and were repeated."""
ROLL_IN_STEPS_SAVED = "roll_in_steps_saved"
"""With snapshots: the steps that the roll-in took when it was made by steps, if it was a restore; else 0."""


MOST_UNFINISHED = 50
"""After so many episodes in a row of which none came to its end, moving starts say that they learn nothing."""
MOST_STEPS_OPEN = 100_000
"""So do they after so many steps without an end."""


class _MovingRollIns:
    """Draws roll-ins to moving starts; `start` is the number of the last."""

    def __init__(self, starts: MovingStarts, actors: ActorCache, env: SingleEnvironment) -> None:
        self._starts, self._target_actor, self._steps = starts, actors.target_actor, actors.steps
        self._env, self._begun = env, 0
        self.start = OWN

    def sample(self, stream: RandomStream) -> list[tuple[Actor, int]]:
        """A chain of actors with their numbers of steps, as `RollInSampler` draws it."""
        self._begun = self._env.steps
        self.start = self._starts.draw(stream.uniform)
        if self.start == OWN or self._starts.targets is None:
            return []
        actor = self._target_actor(self._starts.targets, self.start)
        return [(actor, self._steps(actor, actor.limit))]

    def settles(self, cell: int) -> bool:
        """An episode begins where its roll-in got to in the time that it is given."""
        self._note_miss()
        self.start = OWN if self._env.steps == self._begun else self._starts.start_in(cell)
        return True

    def _note_miss(self) -> None:
        if self.start != OWN:
            self._starts.note_miss(self.start, self._env.steps - self._begun)

    def check_misses(self, missed: int) -> None:
        """Raise an error if so many roll-ins in a row that missed their target are too many."""
        self._note_miss()
        targets = self._starts.targets
        if targets is not None and missed >= targets.tries:
            targets.refuse()


class _Followed:
    """The episodes of one environment, told to moving starts as they end."""

    def __init__(self, starts: MovingStarts, hold: int) -> None:
        self._starts, self._hold = starts, hold
        self._start, self._returned, self._length, self._cut = OWN, 0.0, 0, math.inf
        self._told = True
        self._unfinished, self._open = 0, 0

    def begin(self, start: int) -> None:
        """An episode begins at this start."""
        if not self._told and self._length > 0:
            self._unfinished += 1
            if self._unfinished == MOST_UNFINISHED:
                self._warn(f"{MOST_UNFINISHED} episodes in a row were given up before their end")
        self._start, self._returned, self._length, self._told = start, 0.0, 0, False
        self._cut = self._hold * self._starts.cut_of(start)  # which was counted in actions, and may be infinite

    def step(self, reward: float, ended: bool) -> bool:
        """Take in a step; returns whether the episode is to be cut off here."""
        self._returned += reward
        self._length += 1
        cut_off = not ended and self._length >= self._cut
        if (ended or cut_off) and not self._told:
            self._starts.tell(self._start, self._returned)
            self._starts.note_steps(self._length)
            self._told = True
            self._unfinished = self._open = 0
        elif not self._told:
            self._open += 1
            if self._open == MOST_STEPS_OPEN:
                self._warn(f"no episode ended in {MOST_STEPS_OPEN:,} steps")
        return cut_off

    def _warn(self, what: str) -> None:
        warnings.warn(
            f"{what}, so that starts cannot follow what is learned: step each episode until terminated or truncated, "
            "put a TimeLimit inside the RestartWrapper and not around it, or choose starts='spread'",
            UnfinishedEpisodesWarning,
            stacklevel=5,
        )


class RollInWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose episodes begin where a roll-in ends, with all of their time limit ahead.

    Args:
        env: the environment.
        starts: how to reach a start from the environment's own; or starts that move, which are told how episodes go.
        discretisation: the cells and actions that the roll-in's policies are tables over.
        snapshots: whether roll-ins to a chosen cell restore a saved state of the environment (see `snapshots`).
    """

    def __init__(
        self, env: Env, starts: RollIn | MovingStarts, discretisation: Discretisation, *, snapshots: bool = False
    ) -> None:
        super().__init__(env)
        action_set = discretisation.action_set.in_space(env.action_space)
        self._single = SingleEnvironment(env, discretisation.frozen()._replace(action_set=action_set))
        actors = ActorCache(discretisation.cells.count, action_set.choices, action_set.hold)
        self._followed: _Followed | None = None
        self._sampler: RollInSampler | _MovingRollIns
        if isinstance(starts, MovingStarts):
            limit = time_limit_of(env)
            if limit is not None:
                starts.limit_episodes(max(1, limit // action_set.hold))
            self._sampler = _MovingRollIns(starts, actors, self._single)
            self._followed = _Followed(starts, action_set.hold)
        else:
            self._sampler = RollInSampler(starts, actors)
        self._snapshots = Snapshots(self._single) if snapshots else None
        self._stream = RandomStream(int(np.random.SeedSequence().generate_state(1)[0]))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``info["roll_in_steps"]`` says how many steps it took to get there."""
        if seed is not None:
            self._stream = RandomStream(seed)
        single, snapshots = self._single, self._snapshots
        before, saved = single.steps, 0 if snapshots is None else snapshots.steps_saved
        if snapshots is not None:
            snapshots.prepare(seed, options)
        restarts = reset_by_roll_in(
            single, self._sampler, self._stream, seed=seed, options=options, snapshots=snapshots
        )
        if self._followed is not None and isinstance(self._sampler, _MovingRollIns):
            self._followed.begin(self._sampler.start)
        roll_in_info = {ROLL_IN_STEPS: single.steps - before, ROLL_IN_RESTARTS: restarts}
        if snapshots is not None:
            roll_in_info[ROLL_IN_STEPS_SAVED] = snapshots.steps_saved - saved
        return single.observations[0], {**single.info, **roll_in_info}

    @property
    def snapshots(self) -> Snapshots | None:
        """The saved states, where they are allowed; ``snapshots.steps_saved`` is what they saved in all."""
        return self._snapshots

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action; where starts move, an episode is cut off (truncated) after a few times its distance."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._followed is not None and self._followed.step(float(reward), bool(terminated or truncated)):
            truncated = True
        return observation, reward, terminated, truncated, info


class RestartWrapper(RollInWrapper, gymnasium.utils.RecordConstructorArgs):
    """A Gymnasium environment whose episodes begin all over the state space, by restart and step alone.

    Works with any learner of any library, in vector environments and in subprocesses. The steps of a roll-in do not eat
    the learner's time limit, wherever the `TimeLimit` is; they are samples all the same, and ``info["roll_in_steps"]``
    of every reset says how many there were. ``reset(seed=...)`` seeds the roll-ins too.

    Starts that move (see `resets.moving_starts`) are shared by all wrappers of one reset model that exist in a process
    at the same time. Wrappers in several processes agree if they are given the same
    ``starts=share_between_processes(moving_starts(reset_model))``.

    Args:
        env: the environment that was explored; put wrappers that change observations or actions around this one, or
            explore with them in place.
        reset_model: from `explore`, or ``ResetModel.load(folder)``.
        starts: "adaptive": they move with what is learned, from the reward back to the environment's own start, where
            the reset model has counts and no chosen states; else, and with "mixture", the reset model as it is weighed.
            "spread" and "uniform": that weighting. Or `MovingStarts` of one's own.
        snapshots: whether roll-ins to chosen cells may restore saved states of the environment, which takes no steps:
            ``info["roll_in_steps"]`` is what was stepped, and ``info["roll_in_steps_saved"]`` what a restore saved.
            The environment is checked at the first reset; one that cannot be restored is a `SnapshotError`.
    """

    def __init__(
        self, env: Env, reset_model: ResetModel, starts: str | MovingStarts = ADAPTIVE, *, snapshots: bool = False
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, reset_model=reset_model, starts=starts, snapshots=snapshots
        )
        if not isinstance(reset_model, ResetModel):
            raise ValueError(
                f"reset_model is {type(reset_model).__name__}, expected a ResetModel: exploration.reset_model, or "
                "ResetModel.load(folder)"
            )
        if not isinstance(env, gymnasium.Env):
            raise ValueError(f"env is {env!r}, expected an environment, as gymnasium.make gives one")
        discretisation = Discretisation.of_reset_model(reset_model)
        discretisation.check(env)
        found = shared_starts(reset_model, starts)
        super().__init__(env, found, discretisation, snapshots=snapshots)
        self._reset_model = reset_model
        self._starts = found if isinstance(found, MovingStarts) else None
        if self._starts is not None and not self._starts.reward_known:
            warnings.warn(
                "no reward was seen while exploring, so that starts are spread and do not move; explore further",
                NoRewardWarning,
                stacklevel=2,
            )

    @property
    def reset_model(self) -> ResetModel:
        """Where episodes begin."""
        return self._reset_model

    @property
    def starts(self) -> MovingStarts | None:
        """The starts, where they move; ``starts.progress`` says how far they are."""
        return self._starts
