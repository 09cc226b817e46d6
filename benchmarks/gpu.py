"""A GPU against the CPU: first that both give the same numbers, then how fast they are, in one run on one machine.

``python -m benchmarks.gpu --out gpu.json`` checks the Triton kernels against the Numba ones bit by bit, times them by
CUDA events (median of several runs, after a warm-up), times Numba on two threads and a Gymnasium loop beside them, and
prints a table. ``--tune`` also tries other layouts of the kernels and prints how each does. Steps are those really
taken. It exits with status 1 if a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import triton  # type: ignore[import-untyped,unused-ignore]

from curious_explorer import TabularWorld, visit
from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.gpu.device import Launch, find_device
from curious_explorer.gpu.device_tables import load_model, prepare_policies, roll_in_batch, stream_keys
from curious_explorer.gpu.triton_episodes import episode_statistics_batch
from curious_explorer.gpu.triton_walks import walk_batch
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

GAMMA = 0.95
PORTION = 1 << 22
TARGETS = {"visit DCL(20)": 3e11, "visit 10^6 states": 7e10, "visit 10^7 states": 3e10, "gradient DCL(20)": 2e10}


class Row(NamedTuple):
    """One line of the table."""

    task: str
    who: str
    steps_a_second: float
    spread: float = 0.0  # the slowest run's time over the fastest's, less one


# The same numbers -------------------------------------------------------------------------------------------------


def check_all() -> Iterator[tuple[str, bool]]:
    """Each check and whether it held."""
    for name, mdp in (
        ("CCT(20)", crossroad_traps(20)),
        ("DCL(20)", combination_lock(20)),
        ("Garnet", garnet(300, 5, 3)),
    ):
        roll_in = some_roll_in(mdp)
        cpu, gpu = TabularWorld(mdp, seed=7), TabularWorld(mdp, seed=7, backend="triton")
        for count in (1, 3, 200_000):
            yield f"{name}: where {count} walks end", bool((cpu.walk(roll_in, count) == gpu.walk(roll_in, count)).all())
        policy = mdp.uniform_policy()
        ours, theirs = (visit(world, policy, gamma=GAMMA, count=9_000_001) for world in (cpu, gpu))
        yield f"{name}: counts of 9,000,001 visits", bool((ours == theirs).all())
        for settings in episode_settings(mdp):
            pair = [
                world.episodes(policy, EpisodeBatch(episodes=3_000, gamma=0.9, reset=roll_in, **settings))
                for world in (cpu, gpu)
            ]
            yield f"{name}: episodes, {', '.join(sorted(settings))}", same_statistics(*pair)
        yield f"{name}: position {gpu.position()}", cpu.position() == gpu.position()
    # Of these draws some equal the upper bits of a packed threshold, so that full tables are consulted.
    yield "10^6 states: counts of 9,000,001 visits", same_counts(garnet(10**6, 4, 1))
    yield "1,000 runs in one launch", same_as_alone(combination_lock(20), 1_000)


def same_counts(mdp: FiniteMDP) -> bool:
    """Visits of a random policy on both backends."""
    policy = np.random.default_rng(4).dirichlet(np.ones(mdp.num_actions), size=mdp.num_states)
    worlds = TabularWorld(mdp, seed=7), TabularWorld(mdp, seed=7, backend="triton")
    ours, theirs = (visit(world, policy, gamma=GAMMA, count=9_000_001) for world in worlds)
    return bool((ours == theirs).all())


def some_roll_in(mdp: FiniteMDP) -> RollIn:
    """A mixture of chains of three random policies, and one more that all walk."""
    random = np.random.default_rng(1)
    drawn = random.dirichlet(np.ones(mdp.num_actions), size=(4, mdp.num_states))
    chains = [(0, 0), (0, 1), (1, 3), (0, 3)]
    return RollIn.mixture(list(drawn[:3]), 0.8, [0.4, 0.3, 0.2, 0.1], chains).then(drawn[3], 0.6)


def episode_settings(mdp: FiniteMDP) -> list[dict[str, Any]]:
    random = np.random.default_rng(2)
    rewards, critic = random.random((mdp.num_states, mdp.num_actions)), random.random(mdp.num_states)
    return [
        {"horizon": 90},
        {"horizon": 20, "reward": Reward(rewards), "critic": critic, "trace": 0.9, "record": True},
        {"horizon": 20, "reward": Reward(rewards, "max"), "weight_decay": 0.9, "credited": 7},
        {"horizon": 20, "reward": Reward(rewards), "max_samples": 4_321},
    ]


def same_statistics(ours: Any, theirs: Any) -> bool:
    integers = ours.samples == theirs.samples and np.array_equal(ours.lengths, theirs.lengths)
    if ours.seen is not None:
        integers &= all(map(np.array_equal, ours.seen, theirs.seen))
    return bool(integers) and all(np.allclose(ours[i], theirs[i], rtol=1e-11, atol=1e-9) for i in range(5))


def same_as_alone(mdp: FiniteMDP, runs: int) -> bool:
    """Some of many runs, each with its own policy, against worlds of their own."""
    model = load_model(mdp)
    policies = np.random.default_rng(3).dirichlet(np.ones(mdp.num_actions), size=(runs, mdp.num_states))
    prepared = prepare_policies(model, torch.from_numpy(policies).to(model.device))
    seeds = np.arange(runs)
    walked = walk_batch(
        model,
        roll_in_batch(model, [prepared], [GAMMA], tail=1),
        stream_keys(seeds, 0, model.device),
        10_000,
    )
    rho, keys = roll_in_batch(model, []), stream_keys(seeds, 1, model.device)
    learned = episode_statistics_batch(model, prepared, rho, keys, episodes=50, horizon=90, gamma=GAMMA)
    held = True
    for run in (0, 1, runs // 2, runs - 1):
        world = TabularWorld(mdp, seed=run)
        assert walked.counts is not None
        held &= np.array_equal(visit(world, policies[run], gamma=GAMMA, count=10_000), walked.counts[run].cpu().numpy())
        held &= world.samples == int(walked.samples[run])
        alone = world.episodes(policies[run], EpisodeBatch(episodes=50, horizon=90, gamma=GAMMA))
        held &= alone.samples == int(learned.samples[run])
        held &= np.allclose(alone.advantage_sum, learned.advantage_sum[run].cpu().numpy(), rtol=1e-11, atol=1e-9)
    return bool(held)


# How fast ---------------------------------------------------------------------------------------------------------


def on_gpu(work: Callable[[], torch.Tensor], repeats: int = 7) -> tuple[float, float]:
    """Steps a second by CUDA events: the median, and how far the runs spread. ``work`` returns the steps it took."""
    work()
    times, steps = [], 0
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        taken = work()
        end.record()
        torch.cuda.synchronize()
        steps = int(taken.sum())
        times.append(begin.elapsed_time(end) / 1e3)
    return steps / statistics.median(times), max(times) / min(times) - 1.0


def on_cpu(work: Callable[[], int], repeats: int = 3) -> float:
    """Steps a second by the clock, the median."""
    work()
    rates = []
    for _ in range(repeats):
        begin = time.perf_counter()
        steps = work()
        rates.append(steps / (time.perf_counter() - begin))
    return statistics.median(rates)


class Visits:
    """Visits of the uniform policy: one launch, many portions of walks."""

    def __init__(self, mdp: FiniteMDP, portions: int) -> None:
        self.mdp = mdp
        self.model = load_model(mdp)
        policy = torch.from_numpy(mdp.uniform_policy()).to(self.model.device)
        prepared = prepare_policies(self.model, policy[None])
        self.roll_in = roll_in_batch(self.model, [prepared], [GAMMA], tail=1)
        self.keys = stream_keys(1, np.arange(portions), self.model.device)

    def rate(self, launch: Launch | None = None) -> tuple[float, float]:
        """Steps a second on the GPU, and their spread."""

        def walk() -> torch.Tensor:
            return walk_batch(
                self.model, self.roll_in, self.keys, PORTION, composed=True, add_runs=True, launch=launch
            ).samples

        return on_gpu(walk)

    def on_two_threads(self, count: int) -> float:
        """Steps a second of Numba's kernels."""
        world = TabularWorld(self.mdp, seed=1, threads=2)
        policy = self.mdp.uniform_policy()
        policy.flags.writeable = False

        def walk() -> int:
            before = world.samples
            visit(world, policy, gamma=GAMMA, count=count)
            return world.samples - before

        return on_cpu(walk)


class Gradients:
    """Policy-gradient statistics of the uniform policy, from the start, with a critic."""

    def __init__(self, mdp: FiniteMDP, episodes: int) -> None:
        self.mdp = mdp
        self.model = load_model(mdp)
        self.policy = prepare_policies(
            self.model, torch.from_numpy(mdp.uniform_policy()).to(self.model.device)[None], composed=False
        )
        self.rho = roll_in_batch(self.model, [])
        self.episodes = episodes
        self.settings: dict[str, Any] = {"horizon": 90, "gamma": GAMMA, "trace": 0.95}
        self.critic = np.random.default_rng(0).random(mdp.num_states)

    def rate(self, launch: Launch | None = None) -> tuple[float, float]:
        """Steps a second on the GPU, and their spread."""
        critic = torch.from_numpy(self.critic).to(self.model.device)[None]
        keys = stream_keys(1, 0, self.model.device)

        def learn() -> torch.Tensor:
            return episode_statistics_batch(
                self.model,
                self.policy,
                self.rho,
                keys,
                episodes=self.episodes,
                critic=critic,
                launch=launch,
                **self.settings,
            ).samples

        return on_gpu(learn)

    def on_one_thread(self) -> float:
        """Steps a second of Numba's kernel, which is serial."""
        world = TabularWorld(self.mdp, seed=1)
        policy = self.mdp.uniform_policy()
        return on_cpu(
            lambda: world.episodes(policy, EpisodeBatch(episodes=200_000, critic=self.critic, **self.settings)).samples,
        )


def end_to_end(mdp: FiniteMDP, count: int) -> float:
    """Steps a second of a whole `visit`, by the clock."""
    world = TabularWorld(mdp, seed=1, backend="triton")
    policy = mdp.uniform_policy()
    policy.flags.writeable = False

    def walk() -> int:
        before = world.samples
        visit(world, policy, gamma=GAMMA, count=count)
        return world.samples - before

    return on_cpu(walk)


def gymnasium_rate(mdp: FiniteMDP) -> float:
    from benchmarks import rivals
    from benchmarks.walks import gymnasium_stack

    env = gymnasium_stack(mdp)
    return on_cpu(lambda: rivals.plain_loop(env, mdp.uniform_policy(), GAMMA, 1_000))


def measure(tune: bool) -> Iterator[Row]:
    """Every row of the table, as it is measured."""
    lock = combination_lock(20)
    yield from visit_rows("visit DCL(20)", lock, 256, 2_000_000, tune)
    yield Row("visit DCL(20)", "Triton, whole call, 10^9 walks", end_to_end(lock, 10**9))
    yield Row("visit DCL(20)", "Gymnasium loop", gymnasium_rate(lock))
    yield from gradient_rows("gradient DCL(20)", lock, tune)
    for exponent, portions in ((6, 24), (7, 12)):
        for successors in (4, 2):
            name = f"visit 10^{exponent} states" + (", 2 successors" if successors == 2 else "")
            yield from visit_rows(name, garnet(10**exponent, successors, 1), portions, 4_000_000, tune)


def visit_rows(name: str, mdp: FiniteMDP, portions: int, cpu_walks: int, tune: bool) -> Iterator[Row]:
    visits = Visits(mdp, portions)
    yield Row(name, "Triton, GPU", *visits.rate())
    yield Row(name, "Numba, 2 threads", visits.on_two_threads(cpu_walks))
    for launch in walk_layouts() if tune else ():
        yield Row(name, f"  {tuple(launch)}", *visits.rate(launch))


def gradient_rows(name: str, mdp: FiniteMDP, tune: bool) -> Iterator[Row]:
    gradients = Gradients(mdp, 1 << 24)
    yield Row(name, "Triton, GPU", *gradients.rate())
    yield Row(name, "Numba, 1 thread", gradients.on_one_thread())
    for launch in gradient_layouts() if tune else ():
        yield Row(name, f"  {tuple(launch)}", *gradients.rate(launch))


def walk_layouts() -> list[Launch]:
    shapes = ((32, 1, 32), (64, 1, 32), (128, 1, 16), (128, 2, 16), (128, 4, 16))
    return [Launch(b, w, stride, p) for b, w, p in shapes for stride in (4, 6, 7, 8, 9, 12)]


def gradient_layouts() -> list[Launch]:
    shapes = ((32, 1, 32), (32, 1, 16), (64, 2, 16), (128, 4, 8))
    return [Launch(b, w, 4, p, copies) for b, w, p in shapes for copies in (1, 4, 16, 32)]


def machine() -> dict[str, Any]:
    device = find_device()
    properties = torch.cuda.get_device_properties(device)
    return {
        "gpu": properties.name,
        "gpu_memory": properties.total_memory,
        "processors": properties.multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpu": platform.processor() or platform.machine(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    parser.add_argument("--tune", action="store_true", help="also try other layouts of the kernels")
    parser.add_argument("--skip-checks", action="store_true")
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": machine(), "checks": {}, "rows": []}
    print(json.dumps(record["machine"]), flush=True)

    def save() -> None:
        if options.out is not None:
            options.out.write_text(json.dumps(record, indent=1))

    for name, held in [] if options.skip_checks else check_all():
        record["checks"][name] = held
        print("same " if held else "DIFFERENT ", name, flush=True)
        save()
    for row in measure(options.tune):
        record["rows"].append(row._asdict())
        target = TARGETS.get(row.task) if row.who == "Triton, GPU" else None
        verdict = (
            "" if target is None else f"  target {target:.1e}: {'met' if row.steps_a_second >= target else 'MISSED'}"
        )
        print(f"{row.task:34}{row.who:34}{row.steps_a_second:10.3e} steps/s  ±{row.spread:.1%}{verdict}", flush=True)
        save()
    return 0 if all(record["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
