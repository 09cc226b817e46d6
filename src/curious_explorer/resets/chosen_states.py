"""Resets to chosen states: which states to start in, with which weights, and how to get there on a counted model.

A `StateChoice` asks that starts be drawn from

    mu = c rho + (1 - c) w,

c the start's share and w a distribution over states that were met. A roll-in to s arrives with probability p(s), and
one that does not is begun again with another draw. So that what arrives is distributed as asked, chains are drawn in
proportion to c for the start and (1 - c) w(s) / p(s) for each state, with p as the counted model states it. Where the
world is as it was counted, mu is met exactly; what holds where it is not is in `theory.chosen_resets`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.errors import UnreachableStateError
from curious_explorer.models.counted_model import NO_REWARD, CountedModel
from curious_explorer.validation import check_count
from curious_explorer.worlds.roll_in import NO_GOAL, RollIn
from curious_explorer.worlds.targets import ARRIVED, DEFAULT_TRIES, STEPS, TRIED, Targets

if TYPE_CHECKING:  # it imports Numba
    from curious_explorer.models.reaching import Reaching

CHOSEN_WEIGHTINGS = ("uniform", "spread", "near the reward", "frontier")
START_SHARE = 0.5
LEAST_ARRIVAL = 0.05
"""Named weightings leave out states that are reached less often: one that is reached once in a thousand tries would
take up nine tenths of all steps among a hundred states that are always reached."""
LEVELS = 20
"""Into how many levels of distance from the start "spread" divides the states."""
NEAREST_NAMED = 5
MOST_STATES = 5_000
"""A plan takes 0.7 ms among 400 states of a slippery grid and 30 ms among 10,000 (measured)."""


@dataclass(frozen=True, eq=False)
class StateChoice:
    """Which states to start in.

    Args:
        name: what the choice is called.
        weights: w, shape (S,); zero where no start is wanted.
        start_share: c.
        limit: after how many steps a try is given up; by default what `Reaching` finds for each state.
        tries: how many tries in a row may fail.
    """

    name: str
    weights: Floats
    start_share: float = START_SHARE
    limit: int | None = None
    tries: int = DEFAULT_TRIES

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
            raise ValueError("weights of states must be finite, not negative, and not all zero")
        object.__setattr__(self, "weights", weights / weights.sum())
        if not 0.0 <= self.start_share < 1.0:
            raise ValueError(f"start_share is {self.start_share!r}, expected at least 0 and less than 1")
        check_count(self.tries, "tries", least=1)
        if self.limit is not None:
            check_count(self.limit, "limit", least=1)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """How roll-ins to states fare: what the counted model says, and what became of those that were tried."""

    states: Integers
    """Shape (n,), as all others."""
    probability: Floats
    """Of arriving within the limit, on the counted model."""
    steps: Floats
    """The mean number of steps where it arrives, on the counted model."""
    limit: Integers
    """After how many steps a try is given up."""
    tried: Integers
    """How often a roll-in went there."""
    arrived: Integers
    """How often it arrived."""
    measured_steps: Floats
    """The mean number of steps of those; NaN where none did."""

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        least = f"{self.probability.min():.3g}" if len(self) else "-"
        return f"Arrivals({len(self):,} states, least probability {least}, {self.tried.sum():,} tries)"

    def __str__(self) -> str:
        head = f"{'state':>8} {'probability':>12} {'steps':>9} {'limit':>7} {'tried':>7} {'arrived':>8}"
        columns = zip(self.states, self.probability, self.steps, self.limit, self.tried, self.arrived, strict=True)
        lines = [f"{s:>8} {p:>12.4f} {t:>9.2f} {m:>7} {n:>7} {k:>8}" for s, p, t, m, n, k in columns]
        return "\n".join([head, *lines])


class ChosenStates:
    """A choice of states on a counted model: the roll-in to them, and their arrivals."""

    def __init__(self, model: CountedModel, choice: StateChoice) -> None:
        if choice.weights.shape != (model.num_states,):
            raise ValueError(f"weights have shape {choice.weights.shape}, expected ({model.num_states},)")
        self.choice = choice
        self._reaching = reaching = reaching_of(model)
        self.states: Integers = np.flatnonzero(choice.weights)
        check_reachable(reaching, self.states)
        arrivals = [reaching.arrival(int(state), choice.limit) for state in self.states]
        self.probability: Floats = np.array([arrival.probability for arrival in arrivals])
        self.steps: Floats = np.array([arrival.steps for arrival in arrivals])
        if (self.probability <= 0.0).any():
            state = int(self.states[int(np.argmin(self.probability))])
            raise UnreachableStateError(
                f"state {state} is never reached within {arrivals[int(np.argmin(self.probability))].limit:,} steps on "
                "the counted model; give a larger limit"
            )
        limits = [arrival.limit for arrival in arrivals]
        self.targets = Targets(self.states, limits, reaching.plan, tries=choice.tries, arrival=self.probability)

    @property
    def chain_weights(self) -> Floats:
        """With which probability a roll-in stays at the start (first), or goes to each state, shape (1 + T,)."""
        share = self.choice.start_share
        asked = (1.0 - share) * self.choice.weights[self.states] / self.probability
        drawn = np.concatenate([[share], asked])
        weights: Floats = drawn / drawn.sum()
        return weights

    def roll_in(self) -> RollIn:
        """How to get there."""
        goals = np.arange(NO_GOAL, len(self.states))
        chains = np.zeros((len(goals), 2), dtype=np.int64)
        return RollIn((), (), self.chain_weights, chains, targets=self.targets, goals=goals)

    def arrivals(self) -> Arrivals:
        """How roll-ins fare."""
        return arrivals_table(self._reaching, self.states, self.choice.limit, self.targets)


@lru_cache(maxsize=4)
def _reaching_of(model: CountedModel, tries: int, starts: int) -> Reaching:
    from curious_explorer.models.reaching import Reaching

    return Reaching(model)


def reaching_of(model: CountedModel) -> Reaching:
    """Plans on a model, made once for all that is asked of it until more is counted."""
    if not model.starts.any():
        raise ValueError(
            "the counted model does not know where the world starts, so that no way to a state can be found; "
            "explorations count that: take their reset model, or add to model.starts where restarts lead"
        )
    return _reaching_of(model, int(model.tries.sum()), int(model.starts.sum()))


def arrivals_table(reaching: Reaching, states: Integers, limit: int | None, targets: Targets | None = None) -> Arrivals:
    """The arrivals in some states; ``targets`` are those states with their tallies, if there are any."""
    found = [reaching.arrival(int(state), limit) for state in states]
    tally = np.zeros((len(states), 3), dtype=np.int64) if targets is None else targets.tally
    with np.errstate(invalid="ignore", divide="ignore"):
        measured = tally[:, STEPS] / tally[:, ARRIVED]
    return Arrivals(
        states=np.array(states),
        probability=np.array([arrival.probability for arrival in found]),
        steps=np.array([arrival.steps for arrival in found]),
        limit=np.array([arrival.limit for arrival in found], dtype=np.int64),
        tried=tally[:, TRIED].copy(),
        arrived=tally[:, ARRIVED].copy(),
        measured_steps=measured,
    )


def check_reachable(reaching: Reaching, states: Integers) -> None:
    """Refuse states that were never met, or that no known way leads to; the nearest ones are named."""
    for state in states.tolist():
        if not reaching.reachable[state]:
            met = bool(np.isin(state, reaching.met))
            near = ", ".join(map(str, reaching.nearest(state, NEAREST_NAMED))) or "none"
            fact = "no way leads there from the start any more" if met else "was never met"
            raise UnreachableStateError(f"state {state}: {fact}; the nearest states that can be reached are {near}")


def state_number(state: int | str, num_states: int, names: Sequence[str]) -> int:
    """A state by its number, or a discovered cell by its key."""
    if isinstance(state, str):
        if state in names:
            return list(names).index(state)
        close = ", ".join(map(repr, difflib.get_close_matches(state, names, NEAREST_NAMED, 0.0))) or "none"
        raise UnreachableStateError(f"the cell {state!r} was never met; the nearest of {len(names):,} keys are {close}")
    number = check_count(state, "state")
    if number >= num_states:
        raise UnreachableStateError(f"state {number} does not exist: there are {num_states:,}, from 0")
    return number


def given_weights(weights: ArrayLike | Mapping[int | str, float], num_states: int, names: Sequence[str]) -> Floats:
    """A user's weights, as an array of shape (S,) or by state, as such an array."""
    if isinstance(weights, Mapping):
        table = np.zeros(num_states)
        for state, weight in weights.items():
            table[state_number(state, num_states, names)] = float(weight)
        return table
    table = np.array(weights, dtype=np.float64)
    if table.shape != (num_states,):
        raise ValueError(f"weights have shape {table.shape}, expected ({num_states},), one for each state")
    return table


def named_weights(name: str, model: CountedModel, least_arrival: float) -> Floats:
    """The weights that a name stands for, shape (S,): over states that a roll-in reaches often enough.

    Terminal states are left out, because no episode begins there. Of more than `MOST_STATES`, evenly spaced ones are
    taken, unless nothing is random: each takes a plan.

    - "uniform": all alike;
    - "spread": in equal shares over levels of distance from the start, so that the few far ones are not outnumbered;
    - "near the reward": the nearer to where the world's own reward was seen the more, distance d having 1 / (1 + d);
    - "frontier": the fewer tries its least tried action has the more, n having 1 / (1 + n).
    """
    reaching = reaching_of(model)
    states = np.flatnonzero(reaching.reachable & ~model.terminal)
    if not reaching.deterministic:
        states = states[:: -(-len(states) // MOST_STATES) or 1]
    arrivals = [reaching.arrival(int(state)) for state in states]
    often = np.array([arrival.probability >= least_arrival for arrival in arrivals], dtype=np.bool_)
    steps = np.array([arrival.steps for arrival in arrivals])[often]
    states = states[often]
    if len(states) == 0:
        raise UnreachableStateError(f"no state is reached with probability {least_arrival:g} or more")
    weights = np.zeros(model.num_states)
    if name == "uniform":
        weights[states] = 1.0
    elif name == "spread":
        level = np.minimum((LEVELS * steps / (steps.max() + 1e-9)).astype(np.int64), LEVELS - 1)
        weights[states] = 1.0 / np.bincount(level)[level]
    elif name == "near the reward":
        distance = reaching.distances(rewarding_states(model))[states]
        if (distance < 0).all():
            raise UnreachableStateError("no way that is known leads to where the world's own reward was seen")
        near = states[distance >= 0]
        distance = distance[distance >= 0]
        weights[near] = 1.0 / ((1.0 + distance) * np.bincount(distance)[distance])
    else:
        weights[states] = 1.0 / (1.0 + model.tries[states].min(axis=1))
    return weights


def rewarding_states(model: CountedModel) -> Mask:
    """States with a pair that pays more than halfway from the least to the most that any state pays.

    So a small reward beside the start does not hide a large one far away. A terminal state pays what it goes on paying,
    which is nothing as a rule, so that it is the reward where every step costs the same.
    """
    tried = model.tries > 0
    rewards = model.rewards(None)
    pays = np.where(tried, rewards, -np.inf).max(axis=1)
    pays[model.terminal] = model.end_rewards()[model.terminal]
    least, most = float(rewards[tried].min(initial=np.inf)), float(pays.max())
    if not most > least + NO_REWARD:
        raise ValueError('weighting "near the reward" needs a reward of the world\'s own, and none was seen')
    paying: Mask = pays > 0.5 * (least + most)
    return paying
