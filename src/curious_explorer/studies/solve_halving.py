"""Successive halving: what is left of a run's samples is shared among ways to go on, and the worst is given up.

    plain      to learn on from the environment's own start
    learning   to learn from starts that move back from the reward, after imitating the plan on the counts
    replay     to learn values (DQN) of the actions of exploring, beginning with all of its steps, where cells are bins
               of numbers that mix states
    counting   to explore on, so that the plan on the counts gets better

With k of them and n samples left each gets n / k^2, the worst is given up, and the others go on with what is left: the
last one has three quarters of n where there are two, three fifths where there are three (Karnin et al. 2013). So the
cost of not knowing the best beforehand is bounded. It ends early where a training is as good as it gets.
"""

from __future__ import annotations

from typing import Any

from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.studies.solve_exploring import CountedExploration
from curious_explorer.studies.solve_files import LEARNING, PLAIN, REPLAY, RESETS
from curious_explorer.studies.solve_measuring import COUNTING, PLANNED, STAGE_OF, measure, worth_of
from curious_explorer.studies.solve_run import SolveRun
from curious_explorer.studies.solve_stages import keep_exploration
from curious_explorer.studies.solve_training import is_solved, kept_of, train_for
from curious_explorer.studies.task_look import TaskLook

MOVED = 0.1
"""The share of the way to the own start that starts must have moved back to promise anything."""
ENOUGH_TOLD, FEWEST_TOLD = 0.05, 3
"""Plain learning is one of them if so large a share of its last hundred episodes had something to learn from."""


def share_out(run: SolveRun, look: TaskLook) -> None:
    """Share out what is left."""
    if "halving" not in run.stages:
        alive = _ways_to_go_on(run, look)
        scales = {
            name: run.stages["explore"].get(name) for name in ("distance", "largest", "hold", "choices")
        }  # they stay what they are
        run.keep("halving", {"alive": alive, "waiting": [], "goal": None, "given_up": [], "done": not alive} | scales)
    while not run.stages["halving"]["done"]:
        state = dict(run.stages["halving"])
        if not state["waiting"]:
            state = _next_round(run, state)
        if not state["done"]:
            name = state["waiting"][0]
            if state["goal"] is None:
                state["goal"] = int(run.stages.get(STAGE_OF[name], {}).get("samples", 0)) + state["share"]
            run.keep("halving", state)
            solved = _go_on(run, look, name, state["goal"])
            state = state | {"waiting": state["waiting"][1:], "goal": None, "done": solved}
        run.keep("halving", state)


def _ways_to_go_on(run: SolveRun, look: TaskLook) -> list[str]:
    """The best first, as far as that is known."""
    plain, explored = run.stages["plain"], run.stages["explore"]
    plan = None if explored["distance"] is None else measure(run, look, COUNTING)
    told = look.pays_all_along or (plain["told"] >= ENOUGH_TOLD and plain["times"] >= FEWEST_TOLD)
    ways = [PLAIN] if told else []
    if plan is not None:
        plainly = measure(run, look, PLAIN)
        better = not told or plan > plainly
        counting = [COUNTING] if not explored["complete"] and (explored["noisy"] or look.pays_all_along) else []
        stored = explored.get("way") is not None
        # Roll-ins go by counts, and lead nowhere where only stored actions get to the reward.
        leads = better and (not stored or measure(run, look, PLANNED) > plainly)
        values = [REPLAY] if better and _replays(run, look) else []
        ways = [*([LEARNING] if leads else []), *values, *ways, *counting]
        found = "The best stored way" if stored else "The plan on the counts"
        run.tell(f"{found} returns {plan:.3g}, plain learning so far {plainly:.3g}.")
    elif explored["first_reward"] is not None and _replays(run, look):
        ways = [REPLAY, *ways]  # a reward was seen to which these cells know no way
    if len(ways) > 1:
        run.tell(f"The rest of the samples is shared among {len(ways)}, and the worst given up: {', '.join(ways)}.")
    return ways


def _replays(run: SolveRun, look: TaskLook) -> bool:
    """Whether values may be learned from the steps of exploring: where cells mix states, and rewards are rare."""
    explored = run.stages["explore"]
    mixed = explored["noisy"] and explored.get("mixes") and explored.get("steps")
    return bool(mixed) and not look.pays_all_along and run.settings.algorithm is None


def _next_round(run: SolveRun, state: dict[str, Any]) -> dict[str, Any]:
    """Give up the worst, but before the first round, and share out what is left."""
    alive, given_up = list(state["alive"]), list(state["given_up"])
    if "share" in state:
        # Of equally bad ones the last goes: the first was the most promising, and may be short of a first success.
        # Starts that have not moved promise less than values that are learned from all steps.
        stuck = REPLAY in alive and LEARNING in alive and not _starts_moved(run)
        order = sorted(alive, key=lambda name: stuck and name == LEARNING)
        worst = min(reversed(order), key=lambda name: worth_of(run, name))
        alive.remove(worst)
        given_up.append(worst)
        if alive:
            told = ", ".join(f"{name} {worth_of(run, name):.3g}" for name in [*alive, worst])
            run.tell(f"Returns so far: {told}; {worst} is given up.")
    left = run.budget.for_learning(run.left)
    while len(alive) > 1 and left // len(alive) ** 2 < run.budget.least_share:
        given_up.append(alive.pop())  # there is not enough to find out by
    if not alive or left < run.budget.least_share:
        return state | {"alive": alive, "given_up": given_up, "done": True}
    share = left // len(alive) ** 2
    return state | {"alive": alive, "given_up": given_up, "waiting": alive, "share": share}


def _starts_moved(run: SolveRun) -> bool:
    starts = run.stages["learn"]["starts"]
    return starts is None or starts["level"] > MOVED * starts["farthest"]


def _go_on(run: SolveRun, look: TaskLook, name: str, goal: int) -> bool:
    """Go on up to so many samples; returns whether it is as good as it gets."""
    if name == COUNTING:
        if run.stages["explore"]["samples"] < goal:
            exploring = CountedExploration(run, look)
            try:
                keep_exploration(run, look, exploring, exploring.go_on(goal, run.budget.piece, lambda *_: False))
            finally:
                exploring.close()
        measure(run, look, COUNTING)
        return False
    resets = ResetModel.load(run.folder / RESETS) if name == LEARNING else None
    training = train_for(run, name, look, goal, resets=resets)
    kept = run.stages.get(STAGE_OF[name], {}) | kept_of(training)
    if training.starts is not None:
        kept["starts"] = training.starts._asdict()
    if name == LEARNING and training.warm_start is not None:
        kept["warm_start"] = training.warm_start._asdict()
    run.keep(STAGE_OF[name], {"starts": None, "warm_start": None} | kept)
    measure(run, look, name)
    return is_solved(run, look, training.evaluations)
