"""The stages of `solve` that look, learn plainly, explore, and learn from starts that move; each is kept when done."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from curious_explorer.callbacks.events import EXPLORE, part_of
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.gym.cell_names import named_cells
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.shifted_reward import without_price
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.models.reaching import Reaching
from curious_explorer.resets.chosen_states import rewarding_states
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.studies.solve_budget import EXPLORE_SHARE, PLAIN_TRIAL
from curious_explorer.studies.solve_files import EXPLORATION, LEARNING, PLAIN, RESETS
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.solve_training import gets_somewhere, is_solved, kept_of, train_for
from curious_explorer.studies.solving_words import look_words
from curious_explorer.studies.task_look import RewardLog, TaskLook, layouts_change, look_at_task

ENOUGH_TOLD, FEWEST_TOLD = 0.05, 3
"""Of its last hundred episodes, the share that has something to learn from where plain learning goes on."""
AFTER_REWARD = 0.5
"""How long exploring goes on after the first reward, in times of what that took."""


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
        found = look_at_task(run.make, steps, spawned_seed(settings.seed, 1), layouts_change=change)
        run.keep("look", {"samples": steps, **asdict(found)})
    kept = {name: value for name, value in run.stages["look"].items() if name != "samples"}
    look = TaskLook(**kept)
    layout = run.stages["layout"]["layout"]
    if layout is not None:
        why = "every reset draws another layout" if look.layouts_change else "as asked for"
        run.tell(f"Layout {layout} in every episode ({why}): what is learned is for this layout.")
    run.tell(look_words(look))
    return look


def learn_plainly(run: SolveRun, look: TaskLook) -> bool:
    """Learn plainly; returns whether that is all that is needed."""
    done = run.stages.get("plain")
    if done is not None and done["decided"]:
        return bool(done["goes_on"])
    settings = run.settings
    trial, log = run.budget.trial, RewardLog(look)
    if done is None:
        given = run.budget.learned_from(run.left) if look.pays_all_along else trial
        training = train_for(run, PLAIN, look, given, None, log)
        share, times = log.recent_share(), sum(log.told)
        told = {"told": share, "times": times, "episodes": len(log.told), "first": log.first}
        goes_on = look.pays_all_along or (share >= ENOUGH_TOLD and times >= FEWEST_TOLD)
        decided = look.pays_all_along or not goes_on
        run.keep("plain", kept_of(training) | told | {"goes_on": goes_on, "decided": decided})
        done = run.stages["plain"]
        if decided and not goes_on:
            met = "met no reward in" if told["times"] == 0 else f"met a reward in {told['times']} of"
            run.tell(f"A plain learner {met} {told['episodes']:,} episodes, {trial:,} samples: exploring.")
        elif not decided:
            run.tell(f"A plain learner meets rewards by itself ({told['told']:.0%} of episodes): it goes on.")
    if not done["decided"]:
        for share in (PLAIN_TRIAL, 1.0):
            whole = run.budget.learned_from(settings.samples - run.stages["look"]["samples"])
            samples = max(trial, int(share * whole))
            training = train_for(run, PLAIN, look, samples, None, log)
            goes_on = gets_somewhere(run, training.evaluations)
            ends = share == 1.0 or not goes_on or is_solved(run, look, training.evaluations)
            kept = {name: run.stages["plain"][name] for name in ("told", "times", "episodes", "first")}
            result = kept_of(training) | kept | {"goes_on": goes_on, "decided": ends}
            run.keep("plain", result)
            if ends:
                break
        if not run.stages["plain"]["goes_on"]:
            run.tell("Plain learning got nowhere with the rewards that it met: exploring.")
    return bool(run.stages["plain"]["goes_on"])


def explore(run: SolveRun, look: TaskLook) -> Exploration:
    """Explore by counts, until a reward and a bit more."""
    folder = run.folder / EXPLORATION
    world = _world(run, look)
    if "explore" in run.stages:
        return Exploration.load(folder, cell_function=world.discretisation.cells.function)
    given = int(EXPLORE_SHARE * run.left)
    before = run.used
    growth: list[list[int]] = []
    run.tell(world.discretisation.cells.describe() + ".")
    for note in world.notes:
        run.tell(note)

    def progress(samples: int, cells: int, first: int | None) -> None:
        growth.append([looked + samples, cells])
        words = f"{cells:,} cells" + ("" if first is None else f", reward after {looked + first:,}")
        run.progress(Progress("exploring", before + looked + samples, words))

    looked = world.samples  # what finding the cells took is part of the exploration
    explorer = Frontier(after_reward=AFTER_REWARD, least_after_reward=run.budget.least_after_reward)
    exploration = explorer.explore(
        world,
        gamma=0.99,
        samples=given - looked,
        watch=part_of(run.watch, EXPLORE, looked),
        checkpoint=folder,
        progress=progress,
    )
    exploration.reset_model.save(run.folder / RESETS)
    met = len(exploration.model) if isinstance(exploration.model, GrowingModel) else 0
    first = None if exploration.first_reward is None else looked + exploration.first_reward
    distance = None if first is None else _distance(exploration)
    run.keep(
        "explore",
        {
            "samples": exploration.samples + looked,
            "first_reward": first,
            "complete": exploration.complete,
            "cells": met,
            "cells_are": world.discretisation.cells.describe(),
            "notes": list(world.notes),
            "actions": world.num_actions,
            "distance": distance,
            "largest": _largest_reward(exploration),
            "growth": growth,
        },
    )
    world.close()
    run.tell(
        f"Explored {looked + exploration.samples:,} samples, {met:,} cells; "
        + ("no reward." if first is None else f"the first reward after {first:,}, {distance} steps from the start.")
    )
    return exploration


def _world(run: SolveRun, look: TaskLook) -> GymWorld:
    made = run.make()
    cells = None if run.settings.cells is None else named_cells(run.settings.cells, made)
    made.close()
    seed = spawned_seed(run.settings.seed, 2)
    return GymWorld(lambda: without_price(run.make(), look.price), cells=cells, seed=seed, time_limits=True)


def learn(run: SolveRun, look: TaskLook) -> None:
    """Learn from starts that move back from the reward."""
    if "learn" in run.stages:
        return
    resets = ResetModel.load(run.folder / RESETS)
    training = train_for(run, LEARNING, look, run.budget.learned_from(run.left), resets, None)
    starts = None if training.starts is None else training.starts._asdict()
    warm = None if training.warm_start is None else training.warm_start._asdict()
    run.keep("learn", kept_of(training) | {"starts": starts, "warm_start": warm})


def _distance(exploration: Exploration) -> int | None:
    """The steps from a start to the nearest reward, by the shortest way that was seen."""
    assert isinstance(exploration.model, GrowingModel)
    model = exploration.model.counted()
    pays = rewarding_states(model)
    away = Reaching(model).distances(pays)[np.flatnonzero(model.starts)]
    away = away[away >= 0]
    return int(np.median(away)) + 1 if len(away) else None


def _largest_reward(exploration: Exploration) -> float | None:
    assert isinstance(exploration.model, GrowingModel)
    rewards = exploration.model.outcomes().reward
    return float(np.abs(rewards).max()) if len(rewards) else None
