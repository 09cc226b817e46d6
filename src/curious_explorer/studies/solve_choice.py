"""What `solve` hands out: networks and the plan on the counts, compared by fresh episodes; fifty more of the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from curious_explorer.gym.agents import play_episodes
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.storage import write_json
from curious_explorer.studies.solve_budget import CHOOSING_EPISODES
from curious_explorer.studies.solve_files import (
    AGENT,
    AGENT_FILE,
    LEARNING,
    PLAIN,
    PLAN,
    REPLAY,
    SUMMARY,
    SUMMARY_FILE,
    keep,
    open_agent,
)
from curious_explorer.studies.solve_measuring import (
    COUNTING,
    FEWEST_EPISODES,
    STAGE_OF,
    from_counts,
    longest_of,
    measure,
    network,
    play_for,
)
from curious_explorer.studies.solve_report import write_report
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.solving_words import candidate_words, summarise
from curious_explorer.studies.task_look import TaskLook

FINAL_EPISODES = 50
ROUNDS = 3
"""In which the steps for choosing are spent: seven agents, three, one."""


def choose(run: SolveRun, look: TaskLook) -> None:
    """Which of all that was learned and planned is handed out: the better half goes on to more episodes, and again."""
    if "choose" in run.stages:
        return
    longest = longest_of(run, look)
    candidates = _candidates(run, look)[: max(1, run.left // (FEWEST_EPISODES * longest))]
    alive, seed = list(range(len(candidates))), spawned_seed(run.settings.seed, 4)
    returns: list[list[float]] = [[] for _ in candidates]
    steps, given, fewest = 0, min(run.left, CHOOSING_EPISODES * longest), FEWEST_EPISODES
    while len(alive) > 1 and steps + len(alive) * fewest * longest <= run.left:
        for number in alive:
            agent = open_agent(run.folder, candidates[number], seed=spawned_seed(seed, number, fewest))
            share = given // (ROUNDS * len(alive))
            played = play_for(run, look, agent, share, seed + len(returns[number]), fewest)
            steps += played.steps
            returns[number] += played.returns
            words = f"{candidate_words(candidates[number])}: {np.mean(returns[number]):.3g}"
            run.progress(Progress("choosing", run.used + steps, words))
        alive.sort(key=lambda number: _worth(run, returns[number]), reverse=True)
        alive = alive[: len(alive) // 2]
        fewest *= 2
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


def _candidates(run: SolveRun, look: TaskLook) -> list[dict[str, Any]]:
    """Those first that did best so far."""
    ways = [name for name in (LEARNING, REPLAY, PLAIN) if STAGE_OF[name] in run.stages]
    if run.stages.get("explore", {}).get("distance") is not None:
        ways.append(COUNTING)
    if len(ways) > 1:
        ways.sort(key=lambda name: measure(run, look, name), reverse=True)
    found: list[dict[str, Any]] = []
    for way in ways:
        found += (
            _of_counts(run) if way == COUNTING else [network(way, "best", likely) for likely in likeliest_first(way)]
        )
    if LEARNING in ways:
        found += [network(LEARNING, "last", likeliest) for likeliest in (True, False)]
    return found


def _of_counts(run: SolveRun) -> list[dict[str, Any]]:
    first = from_counts(run)
    return [first] if first == PLAN else [first, PLAN]


def likeliest_first(way: str) -> tuple[bool, ...]:
    """How a network may act: by its likeliest actions, or as it draws them; one that learned values draws hardly."""
    return (True,) if way == REPLAY else (True, False)


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
