"""Starts that move: which start an episode begins in next, decided by what the learner does from there.

Exploring finds the reward once; most starts then teach nothing, being too far from the reward or solved long ago. Here
episodes begin near the reward and move back towards the environment's own start as fast as the learner follows.

**What the counted model says.** How far each state is from the reward on the best plan that is known, and what an
episode from there is expected to return: that plan's return in the steps that the episode may take (see
`models.best_ways`, where distances mean the same for rewards that are sparse, shaped, several, noisy, or costs).

**What the learner says.** An episode succeeds if it returns at least half of that (between the least that steps pay as
a rule and the plan's). Where the plan itself often fails, success is what all episodes together return, as a share of
the plan's. Then

- starts are at most `level` away, most of them in the far part of that, the others where success is neither never nor
  always or is changing; on the way to the reward rather than beside it, where roll-ins are long for nothing;
- the level grows when three of four of the far episodes succeed: by a little after a struggle, by more and more
  while everything succeeds at once; it shrinks again where next to nothing does;
- the environment's own start has a tenth of the episodes, and a growing share as it succeeds itself: when nine of ten
  episodes from there succeed there are no roll-ins any more, and they come back should that be lost.

**What roll-ins say.** Where cells merge states, or are hardly counted, the way to a start may not hold in the world. A
roll-in is given up after as many steps as an episode from the own start has, and the episode then begins where it got
to. A level whose starts are hardly ever reached is passed over. And where roll-ins that missed took more than a third
of what episodes took, episodes begin at the own start until it is less.

Episodes from a start are cut off after a few times its distance. That is a truncation, never a termination: what lies
beyond is for the critic to value.

Where no reward was seen, starts are spread over levels of distance from the start and do not move. Everything that
changes is in one array, `MovingStarts.tally`, so that it can be stored, restored and shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.models.best_ways import MOST_STEPS, BestWays
from curious_explorer.models.counted_model import NO_REWARD, CountedModel
from curious_explorer.resets.chosen_states import LEAST_ARRIVAL, LEVELS, reaching_of
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.targets import DEFAULT_TRIES, Targets

if TYPE_CHECKING:  # it imports Numba
    from curious_explorer.models.reaching import Arrival, Reaching

OWN, ON_THE_WAY = -1, -2
"""In the place of the number of a start: the environment's own, and one that no success is counted of."""
MOST_STARTS, MOST_NOISY_STARTS = 20_000, 1_000
"""Of more, evenly spaced ones are taken; where something is random each takes a plan."""
BIN_FACTOR = 1.3
"""How much further away each bin of distances reaches, in which success is counted."""
FAST, SLOW = 0.9, 0.98
"""What is left of earlier episodes at each new one, in the two counts of a bin; their difference is change."""
LEAST_WEIGHT = 0.02
"""What a bin weighs in which all is learned, or nothing can be, beside 1/4 for one that succeeds every other time."""
LEVEL, GROWTH, TRIED, EPISODES, FINISHED, FAR_TRIED, FAR_SOLVED, OWN_TRIED, OWN_SOLVED = range(9)
FAR_EARNED, FAR_MISSED, OWN_EARNED, STEPS, MISSED_STEPS = range(9, 14)
"""Places of the tally; the bins follow."""
FIRST_SLOTS, SLOTS = 9, 14
"""How many places there were in 0.2.0, and are now."""


@dataclass(frozen=True, kw_only=True)
class StartSettings:
    """How starts move; one set for all tasks, chosen as `docs/starts.md` says."""

    far: float = 0.6
    """Starts between this share of the level and the level are its far part."""
    far_share: float = 0.6
    """The share of roll-ins that go there."""
    solved: float = 0.75
    """The level grows when this share of the far episodes succeeds."""
    fewest: int = 8
    """How many far episodes it takes at least to tell."""
    growth: float = 1.15
    """By which factor the level grows, and one step more."""
    own_share: float = 0.1
    """The least share of episodes from the environment's own start."""
    own_solved: float = 0.9
    """From which success from there on there are no roll-ins any more."""
    cut_factor: float = 3.0
    cut_spare: int = 20
    """An episode is cut off after so many times its distance, and so many steps more."""

    def __post_init__(self) -> None:
        for name in ("far", "far_share", "solved", "own_share", "own_solved"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a share above 0 and at most 1")
        check_count(self.fewest, "fewest", least=1)
        check_count(self.cut_spare, "cut_spare", least=1)
        for name in ("growth", "cut_factor"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 1.0):
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a number of at least 1")


MEMORY = 0.95
"""What is left of earlier episodes at each new one, in the counts of far episodes and of those from the own start."""
BARELY, STRUGGLED = 0.1, 30
"""Where less than this share of so many far episodes succeeds, the level was too far, and its far part is given up."""
HARDLY, PASSED_OVER = 0.1, 20
"""Where less than this share of so many roll-ins to the far part arrives, the level is passed over."""
MOST_MISSED, MISSED_FREE = 0.25, 1_000
"""The most that roll-ins which miss may take of the steps of theirs and of episodes, beyond so many steps."""
MOST_EARNED = 5.0
"""The most that one episode counts for, in units of what the plan returns, where success is what all return."""
MOST_GROWTH = 3.0
EAGER = 1.5
"""By how much the growth itself grows where a level took hardly more than the fewest episodes."""


class StartsProgress(NamedTuple):
    """How far the starts have moved."""

    level: float
    """Starts are at most so far away."""
    farthest: float
    """The distance of the environment's own start."""
    own_success: float
    """Of the last episodes from the environment's own start, the share that succeeded."""
    own_share: float
    """The share of episodes that begin there."""
    episodes: int
    """How many were told."""
    finished: bool
    """Whether all episodes begin at the environment's own start for good."""
    reward_known: bool
    """Whether a reward was seen while exploring; if not, starts are spread and do not move."""


class Group(NamedTuple):
    """Starts of a batch whose episodes are told together."""

    name: str  # "own", "far" or "near"
    share: float  # of the batch
    roll_in: RollIn
    planned: float  # the mean discounted return of the plan, from these starts
    cut: int | None


class MovingStarts:
    """Starts on a counted model, and how the learner fares from them.

    Args:
        model: what was counted; it must know where the world starts.
        gamma: the discount of the plan; that of the learner, or of the exploration.
        settings: how starts move.
    """

    def __init__(self, model: CountedModel, *, gamma: float, settings: StartSettings | None = None) -> None:
        self.settings = settings or StartSettings()
        self.gamma = check_gamma(gamma)
        self._reaching = reaching = reaching_of(model)
        ways = BestWays(model, reaching.met, self.gamma)
        self.reward_known = ways.reward_known
        steps = reaching.distances_from_starts()[reaching.met]
        starts = model.starts[reaching.met] / model.starts.sum()
        # The own start is as far as the farthest of its states from which the reward is known to be reached.
        own = (starts > 0) & (ways.distance < math.inf)
        farthest = float(ways.distance[own].max(initial=1.0))
        self.farthest = farthest if self.reward_known else float(steps.max(initial=0))
        weights, order = self._weights(ways, steps, model.terminal[reaching.met])
        chosen = np.flatnonzero(weights > 0.0)
        chosen = chosen[np.lexsort((chosen, order[chosen]))]
        most = MOST_STARTS if reaching.deterministic else MOST_NOISY_STARTS
        chosen = chosen[:: -(-len(chosen) // most) or 1]
        own_cut = int(min(self.settings.cut_factor * self.farthest + self.settings.cut_spare, MOST_STEPS))
        longest = own_cut if self.reward_known else MOST_STEPS
        arrivals = [_arrival_within(reaching, int(state), longest) for state in reaching.met[chosen]]
        often = np.array([arrival.probability >= LEAST_ARRIVAL for arrival in arrivals], dtype=np.bool_)
        chosen = chosen[often]
        arrivals = [arrival for arrival, kept in zip(arrivals, often, strict=True) if kept]
        self.states: Integers = reaching.met[chosen]
        """The states that episodes may start in, nearest to the reward first, shape (n,)."""
        self.distance: Floats = order[chosen].astype(np.float64)
        """Of each of them."""
        self._number = {int(state): number for number, state in enumerate(self.states)}
        self.cut: Integers = np.minimum(
            self.settings.cut_factor * self.distance + self.settings.cut_spare, MOST_STEPS
        ).astype(np.int64)
        """After how many steps an episode from each of them is cut off."""
        self._arrival = np.array([arrival.probability for arrival in arrivals])
        self._weight = weights[chosen]
        self._cumulative = np.concatenate([[0.0], np.cumsum(self._weight)])
        self.targets: Targets | None = None
        if len(chosen):
            limits = [arrival.limit for arrival in arrivals]
            self.targets = Targets(self.states, limits, reaching.plan, tries=DEFAULT_TRIES, arrival=self._arrival)
        self._own_cut = own_cut
        self._low = ways.usual
        self._ways, self._chosen, self._starts = ways, chosen, starts
        self._expect()
        self._planned = ways.planned[chosen]
        self._own_planned = float(starts @ ways.planned)
        bins = np.floor(np.log(np.maximum(self.distance, 1.0)) / math.log(BIN_FACTOR)).astype(np.int64)
        self._bin_of: Integers = bins
        self._num_bins = int(bins.max(initial=0)) + 1
        self._bin_start = np.searchsorted(bins, np.arange(self._num_bins + 1))
        self.tally: Floats = np.zeros(SLOTS + 4 * self._num_bins)
        """All that changes: level, growth and counts, then for each bin its fast and its slow count of episodes and of
        those that succeeded."""
        self.tally[[LEVEL, GROWTH]] = 1.0, self.settings.growth
        self.guard: AbstractContextManager[Any] = nullcontext()
        """Held while the tally is changed."""

    def _expect(self) -> None:
        """Find what the plan returns from each start, and from the own, within the cuts."""
        self._expected, own_expected = self._ways.expected(self._chosen, self.cut, self._starts, self._own_cut)
        self._own_expected = own_expected, self._ways.usual * self._own_cut

    def limit_episodes(self, steps: int) -> None:
        """Say that no episode of the environment takes more steps than this, so that none is expected to."""
        if steps < max(self._own_cut, int(self.cut.max(initial=0))):
            self.cut, self._own_cut = np.minimum(self.cut, steps), min(self._own_cut, steps)
            self._expect()

    def _weights(self, ways: BestWays, steps: Integers, terminal: Mask) -> tuple[Floats, Floats]:
        """How much each state that was met weighs among those of its distance, and that distance."""
        can = (steps >= 0) & ~terminal
        if not self.reward_known:
            level = np.minimum(LEVELS * steps / (steps.max() + 1e-9), LEVELS - 1).astype(np.int64)
            share = 1.0 / np.maximum(np.bincount(np.where(can, level, 0), weights=can), 1)
            return np.where(can, share[np.where(can, level, 0)], 0.0), np.maximum(steps, 1).astype(np.float64)
        can &= ways.distance <= self.farthest
        direct = float((steps + ways.distance)[can].min(initial=math.inf))
        with np.errstate(invalid="ignore"):
            detour = np.maximum(steps + ways.distance - max(direct, self.farthest), 0.0)
            near = 0.5 ** (detour / (5.0 + 0.2 * self.farthest))
        return np.where(can & (near > 0.01), near, 0.0), ways.distance

    # Which start next -------------------------------------------------------------------------------------------------

    def draw(self, uniform: Callable[[], float]) -> int:
        """The number of the next start, or `OWN`; ``uniform`` gives random numbers in [0, 1)."""
        share = self.own_share
        chance = uniform()
        if chance < share or len(self.states) == 0 or self._missed_too_much:
            return OWN
        if not self.reward_known:
            return self._pick(0, len(self.states), uniform())
        first, last = self._far_part()
        if (chance - share) < self.settings.far_share * (1.0 - share):
            return self._pick(first, last, uniform())
        chances = np.cumsum(self._bin_weights(last))
        place = int(np.searchsorted(chances, uniform() * chances[-1], side="right"))
        return self._pick(int(self._bin_start[place]), int(min(self._bin_start[place + 1], last)), uniform())

    def _pick(self, first: int, stop: int, chance: float) -> int:
        """A start from ``first`` to ``stop`` (exclusive), by weight."""
        low, high = self._cumulative[first], self._cumulative[stop]
        place = int(np.searchsorted(self._cumulative, low + chance * (high - low), side="right")) - 1
        return min(max(place, first), stop - 1)

    def _far_part(self) -> tuple[int, int]:
        """The first start of the far part of the level, and the one after its last."""
        level = self.tally[LEVEL]
        last = max(int(np.searchsorted(self.distance, level, side="right")), 1)
        first = int(np.searchsorted(self.distance, self.settings.far * min(level, self.distance[last - 1])))
        return min(first, last - 1), last

    def _bin_weights(self, stop: int) -> Floats:
        """How much is learned from each bin within the level."""
        bins = int(self._bin_of[stop - 1]) + 1
        tried, solved, tried_before, solved_before = self.tally[SLOTS:].reshape(4, -1)[:, :bins]
        now, before = (solved + 0.5) / (tried + 1.0), (solved_before + 0.5) / (tried_before + 1.0)
        mass = np.diff(self._cumulative[np.minimum(self._bin_start[: bins + 1], stop)])
        weights: Floats = np.where(mass > 0.0, LEAST_WEIGHT + now * (1.0 - now) + np.abs(now - before), 0.0)
        return weights

    @property
    def _missed_too_much(self) -> bool:
        """Whether roll-ins that did not arrive have taken more than their share of all steps."""
        missed = self.tally[MISSED_STEPS]
        return bool(missed > MISSED_FREE + MOST_MISSED * (missed + self.tally[STEPS]))

    @property
    def own_success(self) -> float:
        """The share of the last episodes from the own start that succeeded; one more is taken to have failed."""
        solved = max(self.tally[OWN_SOLVED], min(self.tally[OWN_EARNED], self.tally[OWN_TRIED]))
        return float(solved / (self.tally[OWN_TRIED] + 1.0))

    @property
    def own_share(self) -> float:
        """The share of episodes that begin at the environment's own start."""
        if self.tally[FINISHED] or len(self.states) == 0:
            return 1.0
        if not self.reward_known:
            return 0.5
        least = 0.5 if self.tally[LEVEL] >= self.farthest else self.settings.own_share
        return min(1.0, max(least, self.own_success / self.settings.own_solved))

    @property
    def progress(self) -> StartsProgress:
        """How far the starts have moved."""
        tally = self.tally
        return StartsProgress(
            float(min(tally[LEVEL], self.farthest)),
            self.farthest,
            self.own_success,
            self.own_share,
            int(tally[EPISODES]),
            bool(tally[FINISHED]),
            self.reward_known,
        )

    # What the learner does from there ---------------------------------------------------------------------------------

    def tell(self, start: int, returned: float) -> None:
        """Take in how an episode went.

        Args:
            start: its number, or `OWN`, or `ON_THE_WAY`.
            returned: the sum of its rewards, not discounted.
        """
        if start == ON_THE_WAY:
            return
        expected, low = self._own_expected if start == OWN else (self._expected[start], self._low * self.cut[start])
        earned = _earned(returned, low, expected)
        self.note(start, earned >= 0.5, earned)

    def note(self, start: int, success: bool, earned: float | None = None) -> None:
        """Take in whether an episode succeeded, and what it earned as a share of what the plan does."""
        earned = float(success) if earned is None else min(max(earned, 0.0), MOST_EARNED)
        with self.guard:
            tally = self.tally
            tally[EPISODES] += 1
            if start == OWN:
                _add(tally, OWN_TRIED, 1.0)
                _add(tally, OWN_SOLVED, float(success))
                _add(tally, OWN_EARNED, earned)
                self._follow_own()
            elif self.reward_known:
                counts = tally[SLOTS:].reshape(4, -1)[:, self._bin_of[start]]
                counts *= (FAST, FAST, SLOW, SLOW)
                counts += (1, success, 1, success)
                level = min(tally[LEVEL], self.farthest)
                if self.distance[start] >= self.settings.far * level and (success or self.distance[start] <= level):
                    self._note_far(success, earned)

    def _follow_own(self) -> None:
        """Who succeeds from the own start needs no level."""
        if self.reward_known and self.tally[OWN_TRIED] >= self.settings.fewest and self.own_success >= 0.75:
            self.tally[LEVEL] = max(self.tally[LEVEL], self.farthest)

    def _note_far(self, success: bool, earned: float) -> None:
        """Count a far episode, and change the level where that is due."""
        tally, settings = self.tally, self.settings
        _add(tally, FAR_TRIED, 1.0)
        _add(tally, FAR_SOLVED, float(success))
        _add(tally, FAR_EARNED, earned)
        tally[TRIED] += 1
        share = max(tally[FAR_SOLVED], tally[FAR_EARNED]) / tally[FAR_TRIED]
        if tally[TRIED] >= settings.fewest and share >= settings.solved and tally[LEVEL] < self.farthest:
            self._grow(at_once=bool(tally[TRIED] <= 1.5 * settings.fewest))
        elif tally[TRIED] >= STRUGGLED and share < BARELY and tally[LEVEL] > 1.0:
            self._set_level(max(1.0, settings.far * min(tally[LEVEL], self.farthest)), settings.growth)

    def _grow(self, *, at_once: bool) -> None:
        growth = float(self.tally[GROWTH])
        following = min(EAGER * growth, MOST_GROWTH) if at_once else self.settings.growth
        self._set_level(self.tally[LEVEL] * growth + 1.0, following)

    def _set_level(self, level: float, growth: float) -> None:
        self.tally[[LEVEL, GROWTH]] = level, growth
        self.tally[[TRIED, FAR_TRIED, FAR_SOLVED, FAR_EARNED, FAR_MISSED]] = 0.0

    def note_steps(self, steps: int) -> None:
        """Take in how many steps an episode took, after its roll-in."""
        with self.guard:
            self.tally[STEPS] += steps

    def note_miss(self, start: int, steps: int) -> None:
        """Take in that a roll-in to a start did not arrive, and how many steps it took."""
        with self.guard:
            tally = self.tally
            tally[MISSED_STEPS] += steps
            if not self.reward_known or self.distance[start] < self.settings.far * min(tally[LEVEL], self.farthest):
                return
            tally[FAR_MISSED] += 1
            hardly = tally[TRIED] < HARDLY * tally[FAR_MISSED]
            if tally[FAR_MISSED] >= PASSED_OVER and hardly and tally[LEVEL] < self.farthest:
                self._grow(at_once=True)

    def start_in(self, state: int) -> int:
        """The number of the start in a state, or `ON_THE_WAY` if it has none."""
        return self._number.get(state, ON_THE_WAY)

    def cut_of(self, start: int) -> float:
        """After how many steps an episode from a start is cut off; infinite from the environment's own.

        Nor is it where rewards come so soon that no start is further away than another.
        """
        known = start >= 0 and self.reward_known and self.farthest > 1.0
        return float(self.cut[start]) if known else math.inf

    def finish(self, finished: bool = True) -> None:
        """From now on all episodes begin at the environment's own start: the last stretch of a training."""
        with self.guard:
            self.tally[FINISHED] = float(finished)

    # Batches of episodes whose starts are not told apart --------------------------------------------------------------

    def groups(self) -> list[Group]:
        """The starts of a batch of episodes, in groups that are told together by `tell_group`."""
        share = self.own_share
        own = Group("own", share, RollIn.from_start(), self._own_planned, None)
        if share >= 1.0 or self.targets is None:
            return [own]
        if not self.reward_known:
            return [own, self._group("near", 1.0 - share, self._weight)]
        first, last = self._far_part()
        far, near = np.zeros(len(self.states)), np.zeros(len(self.states))
        far[first:last] = self._weight[first:last]
        for place, weight in enumerate(self._bin_weights(last).tolist()):
            part = slice(int(self._bin_start[place]), min(int(self._bin_start[place + 1]), last))
            near[part] = weight * self._weight[part] / max(self._weight[part].sum(), 1e-300)
        parts = [("far", self.settings.far_share, far), ("near", 1.0 - self.settings.far_share, near)]
        return [own, *(self._group(name, (1.0 - share) * part, weights) for name, part, weights in parts if part > 0)]

    def _group(self, name: str, share: float, weights: Floats) -> Group:
        """Roll-ins so that what arrives is distributed by the weights."""
        goals = np.flatnonzero(weights)
        wanted = weights[goals] / weights[goals].sum()
        drawn = wanted / self._arrival[goals]
        chains = np.zeros((len(goals), 2), dtype=np.int64)
        roll_in = RollIn((), (), drawn / drawn.sum(), chains, targets=self.targets, goals=goals)
        cut = int(self.cut[goals].max()) if self.reward_known and self.farthest > 1.0 else None
        return Group(name, share, roll_in, float(wanted @ self._planned[goals]), cut)

    def tell_group(self, group: Group, returns: Floats, low: float) -> None:
        """Take in the discounted returns of a group's episodes; ``low`` is the least that an episode may return."""
        if group.name == "near":
            return
        success = np.clip((returns - low) / max(group.planned - low, NO_REWARD), 0.0, 1.0) >= 0.5
        with self.guard:
            if group.name == "own":
                self._note_own(success.astype(np.float64))
                return
            level = float(self.tally[LEVEL])
            for solved in success.tolist():
                if self.reward_known and self.tally[LEVEL] == level:  # the others began on the level before
                    self.tally[EPISODES] += 1
                    self._note_far(solved, float(solved))

    def _note_own(self, success: Floats) -> None:
        """What `note` would do for one episode after the other."""
        left = MEMORY ** np.arange(len(success) - 1, -1, -1)
        self.tally[EPISODES] += len(success)
        for place, new in ((OWN_TRIED, np.ones(len(success))), (OWN_SOLVED, success), (OWN_EARNED, success)):
            self.tally[place] = MEMORY ** len(success) * self.tally[place] + float(left @ new)
        self._follow_own()

    @property
    def least_reward(self) -> float:
        """The least that a step pays as a rule, but for penalties; or nothing."""
        return self._low

    # Storing ----------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Where the starts stand, as plain data."""
        return {"tally": self.tally.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back, or on, to a `state` of starts on the same counts."""
        tally: Sequence[float] = state["tally"]
        if len(tally) == len(self.tally) - (SLOTS - FIRST_SLOTS):
            tally = np.insert(tally, FIRST_SLOTS, np.zeros(SLOTS - FIRST_SLOTS)).tolist()
        if len(tally) != len(self.tally):
            raise ValueError(
                f"the state has {len(tally)} numbers, expected {len(self.tally)}: it was stored for starts on other "
                "counts"
            )
        with self.guard:
            self.tally[:] = tally

    def hold(self, guard: AbstractContextManager[Any], tally: Floats) -> None:
        """Keep the tally elsewhere, under a guard whose copies find it again as their attribute ``tally``."""
        self.guard, self.tally = guard, tally

    def __getstate__(self) -> dict[str, Any]:
        own = isinstance(self.guard, nullcontext)
        return {name: value for name, value in self.__dict__.items() if own or name != "tally"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "tally" not in state:
            self.tally = state["guard"].tally

    def __repr__(self) -> str:
        at = self.progress
        return f"MovingStarts({len(self.states):,} starts, level {at.level:.3g} of {at.farthest:.3g})"


def _add(tally: Floats, place: int, new: float) -> None:
    """Count something new, and less of what was before."""
    tally[place] = MEMORY * tally[place] + new


def _arrival_within(reaching: Reaching, state: int, longest: int) -> Arrival:
    """How roll-ins to a state fare, which are given up after this many steps at the latest."""
    found = reaching.arrival(state)
    return found if found.limit <= longest else reaching.arrival(state, longest)


def _earned(returned: float, low: float, expected: float) -> float:
    """What share a return is of the expected one, above the least possible."""
    return (returned - low) / max(expected - low, NO_REWARD)
