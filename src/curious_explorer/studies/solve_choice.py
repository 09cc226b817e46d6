"""What `solve` hands out: networks and the plan on the counts, compared by fresh episodes; fifty more of the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from curious_explorer.gym.agents import play_episodes
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.storage import write_json
from curious_explorer.studies.solve_files import (
    AGENT,
    AGENT_FILE,
    LEARNING,
    PLAIN,
    PLAN,
    SUMMARY,
    SUMMARY_FILE,
    keep,
    open_agent,
)
from curious_explorer.studies.solve_report import write_report
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.solving_words import candidate_words, summarise
from curious_explorer.studies.task_look import TaskLook

FINAL_EPISODES = 50
FIRST_EPISODES = 5
"""By which all agents are compared; the better half by twice as many more, and so on."""


def choose(run: SolveRun, look: TaskLook) -> None:
    """Which of all that was learned and planned is handed out: half of them go on to twice as many episodes each."""
    if "choose" in run.stages:
        return
    candidates = _candidates(run)
    alive = list(range(len(candidates)))
    returns: list[list[float]] = [[] for _ in candidates]
    steps, more = 0, FIRST_EPISODES
    while more > 0 and (len(alive) > 1 or steps == 0):
        more = min(more, (run.left - steps) // (len(alive) * look.longest))
        for number in alive if more > 0 else []:
            env = run.make()
            agent = open_agent(run.folder, candidates[number], seed=spawned_seed(run.settings.seed, 3, number, more))
            seed = spawned_seed(run.settings.seed, 4) + len(returns[number])
            played = play_episodes(env, agent, more, seed=seed, longest=look.longest)
            env.close()
            steps += played.steps
            returns[number] += played.returns
            words = f"{candidate_words(candidates[number])}: {np.mean(returns[number]):.3g}"
            run.progress(Progress("choosing", run.used + steps, words))
        if more > 0:
            alive.sort(key=lambda number: _worth(run, returns[number]), reverse=True)
            alive = alive[: -(-len(alive) // 2)]
        more *= 2
    measured = [
        {**candidate, "success": success(run, got), "return_mean": float(np.mean(got)), "episodes": len(got)}
        for candidate, got in zip(candidates, returns, strict=True)
        if got
    ]
    chosen = candidates[alive[0]]
    keep(run.folder, AGENT_FILE, AGENT, "agent", chosen)  # before the stage counts as done
    run.keep("choose", {"samples": steps, "agent": chosen, "measured": measured})


def success(run: SolveRun, returns: list[float]) -> float:
    """The share of returns that are a success."""
    return float(np.mean(np.array(returns) > run.success_return))


def _worth(run: SolveRun, returns: list[float]) -> tuple[float, float]:
    """The mean return; what counts first is success, where the user has said what that is."""
    asked = run.settings.success_return is not None
    return success(run, returns) if asked else 0.0, float(np.mean(returns))


def _candidates(run: SolveRun) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "learn" in run.stages:
        found += [_network(LEARNING, which, likeliest) for which in ("best", "last") for likeliest in (True, False)]
    found += [_network(PLAIN, "best", True), _network(PLAIN, "best", False)]
    if run.stages.get("explore", {}).get("distance") is not None:
        found.append(PLAN)
    return found


def _network(folder: str, which: str, deterministic: bool) -> dict[str, Any]:
    return {"kind": "network", "folder": folder, "which": which, "deterministic": deterministic}


def evaluate(run: SolveRun, look: TaskLook) -> None:
    """Play the chosen agent on fresh episodes, and write what came of it all."""
    env = run.make()
    agent = open_agent(run.folder, run.stages["choose"]["agent"], seed=spawned_seed(run.settings.seed, 5))
    played = play_episodes(env, agent, FINAL_EPISODES, seed=spawned_seed(run.settings.seed, 6), longest=look.longest)
    env.close()
    run.stages["evaluate"] = {
        "returns": played.returns,
        "lengths": played.lengths,
        "evaluation_samples": played.steps,
    }
    run.keep("evaluate", run.stages["evaluate"])
    summary = summarise(run.settings, run.stages, played, look, run.success_return, run.used)
    run.progress(Progress("writing the report", run.used, ""))
    write_report(run.folder, summary, run.stages, look)
    write_json(run.folder / SUMMARY_FILE, SUMMARY, summary)
