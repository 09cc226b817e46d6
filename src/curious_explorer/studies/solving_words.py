"""What came of `solve`, in words: solved, or which part failed and what to try."""

from __future__ import annotations

from typing import Any

from curious_explorer.studies.task_look import TaskLook

SUMMARY_KEYS = {
    "environment",
    "seed",
    "success",
    "success_return",
    "return_mean",
    "return_best_seen",
    "samples",
    "evaluation_samples",
    "explored",
    "first_reward",
    "cells",
    "settings",
    "verdict",
}
SOLVED, PARTLY = 0.9, 0.1
"""From which share of successful episodes on a task counts as solved; below the second, as not learned."""


def verdict(summary: dict[str, Any], stages: dict[str, Any], look: TaskLook) -> str:
    """Which part went how far."""
    success, mean = summary["success"], summary["return_mean"]
    rate = f"{success:.0%} of 50 fresh episodes return more than {summary['success_return']:g} (mean {mean:.3g})"
    how = _how(summary, stages)
    if success >= SOLVED or (look.threshold is not None and mean >= look.threshold):
        reached = look.threshold is not None and mean >= look.threshold
        above = f", and the mean is above the {look.threshold:g} that its registration asks for" if reached else ""
        return f"Solved: {rate}{above}. {how}"
    if look.pays_all_along:
        return (
            f"Learned plainly, as rewards come nearly everywhere: {rate}. {how} More samples, another --algorithm, or "
            "--success-return if this is good enough."
        )
    explored = stages.get("explore")
    if explored is not None and explored["first_reward"] is None:
        return f"Reward never seen: {_coverage(explored)} {rate}. {_advice(explored)}"
    if success >= PARTLY:
        return f"Learned in part: {rate}. {how} More samples would go on where this ended."
    starts = stages.get("learn", {}).get("starts")
    if starts is not None and starts["level"] > 0.0 and starts["farthest"] > 0.0:
        reached = min(1.0, starts["level"] / starts["farthest"])
        if reached > 0.25:
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
        trained = "the network that was trained is worse" if "learn" in stages else "no network was trained"
        return f"What acts is the plan on the counts of the exploration, by cells; {trained}."
    if "explore" not in stages:
        return "What acts is a network, learned from the environment's own start alone; no exploring was needed."
    if "learn" not in stages:
        return "What acts is the network of the plain learner."
    return "What acts is a network, trained from starts that moved back from the reward."


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
