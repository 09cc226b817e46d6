"""``python -m benchmarks.layouts_rivals``: PPO, RND and NovelD on layouts that change, in the harness of `layouts`.

What the literature does: every episode has a new layout, drawn from the seeds that are for learning, and nothing is
explored first. Observations are the same one-hot symbols as in `benchmarks.layouts`, the network has two layers of 256,
and after each of ``--tests-at`` samples it plays one episode in each of 500 layouts that are never learned from. Every
step is a sample, those of a bonus's warm-up too; those of tests are not.
"""

from __future__ import annotations

import argparse
import functools
import warnings
from typing import Any

import gymnasium

from benchmarks.layouts import TASKS, TimeIsUpError, stopped_after
from curious_explorer.gym.cells import Env
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.new_layouts import NewLayouts
from curious_explorer.gym.symbols import SymbolObservations, Symbols
from curious_explorer.sb3.algorithms import algorithm_class, network_policy, private_randomness, quiet_logger
from curious_explorer.sb3.network_view import NetworkView
from curious_explorer.sb3.training_envs import BudgetSpent, Meter, MeteredEnv
from curious_explorer.studies.unseen_layouts import play_unseen, split_layouts

ALGORITHMS = ("ppo", "rnd", "noveld")
ENVIRONMENTS, ROLLOUT, LOOK = 16, 128, 2_000
ACTIONS = 6
"""All but the one that does nothing."""


class FirstActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with the first so many of its actions."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(ACTIONS)


def make_new(identifier: str, seed: int, meter: Meter) -> Env:
    """An environment with a new layout for every episode, drawn from those that are for learning."""
    return MeteredEnv(NewLayouts(FirstActions(make_by_id(identifier)), seed), meter)


def look(identifier: str, seed: int, meter: Meter) -> Symbols:
    """The symbols that random actions meet; the steps are counted."""
    env = make_new(identifier, seed, meter)
    env.action_space.seed(seed)
    seen = [env.reset()[0]]
    for _ in range(LOOK):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(env.reset()[0] if terminated or truncated else observation)
    symbols = Symbols.of(env.observation_space, seen)
    assert symbols is not None
    return symbols


def run(task: str, algorithm: str, seed: int, tests_at: list[int], tests: int) -> None:
    """Learn, and test now and then."""
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv
    from torch.nn import ReLU

    identifier, meter = TASKS[task], Meter(tests_at[-1])
    symbols = look(identifier, seed, meter)
    split = split_layouts(1, tests, seed=seed)

    def one(number: int) -> Env:
        return NetworkView(SymbolObservations(make_new(identifier, seed * 1_000 + number + 1, meter), symbols))

    def tell(model: Any) -> None:
        network = network_policy(model.policy, model.observation_space, model.action_space)
        policy = ClonedPolicy(network, symbols, range(ACTIONS))
        result = play_unseen(functools.partial(make_by_id, identifier), policy, split.test, explored=(), seed=seed)
        print(
            f"| {task} | {algorithm} | {seed} | {meter.taken:,} | {result.share:.3f} ({result.low:.3f} to "
            f"{result.high:.3f}) |",
            flush=True,
        )

    class Tests(BaseCallback):
        """Tests at the end of the first rollout after each number of samples."""

        def __init__(self) -> None:
            super().__init__()
            self.left = list(tests_at[:-1])

        def _on_rollout_end(self) -> None:
            if self.left and meter.taken >= self.left[0]:
                self.left = [at for at in self.left if at > meter.taken]
                tell(self.model)

        def _on_step(self) -> bool:
            return True

    vector = DummyVecEnv([functools.partial(one, number) for number in range(ENVIRONMENTS)])
    with private_randomness(seed, threads=1):
        model = algorithm_class(algorithm, ())(
            "MlpPolicy",
            vector,
            n_steps=ROLLOUT,
            batch_size=ROLLOUT * ENVIRONMENTS // 4,
            n_epochs=4,
            ent_coef=0.01,
            learning_rate=3e-4,
            gamma=0.99,
            seed=seed,
            device="cpu",
            policy_kwargs={"net_arch": [256, 256], "activation_fn": ReLU},
        )
        model.set_logger(quiet_logger())
        try:
            model.learn(2 * tests_at[-1], callback=Tests())
        except BudgetSpent:
            tell(model)
        except TimeIsUpError:
            print(f"{task}, {algorithm}, seed {seed}: stopped after {meter.taken:,} samples", flush=True)
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="MultiRoom-N6", help="some of: " + ", ".join(TASKS))
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS), help="some of: " + ", ".join(ALGORITHMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument(
        "--tests-at", type=lambda text: [int(part) for part in text.split(",")], default=[100_000, 300_000, 1_000_000]
    )
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--minutes", type=float, help="how long at most; without limit if left out")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| task | algorithm | seed | samples | unseen solved |\n|---|---|---|---|---|")
    try:
        with stopped_after(asked.minutes):
            for task in asked.tasks.split(","):
                for algorithm in asked.algorithms.split(","):
                    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
                        run(task, algorithm, seed, asked.tests_at, asked.tests)
    except TimeIsUpError:
        print("the time is up; what is not listed was not run", flush=True)


if __name__ == "__main__":
    main()
