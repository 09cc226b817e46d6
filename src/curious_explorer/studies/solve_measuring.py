"""What the ways of a run to go on have come to, measured on fresh episodes: as many as a number of steps allows."""

from __future__ import annotations

from typing import Any

from curious_explorer.gym.agents import Agent, Played, play_episodes
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.studies.solve_files import LEARNING, PLAIN, PLAN, REPLAY, WAY, open_agent
from curious_explorer.studies.solve_run import SolveRun
from curious_explorer.studies.task_look import TaskLook

COUNTING, PLANNED = "counting", "planned"
STAGE_OF = {PLAIN: "plain", LEARNING: "learn", REPLAY: "replay", COUNTING: "explore", PLANNED: "explore"}
"""Where the results of each way to go on are kept."""
FEWEST_EPISODES, MOST_EPISODES = 3, 200


def network(folder: str, which: str, deterministic: bool) -> dict[str, Any]:
    """The agent that a training has left."""
    return {"kind": "network", "folder": folder, "which": which, "deterministic": deterministic}


def from_counts(run: SolveRun) -> dict[str, Any]:
    """The agent that exploring has left: stored actions where cells mix states, the plan on the counts elsewhere."""
    return PLAN if run.stages["explore"].get("way") is None else WAY


def longest_of(run: SolveRun, look: TaskLook) -> int:
    """The most steps of an episode: a way that is known may be longer than any that was seen in the look."""
    way = run.stages.get("explore", {}).get("way")
    return look.longest if way is None else max(look.longest, int(way["steps"]))


def play_for(run: SolveRun, look: TaskLook, agent: Agent, steps: int, seed: int, fewest: int) -> Played:
    """Episodes from the environment's own start, until so many steps were taken; a few at least, and not too many."""
    env, returns, lengths = run.make(), list[float](), list[int]()
    while len(returns) < fewest or (sum(lengths) < steps and len(returns) < MOST_EPISODES):
        played = play_episodes(env, agent, 1, seed=seed + len(returns), longest=look.longest)
        returns += played.returns
        lengths += played.lengths
    env.close()
    return Played(returns, lengths)


def measure(run: SolveRun, look: TaskLook, way: str) -> float:
    """The mean return of what a way has come to so far; measured once for each time that it went on."""
    kept = run.stages.get("measure", {"samples": 0})
    samples, curve = int(run.stages[STAGE_OF[way]]["samples"]), kept.get(way, [])
    if not curve or curve[-1][0] < samples:
        agents = {COUNTING: from_counts(run), PLANNED: PLAN}
        described = agents.get(way) or network(way, "best", way == REPLAY)
        seed = spawned_seed(run.settings.seed, 9, len(curve))
        agent = open_agent(run.folder, described, seed=seed)
        played = play_for(run, look, agent, run.budget.measuring, seed, FEWEST_EPISODES)
        measured = [*curve, [samples, played.mean_return, len(played.returns)]]
        run.keep("measure", kept | {"samples": kept["samples"] + played.steps, way: measured})
    return worth_of(run, way)


def worth_of(run: SolveRun, way: str) -> float:
    """What was measured last."""
    return float(run.stages["measure"][way][-1][1])
