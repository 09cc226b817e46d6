"""``curious-explorer explore``, which keeps a reset model, and ``train``, which trains from it."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curious_explorer.cli.terminal import (
    PipedLines,
    ProgressLine,
    TensorBoardOption,
    WandbOption,
    interruptible,
    option,
    say,
    see_own_modules,
    writers,
)

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.resets.moving_starts import StartsProgress
    from curious_explorer.sb3.training import Training
    from curious_explorer.studies.exploration_study import Explored

STEPPING = "Stepping in a Gymnasium environment"
EVALUATING = "Evaluation, from the environment's own start"
Environment = Annotated[
    str,
    typer.Argument(
        help="Any Gymnasium id (MountainCar-v0, package:Id-v0, 'FrozenLake-v1?map_name=8x8'), dcl/20, or an MDP file.",
        show_default=False,
    ),
]
CELLS_HELP = (
    "20, 20x20, 20x20:-1.2,-0.07:0.6,0.07 (grid: bins, low, high), quantiles:10, hash, hash:0.1, minigrid, identity or "
    "module:function:COUNT. By default what is obvious."
)
OPTIMIZER_HELP = (
    "Algorithm 2's. On cells: model-based, trpo (the default on a table), reinforce. On observations: ppo, a2c, "
    "sb3-trpo. Environments are explored by counts (Frontier) where neither this nor anything else of Algorithm 2 is "
    "asked for."
)
WELL_BELOW = 0.8
"""An exploration that takes less than this part of its samples has stopped by itself."""


def explore(
    environment: Environment,
    out: Annotated[Path, typer.Option(help="Folder for the run; an interrupted one goes on.")] = Path("results/run"),
    optimizer: Annotated[str | None, option(help=OPTIMIZER_HELP)] = None,
    samples: Annotated[int | None, option(help="Steps in all, never exceeded; 1,200,000 when stepping.")] = None,
    gamma: Annotated[float | None, option(help="The discount; 0.99 when stepping, 0.95 on a table.")] = None,
    rounds: Annotated[
        int | None, option(help="How many policies to learn; by the samples, or until a table is well visited.")
    ] = None,
    beta: Annotated[float | None, option(help="The threshold's number; 1 / (2 |S|) by default.")] = None,
    schedule: Annotated[str, typer.Option(help="linear: beta (n + 1); constant: beta; paper: beta n.")] = "linear",
    visits: Annotated[
        int | None, option(help="Walks that measure where each policy goes; by the samples, 2,000 on a table.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    record: Annotated[
        bool | None,
        option("--record/--no-record", help="Keep the transitions seen, for certificates from counts; yes on a table."),
    ] = None,
    cells: Annotated[str | None, option(help=CELLS_HELP, panel=STEPPING)] = None,
    max_cells: Annotated[
        int | None, option(help="How many cells may be discovered (hash, minigrid, or chosen).", panel=STEPPING)
    ] = None,
    actions: Annotated[
        int | None, option(help="For continuous actions: values along each dimension, 3 by default.", panel=STEPPING)
    ] = None,
    num_envs: Annotated[int, typer.Option(help="Environments stepped together.", rich_help_panel=STEPPING)] = 1,
    layout: Annotated[
        int | None, option(help="The layout of every episode, where resets draw one.", panel=STEPPING)
    ] = None,
    tensorboard: TensorBoardOption = None,
    wandb: WandbOption = None,
) -> None:
    """Explore an environment from its own start, and save the reset model."""
    elsewhere = ("out", "tensorboard", "wandb")
    asked = {name: value for name, value in locals().items() if name not in (*elsewhere, "elsewhere")}  # settings
    from rich.console import Console

    from curious_explorer.callbacks.events import BATCH, Callbacks, Event, on_events
    from curious_explorer.studies.exploration_study import STEPPING_SAMPLES, ExploreSettings, explore_into

    see_own_modules(environment, cells or "")
    settings = ExploreSettings(**asked)
    console = Console()
    going_on = f"Exploring into {out}; interrupted, the same command goes on. The first run ever compiles a while."
    texts = ("exploring: {task.completed:,} samples", "{task.fields[cells]} cells", "{task.fields[reward]}")

    def show(event: Event) -> None:
        if event.kind == BATCH and "states" in event.numbers:
            first = event.numbers.get("first_reward")
            reward = "no reward yet" if first is None else f"first reward after {first:,}"
            line.update(completed=event.samples, cells=f"{event.numbers['states']:,}", reward=reward)
        elif "round" in event.numbers:  # on a terminal, rounds have a bar of their own
            piped.tell(f"exploring: round {event.numbers['round']:.0f}, {event.samples:,} samples")

    line = ProgressLine(Console(stderr=True), texts, samples or STEPPING_SAMPLES, cells="0", reward="")
    piped = PipedLines(Console(stderr=True))
    with (
        interruptible(console, out),
        writers(tensorboard, wandb, asked) as logs,
        line if settings.by_frontier and settings.table() is None else nullcontext(),
    ):
        explored = explore_into(
            out,
            settings,
            tell=lambda text: say(console, f"{text}\n{going_on}"),
            watch=Callbacks(on_events(show), *logs),
        )
    _show_explored(console, environment, explored, out)


def _show_explored(console: Console, environment: str, explored: Explored, out: Path) -> None:
    """What came of it, and how to go on."""
    from curious_explorer.gym.gym_world import GymWorld
    from curious_explorer.studies.explored_runs import RESETS

    exploration, samples, world = explored.exploration, explored.samples, explored.world
    visited = exploration.total_visited > 0
    if explored.was_finished:
        console.print("It was finished before: nothing was done again.")
    if not isinstance(world, GymWorld):
        picture = "" if explored.picture is None else f"Picture: {explored.picture}; report: "
        say(console, f"{picture or 'Report: '}{out / 'report.html'}")
        console.print(f"{samples:,} samples, {visited.sum()} of {visited.size} states seen in visits.")
        say(
            console,
            f"Reset model: {out / RESETS}   (ResetModel.load; curious-explorer certify {shlex.quote(str(out))})",
        )
        return
    cells = world.discretisation.cells
    if exploration.rounds:
        reached = visited.copy()
        for round_ in exploration.rounds:  # cells that the last episodes of learning passed through were reached, too
            reached |= False if round_.occupancy is None else round_.occupancy > 0
        learned = sum(round_.learning_samples for round_ in exploration.rounds)
        console.print(
            f"{samples:,} samples ({learned:,} of them to learn); {reached.sum():,} of "
            f"{len(cells.discovered()) or cells.count:,} cells reached, {visited.sum():,} of them in visits."
        )
        at_random, *learned_reach = (int((round_.visited > 0).sum()) for round_ in exploration.rounds)
        if learned_reach and max(learned_reach) < at_random:
            console.print(
                f"Warning: random actions reach {at_random:,} cells, and learned policies at most "
                f"{max(learned_reach):,}. What was learned does not hold in the next episode, as when layouts change; "
                "--optimizer frontier needs no such policies.",
            )
        if explored.given is not None and samples < WELL_BELOW * explored.given:
            rounds = len(exploration.rounds)
            why = exploration.ended or (
                f"its optimizer was content with fewer in {rounds} rounds; more of them (--rounds {2 * rounds}, in "
                "another folder) use what is left"
            )
            console.print(f"It took fewer samples than the {explored.given:,} it was given: {why}.")
    else:
        first = explored.first_reward
        words = "no reward was seen" if first is None else f"the first reward was seen after {first:,}"
        console.print(f"{samples:,} samples, {words}; {visited.sum():,} cells reached.")
        if exploration.complete:
            console.print("It stopped by itself: nothing is left to which it knows a way.")
    say(console, f"Picture: {explored.picture}; report: {out / 'report.html'}")
    command = f"curious-explorer train {shlex.quote(environment)} --reset-model {shlex.quote(str(out))}"
    described = cells.description()
    if described["kind"] == "function":  # which is not stored with the model, so it must be named again
        command += f" --cell-function {described['function']}"
    refused = _why_not_train(environment)
    say(console, f"Reset model: {out / RESETS}   (ResetModel.load{'' if refused else f'; {command}'})")
    if refused:
        say(console, f"No network of ours can be trained from it as the environment is: {refused}.")


def _why_not_train(environment: str) -> str:
    """Why no network can see what the environment shows, or act in it; nothing if one can."""
    from curious_explorer.gym.make_env import make_by_id
    from curious_explorer.gym.network_inputs import num_inputs
    from curious_explorer.gym.network_policy import num_outputs

    env = make_by_id(environment)
    try:
        num_inputs(env.observation_space)
        num_outputs(env.action_space)
    except ValueError as error:
        return str(error)
    finally:
        env.close()
    return ""


def train(
    environment: Annotated[
        str, typer.Argument(help="A Gymnasium id: MountainCar-v0, package:Id-v0, 'Id-v0?depth=20'.", show_default=False)
    ],
    reset_model: Annotated[
        Path | None, option(help="A run of explore, or its reset_model/; without it, training is plain.")
    ] = None,
    weighting: Annotated[
        str | None,
        option(
            help="Of a mixture, which rounds to start from: spread (the default; starts as wide apart as they get), "
            "average, last; or which cells, where a model was counted: uniform, 'near the reward', frontier."
        ),
    ] = None,
    starts: Annotated[
        str | None,
        option(
            help="adaptive (the default: from the reward back to the environment's own start, as it is learned), "
            "spread or uniform over the cells that were counted, or mixture: the reset model as it is weighed."
        ),
    ] = None,
    warm_start: Annotated[
        bool,
        typer.Option(help="Clone the best known way to the reward into the policy first; its steps are samples, too."),
    ] = True,
    snapshots: Annotated[
        bool,
        typer.Option(
            "--snapshots",
            help="Let roll-ins to cells restore saved states of the simulator, which takes no steps; checked first.",
        ),
    ] = False,
    algorithm: Annotated[
        str, typer.Option(help="ppo, a2c, trpo, recurrent-ppo, dqn, sac, or a rival: rnd, noveld, counts.")
    ] = "ppo",
    samples: Annotated[int, typer.Option(help="Steps in all, roll-ins included; never exceeded.")] = 300_000,
    out: Annotated[Path, typer.Option(help="Folder for the run; an interrupted one goes on.")] = Path("results/train"),
    num_envs: Annotated[int, typer.Option(help="Environments stepped together.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    layout: Annotated[
        int | None, option(help="The layout of every episode, where resets draw one; the explored one by default.")
    ] = None,
    normalize: Annotated[bool, typer.Option(help="Shift and scale observations by what was seen.")] = True,
    settings: Annotated[
        list[str] | None,
        option(
            "--set",
            help="A hyperparameter as Stable-Baselines3 calls it: --set n_steps=64 --set net_arch=[128,128] --set "
            "activation_fn=relu.",
        ),
    ] = None,
    tensorboard: TensorBoardOption = None,
    wandb: WandbOption = None,
    cell_function: Annotated[
        str | None, option(help="module:function, where the reset model's cells were made by one.")
    ] = None,
    evaluate_every: Annotated[
        int | None,
        option(help="Samples between two; a twentieth of all, or more where episodes are long.", panel=EVALUATING),
    ] = None,
    evaluation_episodes: Annotated[
        int | None, option(help="Episodes of each; 10, or fewer where they are long.", panel=EVALUATING)
    ] = None,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic/--stochastic", help="The likeliest action, or one drawn.", rich_help_panel=EVALUATING
        ),
    ] = True,
) -> None:
    """Train from explored resets, and evaluate from the environment's own start."""
    from rich.console import Console

    from curious_explorer.callbacks.events import EVALUATION, Callbacks, Event, on_events
    from curious_explorer.resets.starts import ADAPTIVE, MIXTURE, can_move
    from curious_explorer.sb3.training import check_fits, train_into, trained_samples
    from curious_explorer.sb3.training_settings import TrainingSettings, hyperparameters
    from curious_explorer.settings_description import make_folder
    from curious_explorer.studies.explored_runs import layout_explored, load_resets, reset_model_folder
    from curious_explorer.studies.figures import draw_evaluations, save_figure
    from curious_explorer.studies.run_reports import write_training_report

    see_own_modules(environment, cell_function or "")
    if layout is None and reset_model is not None:
        layout = layout_explored(reset_model)
    asked = TrainingSettings(
        environment=environment,
        algorithm=algorithm,
        samples=samples,
        num_envs=num_envs,
        seed=seed,
        normalize=normalize,
        evaluate_every=evaluate_every,
        evaluation_episodes=evaluation_episodes,
        deterministic=deterministic,
        layout=layout,
        hyperparameters=hyperparameters(settings or []),
        warm_start=warm_start,
        snapshots=snapshots,
        starts=starts or (ADAPTIVE if weighting is None else MIXTURE),
    )
    if starts is not None and weighting is not None and starts != MIXTURE:
        raise ValueError(
            f"--weighting {weighting} says how a mixture is weighed, but --starts is {starts}; leave one out"
        )
    resets = None
    if reset_model is not None:
        loaded = load_resets(reset_model_folder(reset_model), cell_function)
        resets = loaded
        if asked.starts == ADAPTIVE and loaded.choice is None and not can_move(loaded):
            asked = replace(asked, starts=MIXTURE)
        mixed = asked.starts == MIXTURE
        if weighting is not None or (mixed and loaded.choice is None and len(loaded.visited)):
            resets = loaded.weighted(weighting or "spread")
    for name, value in {"weighting": weighting, "starts": starts, "cell-function": cell_function}.items():
        if value is not None and resets is None:
            raise ValueError(f"--{name} {value} says how to start from a reset model; give --reset-model too")
    if snapshots and resets is None:
        raise ValueError("--snapshots is for roll-ins from a reset model; give --reset-model too")
    check_fits(asked.make_env(), resets)  # before anything is announced
    if tensorboard is not None:
        make_folder(tensorboard)
    console, where = Console(), "" if layout is None else f", layout {layout}"
    start = "the environment's own start"
    if resets is not None:
        how = resets.weighting if asked.starts == MIXTURE else f"{asked.starts} starts"
        start = f"the resets in {reset_model} ({how})"
    say(
        console,
        f"{algorithm.upper()} on {environment}{where}, from {start}: {samples:,} samples into {out}; interrupted, the "
        "same command goes on.",
    )
    texts = (
        "training: {task.completed:,} of {task.total:,} samples",
        "return from the start {task.fields[worth]}",
        "{task.fields[learned]} of them learned from",
    )

    def show(event: Event) -> None:
        fields: dict[str, Any] = {"learned": f"{event.numbers['samples/learning']:,.0f}"}
        if event.kind == EVALUATION:
            fields["worth"] = f"{event.numbers['evaluation/mean_return']:.3g}"
        line.update(completed=event.samples, **fields)

    finished = trained_samples(out) >= samples

    with (
        interruptible(console, out),
        writers(None, wandb, asdict(asked)) as logs,  # TensorBoard's is the algorithm's own, which knows more
        ProgressLine(Console(stderr=True), texts, samples, worth="-", learned="0") as line,
    ):
        training = train_into(out, asked, resets, tensorboard=tensorboard, watch=Callbacks(on_events(show), *logs))
    title = f"{algorithm.upper()} on {environment}, trained from {'explored resets' if resets else 'its own start'}"
    drawn = draw_evaluations(
        [each.samples for each in training.evaluations], [each.mean_return for each in training.evaluations], title
    )
    picture, _ = save_figure(drawn, out / "evaluations")
    if finished:
        console.print("It was finished before: nothing was done again. A larger --samples goes on.")
    _show_training(console, training, out, deterministic)
    best = max(each.mean_return for each in training.evaluations)
    facts = {
        "samples": f"{training.samples:,}, {training.samples - training.learning_steps:,} of them of roll-ins",
        "mean return": f"{training.evaluations[-1].mean_return:.4g} at the end, {best:.4g} at best",
    }
    chosen = {name: str(value) for name, value in asdict(asked).items() if value is not None}
    page = write_training_report(out, title, facts, chosen | {"starts from": start}, drawn)
    say(console, f"Curve: {picture}; beside it evaluations.csv; report: {page}")
    say(console, f"Play it: curious-explorer play {shlex.quote(str(out))}   (curious_explorer.load_policy)")


def _show_training(console: Console, training: Training, out: Path, deterministic: bool) -> None:
    """What came of it, and what lies where."""
    from rich.table import Table

    evaluations = training.evaluations
    shown = sorted({*range(0, len(evaluations), max(1, len(evaluations) // 8)), len(evaluations) - 1})
    some = f"; {len(shown)} of {len(evaluations)}, evaluations.csv has all" if len(shown) < len(evaluations) else ""
    table = Table(title=f"Evaluations, from the environment's own start{some}", pad_edge=False)
    for name in ("samples", "of them\nlearned from", "mean return", "standard\ndeviation", "mean\nlength"):
        table.add_column(name, justify="right")
    for number in shown:
        each = evaluations[number]
        table.add_row(
            f"{each.samples:,}",
            f"{each.learning_steps:,}",
            f"{each.mean_return:.2f}",
            f"{each.std_return:.2f}",
            f"{each.mean_length:.1f}",
        )
    console.print(table)
    evaluation_steps = sum(each.evaluation_steps for each in evaluations)
    console.print(
        f"{training.samples:,} samples: {training.learning_steps:,} of episodes and "
        f"{training.samples - training.learning_steps:,} of roll-ins. Evaluations took {evaluation_steps:,} steps more."
    )
    if training.steps_saved > 0:
        say(console, f"Snapshots saved {training.steps_saved:,} steps of roll-ins besides, at least.")
    if (warm := training.warm_start) is not None:
        say(
            console,
            f"Warm start: {warm.episodes} episodes along the best known way ({warm.samples:,} samples); the cloned "
            f"policy agreed with the plan in {warm.agreement:.0%} of their states.",
        )
    if training.starts is not None:
        say(console, _told_of_starts(training.starts))
        last = evaluations[-1]
        if deterministic and training.starts.own_success > 0.5 and (last.mean_return <= 0.0 or last.std_return > 0.0):
            say(
                console,
                "Evaluations take the likeliest action instead, which can do worse; --stochastic, in another folder, "
                "evaluates and keeps the policy as it learned, and play --stochastic plays this one so.",
            )
    if training.policy is None:
        words = f"Policy: {out / 'checkpoint.safetensors'} (weights; its network acts with PyTorch only)"
    else:
        words = f"Policy: {training.policy}   (NetworkPolicy.decode; acts with NumPy alone)"
    say(console, words)


def _told_of_starts(at: StartsProgress) -> str:
    """How far starts moved, in a sentence."""
    if not at.reward_known:
        return (
            "No reward was seen while exploring, so starts were spread and did not move: explore further, or say with "
            "--cells what matters."
        )
    if at.level >= at.farthest:
        return (
            f"Starts moved all the way back ({at.farthest:.0f} steps from the reward); of the last episodes from the "
            f"environment's own start {at.own_success:.0%} succeeded, with actions drawn as the learner draws them."
        )
    return (
        f"Starts moved back to {at.level:.0f} of {at.farthest:.0f} steps from the reward: it was not learned further; "
        "more samples may help (the same command with a larger --samples goes on)."
    )
