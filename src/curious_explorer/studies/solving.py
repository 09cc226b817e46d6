"""`solve_task`: from an environment and a number of samples to an agent, or to a clear account of why not.

    look       random actions: what is paid, how long episodes last, whether layouts change
    plain      a learner at the environment's own start: where it meets rewards by itself, it goes on, and that is all
    explore    by counts, until a reward and a bit more
    learn      from starts that move back from the reward to the environment's own start
    choose     the best of what was learned, and the plan on the counts, by fresh episodes
    evaluate   fifty fresh episodes

One number of samples is shared out as it goes, and every step counts that anything was learned or chosen by; the fifty
episodes of the end only measure, and are told apart. Settings follow from what was measured on the way, never from the
name of the task. Each stage keeps its result in ``stages.json``, and goes on where it stood when it was interrupted.

RUN/solve.json        what was asked for
RUN/stages.json       the results of the stages so far
RUN/plain, learning   trainings, see `sb3.training`
RUN/exploration       the counts, and RUN/reset_model to train from them
RUN/agent.json        which of them acts: see `playing.load_policy`
RUN/summary.json      what came of it
RUN/report.html       the same for people
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from curious_explorer.explorers.checkpoint import COUNTS_FILE
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.gym.agents import Agent, Played, play_episodes
from curious_explorer.gym.cell_names import named_cells
from curious_explorer.gym.cells import Env
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.network_inputs import num_inputs
from curious_explorer.gym.network_policy import num_outputs
from curious_explorer.gym.shifted_reward import without_price
from curious_explorer.gym.time_limits import time_limit_of
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.models.reaching import Reaching
from curious_explorer.resets.chosen_states import rewarding_states
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.algorithms import OFF_POLICY, TRAINABLE, spawned_seed
from curious_explorer.sb3.training import CHECKPOINT_FILE, Evaluated, Training, train_into
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.storage import read_json, write_json
from curious_explorer.studies.solve_files import (
    AGENT,
    AGENT_FILE,
    EXPLORATION,
    LEARNING,
    LOG,
    PLAIN,
    RESETS,
    STAGES,
    STAGES_FILE,
    SUMMARY,
    SUMMARY_FILE,
    chosen_agent,
    open_agent,
    solve_folder,
)
from curious_explorer.studies.solve_report import write_report
from curious_explorer.studies.solving_words import SUMMARY_KEYS, verdict
from curious_explorer.studies.task_look import RewardLog, TaskLook, layouts_change, look_at_task
from curious_explorer.validation import check_count, check_name, check_seed

LEAST_SAMPLES = 5_000
"""A look, two updates of a plain learner, and as much again to explore and to learn."""
LEAST_EPISODES = 20
"""So many episodes of full length must fit, those of evaluations among them."""
LOOK_SHARE, LEAST_LOOK, MOST_LOOK = 0.02, 200, 2_000
PLAIN_SHARE, LEAST_PLAIN, MOST_PLAIN = 0.05, 2_048, 25_000
"""What a plain learner is given to show that it meets rewards by itself."""
ENOUGH_TOLD, FEWEST_TOLD = 0.05, 3
"""Of its last hundred episodes, the share that has something to learn from where plain learning goes on."""
PLAIN_TRIAL = 0.3
"""Where plain learning goes on, the share of all samples after which it is asked whether it got anywhere."""
EXPLORE_SHARE = 0.85
"""The most of what is left that exploring takes, if it meets no reward before."""
AFTER_REWARD, LEAST_AFTER_SHARE = 0.5, 0.03
"""How long exploring goes on after the first reward, in times of what that took, and at least this share of all: a
small reward beside the start is not what a task is about."""
CANDIDATES, CHOOSING_SHARE = 5, 0.1
"""How many agents are compared in the end, and the most of what is left that this may take."""
CHOOSING_EPISODES, FINAL_EPISODES = 10, 50
EVALUATIONS, EVALUATION_SHARE = 20, 5
"""Evaluations take at most one step for so many of learning."""
MOST_EVALUATED, FEWEST_EVALUATED = 10, 3
SOLVED_TIMES = 3
"""So many evaluations in a row at which every episode succeeds, and that get no better, end a training."""
NO_BETTER = 0.02


@dataclass(frozen=True, kw_only=True)
class SolveSettings:
    """What is asked for; everything else follows from the task."""

    environment: str
    samples: int
    seed: int = 0
    algorithm: str | None = None
    """By default PPO, or SAC where actions are numbers and there is a reward nearly everywhere."""
    success_return: float | None = None
    """An episode succeeds above this return; by default above zero, or, where nothing pays more than zero, above the
    best return that random actions met in the look."""
    cells: str | None = None
    """By name, see `named_cells`; chosen by themselves by default."""
    layout: int | None = None
    """The layout of every episode; by default the seed's, where every reset draws another."""

    def __post_init__(self) -> None:
        check_count(self.samples, "samples", least=1)
        if self.samples < LEAST_SAMPLES:
            raise ValueError(
                f"samples is {self.samples:,}, too few for a look, an exploration and a training; the least is "
                f"{LEAST_SAMPLES:,}, and tasks with rare rewards take 100,000 and more"
            )
        check_seed(self.seed)
        if self.algorithm is not None:
            check_name(self.algorithm, TRAINABLE, "algorithm")
        if self.success_return is not None and not math.isfinite(self.success_return):
            raise ValueError(f"success_return is {self.success_return}, expected a finite number")


class Progress(NamedTuple):
    """How far it is, for a line on a terminal."""

    stage: str
    samples: int
    words: str


@dataclass(frozen=True)
class Solved:
    """What came of it."""

    folder: Path
    summary: dict[str, Any]
    stages: dict[str, Any] = field(repr=False)

    @cached_property
    def policy(self) -> Agent:
        """The best of what was measured: ``policy(observation)`` is an action."""
        return open_agent(self.folder, chosen_agent(self.folder))

    @cached_property
    def exploration(self) -> Exploration | None:
        """What exploring left behind; None where it was not needed."""
        found = self.folder / EXPLORATION
        return Exploration.load(found) if (found / COUNTS_FILE).is_file() else None

    def __str__(self) -> str:
        return str(self.summary["verdict"])


def solve_task(
    environment: str,
    *,
    samples: int,
    out: str | Path | None = None,
    seed: int = 0,
    algorithm: str | None = None,
    success_return: float | None = None,
    cells: str | None = None,
    layout: int | None = None,
    callback: Any = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solved:
    """Bring a task to an agent, or say why not; a call that was interrupted goes on where it stood.

    Args:
        environment: a Gymnasium id: ``my_package:MyEnv-v0``, ``FrozenLake-v1?map_name=8x8``.
        samples: the most steps to take, those of roll-ins and of evaluations on the way included.
        out: the folder of the run; by default ``results/solve`` and the id.
        seed: where everything random comes from.
        algorithm: one of `TRAINABLE`.
        success_return: an episode succeeds above this return; see `SolveSettings`.
        cells: by name; chosen by themselves by default.
        layout: the layout of every episode, where resets draw layouts; the seed's by default.
        callback: of Stable-Baselines3, told of every step of learning.
        tell: told in a sentence what was found and what comes next.
        progress: told how far it is.
    """
    settings = SolveSettings(
        environment=environment,
        samples=samples,
        seed=seed,
        algorithm=algorithm,
        success_return=success_return,
        cells=cells,
        layout=layout,
    )
    folder = default_folder(environment) if out is None else Path(out)
    return _Solving(folder, settings, callback, tell or (lambda text: None), progress or (lambda now: None)).run()


def default_folder(environment: str) -> Path:
    """Where a run goes that was not told where."""
    return Path("results") / "solve" / re.sub(r"[^A-Za-z0-9._-]+", "-", environment).strip(".-")


class _Solving:
    """One run: its folder, its stages, and what is left of its samples."""

    def __init__(
        self,
        folder: Path,
        settings: SolveSettings,
        callback: Any,
        tell: Callable[[str], None],
        progress: Callable[[Progress], None],
    ) -> None:
        self.folder, self.settings = folder, settings
        self._callback, self._tell, self._progress = callback, tell, progress
        self.stages: dict[str, Any] = {}

    def run(self) -> Solved:
        """All stages; those that are done are not done again."""
        self._check()
        with solve_folder(self.folder).claim(asdict(self.settings)), warnings.catch_warnings():
            # Told once, when the environment was checked, and not for every one of a vector.
            warnings.filterwarnings("ignore", message=".*is out of date.*", category=DeprecationWarning)
            return self._run()

    def _run(self) -> Solved:
        settings = self.settings
        self._tell(
            f"Solving {settings.environment} within {settings.samples:,} samples, into {self.folder}; interrupted, the "
            "same command goes on."
        )
        path = self.folder / STAGES_FILE
        if path.is_file():
            self.stages = read_json(path, STAGES, {"stages"})["stages"]
            if (self.folder / SUMMARY_FILE).is_file():
                self._tell(f"{self.folder} holds this run already, finished.")
                return self._solved()
            self._tell(f"Going on in {self.folder} after: {', '.join(self.stages)}.")
        look = self._look()
        if not self._plain(look):
            exploration = self._explore(look)
            if exploration.first_reward is not None:
                self._learn(look, exploration)
        self._choose(look)
        self._evaluate(look)
        return self._solved()

    def _check(self) -> None:
        """Refuse now what would fail later."""
        env = make_by_id(self.settings.environment)
        try:
            num_inputs(env.observation_space)
            num_outputs(env.action_space)
            self._check_algorithm(env)
            least = max(LEAST_SAMPLES, LEAST_EPISODES * (time_limit_of(env) or 0))
            if self.settings.samples < least:
                raise ValueError(
                    f"samples is {self.settings.samples:,}, too few for episodes that may last {time_limit_of(env):,} "
                    f"steps; the least is {least:,}, {LEAST_EPISODES} of them"
                )
            if self.settings.cells is not None:
                named_cells(self.settings.cells, env)
        finally:
            env.close()

    def _check_algorithm(self, env: Env) -> None:
        """Refuse an algorithm that has no actions of this kind."""
        kinds = {"sac": (spaces.Box, "a box, as of torques"), "dqn": (spaces.Discrete, "one whole number")}
        kind, words = kinds.get(self.settings.algorithm or "", (spaces.Space, ""))
        if not isinstance(env.action_space, kind):
            raise ValueError(
                f"algorithm is {self.settings.algorithm}, whose actions are {words}, but actions of "
                f"{self.settings.environment} are {env.action_space}; leave --algorithm out, or choose ppo"
            )

    def _solved(self) -> Solved:
        summary = read_json(self.folder / SUMMARY_FILE, SUMMARY, SUMMARY_KEYS)
        return Solved(self.folder, {name: summary[name] for name in summary if name in SUMMARY_KEYS}, self.stages)

    def _keep(self, stage: str, result: dict[str, Any]) -> None:
        self.stages[stage] = result
        write_json(self.folder / STAGES_FILE, STAGES, {"stages": self.stages})

    @property
    def used(self) -> int:
        """All samples of stages that are done."""
        return sum(int(stage.get("samples", 0)) for stage in self.stages.values())

    @property
    def left(self) -> int:
        """How many samples are left."""
        return self.settings.samples - self.used

    def make(self) -> Env:
        """The environment, in its layout."""
        layout = self.stages.get("layout", {}).get("layout")
        return with_layout(make_by_id(self.settings.environment), layout)

    # The stages -----------------------------------------------------------------------------------------------------

    def _look(self) -> TaskLook:
        settings = self.settings
        if "layout" not in self.stages:
            change = layouts_change(lambda: make_by_id(settings.environment))
            layout = settings.layout if settings.layout is not None else (settings.seed if change else None)
            self._keep("layout", {"change": change, "layout": layout})
        if "look" not in self.stages:
            steps = int(min(max(LOOK_SHARE * settings.samples, LEAST_LOOK), MOST_LOOK))
            change = bool(self.stages["layout"]["change"])
            found = look_at_task(self.make, steps, spawned_seed(settings.seed, 1), layouts_change=change)
            self._keep("look", {"samples": steps, **asdict(found)})
        kept = {name: value for name, value in self.stages["look"].items() if name != "samples"}
        look = TaskLook(**kept)
        layout = self.stages["layout"]["layout"]
        if layout is not None:
            why = "every reset draws another layout" if look.layouts_change else "as asked for"
            self._tell(f"Layout {layout} in every episode ({why}): what is learned is for this layout.")
        self._tell(_look_words(look))
        return look

    def _plain(self, look: TaskLook) -> bool:
        """Learn plainly; returns whether that is all that is needed."""
        done = self.stages.get("plain")
        if done is not None and done["decided"]:
            return bool(done["goes_on"])
        settings = self.settings
        trial, log = self._trial, RewardLog(look)
        if done is None:
            given = self._learned_from(look, self.left) if look.pays_all_along else trial
            training = self._train(PLAIN, look, given, None, log)
            share, times = log.recent_share(), sum(log.told)
            told = {"told": share, "times": times, "episodes": len(log.told), "first": log.first}
            goes_on = look.pays_all_along or (share >= ENOUGH_TOLD and times >= FEWEST_TOLD)
            decided = look.pays_all_along or not goes_on
            self._keep("plain", self._trained(training) | told | {"goes_on": goes_on, "decided": decided})
            done = self.stages["plain"]
            if decided and not goes_on:
                met = "met no reward" if told["times"] == 0 else f"met a reward in {told['times']} episodes"
                self._tell(f"A plain learner {met} of {told['episodes']:,} in {trial:,} samples: exploring.")
            elif not decided:
                self._tell(f"A plain learner meets rewards by itself ({told['told']:.0%} of episodes): it goes on.")
        if not done["decided"]:
            for share in (PLAIN_TRIAL, 1.0):
                whole = self._learned_from(look, settings.samples - self.stages["look"]["samples"])
                samples = max(trial, int(share * whole))
                training = self._train(PLAIN, look, samples, None, log)
                goes_on = self._gets_somewhere(look, training.evaluations)
                ends = share == 1.0 or not goes_on or self._is_solved(look, training.evaluations)
                kept = {name: self.stages["plain"][name] for name in ("told", "times", "episodes", "first")}
                result = self._trained(training) | kept | {"goes_on": goes_on, "decided": ends}
                self._keep("plain", result)
                if ends:
                    break
            if not self.stages["plain"]["goes_on"]:
                self._tell("Plain learning got nowhere with the rewards that it met: exploring.")
        return bool(self.stages["plain"]["goes_on"])

    @property
    def _trial(self) -> int:
        """What a plain learner is given to show that it meets rewards by itself."""
        return int(min(max(PLAIN_SHARE * self.settings.samples, LEAST_PLAIN), MOST_PLAIN))

    def _explore(self, look: TaskLook) -> Exploration:
        folder = self.folder / EXPLORATION
        world = self._world(look)
        if "explore" in self.stages:
            return Exploration.load(folder, cell_function=world.discretisation.cells.function)
        given = int(EXPLORE_SHARE * self.left)
        before = self.used
        growth: list[list[int]] = []
        self._tell(world.discretisation.cells.describe() + ".")
        for note in world.notes:
            self._tell(note)

        def progress(samples: int, cells: int, first: int | None) -> None:
            growth.append([samples, cells])
            words = f"{cells:,} cells" + ("" if first is None else f", reward after {first:,}")
            self._progress(Progress("exploring", before + samples, words))

        looked = world.samples
        at_least = int(LEAST_AFTER_SHARE * self.settings.samples)
        explorer = Frontier(after_reward=AFTER_REWARD, least_after_reward=at_least)
        exploration = explorer.explore(world, gamma=0.99, samples=given - looked, checkpoint=folder, progress=progress)
        exploration.reset_model.save(self.folder / RESETS)
        met = len(exploration.model) if isinstance(exploration.model, GrowingModel) else 0
        distance = None if exploration.first_reward is None else _distance(exploration)
        self._keep(
            "explore",
            {
                "samples": exploration.samples + looked,
                "first_reward": exploration.first_reward,
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
        first = exploration.first_reward
        self._tell(
            f"Explored {exploration.samples:,} samples, {met:,} cells; "
            + ("no reward." if first is None else f"the first reward after {first:,}, {distance} steps from the start.")
        )
        return exploration

    def _world(self, look: TaskLook) -> GymWorld:
        made = self.make()
        cells = None if self.settings.cells is None else named_cells(self.settings.cells, made)
        made.close()
        seed = spawned_seed(self.settings.seed, 2)
        return GymWorld(lambda: without_price(self.make(), look.price), cells=cells, seed=seed, time_limits=True)

    def _learn(self, look: TaskLook, exploration: Exploration) -> None:
        if "learn" in self.stages:
            return
        resets = ResetModel.load(self.folder / RESETS)
        training = self._train(LEARNING, look, self._learned_from(look, self.left), resets, None)
        starts = None if training.starts is None else training.starts._asdict()
        warm = None if training.warm_start is None else training.warm_start._asdict()
        self._keep("learn", self._trained(training) | {"starts": starts, "warm_start": warm})

    def _choose(self, look: TaskLook) -> None:
        """Which of all that was learned and planned is handed out."""
        if "choose" in self.stages:
            return
        best: tuple[float, float] | None = None
        candidates = self._candidates()
        chosen = candidates[0]
        measured, steps = [], 0
        above = self.success_return
        episodes = min(self.left // (len(candidates) * look.longest), CHOOSING_EPISODES)
        for number, candidate in enumerate(candidates):
            if episodes == 0:
                break
            env = self.make()
            agent = open_agent(self.folder, candidate, seed=spawned_seed(self.settings.seed, 3, number))
            seed = spawned_seed(self.settings.seed, 4)
            played = play_episodes(env, agent, episodes, seed=seed, longest=look.longest)
            env.close()
            steps += played.steps
            worth = (played.success(above), played.mean_return)
            measured.append({**candidate, "success": worth[0], "return_mean": worth[1]})
            self._progress(Progress("choosing", self.used + steps, f"{candidate_words(candidate)}: {worth[1]:.3g}"))
            if best is None or worth > best:
                best, chosen = worth, candidate
        self._keep("choose", {"samples": steps, "agent": chosen, "measured": measured})
        write_json(self.folder / AGENT_FILE, AGENT, {"agent": chosen})

    def _candidates(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        where = LEARNING if "learn" in self.stages else PLAIN
        for which, deterministic in (("best", True), ("best", False), ("last", True), ("last", False)):
            found.append({"kind": "network", "folder": where, "which": which, "deterministic": deterministic})
        if self.stages.get("explore", {}).get("first_reward") is not None:
            found.append({"kind": "plan", "folder": EXPLORATION})
        return found

    def _evaluate(self, look: TaskLook) -> None:
        env = self.make()
        agent = open_agent(self.folder, self.stages["choose"]["agent"], seed=spawned_seed(self.settings.seed, 5))
        played = play_episodes(
            env, agent, FINAL_EPISODES, seed=spawned_seed(self.settings.seed, 6), longest=look.longest
        )
        env.close()
        self.stages["evaluate"] = {
            "returns": played.returns,
            "lengths": played.lengths,
            "evaluation_samples": played.steps,
        }
        self._keep("evaluate", self.stages["evaluate"])
        summary = summarise(self.settings, self.stages, played, look, self.success_return, self.used)
        self._progress(Progress("writing the report", self.used, ""))
        write_report(self.folder, summary, self.stages, look)
        write_json(self.folder / SUMMARY_FILE, SUMMARY, summary)

    # Trainings ------------------------------------------------------------------------------------------------------

    def _train(
        self, name: str, look: TaskLook, samples: int, resets: ResetModel | None, log: RewardLog | None
    ) -> Training:
        settings = self._training_settings(name, look, samples)
        stage = "learning" if name == LEARNING else "plain learning"
        used = self.used - int(self.stages.get("plain", {}).get("samples", 0)) * (name == PLAIN)
        said, noted = "no evaluation yet", self.folder / f"{name}_rewards.json"
        if log is not None and noted.is_file() and (self.folder / name / CHECKPOINT_FILE).is_file():
            log.restore(read_json(noted, LOG, {"log"})["log"])

        def watch(taken: int, learning_steps: int, evaluated: Evaluated | None) -> None:
            nonlocal said
            if evaluated is not None:
                said = f"return {evaluated.mean_return:.3g}"
                if log is not None:
                    write_json(noted, LOG, {"log": log.state()})
            self._progress(Progress(stage, used + taken, said))

        given = self._for_learning(look, self.settings.samples - used)
        assert settings.evaluate_every is not None
        assert settings.evaluation_episodes is not None
        interval, evaluation = settings.evaluate_every, settings.evaluation_episodes * look.longest

        def until(evaluations: Sequence[Evaluated]) -> bool:
            taken = evaluations[-1].samples
            spent = taken + sum(each.evaluation_steps for each in evaluations)
            following = min(interval, settings.samples - taken) + evaluation
            enough = len(evaluations) > 1 and spent + following > given
            return enough or self._is_solved(look, evaluations)

        return train_into(
            self.folder / name,
            settings,
            resets,
            tensorboard=self._logs(name),
            watch=watch,
            until=until,
            callback=self._callback,
            watched=None if log is None else log.around,
        )

    def _learned_from(self, look: TaskLook, given: int) -> int:
        """How many of so many samples are learned from, if evaluations and the choice in the end are to fit beside."""
        episodes, interval = self._evaluations(look)
        evaluation = episodes * look.longest
        left = self._for_learning(look, given) - evaluation  # that of the beginning
        return max(1, left - -(-left // (interval + evaluation)) * evaluation)

    def _evaluations(self, look: TaskLook) -> tuple[int, int]:
        """Episodes of an evaluation, and samples between two of them."""
        samples = self.settings.samples
        affordable = samples // (EVALUATIONS * EVALUATION_SHARE * look.longest)
        episodes = min(max(affordable, FEWEST_EVALUATED), MOST_EVALUATED)
        return episodes, max(LEAST_PLAIN, samples // EVALUATIONS, EVALUATION_SHARE * episodes * look.longest)

    def _for_learning(self, look: TaskLook, left: int) -> int:
        """What of so many samples is left for learning, with evaluations, if candidates are to be compared."""
        return left - int(min(CHOOSING_SHARE * left, CANDIDATES * CHOOSING_EPISODES * look.longest))

    def _logs(self, name: str) -> Path | None:
        """Where TensorBoard's logs go, if it is installed."""
        import importlib.util

        return self.folder / "tensorboard" / name if importlib.util.find_spec("tensorboard") else None

    def _training_settings(self, name: str, look: TaskLook, samples: int) -> TrainingSettings:
        """Settings from measured scales: how long ways and episodes are, and how large rewards."""
        settings = self.settings
        env = self.make()
        continuous = hasattr(env.action_space, "low")
        env.close()
        algorithm = settings.algorithm or ("sac" if continuous and look.pays_all_along else "ppo")
        given: dict[str, Any] = {"gamma": 0.99}
        scale = 1.0
        episodes, interval = self._evaluations(look)
        if name == PLAIN and not look.pays_all_along:
            interval = min(interval, self._trial)  # the same in the trial and where plain learning goes on
        explored = self.stages.get("explore")
        if name == LEARNING and explored is not None:
            distance = explored["distance"] or 1
            given["gamma"] = round(1.0 - 1.0 / min(max(100.0, 2.0 * distance), 1_000.0), 6)
            scale = 1.0 / explored["largest"] if explored["largest"] else 1.0
        elif look.spread > 0.0 and look.pays_all_along:
            scale = 1.0 / look.spread
        return TrainingSettings(
            environment=settings.environment,
            algorithm=algorithm,
            samples=max(1, samples),
            seed=spawned_seed(settings.seed, 7 if name == LEARNING else 8),
            num_envs=1 if algorithm == "sac" else 8,
            evaluate_every=interval,
            evaluation_episodes=episodes,
            evaluation_steps=look.longest,
            deterministic=False,
            layout=self.stages["layout"]["layout"],
            price=min(0.0, look.price) if name == LEARNING else 0.0,
            # The entropy that an off-policy actor-critic is paid is in units of single rewards, which stay as they are.
            reward_scale=1.0 if algorithm in OFF_POLICY else float(f"{scale:.6g}"),
            hyperparameters=given if algorithm not in OFF_POLICY else {"gamma": given["gamma"]},
        )

    def _trained(self, training: Training) -> dict[str, Any]:
        """What is kept of a training."""
        evaluations = training.evaluations
        return {
            "samples": training.samples + sum(each.evaluation_steps for each in evaluations),
            "learning_steps": training.learning_steps,
            "roll_ins": training.samples - training.learning_steps,
            "curve": [[each.samples, each.mean_return, each.std_return] for each in evaluations],
        }

    # What counts as success -----------------------------------------------------------------------------------------

    @property
    def success_return(self) -> float:
        """An episode succeeds above this return."""
        given, look = self.settings.success_return, self.stages["look"]
        if given is not None:
            return given
        explored = self.stages.get("explore", {}).get("largest") or 0.0
        pays = look["positive"] or look["price"] >= 0.0 or explored > 1.0 + 1e-9
        return 0.0 if pays else float(look["best_return"])

    def _is_solved(self, look: TaskLook, evaluations: Sequence[Evaluated]) -> bool:
        """Whether evaluations are as good as they get: sure of success, and no better for some time."""
        last = evaluations[-SOLVED_TIMES:]
        if len(evaluations) <= SOLVED_TIMES:
            return False
        if look.pays_all_along:
            return look.threshold is not None and all(each.mean_return >= look.threshold for each in last)
        sure = all(each.mean_return - 2.0 * each.std_return > self.success_return for each in last)
        before = max(each.mean_return for each in evaluations[:-SOLVED_TIMES])
        now = max(each.mean_return for each in last)
        return sure and now - before <= NO_BETTER * max(abs(now), abs(before))

    def _gets_somewhere(self, look: TaskLook, evaluations: Sequence[Evaluated]) -> bool:
        """Whether plain learning has found out how to succeed at least now and then."""
        best = max(each.mean_return for each in evaluations)
        first = evaluations[0].mean_return
        return best > self.success_return and best > first + NO_BETTER * abs(first)


def candidate_words(candidate: dict[str, Any]) -> str:
    """What an agent is, in words."""
    if candidate["kind"] == "plan":
        return "the plan on the counts"
    how = "likeliest actions" if candidate["deterministic"] else "actions drawn"
    return f"the network, {candidate['which']}, {how}"


def summarise(
    settings: SolveSettings, stages: dict[str, Any], played: Played, look: TaskLook, above: float, used: int
) -> dict[str, Any]:
    """What came of it, as plain data."""
    explored = stages.get("explore")
    curves = [row for name in ("plain", "learn") for row in stages.get(name, {}).get("curve", [])]
    best = max([look.best_return, *played.returns, *(row[1] for row in curves)])
    chosen = stages["choose"]["agent"]
    first = None
    if explored is not None and explored["first_reward"] is not None:
        first = stages["look"]["samples"] + stages["plain"]["samples"] + explored["first_reward"]
    elif stages["plain"]["first"] is not None:
        first = stages["look"]["samples"] + stages["plain"]["first"]
    elif look.pays_all_along:
        first = 1
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
    return summary | {"verdict": verdict(summary, stages, look)}


def _look_words(look: TaskLook) -> str:
    if look.pays_all_along:
        return "Rewards come nearly everywhere: a plain learner has something to learn from, and gets all samples."
    if look.price < 0.0:
        return f"Every step costs {-look.price:g}, and nothing else was paid in {look.steps:,} random steps."
    return f"Rewards are rare: {look.often:.1%} of {look.steps:,} random steps paid anything of their own."


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
