"""The options that say where a grid runs, shared by every command that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from curious_explorer.studies.executors.executor import Executor

PANEL = "Where to run (results do not depend on it)"

ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        help="inline, processes or ray. By default inline with one worker, processes with more.",
        rich_help_panel=PANEL,
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", help="Runs at once; all cores by default, with ray all that fit.", rich_help_panel=PANEL),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        help="host:port, ray://host:port or auto; by default RAY_ADDRESS, or a local cluster for this command.",
        rich_help_panel=PANEL,
    ),
]
RayCpusOption = Annotated[
    float | None, typer.Option("--ray-cpus-per-task", help="CPUs that a run holds (1).", rich_help_panel=PANEL)
]
RayGpusOption = Annotated[
    float | None, typer.Option("--ray-gpus-per-task", help="GPUs that a run holds (0).", rich_help_panel=PANEL)
]


def examples(command: str, usual: str) -> str:
    """What stands below a command's help: how it is usually called, and three places to run it in."""
    places = ("--workers 4", "--executor ray", "--executor ray --ray-address 10.0.0.5:6379 --resume")
    return calls(command, usual, *places)


def calls(command: str, *words: str) -> str:
    """Examples of a command, for the end of its help."""
    lines = [f"curious-explorer {command} {each}" for each in words]
    return "Examples:\n\n" + "\n\n".join(lines)


def chosen_executor(
    name: str | None, workers: int | None, ray_address: str | None, ray_cpus: float | None, ray_gpus: float | None
) -> Executor:
    """The executor that the options describe."""
    from curious_explorer.studies.executors.choosing import make_executor
    from curious_explorer.studies.executors.local import available_cores
    from curious_explorer.studies.executors.on_ray import Ray

    if name == "ray":
        cpus, gpus = 1 if ray_cpus is None else ray_cpus, 0 if ray_gpus is None else ray_gpus
        return Ray(address=ray_address, workers=workers, cpus_per_task=cpus, gpus_per_task=gpus)
    options = {"--ray-address": ray_address, "--ray-cpus-per-task": ray_cpus, "--ray-gpus-per-task": ray_gpus}
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} is {value}, which only the executor 'ray' uses; add --executor ray, or drop it")
    if name is None and workers is None:
        workers = available_cores()
    return make_executor(name, workers=workers)
