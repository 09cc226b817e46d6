"""The loop of `Frontier`, compiled: what a step shows is counted, and what to do next is decided.

Everything that an exploration knows lies in arrays, which Python makes and widens. A kernel is handed their addresses,
because it is called at every step and needs forty of them (`compile.addresses_of`); in `ARRAYS` stands which comes
where. `take_in` counts a step, `choose` decides on the next one, `proceed` does both, and `explore_compiled` does
nothing else, in a world of compiled steps. What happens seldom is left to Python: `choose` returns an event, a negative
number, in place of an action.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Words
from curious_explorer.compile import carray, compiled, inlined, int64, pointer
from curious_explorer.models import bonus_values
from curious_explorer.models.bonus_values import Sweeps, hope_for, look_at_range, sweep, wait
from curious_explorer.models.frontier_search import Level, Scratch, best_exits, bound_of, exit_cost, lower, search
from curious_explorer.models.growing_model import (
    FAR,
    NONE,
    OUTCOMES,
    REPEATS,
    STATES,
    SURPRISES,
    Graph,
    add_step,
    meet_next,
)
from curious_explorer.worlds.compiled_steps import StepTables, begin_episode, take_step
from curious_explorer.worlds.random_streams import GOLDEN, mix64

SHARES = (8.0, 8.0, 3.0, 1.0)
"""In which proportion samples are shared among the levels that have something left, the coarsest first. It matters
little: (3, 3, 3, 1) takes 18,700 samples for DoorKey-16x16 instead of 16,600, and 4,100 for MultiRoom-N4 instead of
6,100 (medians of five layouts)."""
ENOUGH = 3
"""Under noise, how many tries it takes to know a pair on a coarser level, where one that failed is not made up for by
others: with 1, the first reward of DoorKey-8x8 with sticky actions takes up to 46,000 samples, and 14,000 with 3."""
FAR_OFF, STAY = 3, 3
"""After a way from the start of more than so many steps the agent stays with the level that it restarted for, as long
as something new on it is near, for so many times the steps of that way: to restart it gave up where it was. With that
and `_staying_first`, the first reward of DoorKey-16x16 takes 12,100 samples (mean of 16 runs; at most 20,200), with
the latter alone 13,300 (of 24; 22,900), without both 15,400 (of 24; 25,100)."""
MOST_TRIES = 8
"""Where the world never paid anything, a pair is tried so often before the agent stops: it may pay now and then."""
WAYS, NOVELTY, HOPES = range(3)
"""By what it acts under noise: ways to new pairs, values of novelty, values of hopes (once there is a reward)."""
VERY_NOISY, WORSE = 0.33, 7.0
"""From which share of surprises on ways are worse than values of novelty, because steps hardly ever lead where they
should; and how many times fewer samples the worse one of the two gets. Where ways lead to nothing new, but to what
has had several outcomes, both get as many: cells that mix states would otherwise be tried again and again at the start
(a row of cells in `tests/gym/test_held_actions.py` took 5,169 samples to more than 40,000, and now 7,099 to 13,637)."""
NOVELTY_VALUES, HOPE_VALUES, PLAN_VALUES = range(3)
"""Tables of values."""
TABLES = 3
NOISY, QUIET, FEWEST_REPEATS = 0.1, 0.03, 20
"""From which share of surprises among repeated tries on values take over, from which on they hand back, and how many
repeats it takes to tell."""
SLIGHT = 0.002
"""Once the world paid anything, a plan may be wrong where there is any noise: values take over from this share on."""
STRETCHES = (32, 16, 8, 4)
"""Before it stops, an agent repeats every action so many times in a row, shortest stretches first: cells that mix
states may do the same thing ten times before they do another."""
RESTARTS_IN_VAIN = 20
"""After so many restarts in a row from which nothing new can be reached, there is nothing left."""

RESTART, FINISHED, TO_VALUES, TO_WAYS, NO_ROOM, CHOICE, EXHAUSTED, NOWHERE, SPENT = range(-1, -10, -1)
"""Events: begin an episode, stop, act by values, act by ways, widen the arrays, choose among ``actions`` what to try at
the end of the way, nothing new is within reach; of compiled worlds: no episode can be begun, the steps are used up."""
TERMINATED, TRUNCATED = 1, 2

LONGEST_TURN = 10
"""For how many times as many steps as values are held it goes on with one of them where no episode ends."""
CLOSE, CLOSE_IN_A_ROW = 0.1, 20
"""A plan is good enough when, for so many episodes in a row, hopes for their start were no further above it."""

NUM_ACTIONS, LEVELS, BACKUPS, HOLD, TOOK, ASKS = range(6)  # what does not change
AT, LEFT, AGE, LIMIT, LEVEL, AHEAD, EXPECTED, IN_VAIN, START, STRETCHES_LEFT = range(6, 16)
BY_VALUES, SINCE, TAKEN, FIRST_REWARD, DONE, ACTION, HOPED, TOLD, GOAL, CHOICES, SAID, TURN, CLOSE_NOW = range(16, 29)
STAYS, TRIES_EACH, AGAIN_ONLY, PAID_ALIKE = range(29, 33)
"""Places in ``now``. Of what does not change: `TOOK` has the samples of one step, `ASKS` says whether there is somebody
to ask for choices. Then: where the agent stands (`NONE`: nowhere), the state that it left last, the steps of the
episode, after how many the world cuts episodes off, the level of cells that it works for, how many steps are planned,
where the next episode must begin for that plan, restarts in vain, the one start (`NONE`: none yet, `MANY`), stretches
to repeat actions for; whether it takes the world for noisy, for how many steps its turn has lasted; the samples taken,
at which it first paid (`NONE`), whether it is done; the last action and where that was hoped to lead, and whether it
told anything new; the end of the way and among how many actions there is a choice; whether `EXHAUSTED` was said; under
noise by what it acts (`WAYS`, ...), and in how many episodes in a row the plan was good enough; for how many samples it
stays with its level, how often it tries each pair, whether the last way led to a pair that is not new, and how often
a pair that pays was tried again and paid the same."""
NOW_SIZE = 33
MANY = -2
FACTOR, DISCOUNT, LEAST, PRICE, STOP_FACTOR, STOP_MORE, STOP_LATEST, RARITY, NOISE = range(9)
"""Places in ``settings``; it stops at so many times the samples of the first reward, and some more; under noise when
the plan is good enough, too, or after so many samples in all. Last, how rare surprises were found to be, and by how
much a pair was seen to pay otherwise than before."""
SAME_PAY = 1e-6
"""Payments that differ by a smaller part are the same, but for rounding."""


class Agent(NamedTuple):
    """What the loop itself keeps."""

    now: Integers  # (NOW_SIZE,)
    settings: Floats  # (9,)
    spent: Floats  # (L,): samples spent on each level, by its share
    turns: Floats  # (3,): under noise, samples spent on ways, novelty and hopes, by their shares
    actions: Indices  # (A,): scratch
    way: Indices  # (S + a stretch,): the actions that are planned, the next one last
    hopes: Indices  # the same: where they should lead, `NONE` where nobody knows
    random: Words  # (1,): the counter of draws
    first_tries: Integers  # (2 * A,): how many pairs of each action were tried, and how many at first led nowhere


LEVEL_FIELDS = ("bounds", "keys", "tries")
ARRAYS = (
    *Agent._fields,
    *Graph._fields,
    *Scratch._fields,
    *Sweeps._fields * TABLES,
    *LEVEL_FIELDS * len(SHARES),
)
"""What stands in a list of addresses."""
_GRAPH = len(Agent._fields)
_SCRATCH = _GRAPH + len(Graph._fields)
_SWEEPS = _SCRATCH + len(Scratch._fields)
_TABLE_SIZE, _LEVEL_SIZE = len(Sweeps._fields), len(LEVEL_FIELDS)
_FIRST_LEVEL = _SWEEPS + TABLES * _TABLE_SIZE


@inlined
def _int32(given: Integers, place: int) -> Indices:
    array: Indices = carray(pointer(given[2 * place]), (given[2 * place + 1],), np.int32)
    return array


@inlined
def _int64(given: Integers, place: int) -> Integers:
    array: Integers = carray(pointer(given[2 * place]), (given[2 * place + 1],), np.int64)
    return array


@inlined
def _float64(given: Integers, place: int) -> Floats:
    array: Floats = carray(pointer(given[2 * place]), (given[2 * place + 1],), np.float64)
    return array


@inlined
def agent_at(given: Integers) -> Agent:
    """The agent of a list of addresses."""
    random = carray(pointer(given[14]), (given[15],), np.uint64)
    return Agent(
        _int64(given, 0),
        _float64(given, 1),
        _float64(given, 2),
        _float64(given, 3),
        _int32(given, 4),
        _int32(given, 5),
        _int32(given, 6),
        random,
        _int64(given, 8),
    )


@inlined
def graph_at(given: Integers) -> Graph:
    """The counts of a list of addresses."""
    return Graph(
        _int32(given, _GRAPH),
        _int32(given, _GRAPH + 1),
        _int32(given, _GRAPH + 2),
        _int32(given, _GRAPH + 3),
        _int32(given, _GRAPH + 4),
        _float64(given, _GRAPH + 5),
        _int32(given, _GRAPH + 6),
        _int32(given, _GRAPH + 7),
        _int32(given, _GRAPH + 8),
        _int32(given, _GRAPH + 9),
        _float64(given, _GRAPH + 10),
        _int64(given, _GRAPH + 11),
        _int64(given, _GRAPH + 12),
        _float64(given, _GRAPH + 13),
    )


@inlined
def scratch_at(given: Integers) -> Scratch:
    """What searches work with."""
    return Scratch(
        _int64(given, _SCRATCH),
        _int64(given, _SCRATCH + 1),
        _int64(given, _SCRATCH + 2),
        _int32(given, _SCRATCH + 3),
        _int32(given, _SCRATCH + 4),
        _int32(given, _SCRATCH + 5),
        _int32(given, _SCRATCH + 6),
        _int64(given, _SCRATCH + 7),
        _int32(given, _SCRATCH + 8),
    )


@inlined
def sweeps_at(given: Integers, table: int) -> Sweeps:
    """One table of values; empty while the agent acts by ways."""
    first = _SWEEPS + _TABLE_SIZE * table
    waiting = carray(pointer(given[2 * first + 4]), (given[2 * first + 5],), np.bool_)
    return Sweeps(
        _float64(given, first),
        _float64(given, first + 1),
        waiting,
        _int32(given, first + 3),
        _int64(given, first + 4),
        _float64(given, first + 5),
    )


@inlined
def level_at(given: Integers, number: int, agent: Agent) -> Level:
    """One level of cells."""
    first = _FIRST_LEVEL + _LEVEL_SIZE * number
    return Level(
        _int32(given, first),
        _int32(given, first + 1),
        _int32(given, first + 2),
        price_of(agent, number),
        enough_of(agent, number),
        rarity_of(agent),
        agent.settings[NOISE],
        agent.now[PAID_ALIKE],
    )


@inlined
def price_of(agent: Agent, number: int) -> float:
    """What one more try of a pair of varying outcomes costs on a level: only the finest goes on trying."""
    return float(agent.settings[PRICE]) if number == agent.now[LEVELS] - 1 else 0.0


@inlined
def enough_of(agent: Agent, number: int) -> int:
    """How many tries are enough to know a pair on a level; on the finest, novelty takes care of those that failed."""
    if number == agent.now[LEVELS] - 1:
        return int64(max(1, agent.now[TRIES_EACH]))
    return int64(ENOUGH if agent.now[BY_VALUES] else 1)


@inlined
def rarity_of(agent: Agent) -> float:
    """How rare surprises are, for pairs that did the same every time; values of novelty know that by themselves."""
    return np.inf if agent.now[BY_VALUES] else float(agent.settings[RARITY])


# What was seen --------------------------------------------------------------------------------------------------------


@compiled
def take_in(given: Integers, following: int, reward: float, end_reward: float, ending: int) -> None:
    """Count a step to the state of this index; ``ending`` is `TERMINATED`, `TRUNCATED`, their sum, or zero."""
    agent, graph = agent_at(given), graph_at(given)
    now = agent.now
    at, action = now[AT], now[ACTION]
    now[TAKEN] += now[TOOK]
    now[AGE] += 1
    if not now[BY_VALUES] or now[TURN] == WAYS:
        agent.spent[now[LEVEL]] += 1.0 / SHARES[now[LEVEL]]
    if now[BY_VALUES]:
        better = NOVELTY if graph.tally[SURPRISES] > VERY_NOISY * graph.tally[REPEATS] else WAYS
        agent.turns[now[TURN]] += 1.0 if now[TURN] in (better, HOPES) or now[AGAIN_ONLY] == 1 else WORSE
    terminated = ending & TERMINATED
    if terminated:
        graph.end_paid[following] = end_reward
    if now[FIRST_REWARD] == NONE and (reward > 0.0 or end_reward > 0.0):
        now[FIRST_REWARD] = now[TAKEN]
    first, settings = now[FIRST_REWARD], agent.settings
    doubtful = now[BY_VALUES] and graph.tally[SURPRISES] > NOISY * graph.tally[REPEATS]
    good = not doubtful or now[CLOSE_NOW] >= CLOSE_IN_A_ROW or now[TAKEN] >= settings[STOP_LATEST]
    if first != NONE and good and now[TAKEN] >= settings[STOP_FACTOR] * first + settings[STOP_MORE]:
        now[DONE] = 1
    pair = at * now[NUM_ACTIONS] + action
    pays_otherwise = _pays_otherwise(agent, graph, pair, reward)
    now[TOLD] = add_step(graph, pair, ~following if terminated else following, reward)
    if pays_otherwise:
        now[TOLD] = 1
    if graph.tries[pair] == 1:
        agent.first_tries[action] += 1
        agent.first_tries[now[NUM_ACTIONS] + action] += following == at and not terminated
    if now[TOLD]:
        now[AHEAD] = 0
    doubts = now[TOLD] and (pays_otherwise > 1 or _doubts_change(agent, graph))
    work = scratch_at(given)
    for number in range(now[LEVELS]):
        level = level_at(given, number, agent)
        if doubts:
            level.bounds[:] = 0
        if level.keys[at] != NONE:
            level.tries[level.keys[at] * now[NUM_ACTIONS] + action] += 1
        if now[TOLD] and bound_of(graph, level, now[NUM_ACTIONS], at) < level.bounds[at]:
            lower(graph, level, work, now[NUM_ACTIONS], at)
    now[LEFT], now[AT] = at, following
    if following != now[HOPED]:
        now[AHEAD] = 0
    if ending:
        if ending & TRUNCATED:
            now[LIMIT] = now[AGE]
        now[AT] = NONE
        now[AHEAD] = 0


@inlined
def _pays_otherwise(agent: Agent, graph: Graph, pair: int, reward: float) -> int:
    """Whether a pair is about to pay otherwise than it did so far; 2: by much more than any other ever did."""
    entry = graph.first_outcome[pair]
    if entry == NONE:
        return int64(0)
    mean = graph.outcome_paid[entry] / graph.outcome_times[entry]
    differs = abs(reward - mean)
    if differs <= SAME_PAY * abs(mean):
        agent.now[PAID_ALIKE] += mean != 0.0
        return int64(0)
    if differs <= np.e * agent.settings[NOISE]:
        return int64(1)
    agent.settings[NOISE] = differs
    return int64(2)


@inlined
def _doubts_change(agent: Agent, graph: Graph) -> bool:
    """Whether surprises have become rarer or more frequent by a factor e, which changes what is worth another try."""
    surprises = graph.tally[SURPRISES]
    if surprises == 0:
        return False
    rarity = np.log(graph.tally[REPEATS] / surprises)
    if abs(rarity - agent.settings[RARITY]) <= 1.0:
        return False
    agent.settings[RARITY] = rarity
    return True


@compiled
def begin(given: Integers, index: int) -> None:
    """An episode begins in the state of this index."""
    agent, graph = agent_at(given), graph_at(given)
    now = agent.now
    if now[START] == NONE:
        now[START] = index
    elif now[START] != index:
        now[START] = MANY
    graph.start_times[index] += 1
    now[AT], now[AGE] = index, 0
    if index != now[EXPECTED]:
        now[AHEAD] = 0
    now[EXPECTED] = NONE


# What to do -----------------------------------------------------------------------------------------------------------


@compiled
def choose(given: Integers) -> int:
    """The next action, or an event that must be attended to before this is asked again."""
    agent, graph = agent_at(given), graph_at(given)
    now = agent.now
    if graph.tally[STATES] == len(graph.first_into) or graph.tally[OUTCOMES] == len(graph.outcome_pair):
        return int64(NO_ROOM)
    if now[DONE]:
        return int64(FINISHED)
    if now[AT] == NONE or now[EXPECTED] != NONE:
        return int64(RESTART)
    if now[AHEAD] == 0:
        event = _plan_ahead(given)
        if event < 0:
            return event
    now[AHEAD] -= 1
    now[ACTION], now[HOPED] = agent.way[now[AHEAD]], agent.hopes[now[AHEAD]]
    return int64(now[ACTION])


@compiled
def proceed(given: Integers, following: int, reward: float, end_reward: float, ending: int) -> int:
    """`take_in` and `choose`."""
    take_in(given, following, reward, end_reward, ending)
    return choose(given)


@compiled
def _plan_ahead(given: Integers) -> int:
    """Plan at least one step; an event if something else must come before, else zero."""
    agent, graph = agent_at(given), graph_at(given)
    now, num_actions = agent.now, agent.now[NUM_ACTIONS]
    repeats, surprises = graph.tally[REPEATS], graph.tally[SURPRISES]
    rewarded = now[FIRST_REWARD] != NONE
    if now[BY_VALUES]:
        if surprises < (0.5 * SLIGHT if rewarded else QUIET) * repeats:
            return int64(TO_WAYS)
        _take_turn(given)
        if now[TURN] != WAYS:
            _act_by_values(given)
            return int64(0)
    noisy = surprises > (SLIGHT if rewarded else NOISY) * repeats
    if not now[BY_VALUES] and repeats >= FEWEST_REPEATS and noisy:
        return int64(TO_VALUES)
    if not _find_way(given):
        if now[BY_VALUES]:
            now[TURN] = NOVELTY
            _act_by_values(given)
            return int64(0)
        if now[START] == MANY and now[IN_VAIN] < RESTARTS_IN_VAIN:
            now[IN_VAIN] += 1
            now[AT] = NONE
            return int64(RESTART)
        if now[STRETCHES_LEFT] == 0:
            if now[SAID] and not rewarded and now[TRIES_EACH] < MOST_TRIES:
                now[TRIES_EACH] = MOST_TRIES
                level_at(given, int64(now[LEVELS] - 1), agent).bounds[:] = 0
                return _plan_ahead(given)
            now[DONE] = now[SAID]
            now[SAID] = 1
            return int64(FINISHED if now[DONE] else EXHAUSTED)
        now[STRETCHES_LEFT] -= 1
        length = STRETCHES[now[STRETCHES_LEFT] // num_actions]
        for place in range(length):
            agent.way[place] = now[STRETCHES_LEFT] % num_actions
            agent.hopes[place] = now[AT]  # given up as soon as it leads elsewhere
        now[AHEAD] = length
    now[IN_VAIN], now[SAID] = 0, 0
    if now[CHOICES] > 1:
        return int64(CHOICE)
    return int64(RESTART if now[EXPECTED] != NONE else 0)


@compiled
def _take_turn(given: Integers) -> None:
    """Under noise: decide by what to act, where an episode begins or after a long time; the least used comes next."""
    agent = agent_at(given)
    now, turns = agent.now, agent.turns
    rewarded = now[FIRST_REWARD] != NONE
    if now[LEFT] != NONE:
        for table in range(TABLES if rewarded else NOVELTY_VALUES + 1):
            wait(sweeps_at(given, table), now[LEFT])
    if now[AGE] == 0 and rewarded:
        _see_how_close(given)
    now[SINCE] += 1
    if (now[AGE] == 0 and now[SINCE] >= now[HOLD]) or now[SINCE] >= LONGEST_TURN * now[HOLD]:
        now[SINCE] = 0
        if turns[HOPES] == 0.0:  # it begins with what the others have
            turns[HOPES] = min(turns[WAYS], turns[NOVELTY])
        now[TURN] = WAYS if turns[WAYS] < turns[NOVELTY] else NOVELTY
        if rewarded and turns[HOPES] < turns[now[TURN]]:
            now[TURN] = HOPES


@compiled
def _act_by_values(given: Integers) -> None:
    """Plan one step by values of novelty or of hopes, which are swept now and then and held between."""
    agent, graph = agent_at(given), graph_at(given)
    now, num_actions = agent.now, agent.now[NUM_ACTIONS]
    discount, backups = agent.settings[DISCOUNT], now[BACKUPS] * now[HOLD]
    by_hopes = now[TURN] == HOPES
    backups //= 2 if by_hopes else 1
    sweeps = sweeps_at(given, HOPE_VALUES if by_hopes else NOVELTY_VALUES)
    if now[SINCE] % now[HOLD] == 0:
        if by_hopes:
            plan = sweeps_at(given, PLAN_VALUES)
            sweep(graph, plan, num_actions, discount, backups)
            look_at_range(plan, graph.tally[STATES])
            hope_for(sweeps, plan)
        sweep(graph, sweeps, num_actions, discount, backups)
    count = bonus_values.choose(graph, sweeps, num_actions, discount, now[AT], agent.actions)
    agent.way[0], agent.hopes[0] = agent.actions[_draw(agent, count)], NONE
    now[AHEAD] = 1


@compiled
def _see_how_close(given: Integers) -> None:
    """An episode begins: whether hopes are still far above the plan."""
    now = agent_at(given).now
    plan, hopes = sweeps_at(given, PLAN_VALUES), sweeps_at(given, HOPE_VALUES)
    known = plan.values[now[AT]] - plan.terms[bonus_values.LOWEST]
    hoped = hopes.values[now[AT]] - plan.terms[bonus_values.LOWEST]
    now[CLOSE_NOW] = now[CLOSE_NOW] + 1 if known > 0.0 and hoped <= (1.0 + CLOSE) * known else 0


@compiled
def _find_way(given: Integers) -> bool:
    """Plan the way to the nearest new pair of the level that was spent least on; whether there is one."""
    agent = agent_at(given)
    now = agent.now
    now[CHOICES] = 1
    if now[STAYS] > 0:
        now[STAYS] -= _find_way_on(given, int64(now[LEVEL]), int64(now[STAYS]))
        if now[AHEAD] > 0:
            return True
    now[STAYS] = 0
    asked = 0
    for _ in range(now[LEVELS]):
        number = int64(NONE)
        for other in range(now[LEVELS]):
            if not asked >> other & 1 and (number == NONE or agent.spent[other] < agent.spent[number]):
                number = int64(other)
        asked |= 1 << number
        steps = _find_way_on(given, number, int64(FAR))
        if steps > 0:
            from_start = now[EXPECTED] != NONE or now[AGE] == 0
            now[STAYS] = STAY * steps if steps > FAR_OFF + 1 and from_start and now[LEVELS] > 1 else 0
            return True
    return False


@compiled
def _find_way_on(given: Integers, number: int, most: int) -> int:
    """Plan the way to the nearest new pair of a level, if one is no further than ``most``; how many steps it takes.

    Only if nothing is too far may it begin at the start: ``now[EXPECTED]`` says so.
    """
    agent, graph, work = agent_at(given), graph_at(given), scratch_at(given)
    now, num_actions = agent.now, agent.now[NUM_ACTIONS]
    level = level_at(given, number, agent)
    room, start = now[LIMIT] - now[AGE] - 1, now[START]
    distance, goal, length = search(graph, level, work, num_actions, now[AT], most, room)
    if goal != NONE:
        _load(agent, graph, work, length)
    if most == FAR and start >= 0 and (start != now[AT] or now[AGE] > 0):
        nearer = int64(FAR) if goal == NONE else int64(math.ceil(agent.settings[FACTOR] * distance)) - 1
        if nearer >= 0:
            _, again, length = search(graph, level, work, num_actions, start, nearer, now[LIMIT] - 1)
            if again != NONE:
                goal, now[EXPECTED] = again, start
                _load(agent, graph, work, length)
    if goal == NONE:
        return int64(0)
    now[LEVEL], now[GOAL] = number, goal
    now[AGAIN_ONLY] = number == now[LEVELS] - 1 and exit_cost(graph, level, num_actions, goal) > 0
    count = best_exits(graph, level, num_actions, goal, agent.actions)
    now[CHOICES] = count if now[ASKS] else 1
    chosen = int64(0) if now[ASKS] else _draw(agent, _staying_first(agent, count))
    agent.way[0], agent.hopes[0] = agent.actions[chosen], NONE
    return int64(now[AHEAD])


@inlined
def _staying_first(agent: Agent, count: int) -> int:
    """Keep of so many actions those that mostly lead nowhere, if there are any; how many are left.

    What else is new here is at hand after them. A state that is left with something new is a way back later. Where
    cells mix states, actions that seem to lead nowhere do not.
    """
    kept = int64(0)
    for place in range(0 if agent.now[BY_VALUES] else count):
        action = agent.actions[place]
        if 2 * agent.first_tries[agent.now[NUM_ACTIONS] + action] > agent.first_tries[action]:
            agent.actions[kept] = action
            kept += 1
    return kept if kept > 0 else int64(count)


@compiled
def _load(agent: Agent, graph: Graph, work: Scratch, length: int) -> None:
    """Take over the way that a search found, but for the new pair at its end."""
    for place in range(length):
        entry = work.path[length - 1 - place]
        agent.way[1 + place] = graph.outcome_pair[entry] % agent.now[NUM_ACTIONS]
        agent.hopes[1 + place] = graph.outcome_state[entry]
    agent.now[AHEAD] = length + 1


@compiled
def draw(given: Integers, count: int) -> int:
    """One of so many, all alike."""
    return _draw(agent_at(given), count)


@compiled
def _draw(agent: Agent, count: int) -> int:
    """One of so many, all alike."""
    if count == 1:
        return int64(0)
    agent.random[0] += GOLDEN
    return int64((mix64(agent.random[0]) >> np.uint64(33)) * np.uint64(count) >> np.uint64(31))


# Worlds of compiled steps ---------------------------------------------------------------------------------------------


@compiled
def explore_compiled(
    given: Integers, tables: StepTables, index_of: Indices, entry_counts: Integers, counter: np.uint64, most: int
) -> tuple[int, np.uint64]:
    """Take steps until ``now[TAKEN]`` is ``most``, or something happens; the event, and the counter of draws.

    ``index_of`` has the index of every state of the world, `NONE` where it was not met, shape (S,).
    """
    agent, graph = agent_at(given), graph_at(given)
    now = agent.now
    while True:
        action = choose(given)
        if action == RESTART:
            state, _, counter = begin_episode(tables, counter, int64(1))
            if state < 0:
                return int64(NOWHERE), counter
            begin(given, _meet(graph, index_of, state))
            continue
        if action < 0:
            return action, counter
        if now[TAKEN] >= most:
            now[AHEAD] += 1  # it is left for the next time
            return int64(SPENT), counter
        entry, following, earned, counter = take_step(tables, graph.numbers[now[AT]], action, counter)
        entry_counts[entry] += 1
        state = ~following if following < 0 else following
        end_reward = tables.end_rewards[state] if following < 0 else 0.0
        take_in(given, _meet(graph, index_of, state), earned, end_reward, TERMINATED if following < 0 else 0)


@compiled
def _meet(graph: Graph, index_of: Indices, state: int) -> int:
    if index_of[state] == NONE:
        index_of[state] = meet_next(graph, state)
    return int64(index_of[state])
