"""``python -m benchmarks.gpu_seeds``: the paper's d = 20 with a thousand seeds, exploration and learning.

For each experiment: how long it took, samples a second, the share of seeds that solve it with Curious Explorer and
without, and quantiles over seeds. Writes ``seeds.json`` and the distribution over seeds as a figure. ``--twins K`` also
runs K seeds one by one on the CPU and prints how many of them end where the batch did. ``--draw FOLDER`` draws the
figure of an earlier run, for machines that have a GPU but no Matplotlib.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.seed_runs import LABELS, QUANTILES, SOLVED, SeedRuns, draw_seeds, exact_values, run_seeds
from curious_explorer import TabularWorld, explore, improve
from curious_explorer.storage import write_atomically
from curious_explorer.studies.figures import save_figure
from curious_explorer.studies.paper_experiments import (
    ENVIRONMENTS,
    OPTIMIZERS,
    Experiment,
    ExperimentSettings,
    grid,
    settings_of,
)

NUMBERED = ("fixed", "paper-text", "paper-figures")
"""Presets that say how many updates there are: seeds side by side take the same number."""
PHASES = {
    "exploration": "exploration",
    "with_ce": "with CE",
    "without_ce": "same learning",
    "without_ce_total_budget": "all steps",
}


def print_table(experiments: list[SeedRuns], machine: str) -> None:
    seeds = len(experiments[0].seeds)
    print(f"\nFraction of the best possible value, from the start; {seeds:,} seeds, {machine}; solved: >= {SOLVED}")
    quantiles = "".join(f"{share:>8.0%}" for share in QUANTILES)
    print(f"{'experiment':<18}{'phase':<16}{'s':>8}{'steps':>10}{'steps/s':>10}{'solved':>9}{'mean':>8}{quantiles}")
    for runs in experiments:
        described = runs.described()["arms"]
        for phase, seconds in runs.seconds.items():
            steps = int(runs.samples[phase].sum())
            line = f"{runs.experiment.name:<18}{PHASES[phase]:<16}{seconds:>8.2f}{steps:>10.3g}{steps / seconds:>10.3g}"
            if phase in described:
                arm = described[phase]
                line += f"{arm['solved']:>9.1%}{arm['mean']:>8.3f}"
                line += "".join(f"{value:>8.3f}" for value in arm["quantiles"].values())
            print(line)


def twin_values(experiment: Experiment, settings: ExperimentSettings, count: int) -> list[float]:
    """The values that the first seeds reach alone, with Curious Explorer, as fractions of the best."""
    import torch

    mdp = experiment.mdp(LABELS)
    policies = []
    for seed in range(count):
        world = TabularWorld(mdp, seed=seed)
        explored = explore(
            world,
            settings.exploring,
            gamma=settings.gamma,
            rounds=settings.rounds,
            thresholds=settings.thresholds(mdp.num_states),
            visits=settings.visits,
            learn_from=settings.weighting,
            progress=False,
        )
        reset = explored.reset_model.weighted(settings.weighting)
        policies.append(
            improve(world, settings.learning, reset, gamma=settings.gamma, evaluation_episodes=0).policy.copy()
        )
    return [float(value) for value in exact_values(mdp, torch.from_numpy(np.array(policies)), settings.gamma)]


def compare_twins(runs: SeedRuns, settings: ExperimentSettings, count: int) -> None:
    began = time.perf_counter()
    alone = np.array(twin_values(runs.experiment, settings, count)) / runs.optimal
    seconds = (time.perf_counter() - began) / count
    batched = runs.values["with_ce"][:count]
    print(
        f"{runs.experiment.name}: of {count} seeds run alone on the CPU ({seconds:.2f} s each) "
        f"{(np.abs(alone - batched) < 1e-6).sum()} end with the batch's value to 1e-6; "
        f"{(alone >= SOLVED).sum()} solve alone, {(batched >= SOLVED).sum()} in the batch"
    )


def machine_of(device: str | None) -> str:
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return "CPU, Triton interpreted"
    return str(torch.cuda.get_device_name(device))


def draw(folder: Path) -> None:
    """The figure of what ``seeds.json`` in a folder says."""
    described = json.loads((folder / "seeds.json").read_text())
    experiments = [SeedRuns.from_described(experiment) for experiment in described["experiments"]]
    for path in save_figure(draw_seeds(experiments), folder / f"seeds-{experiments[0].experiment.depth}"):
        print(f"wrote {path}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--preset", choices=NUMBERED, default="fixed")
    parser.add_argument("--environments", nargs="+", default=list(ENVIRONMENTS))
    parser.add_argument("--optimizers", nargs="+", default=list(OPTIMIZERS))
    parser.add_argument("--device", default=None, help="a torch device; the GPU unless given")
    parser.add_argument("--twins", type=int, default=0, help="how many seeds to run alone, too")
    parser.add_argument("--out", type=Path, default=None, help="a folder for seeds.json and the figure")
    parser.add_argument("--draw", type=Path, default=None, help="only draw the figure of such a folder")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.draw is not None:
        draw(given.draw)
        return
    from curious_explorer.gpu.many_worlds import SeededWorlds

    began = time.perf_counter()
    experiments = []
    for experiment in grid(given.environments, [given.depth], given.optimizers):
        settings = settings_of(given.preset, experiment)
        make = partial(SeededWorlds, device=given.device)
        experiments.append(run_seeds(experiment, range(given.seeds), settings, make_worlds=make))
        print(
            f"{experiment.name}: {experiments[-1].total_seconds:.1f} s, {experiments[-1].total_samples:.3g} steps",
            flush=True,
        )
    seconds = time.perf_counter() - began
    machine = machine_of(given.device)
    print_table(experiments, machine)
    steps = sum(runs.total_samples for runs in experiments)
    print(f"all experiments: {seconds:.1f} s, {steps:.3g} steps, {steps / seconds:.3g} steps/s, compilation included")
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        described = {"machine": machine, "preset": given.preset, "seconds": seconds}
        described["experiments"] = [runs.described() for runs in experiments]
        write_atomically(given.out / "seeds.json", json.dumps(described) + "\n")
        if importlib.util.find_spec("matplotlib") is None:
            print(f"no Matplotlib here; draw elsewhere by python -m benchmarks.gpu_seeds --draw {given.out}")
        else:
            draw(given.out)
    if given.twins:
        for runs in experiments:
            compare_twins(runs, settings_of(given.preset, runs.experiment), given.twins)


if __name__ == "__main__":
    main()
