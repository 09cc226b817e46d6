"""``report.html`` of a run of `solve`: what was chosen and why, what exploring saw, how learning went, and videos."""

from __future__ import annotations

import importlib.util
import json
import shlex
from pathlib import Path
from typing import Any

from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.agents import Agent
from curious_explorer.gym.cells import Env
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.sb3.training import SETTINGS_FILE as TRAINING_FILE
from curious_explorer.storage import write_atomically
from curious_explorer.studies.page.page_assembly import text_table
from curious_explorer.studies.page.run_page import Section, drawing, film_of, run_page, words
from curious_explorer.studies.playing import draws_pictures, environment_of, film
from curious_explorer.studies.run_figures import draw_between, draw_growth, draw_learning
from curious_explorer.studies.solve_files import (
    EXPLORATION,
    LEARNING,
    PLAIN,
    PLAN,
    REPLAY,
    WAY,
    chosen_agent,
    open_agent,
)
from curious_explorer.studies.solving_words import candidate_words
from curious_explorer.studies.task_look import TaskLook

REPORT_FILE, AGENT_VIDEO, WAY_VIDEO = "report.html", "agent.mp4", "way.mp4"
FILMED_EPISODES, FILMED_WAYS = 3, 1


def write_report(folder: Path, summary: dict[str, Any], stages: dict[str, Any], look: TaskLook) -> Path:
    """Write the page, and the videos that it shows beside it."""
    sections = [
        Section("result", "Result", _result(summary, stages)),
        Section("agent", "The agent", _videos(folder, stages)),
        Section("chosen", "What was chosen, and why", _chosen(folder, summary, stages, look)),
    ]
    if "explore" in stages:
        sections.append(Section("exploring", "Exploring", _exploring(folder, stages)))
    sections += [
        Section("learning", "Learning", _learning(stages)),
        Section("again", "How to do it again", _again(folder, summary, stages)),
    ]
    title = f"{summary['environment']}: solve"
    return write_atomically(folder / REPORT_FILE, run_page(title, str(summary["verdict"]), sections))


def _result(summary: dict[str, Any], stages: dict[str, Any]) -> str:
    explored, first = summary["explored"], summary["first_reward"]
    exploring = stages.get("explore", {}).get("first_reward")
    before = stages["look"]["samples"] + stages["plain"]["trial"]
    among = f", {exploring:,} of them of exploring" if exploring is not None and first == before + exploring else ""
    rows = {
        "success": f"{summary['success']:.0%} of fresh episodes return more than {summary['success_return']:g}",
        "mean return": f"{summary['return_mean']:.4g}",
        "best return seen": f"{summary['return_best_seen']:.4g}",
        "samples": f"{summary['samples']:,}, all stages and their evaluations",
        "of the last episodes": f"{summary['evaluation_samples']:,} more, which only measure",
        "explored": "not needed" if explored is None else f"{explored:,} samples",
        "first reward": "never seen" if first is None else f"after {first:,} samples{among}",
    }
    return text_table(("what", "how much"), rows, "Result")


def _videos(folder: Path, stages: dict[str, Any]) -> str:
    """The agent, and the way that exploring found, if they can be drawn and encoded."""
    parts = [_video(folder, open_agent(folder, chosen_agent(folder)), AGENT_VIDEO, FILMED_EPISODES, "The agent")]
    if stages.get("explore", {}).get("distance") is not None:
        stored = stages["explore"].get("way") is not None
        plan = open_agent(folder, WAY if stored else PLAN)
        what = (
            "The stored actions that returned most"
            if stored
            else "The way to the reward on the counts, by which roll-ins go"
        )
        parts.append(_video(folder, plan, WAY_VIDEO, FILMED_WAYS, what))
    return "\n".join(parts)


def _video(folder: Path, agent: Agent, name: str, episodes: int, what: str) -> str:
    missing = None if importlib.util.find_spec("imageio_ffmpeg") else "the package imageio-ffmpeg is not installed"
    env: Env | None = None
    if missing is None and not draws_pictures(folder):
        missing = "the environment draws no pictures (its metadata has no render mode 'rgb_array')"
    elif missing is None:
        try:
            env = environment_of(folder, render_mode="rgb_array")
        except (ValueError, TypeError) as error:
            missing = f"the environment draws no pictures ({error})"
    if env is None:
        return words(f"{what}: no video, because {missing}.")
    try:
        played = film(env, agent, episodes, folder / name, seed=1_000)
    except Exception as error:  # drawing is the environment's own code, and a run is not lost for want of it
        return words(f"{what}: no video, because the environment could not be drawn ({type(error).__name__}: {error}).")
    shown = ", ".join(f"{each:.4g}" for each in played.returns)
    return f"<h3>{what}</h3>\n{film_of(folder / name, what)}\n{words(f'Returns: {shown}.')}"


def _chosen(folder: Path, summary: dict[str, Any], stages: dict[str, Any], look: TaskLook) -> str:
    layout = stages["layout"]["layout"]
    rows = {"layout": "none: resets begin the same task" if layout is None else f"{layout} in every episode"}
    if look.layouts_change:
        rows["layout"] += ", because every reset draws another; what was learned is for this layout"
    rows["rewards"] = (
        "come nearly everywhere, so a plain learner has something to learn from"
        if look.pays_all_along
        else f"rare: {look.often:.1%} of {look.steps:,} random steps paid anything of their own"
    )
    if look.paid_back < 0.0:
        rows["price"] = (
            f"every step costs {-look.price:g}; while exploring and learning from its starts it is paid back"
        )
    plain = stages["plain"]
    rows["a plain learner"] = (
        f"met something to learn from in {plain['times']} of {plain['episodes']:,} episodes, and "
        + ("that was enough" if plain["solved"] else "was given no more samples until there was a plan on the counts")
    )
    explored = stages.get("explore")
    if explored is not None:
        rows["cells"] = " ".join([explored["cells_are"] + ".", *explored["notes"]])
        if "memory" in stages:
            steps = stages["memory"]["steps"]
            rows["memory"] = f"observations remember the last {steps} that differed, and for how long nothing has"
        rows["actions"] = str(explored["actions"])
        if explored["distance"] is not None:
            rows["distance"] = f"{explored['distance']} steps from the start to the reward, by ways that were seen"
    for name in (PLAIN, LEARNING, REPLAY):
        path = folder / name / TRAINING_FILE
        if path.is_file():
            asked = json.loads(path.read_bytes())["settings"]
            shown = ("algorithm", "samples", "num_envs", "reward_scale", "price", "hyperparameters", "starts")
            rows[f"settings, {name}"] = "; ".join(f"{key} {asked[key]}" for key in shown if key in asked)
    compared = {
        candidate_words(each): f"{each['success']:.0%} of {each['episodes']:,} episodes, mean return "
        f"{each['return_mean']:.4g}"
        for each in stages["choose"]["measured"]
    }
    text = text_table(("what", "chosen"), rows, "What was chosen")
    if compared:
        text += "\n<h3>Agents compared</h3>\n" + text_table(("agent", "worth"), compared, "Agents compared")
    return text


def _exploring(folder: Path, stages: dict[str, Any]) -> str:
    explored = stages["explore"]
    exploration = Exploration.load(folder / EXPLORATION)
    first = explored["first_reward"]
    found = "no reward was seen" if first is None else f"the first reward was seen after {first:,} of them"
    sentence = f"{explored['samples']:,} samples met {explored['cells']:,} cells; {found}."
    if explored["complete"]:
        sentence += " It stopped by itself: nothing is left to which it knows a way."
    parts = [words(sentence), drawing(lambda: draw_growth(explored["growth"], first), "Cells met against samples")]
    model = exploration.model
    if isinstance(model, GrowingModel):
        parts.append(words("Every cell between the start and the reward; the shortest way is the diagonal."))
        parts.append(drawing(lambda: draw_between(model), "Cells by their steps from the start and to the reward"))
    return "\n".join(parts)


def _learning(stages: dict[str, Any]) -> str:
    curves: dict[str, Any] = {name: stages[name]["curve"] for name in ("plain", "learn", "replay") if name in stages}
    before = {"plain": stages["look"]["samples"]}
    explored = sum(stages.get(name, {}).get("samples", 0) for name in ("memory", "explore"))
    before["learn"] = before["replay"] = before["plain"] + stages["plain"]["trial"] + explored
    what = "Returns from the environment's own start against samples"
    parts = [drawing(lambda: draw_learning(curves, before), what)]
    halving = stages.get("halving", {"given_up": [], "alive": []})
    if len(halving["given_up"]) + len(halving["alive"]) > 1:
        went = " and ".join(halving["alive"]) or "nothing"
        given_up = f"; given up: {', '.join(halving['given_up'])}" if halving["given_up"] else ""
        parts.append(words(f"What was left of the samples was shared out; to the end went {went}{given_up}."))
    learned = stages.get("learn")
    if learned is not None:
        parts.append(words(f"{learned['roll_ins']:,} of its samples were steps of roll-ins."))
    if learned is not None and learned["warm_start"] is not None:
        warm = learned["warm_start"]
        parts.append(
            words(
                f"It began by imitating the plan on the counts: {warm['episodes']} episodes, {warm['samples']:,} "
                f"samples; its likeliest action was the plan's in {warm['agreement']:.0%} of their states."
            )
        )
    if learned is not None and learned["starts"] is not None:
        at = learned["starts"]
        parts.append(
            words(
                f"Starts moved to {at['level']:.0f} of {at['farthest']:.0f} steps from the reward, over "
                f"{at['episodes']:,} episodes; of the last ones from the environment's own start "
                f"{at['own_success']:.0%} succeeded."
            )
        )
    return "\n".join(parts)


def _again(folder: Path, summary: dict[str, Any], stages: dict[str, Any]) -> str:
    asked = summary["settings"]["asked"]
    name = shlex.quote(asked["environment"])
    command = f"curious-explorer solve {name} --samples {asked['samples']} --seed {asked['seed']}"
    for name in ("algorithm", "success_return", "cells", "layout"):
        if asked[name] is not None:
            command += f" --{name.replace('_', '-')} {shlex.quote(str(asked[name]))}"
    return words(
        command,
        f"curious-explorer play {shlex.quote(str(folder))}",
        f"In Python: curious_explorer.load_policy({str(folder)!r})(observation) is an action."
        + (" It remembers: call its begin() when an episode begins." if "memory" in stages else ""),
        "model.zip in the folder of a training is Stable-Baselines3's own format, vecnormalize.pkl what it saw "
        "observations by; TensorBoard's logs are in tensorboard/.",
    )
