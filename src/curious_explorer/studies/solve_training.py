"""The trainings of `solve`: settings from measured scales, when one is enough, and what is kept of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curious_explorer.callbacks.events import EVALUATION, Callbacks, Event, on_events, part_of
from curious_explorer.errors import CheckpointError
from curious_explorer.gym.network_inputs import is_picture, parts_of
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.algorithms import OFF_POLICY, spawned_seed
from curious_explorer.sb3.step_log import StepLog
from curious_explorer.sb3.training import CHECKPOINT_FILE, Evaluated, Training, train_into
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.storage import reading
from curious_explorer.studies.solve_files import EXPLORATION, LEARNING, LOG, PLAIN, REPLAY, keep, kept
from curious_explorer.studies.solve_measuring import STAGE_OF
from curious_explorer.studies.solve_plan import discount_for
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.task_look import RewardLog, TaskLook

SOLVED_TIMES = 3
"""So many evaluations in a row at which every episode succeeds, and that get no better, end a training."""
NO_BETTER = 0.02
EAGER, FEW_SAMPLES = {"n_epochs": 10, "batch_size": 64}, 300_000
"""PPO as the library has it, for plain learning from few samples of numbers: CartPole returns 480 after 10,000 of them,
and 190 with what is used otherwise (means of two seeds), which takes half the time."""
FITTED = 8_000
"""Updates from the steps of exploring alone, before a learner of values acts."""
VALUES = {
    "learning_rate": 1e-3,
    "batch_size": 128,
    "buffer_size": 500_000,
    "learning_starts": 0,
    "train_freq": 4,
    "exploration_initial_eps": 0.05,
    "exploration_final_eps": 0.05,
    "net_arch": [128, 128],
}
"""DQN that begins with the steps of exploring: what it explores by is already there, so it hardly acts at random."""
STEPS_AHEAD = 3
"""Of targets, where actions are not held, which does the same."""
UPDATES_A_STEP, MOST_UPDATES_AN_ACTION, BETWEEN_COPIES = 0.5, 2.0, 200
"""Of its network for a step of the environment, and at most for an action; and between two copies of the network."""
MOST_UPDATES = 15_000
"""Of SAC; each takes as long as ten or twenty steps of a small environment."""


def restore_log(log: RewardLog, folder: Path, name: str) -> None:
    """Have a log know what a training of a run had met when it was evaluated last, if it ever was."""
    met = kept(folder, _rewards_file(name), LOG, "log")
    if met is not None:
        with reading(folder / _rewards_file(name), CheckpointError, "the rewards that a training has met"):
            log.restore(met)


def _rewards_file(name: str) -> str:
    return f"{name}_rewards.json"


def train_for(
    run: SolveRun,
    name: str,
    look: TaskLook,
    most: int,
    *,
    resets: ResetModel | None = None,
    log: RewardLog | None = None,
) -> Training:
    """Learn on until a training has taken so many samples in all, its evaluations among them, or cannot get better."""
    settings = training_settings(run, name, look, most)
    stage = {LEARNING: "learning", REPLAY: "learning from steps of exploring"}.get(name, "plain learning")
    used = run.used - int(run.stages.get(STAGE_OF[name], {}).get("samples", 0))
    said, noted = "no evaluation yet", _rewards_file(name)
    if log is not None and (run.folder / name / CHECKPOINT_FILE).is_file():
        restore_log(log, run.folder, name)

    def show(event: Event) -> None:
        nonlocal said
        if event.kind == EVALUATION:
            said = f"return {event.numbers['evaluation/mean_return']:.3g}"
            if log is not None:
                keep(run.folder, noted, LOG, "log", log.state())
        run.progress(Progress(stage, used + event.samples, said))

    assert settings.evaluate_every is not None
    assert settings.evaluation_episodes is not None
    interval, evaluation = settings.evaluate_every, settings.evaluation_episodes * look.longest

    def until(evaluations: Sequence[Evaluated]) -> bool:
        taken = evaluations[-1].samples
        spent = taken + sum(each.evaluation_steps for each in evaluations)
        following = min(interval, settings.samples - taken) + evaluation
        enough = len(evaluations) > 1 and spent + following > most
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
        recalled=_steps_of(run) if name == REPLAY else None,
        updates=FITTED,
    )


def _steps_of(run: SolveRun) -> dict[str, Any] | None:
    """All steps of exploring, those too that another way to go on has taken meanwhile."""
    env = run.make()
    steps = StepLog(env)
    env.close()
    steps.load(run.folder / EXPLORATION, run.stages["explore"]["steps"])
    return steps.arrays()


def training_settings(run: SolveRun, name: str, look: TaskLook, most: int) -> TrainingSettings:
    """Settings from measured scales: how long ways and episodes are, and how large rewards."""
    settings = run.settings
    env = run.make()
    continuous = hasattr(env.action_space, "low")
    pictures = any(is_picture(part.space) for part in parts_of(env.observation_space))
    env.close()
    algorithm = settings.algorithm or ("sac" if continuous and look.pays_all_along and name == PLAIN else "ppo")
    algorithm = "dqn" if name == REPLAY else algorithm
    given: dict[str, Any] = {"gamma": 0.99}
    scale = 1.0 / look.spread if look.spread > 0.0 and look.pays_all_along else 1.0
    episodes, interval = run.budget.evaluations
    if name == PLAIN:
        interval = min(interval, run.budget.trial)  # the same in the trial and where plain learning goes on
    samples = run.budget.trial
    if name in run.stages or name != PLAIN:
        samples = run.budget.learned_from(most, interval)
    if name != PLAIN:
        explored = run.stages["halving"]
        given["gamma"] = discount_for(explored["distance"] or 1)
        largest = 1.0 / explored["largest"] if explored["largest"] else 1.0
        scale = min(scale, largest) if look.pays_all_along else largest
    hold = int(run.stages["halving"]["hold"]) if name == REPLAY else 1
    if name == REPLAY:
        given |= _of_values(hold)
    if algorithm == "sac":
        given |= sac_updates(settings.samples)
    elif algorithm == "ppo" and name == PLAIN and settings.samples <= FEW_SAMPLES and not pictures:
        given |= EAGER
    return TrainingSettings(
        environment=settings.environment,
        algorithm=algorithm,
        samples=max(1, samples),
        seed=spawned_seed(settings.seed, {LEARNING: 7, PLAIN: 8, REPLAY: 10}[name]),
        num_envs=1 if algorithm == "sac" or name == REPLAY else 8,
        evaluate_every=interval,
        evaluation_episodes=episodes,
        evaluation_steps=look.longest,
        deterministic=name == REPLAY,
        layout=run.stages["layout"]["layout"],
        price=look.paid_back if name != PLAIN else 0.0,
        memory=run.memory if name != PLAIN else None,
        # The entropy that an off-policy actor-critic is paid is in units of single rewards, which stay as they are.
        reward_scale=1.0 if algorithm in OFF_POLICY else float(f"{scale:.6g}"),
        action_list=run.stages["halving"]["choices"] if name == REPLAY else None,
        hold=hold,
        hyperparameters=given,
    )


def _of_values(hold: int) -> dict[str, Any]:
    """Hyperparameters of a learner of values whose actions are held for so many steps."""
    updates = min(UPDATES_A_STEP * hold, MOST_UPDATES_AN_ACTION)
    frequency: Any = VALUES["train_freq"]
    between = {"gradient_steps": int(updates * frequency), "target_update_interval": int(BETWEEN_COPIES / updates)}
    return VALUES | between | {"n_steps": STEPS_AHEAD if hold == 1 else 1}


def sac_updates(samples: int) -> dict[str, Any]:
    """How often SAC updates: after every step if samples are few, and not more than `MOST_UPDATES` times in all."""
    every = max(1, -(-samples // MOST_UPDATES))
    return {"train_freq": every, "gradient_steps": 1}


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
