"""What came of `solve`: the summary, and in words whether it is solved, or which part failed and what to try."""

from __future__ import annotations

from dataclasses import asdict
from types import NoneType
from typing import Any

from curious_explorer.gym.agents import Played
from curious_explorer.studies.solve_files import PLAIN, REPLAY
from curious_explorer.studies.solve_settings import SolveSettings
from curious_explorer.studies.task_look import TaskLook

SUMMARY_TYPES: dict[str, tuple[type, ...]] = {
    "environment": (str,),
    "seed": (int,),
    "success": (int, float),
    "success_return": (int, float),
    "return_mean": (int, float),
    "return_best_seen": (int, float),
    "samples": (int,),
    "evaluation_samples": (int,),
    "explored": (int, NoneType),
    "first_reward": (int, NoneType),
    "cells": (dict, NoneType),
    "settings": (dict,),
    "verdict": (str,),
}
"""What a summary says, and as what."""
SOLVED, PARTLY = 0.9, 0.1
"""From which share of successful episodes on a task counts as solved; below the second, as not learned."""


def summarise(
    settings: SolveSettings, stages: dict[str, Any], played: Played, look: TaskLook, above: float, used: int
) -> dict[str, Any]:
    """What came of it, as plain data."""
    explored = stages.get("explore")
    curves = [row for name in ("plain", "learn", "replay") for row in stages.get(name, {}).get("curve", [])]
    best = max([look.best_return, *played.returns, *(row[1] for row in curves)])
    chosen = stages["choose"]["agent"]
    first = None
    if stages["plain"]["first"] is not None:
        first = stages["look"]["samples"] + stages["plain"]["first"]
    elif look.pays_all_along:
        first = 1
    elif explored is not None and explored["first_reward"] is not None:
        before = stages["look"]["samples"] + stages["plain"]["trial"] + stages.get("memory", {"samples": 0})["samples"]
        first = before + explored["first_reward"]
    summary = {
        "environment": settings.environment,
        "seed": settings.seed,
        "success": played.success(above),
        "success_return": above,
        "return_mean": played.mean_return,
        "return_best_seen": best,
        "samples": used,
        "evaluation_samples": played.steps,
        "explored": None if explored is None else explored["samples"],
        "first_reward": first,
        "cells": None if explored is None else {"met": explored["cells"], "are": explored["cells_are"]},
        "settings": {"asked": asdict(settings), "layout": stages["layout"]["layout"], "agent": chosen},
    }
    layout, words = stages["layout"]["layout"], verdict(summary, stages, look)
    if layout is not None and look.layouts_change:
        words += f" All of this is about layout {layout}: every reset draws another, and --layouts is for many of them."
    return summary | {"verdict": words}


def verdict(summary: dict[str, Any], stages: dict[str, Any], look: TaskLook) -> str:
    """Which part went how far."""
    success, mean = summary["success"], summary["return_mean"]
    rate = f"{success:.0%} of 50 fresh episodes return more than {summary['success_return']:g} (mean {mean:.3g})"
    how, asked = _how(summary, stages), look.threshold
    if asked is not None and mean >= asked:
        return f"Solved: {rate}, and the mean is above the {asked:g} that its registration asks for. {how}"
    if asked is not None and (success >= SOLVED or look.pays_all_along):
        return (
            f"Learned, but short of what its registration asks for, a mean of {asked:g}: {rate}. {how} More samples "
            "would go on where this ended."
        )
    # Where random actions meet penalties everywhere and nothing above zero, what returns more than zero has succeeded.
    penalties = not look.positive and bool(stages.get("explore", {}).get("positive"))
    told = summary["settings"]["asked"]["success_return"] is not None
    if success >= SOLVED and (not look.pays_all_along or told or penalties):
        return f"Solved: {rate}. {how}"
    if look.pays_all_along:
        return (
            f"Learned as far as this: {rate}, where the best of random actions came to {look.best_return:.3g}. Rewards "
            f"come nearly everywhere, and nothing says which return is enough; --success-return does. {how}"
        )
    explored = stages.get("explore")
    if explored is not None and explored["first_reward"] is None:
        return f"Reward never seen: {_coverage(explored)} {rate}. {_advice(explored)}"
    if success >= PARTLY:
        return f"Learned in part: {rate}. {how} More samples would go on where this ended."
    starts = stages.get("learn", {}).get("starts")
    if starts is not None and starts["level"] > 0.0 and starts["farthest"] > 0.0:
        reached = min(1.0, starts["level"] / starts["farthest"])
        if 0.25 < reached < 1.0:
            return (
                f"Learned, but not from the start: starts moved back over {reached:.0%} of the way from the reward "
                f"to the environment's own start; {rate}. {how} More samples would move them on."
            )
    return (
        f"Seen but not learned: the reward was met after {summary['first_reward']:,} samples, and the learner did not "
        f"follow; {rate}. {how} Try more samples, or another --algorithm (recurrent-ppo where an observation does not "
        "show all that matters)."
    )


def _how(summary: dict[str, Any], stages: dict[str, Any]) -> str:
    """What acts, and how it was come by."""
    agent = summary["settings"]["agent"]
    if agent["kind"] == "plan":
        trained = "no network that was trained is better" if "learn" in stages else "plain learning is no better"
        return f"What acts is the plan on the counts of the exploration, by cells; {trained}."
    if agent["kind"] == "way":
        way = stages["explore"]["way"]
        return (
            f"What acts are the {way['steps']:,} steps that returned most while exploring, one after the other without "
            "a look: cells mix what differs here, but the same actions lead to the same place. It is no network that "
            "sees, and what is random in an environment would lead it astray."
        )
    if agent["folder"] == "learning":
        return "What acts is a network, trained from starts that moved back from the reward."
    if agent["folder"] == REPLAY:
        return "What acts is a network of values, learned from the steps of exploring and from its own."
    if "explore" not in stages:
        return "What acts is a network, learned from the environment's own start alone; no exploring was needed."
    return "What acts is a network, learned from the environment's own start alone."


def _coverage(explored: dict[str, Any]) -> str:
    ended = "nothing is left to which it knows a way" if explored["complete"] else "there is more to be found"
    met = f"{explored['cells']:,} cells ({explored['cells_are']})"
    return f"{explored['samples']:,} samples of exploring met {met}, and {ended}."


def _advice(explored: dict[str, Any]) -> str:
    if explored["complete"]:
        return (
            "Finer cells may tell apart what is different: --cells hash, or --cells module:function:COUNT with what "
            "matters of an observation."
        )
    return "Try more --samples; or coarser cells, --cells module:function:COUNT with what matters of an observation."


def candidate_words(candidate: dict[str, Any]) -> str:
    """What an agent is, in words."""
    if candidate["kind"] == "plan":
        return "the plan on the counts"
    if candidate["kind"] == "way":
        return "the stored way"
    if candidate["folder"] == REPLAY:
        return "the network of values"
    how = "likeliest actions" if candidate["deterministic"] else "actions drawn"
    network = "the plain learner's network" if candidate["folder"] == PLAIN else "the network"
    return f"{network}, {candidate['which']}, {how}"


def look_words(look: TaskLook) -> str:
    """What the look found out."""
    if look.pays_all_along:
        return "Rewards come nearly everywhere: a plain learner has something to learn from."
    if look.price < 0.0:
        return f"Every step costs {-look.price:g}, and nothing else was paid in {look.steps:,} random steps."
    return f"Rewards are rare: {look.often:.1%} of {look.steps:,} random steps paid anything of their own."
