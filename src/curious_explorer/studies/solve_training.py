"""The trainings of `solve`: settings from measured scales, when one is enough, and what is kept of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curious_explorer.callbacks.events import EVALUATION, Callbacks, Event, on_events, part_of
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.algorithms import OFF_POLICY, spawned_seed
from curious_explorer.sb3.training import CHECKPOINT_FILE, Evaluated, Training, train_into
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.studies.solve_files import LEARNING, LOG, PLAIN, keep, kept
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.task_look import RewardLog, TaskLook

SOLVED_TIMES = 3
"""So many evaluations in a row at which every episode succeeds, and that get no better, end a training."""
NO_BETTER = 0.02


def train_for(
    run: SolveRun, name: str, look: TaskLook, samples: int, resets: ResetModel | None, log: RewardLog | None
) -> Training:
    """Learn from so many samples, until returns are as good as they get or what was given is spent."""
    settings = training_settings(run, name, look, samples)
    stage = "learning" if name == LEARNING else "plain learning"
    used = run.used - int(run.stages.get("plain", {}).get("samples", 0)) * (name == PLAIN)
    said, noted = "no evaluation yet", f"{name}_rewards.json"
    if log is not None and (run.folder / name / CHECKPOINT_FILE).is_file():
        met = kept(run.folder, noted, LOG, "log")
        if met is not None:
            log.restore(met)

    def show(event: Event) -> None:
        nonlocal said
        if event.kind == EVALUATION:
            said = f"return {event.numbers['evaluation/mean_return']:.3g}"
            if log is not None:
                keep(run.folder, noted, LOG, "log", log.state())
        run.progress(Progress(stage, used + event.samples, said))

    given = run.budget.for_learning(run.settings.samples - used)
    assert settings.evaluate_every is not None
    assert settings.evaluation_episodes is not None
    interval, evaluation = settings.evaluate_every, settings.evaluation_episodes * look.longest

    def until(evaluations: Sequence[Evaluated]) -> bool:
        taken = evaluations[-1].samples
        spent = taken + sum(each.evaluation_steps for each in evaluations)
        following = min(interval, settings.samples - taken) + evaluation
        enough = len(evaluations) > 1 and spent + following > given
        return enough or is_solved(run, look, evaluations)

    return train_into(
        run.folder / name,
        settings,
        resets,
        tensorboard=_logs(run, name),
        watch=Callbacks(on_events(show), part_of(run.watch, name, 0)),
        until=until,
        callback=run.callback,
        watched=None if log is None else log.around,
    )


def training_settings(run: SolveRun, name: str, look: TaskLook, samples: int) -> TrainingSettings:
    """Settings from measured scales: how long ways and episodes are, and how large rewards."""
    settings = run.settings
    env = run.make()
    continuous = hasattr(env.action_space, "low")
    env.close()
    algorithm = settings.algorithm or ("sac" if continuous and look.pays_all_along else "ppo")
    given: dict[str, Any] = {"gamma": 0.99}
    scale = 1.0
    episodes, interval = run.budget.evaluations
    if name == PLAIN and not look.pays_all_along:
        interval = min(interval, run.budget.trial)  # the same in the trial and where plain learning goes on
    explored = run.stages.get("explore")
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
        layout=run.stages["layout"]["layout"],
        price=min(0.0, look.price) if name == LEARNING else 0.0,
        # The entropy that an off-policy actor-critic is paid is in units of single rewards, which stay as they are.
        reward_scale=1.0 if algorithm in OFF_POLICY else float(f"{scale:.6g}"),
        hyperparameters=given if algorithm not in OFF_POLICY else {"gamma": given["gamma"]},
    )


def _logs(run: SolveRun, name: str) -> Path | None:
    """Where TensorBoard's logs go, if it is installed."""
    return run.folder / "tensorboard" / name if importlib.util.find_spec("tensorboard") else None


def kept_of(training: Training) -> dict[str, Any]:
    """What is kept of a training."""
    evaluations = training.evaluations
    return {
        "samples": training.samples + sum(each.evaluation_steps for each in evaluations),
        "learning_steps": training.learning_steps,
        "roll_ins": training.samples - training.learning_steps,
        "curve": [[each.samples, each.mean_return, each.std_return] for each in evaluations],
    }


def is_solved(run: SolveRun, look: TaskLook, evaluations: Sequence[Evaluated]) -> bool:
    """Whether evaluations are as good as they get: sure of success, and no better for some time."""
    last = evaluations[-SOLVED_TIMES:]
    if len(evaluations) <= SOLVED_TIMES:
        return False
    if look.pays_all_along:
        return look.threshold is not None and all(each.mean_return >= look.threshold for each in last)
    sure = all(each.mean_return - 2.0 * each.std_return > run.success_return for each in last)
    before = max(each.mean_return for each in evaluations[:-SOLVED_TIMES])
    now = max(each.mean_return for each in last)
    return sure and now - before <= NO_BETTER * max(abs(now), abs(before))


def gets_somewhere(run: SolveRun, evaluations: Sequence[Evaluated]) -> bool:
    """Whether plain learning has found out how to succeed at least now and then."""
    best = max(each.mean_return for each in evaluations)
    first = evaluations[0].mean_return
    return best > run.success_return and best > first + NO_BETTER * abs(first)
