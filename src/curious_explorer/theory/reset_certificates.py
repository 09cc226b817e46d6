"""What a reset model guarantees, from fresh roll-ins: how likely it reaches each state, and what that is worth.

A *roll-in* restarts the world, draws a chain of policies and follows each for a geometric number of steps; see
`RollIn`. (To a chosen state it is one try, whether or not that arrives.) It **reaches s within L steps** if it is in s
after t steps for some t from 0 to L, before its end or at it. Roll-ins are independent and follow one law, since each
begins with a restart; nothing else is used: no Markov property, no model, no assumption about whoever chose the
policies. (A restart must not depend on what happened before it.)

**Arrivals.** Of m roll-ins, k(s) reach s: a binomial count of probability p(s). The Clopper-Pearson lower limit at
delta / |S|, the p at which k or more of m have exactly that chance, is above p(s) with probability at most delta / |S|.
Summed over the |S| states, with probability 1 - delta all p(s) are at least their limits **at once**. |S| is fixed
before anything is drawn; the number of states *seen* is not, and may not take its place.

**Training.** With mu the distribution of where roll-ins end, limits on mu(s) are found in the same way at delta / 2.
They hold for all states at once, and the limits of `counts_certificate` for all sets at once (delta / 2 again), so that
K may be chosen after looking at both. For any b let K be the states whose limit is below b; then mu >= b outside K, and
with M the limit on max_pi d_rho^pi(K) the theorem of `mismatch_free` says in normalised values

    V*(rho) - V^pi(rho) <= M / (1 - gamma) + c / b,    c <= lambda / |S|,

for every policy pi at a stationary point of the log-barrier objective of weight lambda. The least over a few b is the
certificate. When K is empty, M is zero and no counts are needed. In terminal states all actions are alike and
advantages zero, so that those need no cover; a learner whose roll-in ends in one rolls in again, which only raises mu
elsewhere. If rho is not known, restarts bound the mean of the optimistic values (empirical Bernstein; delta / 4 is
shared among the sets that are tried, which depend on the other samples alone).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.errors import CertificateError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.theory.counts_certificate import (
    bernstein_upper,
    check_markov,
    merge_checked,
    optimistic_visitation,
)
from curious_explorer.theory.mismatch_free import mismatch_free_bound
from curious_explorer.theory.reports import (
    CertificateReport,
    check_positive,
    check_probability,
    figure,
)
from curious_explorer.validation import as_distribution, check_count, check_gamma, check_seed, check_states
from curious_explorer.worlds.policies import ObservationPolicy
from curious_explorer.worlds.roll_in import NO_GOAL, RollIn
from curious_explorer.worlds.targets import NO_WAY
from curious_explorer.worlds.world import TransitionCounts, World

DEFAULT_WALKS = 10_000
"""Puts the limit of a state that is always reached at 0.9987 among 10,000 states, and of one in a hundred at 0.006."""
LEVELS = (0.01, 0.1, 0.5)
"""Probabilities of arrival that a report counts states for."""
DEFAULT_BARRIER = 0.001
"""Costs at most 0.001 of the largest value where resets are uniform, 0.1 where some state has 1 / (100 |S|)."""
SETS_TRIED = 8
"""How many sets K a training certificate compares; each costs one optimistic value iteration."""


@dataclass(frozen=True, eq=False)
class ArrivalCertificate(CertificateReport):
    """With the confidence given, a roll-in reaches every state s with probability at least ``chances[s]``."""

    chances: Floats
    """p(s), shape (S,)."""
    hits: Integers
    """How many of the walks reached each state, shape (S,)."""
    confidence: float
    walks: int
    max_steps: int | None
    """L; None for the whole roll-in."""
    ends_only: bool
    """Whether states were counted only where walks end; they may be reached more often."""
    samples: int
    """Steps that the certificate cost."""
    computed = (*CertificateReport.computed, "reached")

    @property
    def num_states(self) -> int:
        """How many states or cells there are."""
        return int(self.chances.size)

    @property
    def reached(self) -> dict[float, int]:
        """How many states are reached with at least 1%, 10% and 50%."""
        return {level: self.reached_with(level) for level in LEVELS}

    def reached_with(self, chance: float) -> int:
        """How many states are reached with at least this probability."""
        return int((self.chances >= chance).sum())

    @property
    def statement(self) -> str:
        """What is guaranteed, in one sentence."""
        within = "" if self.max_steps is None else f" within {self.max_steps:,} steps"
        states = ", ".join(f"{count:,} with at least {level:.0%}" for level, count in self.reached.items())
        return (
            f"With confidence {self.confidence:g}, for all {self.num_states:,} states at once: a roll-in reaches"
            f"{within} {states}."
        )

    @property
    def assumption(self) -> str:
        """What the guarantee rests on."""
        where = "in which walks end" if self.ends_only else "that walks pass or end in"
        return f"Assumed: restarts are independent. No model, no Markov property; counted are the states {where}."

    def _title(self) -> str:
        return f"Arrivals at confidence {self.confidence:g}"

    def _facts(self) -> list[tuple[str, str]]:
        levels = [
            (f"reached with at least {level:.0%}", f"{count:,} of {self.num_states:,} ({count / self.num_states:.0%})")
            for level, count in self.reached.items()
        ]
        seen = int((self.hits > 0).sum())
        return [
            *levels,
            ("reached at all", f"{seen:,} of {self.num_states:,}, in {self.walks:,} roll-ins"),
            ("steps taken", f"{self.samples:,}"),
        ]


@dataclass(frozen=True, eq=False)
class TrainingCertificate(CertificateReport):
    """With the confidence given, training from these resets loses at most ``loss``; values are normalised."""

    loss: float
    """Limit on V*(rho) - V^pi(rho)."""
    confidence: float
    gamma: float
    barrier: float
    floor: float
    """b: outside K a reset has at least this probability."""
    poorly_reset: Mask
    """K: the states that resets reach too rarely, shape (S,)."""
    mass: float
    """Limit on max_pi d_rho^pi(K)."""
    num_states: int
    walks: int
    transitions: int
    """How many were counted; none are needed where K is empty."""
    samples: int
    """Steps that the certificate cost."""

    @property
    def statement(self) -> str:
        """What is guaranteed, in one sentence."""
        missed = int(self.poorly_reset.sum())
        inside = (
            "K is empty"
            if not self.poorly_reset.any()
            else f"no policy spends more than {figure(self.mass)} of its discounted time in the {missed:,} others"
        )
        return (
            f"With confidence {self.confidence:g}, {self.num_states - missed:,} of {self.num_states:,} states are "
            f"reset to with probability {figure(self.floor)} or more, and {inside}; so a softmax policy trained "
            f"from these resets with a log-barrier of weight {self.barrier:g} is within {figure(self.loss)} of optimal."
        )

    @property
    def assumption(self) -> str:
        """What the guarantee rests on."""
        return (
            "Assumed: states are Markov, rewards lie in [0, 1], no time limit cuts roll-ins, and training goes on "
            "until the gradient is at most barrier / (2 |S| |A|) in every entry. Values are normalised."
        )

    def _title(self) -> str:
        return f"Training from the resets, at confidence {self.confidence:g}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("limit on V*(rho) - V(rho)", figure(self.loss)),
            ("least reset probability outside K", figure(self.floor)),
            ("states in K", f"{self.poorly_reset.sum():,} of {self.num_states:,}"),
            ("limit on max_pi d(K)", figure(self.mass)),
            ("roll-ins, steps", f"{self.walks:,}, {self.samples:,}"),
        ]


def clopper_pearson_lower(hits: ArrayLike, count: int, delta: float) -> Floats:
    """The smallest probabilities under which so many hits have a chance of delta or more."""
    from scipy.special import betaincinv

    some = np.maximum(np.asarray(hits, dtype=np.float64), 1.0)
    limits: Floats = np.where(np.asarray(hits) > 0, betaincinv(some, count - some + 1.0, delta), 0.0)
    return limits


def certify_arrivals(
    world: World,
    reset_model: ResetModel,
    *,
    count: int = DEFAULT_WALKS,
    delta: float = 0.05,
    max_steps: int | None = None,
    terminal: ArrayLike | None = None,
    seed: int = 0,
) -> ArrivalCertificate:
    """Certify with which probability a roll-in of the reset model reaches each state, for all states at once.

    Args:
        world: where to walk; every step is counted in ``world.samples``.
        delta: the probability with which they may mislead.
        max_steps: L, after which a roll-in is cut; None walks it to its end.
        terminal: a mask or indices of states in which nothing can be done; needed only where an episode may start in
            one.
        seed: of the draws of chains and actions.

    Policies that see observations cannot be followed from outside; then states count only where walks end (which is a
    lower limit, too, and has no ``max_steps``).
    """
    reset_model.check_world(world)
    count, delta = check_count(count, "count", least=1), check_probability(delta, "delta")
    generator = np.random.default_rng(check_seed(seed))
    stuck = check_states([] if terminal is None else terminal, world.num_states, "terminal")
    ends_only = any(isinstance(policy, ObservationPolicy) for policy in reset_model.policies)
    if max_steps is not None:
        check_count(max_steps, "max_steps")
        if ends_only:
            raise ValueError("max_steps cannot be kept with policies that see observations; leave it out")
    before = world.samples
    if ends_only:
        hits = np.bincount(reset_model.sample(world, count), minlength=world.num_states)
    else:
        hits = np.zeros(world.num_states, dtype=np.int64)
        walker = _Walker(world, reset_model.roll_in, stuck, generator)
        for _ in range(count):
            hits[list(walker.states_reached(max_steps))] += 1
    return ArrivalCertificate(
        chances=clopper_pearson_lower(hits, count, delta / world.num_states),
        hits=hits.astype(np.int64),
        confidence=1.0 - delta,
        walks=count,
        max_steps=max_steps,
        ends_only=ends_only,
        samples=world.samples - before,
    )


class _Walker:
    """Follows roll-ins by restart and step, and sees every state on the way."""

    def __init__(self, world: World, roll_in: RollIn, stuck: Mask, generator: np.random.Generator) -> None:
        self._world, self._stuck, self._generator = world, stuck, generator
        self._gammas = roll_in.gammas
        # As lists, because walks are many and short: a step in Python should cost about what the world's own does.
        self._cumulative = [np.cumsum(policy, axis=1).tolist() for policy in roll_in.policies]
        self._weights = np.cumsum(roll_in.weights).tolist()
        last = len(roll_in.policies)
        self._chains = [
            [*range(first, stop), *range(last - roll_in.tail, last)] for first, stop in roll_in.chains.tolist()
        ]
        assert roll_in.goals is not None
        self._goals, self._targets = roll_in.goals.tolist(), roll_in.targets

    def states_reached(self, max_steps: int | None) -> set[int]:
        """The states of one roll-in, cut after ``max_steps``."""
        state = int(self._world.restart())
        reached, taken = {state}, 0
        if self._stuck[state]:
            return reached
        chain = self._draw(self._weights)
        if self._targets is not None and self._goals[chain] != NO_GOAL:
            goal, actions = self._goals[chain], self._targets.actions(self._goals[chain])
            target, limit = int(self._targets.states[goal]), int(self._targets.limits[goal])
            while state != target and taken < (limit if max_steps is None else min(limit, max_steps)):
                if actions[state] == NO_WAY:
                    return reached
                step = self._world.step(int(actions[state]))
                state, taken = step.state, taken + 1
                reached.add(state)
                if step.terminated or step.truncated:
                    return reached
            if state != target:
                return reached
        for policy in self._chains[chain]:
            steps = int(self._generator.geometric(1.0 - self._gammas[policy])) - 1
            for _ in range(steps if max_steps is None else min(steps, max_steps - taken)):
                step = self._world.step(self._draw(self._cumulative[policy][state]))
                state, taken = step.state, taken + 1
                reached.add(state)
                if step.terminated or step.truncated:
                    return reached
        return reached

    def _draw(self, cumulative: list[float]) -> int:
        """An index by its probability; one that has none, or lies behind a rounded sum, is never drawn."""
        return bisect_right(cumulative, self._generator.random() * cumulative[-1])


def certify_training(
    world: World,
    reset_model: ResetModel,
    counts: TransitionCounts | Exploration | None = None,
    *,
    delta: float = 0.05,
    count: int = DEFAULT_WALKS,
    barrier: float = DEFAULT_BARRIER,
    gamma: float | None = None,
    start: int | ArrayLike | None = None,
    terminal: ArrayLike | None = None,
) -> TrainingCertificate:
    """Certify how far from optimal a policy can be that was trained from these resets; K is chosen after the run.

    Args:
        world: where to walk; its states must be Markov.
        counts: recorded transitions, or an exploration that has them; not needed if roll-ins reach every state.
        delta: the probability with which samples may mislead.
        barrier: lambda, the weight of the log-barrier.
        gamma: the discount of training; the reset model's own if None.
        start: rho, if it is known: a state or a distribution.

    Raises:
        CertificateError: if cells may merge observations, or if the limit would be one or more.
    """
    reset_model.check_world(world)
    check_markov(world)
    delta, barrier = check_probability(delta, "delta"), check_positive(barrier, "barrier")
    count = check_count(count, "count", least=2)
    discount = reset_model.gamma if gamma is None else check_gamma(gamma)
    ends = check_states([] if terminal is None else terminal, world.num_states, "terminal")
    rho = None if start is None else as_distribution(start, world.num_states, "start")
    seen = None if counts is None else merge_checked(world, counts, ends)
    before = world.samples
    hits = np.bincount(reset_model.sample(world, count), minlength=world.num_states)
    limits = clopper_pearson_lower(hits, count, 0.5 * delta / world.num_states)
    starts = world.walk(RollIn.from_start(), count) if rho is None and seen is not None else None

    def mass(mask: Mask) -> float:
        if not mask.any():
            return 0.0
        if seen is None:
            return 1.0
        share = 0.5 * delta if rho is not None else 0.25 * delta
        values = optimistic_visitation(
            seen, mask, num_actions=world.num_actions, gamma=discount, delta=share, terminal=ends
        )[0]
        if rho is not None:
            return float(rho @ values)
        return bernstein_upper(values[starts], 0.25 * delta / SETS_TRIED)

    best: tuple[float, float, Mask, float] | None = None
    for floor in _floors(limits[~ends]):
        poorly = ~ends & (limits < floor)
        largest = mass(poorly)
        bound = mismatch_free_bound(
            world.num_states, world.num_actions, gamma=discount, mass=largest, floor=floor, barrier=barrier
        )
        if best is None or bound < best[0]:
            best = bound, floor, poorly, largest
    if best is None or best[0] * (1.0 - discount) >= 1.0:
        missed = int((~ends & (limits == 0.0)).sum())
        counted = "no transitions were given" if seen is None else f"{int(seen.times.sum()):,} transitions were counted"
        raise CertificateError(
            f"training from these resets with a barrier of {barrier:g} cannot be certified: {missed:,} of "
            f"{world.num_states:,} states were not reached by {count:,} roll-ins, and {counted}; count more "
            "transitions, walk more, explore further, or train with a smaller barrier"
        )
    bound, floor, poorly, largest = best
    return TrainingCertificate(
        loss=bound * (1.0 - discount),
        confidence=1.0 - delta,
        gamma=discount,
        barrier=barrier,
        floor=floor,
        poorly_reset=poorly,
        mass=largest,
        num_states=world.num_states,
        walks=count,
        transitions=0 if seen is None else int(seen.times.sum()),
        samples=world.samples - before,
    )


def _floors(limits: Floats) -> list[float]:
    """The b to try: the least positive limit, and others spread evenly over the ranks of the limits."""
    positive = np.unique(limits[limits > 0.0])
    ranks = np.unique(np.linspace(0, positive.size - 1, min(SETS_TRIED, positive.size)).round().astype(np.int64))
    return [float(positive[rank]) for rank in ranks]
