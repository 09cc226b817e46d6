"""The stages of `solve` before samples are shared out: look, a trial of plain learning, exploring."""

from __future__ import annotations

import shutil
from dataclasses import asdict

import numpy as np

from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.action_set import plain_action
from curious_explorer.gym.flat_actions import is_flat, with_flat_actions
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.shifted_reward import END_OF_COSTS
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.studies.solve_budget import EXPLORE_SHARE
from curious_explorer.studies.solve_exploring import CountedExploration, counts_of
from curious_explorer.studies.solve_files import EXPLORATION, PLAIN, RESETS
from curious_explorer.studies.solve_plan import CountsPlan
from curious_explorer.studies.solve_run import SolveRun
from curious_explorer.studies.solve_training import is_solved, kept_of, train_for
from curious_explorer.studies.solving_words import look_words
from curious_explorer.studies.task_look import RewardLog, TaskLook, layouts_change, look_at_task

MEMORY = 2
"""How many earlier contents are remembered where nothing says how many would help."""
PAYS = 1e-9
"""Rewards above this are more than nothing."""


def look_at(run: SolveRun) -> TaskLook:
    """Act at random, and see what kind of task it is."""
    settings = run.settings
    if "layout" not in run.stages:
        change = layouts_change(lambda: make_by_id(settings.environment))
        layout = settings.layout if settings.layout is not None else (settings.seed if change else None)
        run.keep("layout", {"change": change, "layout": layout})
    if "look" not in run.stages:
        steps = run.budget.look
        change = bool(run.stages["layout"]["change"])
        seed = spawned_seed(settings.seed, 1)
        found = look_at_task(run.make, steps, seed, layouts_change=change, samples=settings.samples)
        run.keep("look", {"samples": steps, **asdict(found)})
    kept = {name: value for name, value in run.stages["look"].items() if name != "samples"}
    look = TaskLook(**kept)
    layout = run.stages["layout"]["layout"]
    if layout is not None:
        why = "every reset draws another layout" if look.layouts_change else "as asked for"
        run.tell(f"Layout {layout} in every episode ({why}): what is learned is for this layout.")
    env = make_by_id(settings.environment)
    if not is_flat(env.action_space):
        run.tell(f"Actions, {env.action_space}, are taken as {with_flat_actions(env).action_space} (FlatActions).")
    env.close()
    run.tell(look_words(look))
    return look


def try_plainly(run: SolveRun, look: TaskLook) -> bool:
    """Learn plainly for a while, and on while that is on its way; returns whether that is all that is needed."""
    while not run.stages.get("plain", {"tried": False}).get("tried", True):
        log, times = RewardLog(look), int(run.stages.get("plain", {}).get("times_tried", 0)) + 1
        training = train_for(run, PLAIN, look, run.budget.trials_with_evaluations(times), log=log)
        told = {"told": log.recent_share(), "times": sum(log.told), "episodes": len(log.told), "first": log.first}
        solved, kept = is_solved(run, look, training.evaluations), kept_of(training)
        tried = solved or not _on_its_way(run, look, [each.mean_return for each in training.evaluations], times)
        kept |= told | {"trial": kept["samples"], "solved": solved, "times_tried": times, "tried": tried}
        run.keep("plain", kept)
        if tried:
            met = f"{told['times']:,} of {told['episodes']:,} episodes"
            run.tell(
                f"A plain learner met something to learn from in {met}"
                + (", and that is enough." if solved else "; now by counts.")
            )
    return bool(run.stages["plain"]["solved"])


def _on_its_way(run: SolveRun, look: TaskLook, returns: list[float], times: int) -> bool:
    """Whether plain learning may well return what the registration asks for before it had its share.

    At half the pace that this takes: learning is slow at first, and few episodes are measured.
    """
    budget, first = run.budget, returns[0]
    if not look.pays_all_along or look.threshold is None or look.threshold <= first:
        return False
    done = (max(returns) - first) / (look.threshold - first)
    used, most = budget.trials_with_evaluations(times), budget.most_trials
    return budget.trials_with_evaluations(times + 1) <= most and done >= 0.5 * used / most


def explore(run: SolveRun, look: TaskLook) -> None:
    """Explore by counts, and by observations that remember where single ones are not enough."""
    if "explore" not in run.stages:
        exploring = CountedExploration(run, look)
        advised = exploring.world.advised_memory
        if advised and run.memory is None:
            exploring.close()
            words = "What is seen does not say what comes next, and what was seen before does"
            _remember(run, exploring.samples, advised, words)
            exploring = CountedExploration(run, look)
        _explore(run, look, exploring)
    if _came_to_nothing(run):
        words = "Nothing is left to which there is a way by what is seen alone"
        _remember(run, run.stages["explore"]["samples"], MEMORY, words)
        _explore(run, look, CountedExploration(run, look))


def _came_to_nothing(run: SolveRun) -> bool:
    """Whether all that can be told apart is explored, there is nothing to earn, and enough is left to try again."""
    explored, asked = run.stages["explore"], run.memory is not None or run.settings.cells is not None
    nothing = explored["complete"] and explored["distance"] is None
    return not asked and nothing and EXPLORE_SHARE * run.left > explored["samples"] + run.budget.least_share


def _remember(run: SolveRun, taken: int, steps: int, words: str) -> None:
    """From here on observations remember; what exploring has taken so far stays counted."""
    shutil.rmtree(run.folder / EXPLORATION, ignore_errors=True)
    run.stages.pop("explore", None)
    run.keep("memory", {"steps": steps, "samples": taken})
    told = "the one before" if steps == 1 else f"the {steps} before"
    run.tell(f"{words}: from here on observations remember {told} that differed, and for how long nothing has.")


def _explore(run: SolveRun, look: TaskLook, exploring: CountedExploration) -> None:
    """Explore until a reward and a good while more, or for a fixed share where rewards come everywhere."""
    try:
        left, often = run.left, look.pays_all_along
        run.tell(exploring.world.discretisation.cells.describe() + ".")
        for note in exploring.world.notes:
            run.tell(note)

        def enough(samples: int, first: int | None) -> bool:
            return samples >= run.budget.explored(exploring.looked, first, left, often=often)

        most = run.budget.explored(exploring.looked, None, left, often=often)
        exploration = exploring.go_on(most, run.budget.piece, enough)
        exploration.reset_model.save(run.folder / RESETS)
        keep_exploration(run, look, exploring, exploration)
    finally:
        exploring.close()
    kept, found = run.stages["explore"], "no reward."
    if kept["distance"] is not None and kept["first_reward"] is None:
        found = "nothing pays, and what costs least is known."
    elif kept["distance"] is not None:
        found = f"the first reward after {kept['first_reward']:,} of them, {kept['distance']} steps from the start."
    way = kept["way"]
    if way is not None:
        found += f" The best stored way returns {way['returned']:.6g} in {way['steps']:,} steps."
    run.tell(f"Explored {kept['samples']:,} samples, {kept['cells']:,} cells; {found}")


def keep_exploration(run: SolveRun, look: TaskLook, exploring: CountedExploration, exploration: Exploration) -> None:
    """Keep what an exploration has come to so far."""
    plan = CountsPlan(exploration)
    growth = [*run.stages.get("explore", {}).get("growth", []), *exploring.growth]
    run.keep(
        "explore",
        {
            "samples": exploring.samples,
            "steps": 0 if exploring.steps is None else len(exploring.steps),
            "mixes": exploring.mixes,
            "choices": [plain_action(choice) for choice in exploring.world.discretisation.action_set.choices],
            "hold": exploring.world.discretisation.action_set.hold,
            "first_reward": exploring.first_reward,
            "complete": exploration.complete,
            "noisy": exploring.noisy,
            "cells": len(counts_of(exploration)),
            "cells_are": exploring.world.discretisation.cells.describe(),
            "notes": list(exploring.world.notes),
            "actions": exploring.world.num_actions,
            "distance": _distance(plan, exploring, look),
            "way": exploring.way,
            "largest": _largest_reward(exploration),
            "positive": _pays(exploration, look.paid_back),
            "growth": growth,
        },
    )


def _distance(plan: CountsPlan, exploring: CountedExploration, look: TaskLook) -> int | None:
    """The steps to what pays: by the counts, or along a stored way where these do not know one any more."""
    if not look.pays_all_along and exploring.first_reward is None:
        return None
    way = exploring.way
    return plan.distance if plan.distance is not None or way is None else int(way["steps"])


def _largest_reward(exploration: Exploration) -> float | None:
    rewards = counts_of(exploration).outcomes().reward
    return float(np.abs(rewards).max()) if len(rewards) else None


def _pays(exploration: Exploration, paid_back: float) -> bool:
    """Whether anything pays more than zero by the environment's own account."""
    model = counts_of(exploration)
    shift = END_OF_COSTS * model.ended() - paid_back if paid_back < 0.0 else 0.0
    return bool((model.outcomes().reward - shift > PAYS).any())
