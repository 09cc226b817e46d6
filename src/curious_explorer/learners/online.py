"""Learning one step at a time: an agent that acts in a world, episode after episode, and plans or learns in between.

`OnlineAgent.follow` acts by one policy until it is worth planning again: when some pair has been tried as often as its
quota says. `OnlineAgent.learn_q` carries a table of action values along and changes it at every step (Q-learning). Both
go on with the episode in progress, begin a new one (a roll-in, which is counted) whenever one ends or has lasted
``horizon`` steps, and never take more than ``max_samples`` steps.

Where a world offers compiled steps the whole loop is compiled, on one stream of draws for each call; elsewhere it is a
loop of Python over `World.begin` and `World.step`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers, Words
from curious_explorer.compile import compiled, inlined, int64
from curious_explorer.validation import check_count, check_gamma, check_policy
from curious_explorer.worlds.alias_tables import fill_policy_thresholds
from curious_explorer.worlds.compiled_steps import (
    NOWHERE_TO_START,
    CompiledSteps,
    StepTables,
    begin_episode,
    choose_action,
    take_step,
)
from curious_explorer.worlds.episode_accumulator import RewardRule, TransitionCounter, refuse_reward
from curious_explorer.worlds.policies import as_table
from curious_explorer.worlds.random_streams import GOLDEN, ONE, mix64, threshold, walk_key
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import Reward, Step, TransitionCounts, World, nowhere_to_start

NO_LIMIT = 1 << 62
SAMPLES_SPENT, EPISODES_DONE, QUOTA_MET, NO_START = 0, 1, 2, 3
"""Why a kernel came back."""
ELEVEN = np.uint64(11)
UNIT = 2.0**-53


class Followed(NamedTuple):
    """What an agent saw while it acted by one policy; sums, in no order."""

    seen: TransitionCounts  # not of roll-ins
    ends: Integers  # (S,): how often an episode ended in this (terminal) state
    end_rewards: Floats  # (S,): what such a state goes on paying at every step, zero where none was met
    episodes: int  # how many began and ended during the call
    returned: float  # the sum of their discounted returns, not normalised
    samples: int  # every step taken, roll-ins included
    done: bool  # whether a quota or `max_episodes` was met, and not just the samples used up
    ended: Integers | None = None  # how many of the times of each of those the episode ended, where told


class QRule(NamedTuple):
    """How an agent that carries a table of action values along chooses and learns at every step.

    Try n of a pair (s, a) that paid r and led to s' moves its value Q, in normalised units, by

        Q(s,a) += rate_n ((1 - gamma) r + gamma max_b U(s',b) + bonus sqrt((log_term + ln((n+1)(n+2))) / n) - Q(s,a)),
        rate_n = max(least_rate, (rate_horizon + 1) / (rate_horizon + n)),

    with U = Q, or, where it is ``falling``, the least that Q has ever been. The agent acts greedily by U, ties broken
    at random, but with probability ``epsilon`` it takes any action.
    """

    epsilon: float = 0.0
    rate_horizon: float = 0.0
    least_rate: float = 0.0
    bonus: float = 0.0
    log_term: float = 0.0
    falling: bool = False


class QTable(NamedTuple):
    """A table of action values, changed in place by `OnlineAgent.learn_q`; three arrays of shape (S, A)."""

    values: Floats  # Q
    bounds: Floats  # U, by which the agent acts
    tries: Integers


class QProgress(NamedTuple):
    """How a stretch of Q-learning went."""

    episodes: int  # how many began and ended during the call
    returned: float  # the sum of their discounted returns, not normalised
    samples: int  # every step taken, roll-ins included


class _Stretch(NamedTuple):
    """How some steps of the Python loop went."""

    episodes: int
    returned: float
    samples: int
    done: bool


class OnlineAgent:
    """An agent in a world: where it stands, and how it goes on.

    If somebody else acts in the world between two calls, the episode in progress is given up.

    Args:
        gamma: the discount of the returns that are reported, and of Q-learning.
        horizon: after how many steps an episode is given up for the next one.
        reset: where episodes begin; the start distribution if None.
        reward: what steps pay; the world's own if None.
    """

    def __init__(
        self, world: World, *, gamma: float, horizon: int, reset: RollIn | None = None, reward: Reward | None = None
    ) -> None:
        self._world = world
        self._shape = (world.num_states, world.num_actions)
        self._gamma, self._horizon = check_gamma(gamma), check_count(horizon, "horizon", least=1)
        self._reset, self._reward = reset, reward
        self._rule = RewardRule(reward, self._shape)
        self._state, self._age, self._samples = -1, 0, -1
        self._generator = np.random.default_rng([world.seed, world.samples])

    def follow(
        self, policy: Floats, *, max_samples: int, quota: Integers | None = None, max_episodes: int | None = None
    ) -> Followed:
        """Act by a policy until a quota, the episodes or the samples are used up.

        Args:
            max_samples: how many steps to take at most, roll-ins included.
            quota: shape (S, A): come back as soon as a pair has been tried this often during the call.
            max_episodes: come back when this many episodes have ended.
        """
        table = np.array(as_table(policy, "acting step by step"), dtype=np.float64)
        thresholds = np.empty(self._shape, dtype=np.uint64)
        if table.shape != self._shape or not fill_policy_thresholds(table, thresholds):
            check_policy(table, *self._shape)
        check_count(max_samples, "max_samples")
        if max_episodes is not None:
            check_count(max_episodes, "max_episodes", least=1)
        left = self._tries_left(quota)
        self._drop_a_lost_episode()
        steps = self._world.compiled_steps()
        if steps is None:
            return self._follow_plainly(table, left if quota is not None else None, max_samples, max_episodes)
        counts = np.zeros(steps.num_transitions, dtype=np.int64)
        ends = np.zeros(self._shape[0], dtype=np.int64)
        arguments: list[Any] = [steps.tables(self._reset, self._reward), thresholds.ravel()]
        arguments += [self._gamma, self._state, self._age, self._horizon, left.ravel(), max_samples]
        arguments += [NO_LIMIT if max_episodes is None else max_episodes, steps.next_key(), counts, ends]
        whole, returned, samples, reason, seen = self._finish(steps, follow(*arguments), counts)
        end_rewards = np.where(ends > 0, steps.end_rewards, 0.0)
        return Followed(seen, ends, end_rewards, whole, returned, samples, reason in (QUOTA_MET, EPISODES_DONE))

    def learn_q(self, table: QTable, rule: QRule, *, max_samples: int) -> QProgress:
        """Act by a table of action values and update it at every step, for ``max_samples`` steps; see `QRule`."""
        for name, array in table._asdict().items():
            if array.shape != self._shape:
                raise ValueError(f"the table's {name} have shape {array.shape}, expected {self._shape}")
        check_count(max_samples, "max_samples")
        self._drop_a_lost_episode()
        steps = self._world.compiled_steps()
        if steps is None:
            return self._learn_plainly(table, rule, max_samples)
        counts = np.zeros(steps.num_transitions, dtype=np.int64)
        arguments: list[Any] = [steps.tables(self._reset, self._reward), self._gamma, self._state, self._age]
        arguments += [self._horizon, max_samples, steps.next_key(), *map(float, rule[:5]), bool(rule.falling)]
        arguments += [*table, counts]
        whole, returned, samples, _, _ = self._finish(steps, learn_q(*arguments), counts)
        return QProgress(whole, returned, samples)

    def _drop_a_lost_episode(self) -> None:
        if self._world.samples != self._samples:
            self._state, self._age = -1, 0

    def _tries_left(self, quota: Integers | None) -> Integers:
        if quota is None:
            return np.full(self._shape, NO_LIMIT, dtype=np.int64)
        left = np.array(quota, dtype=np.int64)
        if left.shape != self._shape or (left < 1).any():
            raise ValueError(
                f"quota has shape {left.shape} and least entry {left.min(initial=1)}, expected shape {self._shape} and "
                "at least one try for each pair"
            )
        return left

    def _finish(
        self, steps: CompiledSteps, outcome: tuple[int, int, int, int, float, int], counts: Integers
    ) -> tuple[int, float, int, int, TransitionCounts]:
        """Tell the world, and remember where the agent stands: episodes, returns, samples, why, and what was seen."""
        taken, self._state, self._age, whole, returned, reason = outcome
        seen = steps.finish(int(taken), int(self._state), counts)
        self._samples = self._world.samples
        if reason == NO_START:
            nowhere_to_start(self._reset)
        return int(whole), float(returned), int(taken), int(reason), seen

    # In a world that has no compiled steps ---------------------------------------------------------------------------

    def _follow_plainly(
        self, policy: Floats, left: Integers | None, max_samples: int, max_episodes: int | None
    ) -> Followed:
        rows: dict[int, list[float]] = {}  # cumulative probabilities of all actions but the last possible one
        seen = TransitionCounter()
        ends, end_rewards = np.zeros(self._shape[0], dtype=np.int64), np.zeros(self._shape[0])
        draw = self._generator.random

        def choose(state: int) -> int:
            row = rows.get(state)
            if row is None:
                row = rows[state] = np.cumsum(policy[state, : int(np.flatnonzero(policy[state])[-1])]).tolist()
            return bisect_right(row, draw())

        def notice(state: int, action: int, earned: float, step: Step) -> bool:
            seen.add(state, action, step.state, step.reward)
            if step.terminated:
                seen.end(state, action, step.state)
                ends[step.state] += 1
                end_rewards[step.state] = step.end_reward
            if left is None:
                return False
            left[state, action] -= 1
            return bool(left[state, action] <= 0)

        stretch = self._act(choose, notice, max_samples, max_episodes)
        return Followed(seen.counts(), ends, end_rewards, *stretch, seen.ended())

    def _learn_plainly(self, table: QTable, rule: QRule, max_samples: int) -> QProgress:
        draw = self._generator.random
        learning = (*map(float, rule[1:5]), bool(rule.falling))  # `epsilon` is for choosing

        def choose(state: int) -> int:
            if rule.epsilon > 0.0 and draw() < rule.epsilon:
                return int(draw() * self._shape[1])
            row = table.bounds[state]
            best = np.flatnonzero(row == row.max())
            return int(best[int(draw() * len(best))])

        def notice(state: int, action: int, earned: float, step: Step) -> bool:
            ahead = float(table.bounds[step.state].max())
            if step.terminated:
                ahead = self._rule.terminated(step.state, step.end_reward)
            update_q(state, action, earned, ahead, self._gamma, *learning, *table)  # type: ignore[arg-type, call-arg]
            return False

        return QProgress(*self._act(choose, notice, max_samples, None)[:3])

    def _act(
        self,
        choose: Callable[[int], int],
        notice: Callable[[int, int, float, Step], bool],
        max_samples: int,
        max_episodes: int | None,
    ) -> _Stretch:
        """Act, notice, begin again, until told to stop or out of steps."""
        whole = ended = 0
        returned = earned = 0.0
        discount, begun_here, done = 1.0, False, False
        world, step = self._world, self._world.step
        own = self._rule.table is None
        samples = 0
        while samples < max_samples and not done:
            if self._state < 0:
                if max_episodes is not None and ended >= max_episodes:
                    done = True
                    break
                before = world.samples
                state = world.begin(self._reset, max_samples=max_samples - samples)
                samples += world.samples - before
                if state is None:
                    break
                self._state, self._age = state, 0
                earned, discount, begun_here = 0.0, 1.0, True
            state = self._state
            action = choose(state)
            shown = step(action)
            samples += 1
            if not math.isfinite(shown.reward):
                refuse_reward(shown.reward, type(world).__name__)
            pays = shown.reward if own else self._rule.of_step(state, action, shown.reward)
            earned += discount * pays
            discount *= self._gamma
            self._state, self._age = shown.state, self._age + 1
            if shown.terminated:
                earned += discount * self._rule.terminated(shown.state, shown.end_reward) / (1.0 - self._gamma)
            if shown.terminated or shown.truncated or self._age >= self._horizon:
                self._state = -1
                ended += 1
                if begun_here:
                    whole += 1
                    returned += earned
            done = notice(state, action, pays, shown)
        self._samples = world.samples
        return _Stretch(whole, returned, samples, done)


# Compiled -------------------------------------------------------------------------------------------------------------


@inlined
def any_of(count: int, u: np.uint64) -> int:
    """One of 0..count-1, all alike, by one draw."""
    return int64((u >> ELEVEN) * UNIT * count)


@compiled
def follow(
    tables: StepTables,
    thresholds: Words,
    gamma: float,
    state: int,
    age: int,
    horizon: int,
    left: Integers,
    most_steps: int,
    most_episodes: int,
    key: np.uint64,
    counts: Integers,
    ends: Integers,
) -> tuple[int, int, int, int, float, int]:
    """Act by a policy from ``state`` (negative: none), ``age`` steps into its episode, until a quota is met.

    ``left`` (S * A) counts down the tries of each pair; the loop stops with the first that gets to zero, or when
    ``most_episodes`` episodes have ended. Transitions are counted in ``counts``, ends in terminal states in ``ends``.
    Returns the steps taken, the state (negative: none) and its age, the number and the summed discounted return of the
    episodes that began and ended here, and why it stopped.
    """
    counter = walk_key(key, 0)
    num_actions = tables.num_actions
    taken, whole, ended = int64(0), int64(0), int64(0)
    returned, earned, discount = 0.0, 0.0, 1.0
    begun_here = False
    while taken < most_steps:
        if state < 0:
            if ended >= most_episodes:
                return taken, int64(-1), int64(0), whole, returned, EPISODES_DONE
            state, steps, counter = begin_episode(tables, counter, most_steps - taken)
            taken += steps
            if state < 0:
                reason = NO_START if state == NOWHERE_TO_START else SAMPLES_SPENT
                return taken, int64(-1), int64(0), whole, returned, reason
            age, earned, discount, begun_here = int64(0), 0.0, 1.0, True
        action, counter = choose_action(thresholds, num_actions, state, counter)
        pair = state * num_actions + action
        transition, state, pays, counter = take_step(tables, state, action, counter)
        taken += 1
        age += 1
        counts[transition] += 1
        earned += discount * pays
        discount *= gamma
        if state < 0:
            ends[~state] += 1
            earned += discount * tables.end_rewards[~state] / (1.0 - gamma)
        if state < 0 or age >= horizon:
            state = int64(-1)
            ended += 1
            if begun_here:
                whole += 1
                returned += earned
        left[pair] -= 1
        if left[pair] <= 0:
            return taken, state, age, whole, returned, QUOTA_MET
    return taken, state, age, whole, returned, SAMPLES_SPENT


@inlined
def greedy(values: Floats, state: int, counter: np.uint64) -> tuple[int, np.uint64]:
    """An action of largest value, ties broken by a draw, which is taken only where there is a tie."""
    best, ties = values[state, 0], 1
    for action in range(1, values.shape[1]):
        if values[state, action] > best:
            best, ties = values[state, action], 1
        elif values[state, action] == best:
            ties += 1
    place = 0
    if ties > 1:
        counter += GOLDEN
        place = any_of(ties, mix64(counter))
    for action in range(values.shape[1]):
        if values[state, action] == best:
            if place == 0:
                return action, counter
            place -= 1
    return 0, counter


@compiled
def update_q(
    state: int,
    action: int,
    pay: float,
    ahead: float,
    gamma: float,
    rate_horizon: float,
    least_rate: float,
    bonus: float,
    log_term: float,
    falling: bool,
    values: Floats,
    bounds: Floats,
    tries: Integers,
) -> None:
    """One try of a pair that paid ``pay`` and led to where ``ahead`` is expected; `QRule` has the formula."""
    tries[state, action] += 1
    tried = tries[state, action]
    rate = max(least_rate, (rate_horizon + 1.0) / (rate_horizon + tried))
    added = bonus * np.sqrt((log_term + np.log((tried + 1.0) * (tried + 2.0))) / tried) if bonus > 0.0 else 0.0
    target = (1.0 - gamma) * pay + gamma * ahead + added
    values[state, action] += rate * (target - values[state, action])
    if falling:
        bounds[state, action] = min(bounds[state, action], values[state, action])
    else:
        bounds[state, action] = values[state, action]


@compiled
def learn_q(
    tables: StepTables,
    gamma: float,
    state: int,
    age: int,
    horizon: int,
    most_steps: int,
    key: np.uint64,
    epsilon: float,
    rate_horizon: float,
    least_rate: float,
    bonus: float,
    log_term: float,
    falling: bool,
    values: Floats,
    bounds: Floats,
    tries: Integers,
    counts: Integers,
) -> tuple[int, int, int, int, float, int]:
    """Q-learning for ``most_steps`` steps: act by ``bounds``, update ``values``, ``bounds`` and ``tries`` (S, A).

    See `QRule` for the update. Returns as `follow` does.
    """
    counter = walk_key(key, 0)
    explore = threshold(epsilon)
    num_actions = tables.num_actions
    taken, whole = int64(0), int64(0)
    returned, earned, discount = 0.0, 0.0, 1.0
    begun_here = False
    while taken < most_steps:
        if state < 0:
            state, steps, counter = begin_episode(tables, counter, most_steps - taken)
            taken += steps
            if state < 0:
                reason = NO_START if state == NOWHERE_TO_START else SAMPLES_SPENT
                return taken, int64(-1), int64(0), whole, returned, reason
            age, earned, discount, begun_here = int64(0), 0.0, 1.0, True
        at_random = False
        if epsilon > 0.0:
            counter += GOLDEN
            at_random = bool((mix64(counter) >> ONE) < explore)
        if at_random:
            counter += GOLDEN
            action = any_of(num_actions, mix64(counter))
        else:
            action, counter = greedy(bounds, state, counter)
        transition, following, pays, counter = take_step(tables, state, action, counter)
        counts[transition] += 1
        ahead = tables.end_rewards[~following] if following < 0 else bounds[following].max()
        update_q(
            state, action, pays, ahead, gamma, rate_horizon, least_rate, bonus, log_term, falling, values, bounds, tries
        )
        earned += discount * pays
        discount *= gamma
        taken += 1
        age += 1
        state = following
        if state < 0:
            earned += discount * ahead / (1.0 - gamma)
        if state < 0 or age >= horizon:
            state = int64(-1)
            if begun_here:
                whole += 1
                returned += earned
    return taken, state, age, whole, returned, SAMPLES_SPENT
