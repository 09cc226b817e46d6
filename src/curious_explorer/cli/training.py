"""``curious-explorer train``: train an algorithm of Stable-Baselines3 from explored resets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curious_explorer.cli.exploring import kept, see_own_modules

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.sb3.training import Training
    from curious_explorer.sb3.training_files import Evaluated

EVALUATING = "Evaluation, from the environment's own start"


def train(
    environment: Annotated[
        str, typer.Argument(help="A Gymnasium id: MountainCar-v0, package:Id-v0, 'Id-v0?depth=20'.", show_default=False)
    ],
    reset_model: Annotated[
        Path | None,
        typer.Option(help="A run of explore, or its reset_model/; without it, training is plain.", show_default=False),
    ] = None,
    weighting: Annotated[
        str | None,
        typer.Option(
            help="Which rounds to start from: spread (the default; starts as wide apart as they get), average or last.",
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[str, typer.Option(help="ppo, a2c or trpo.")] = "ppo",
    samples: Annotated[int, typer.Option(help="Steps in all, roll-ins included; never exceeded.")] = 300_000,
    out: Annotated[Path, typer.Option(help="Folder for the run; an interrupted one goes on.")] = Path("results/train"),
    num_envs: Annotated[int, typer.Option(help="Environments stepped together.")] = 8,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    normalize: Annotated[bool, typer.Option(help="Shift and scale observations by what was seen.")] = True,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A hyperparameter as Stable-Baselines3 calls it: --set n_steps=64 --set gamma=0.98."
        ),
    ] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's logs.", show_default=False)] = None,
    cell_function: Annotated[
        str | None,
        typer.Option(help="module:function, where the reset model's cells were made by one.", show_default=False),
    ] = None,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            help="Samples between two; a twentieth of all by default.", show_default=False, rich_help_panel=EVALUATING
        ),
    ] = None,
    evaluation_episodes: Annotated[int, typer.Option(help="Episodes of each.", rich_help_panel=EVALUATING)] = 10,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic/--stochastic", help="The likeliest action, or one drawn.", rich_help_panel=EVALUATING
        ),
    ] = True,
) -> None:
    """Train from explored resets, and evaluate from the environment's own start."""
    from rich.console import Console

    from curious_explorer.gym.cell_names import named_function
    from curious_explorer.resets.reset_model import ResetModel
    from curious_explorer.sb3.training import check_fits, train_into
    from curious_explorer.sb3.training_settings import TrainingSettings, hyperparameters
    from curious_explorer.studies.environment_ids import reset_model_folder

    see_own_modules(environment, cell_function or "")
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
        hyperparameters=hyperparameters(settings or []),
    )
    function = None if cell_function is None else named_function(cell_function)
    resets = None
    if reset_model is not None:
        loaded = ResetModel.load(reset_model_folder(reset_model), cell_function=function)
        resets = loaded.weighted(weighting or ("spread" if len(loaded.visited) else loaded.weighting))
    elif weighting is not None:
        raise ValueError(f"--weighting {weighting} says how to start from a reset model; give --reset-model too")
    check_fits(environment, resets)  # before anything is announced
    console = Console()
    start = "the environment's own start"
    if resets is not None:
        start = f"the resets in {reset_model} ({resets.weighting})"
    console.print(
        f"{algorithm.upper()} on {environment}, from {start}: {samples:,} samples into {out}; interrupted, the same "
        "command goes on.",
        soft_wrap=True,
        markup=False,
    )
    with kept(console, out), _Progress(samples) as bar:
        training = train_into(out, asked, resets, tensorboard=tensorboard, watch=bar.advance)
    title = f"{algorithm.upper()} on {environment}, trained from {'explored resets' if resets else 'its own start'}"
    picture = _draw(training.evaluations, title, out / "evaluations")
    _tell(console, training, out, picture)


class _Progress:
    """A line that says how many samples are used, how many of them learned from, and what the last evaluation said."""

    def __init__(self, samples: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("training: {task.completed:,} of {task.total:,} samples"),
            BarColumn(),
            TextColumn("return from the start {task.fields[worth]}"),
            TextColumn("{task.fields[learned]} of them learned from"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("training", total=samples, worth="-", learned="0")

    def __enter__(self) -> _Progress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, samples: int, learning_steps: int, evaluated: Evaluated | None) -> None:
        """Something was learned."""
        fields: dict[str, Any] = {"learned": f"{learning_steps:,}"}
        if evaluated is not None:
            fields["worth"] = f"{evaluated.mean_return:.3g}"
        self._progress.update(self._bar, completed=samples, **fields)


def _tell(console: Console, training: Training, out: Path, picture: Path) -> None:
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
    if training.policy is None:
        words = f"Policy: {out / 'checkpoint.safetensors'} (weights; its network acts with PyTorch only)"
    else:
        words = f"Policy: {training.policy}   (NetworkPolicy.decode; acts with NumPy alone)"
    console.print(words, soft_wrap=True, markup=False)
    console.print(f"Curve: {picture}; beside it evaluations.csv", soft_wrap=True, markup=False)


def _draw(evaluations: list[Evaluated], title: str, stem: Path) -> Path:
    """A picture of the evaluations."""
    from curious_explorer.studies.figures.canvas import PAGE_WIDTH, WITH_CE, new_figure, quiet, save_figure

    figure = new_figure(0.75 * PAGE_WIDTH, 2.8)
    ax = figure.add_subplot()
    ax.plot([e.samples for e in evaluations], [e.mean_return for e in evaluations], color=WITH_CE, marker=".")
    ax.set_xlabel("samples of the training, roll-ins included", fontsize=8)
    ax.set_ylabel("mean return from the start", fontsize=8)
    ax.set_title(title, fontsize=9)
    quiet(ax)
    return save_figure(figure, stem)[0]
