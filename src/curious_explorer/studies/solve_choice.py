"""What `solve` hands out: networks and the plan on the counts, compared by fresh episodes; fifty more of the best."""

from __future__ import annotations

from typing import Any

from curious_explorer.gym.agents import play_episodes
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.storage import write_json
from curious_explorer.studies.solve_files import (
    AGENT,
    AGENT_FILE,
    EXPLORATION,
    LEARNING,
    PLAIN,
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


def choose(run: SolveRun, look: TaskLook) -> None:
    """Which of all that was learned and planned is handed out."""
    if "choose" in run.stages:
        return
    best: tuple[float, float] | None = None
    candidates = _candidates(run)
    chosen = candidates[0]
    measured, steps = [], 0
    above = run.success_return
    episodes = run.budget.episodes_each(run.left, len(candidates))
    for number, candidate in enumerate(candidates):
        if episodes == 0:
            break
        env = run.make()
        agent = open_agent(run.folder, candidate, seed=spawned_seed(run.settings.seed, 3, number))
        seed = spawned_seed(run.settings.seed, 4)
        played = play_episodes(env, agent, episodes, seed=seed, longest=look.longest)
        env.close()
        steps += played.steps
        worth = (played.success(above), played.mean_return)
        measured.append({**candidate, "success": worth[0], "return_mean": worth[1]})
        run.progress(Progress("choosing", run.used + steps, f"{candidate_words(candidate)}: {worth[1]:.3g}"))
        if best is None or worth > best:
            best, chosen = worth, candidate
    keep(run.folder, AGENT_FILE, AGENT, "agent", chosen)  # before the stage counts as done
    run.keep("choose", {"samples": steps, "agent": chosen, "measured": measured})


def _candidates(run: SolveRun) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    where = LEARNING if "learn" in run.stages else PLAIN
    for which, deterministic in (("best", True), ("best", False), ("last", True), ("last", False)):
        found.append({"kind": "network", "folder": where, "which": which, "deterministic": deterministic})
    if run.stages.get("explore", {}).get("first_reward") is not None:
        found.append({"kind": "plan", "folder": EXPLORATION})
    return found


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
