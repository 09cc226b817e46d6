"""`SB3`: PPO, A2C and TRPO with neural networks, by Stable-Baselines3, as an optimizer of Curious Explorer.

In a `GymWorld` it learns on raw observations; the cells serve only for the curiosity reward. In any other world it
learns on one-hot vectors of states and returns a table.

The algorithm runs its own ``learn`` in environments that ask for what the theory asks for (see `training_envs`):
episodes begin where the reset model's roll-ins end, are cut off after a horizon of the learner's own with what lies
beyond valued by the critic, and a terminated episode goes on earning what its last state pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from curious_explorer.callbacks.events import BATCH, LEARN, tell
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.network_inputs import num_inputs
from curious_explorer.gym.network_policy import num_outputs
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Task, Watch, check_task, learning_curve
from curious_explorer.sb3.algorithms import (
    ALGORITHMS,
    algorithm_class,
    largest_divisor,
    network_policy,
    private_randomness,
    quiet_logger,
    spawned_seed,
)
from curious_explorer.sb3.training_envs import BudgetSpent, Meter, TaskEnv, WorldEnv, make_training_envs, occupancy_of
from curious_explorer.validation import check_count, check_seed
from curious_explorer.worlds.policies import Policy, as_table, frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import Reward, World
from curious_explorer.worlds.wrappers import RecordingWorld

DEFAULTS: dict[str, dict[str, Any]] = {
    "ppo": {
        # With 8 environments 2,048 steps a rollout, the library's own size; each begins with a roll-in in every lane.
        "n_steps": 256,
        # Larger than the library's 64: gradient steps take two thirds of the time, and these take fewer.
        "batch_size": 256,
        # The library's 3e-4 is for a million steps, and a round has some ten thousand. On MountainCar's 20 x 20 cells,
        # 50,000 steps a round, one seed: 187 cells after four rounds by this rate, 167 by that one.
        "learning_rate": 1e-3,
        # There, 161 cells after three rounds with this much entropy, 144 with the library's 0.0.
        "ent_coef": 0.01,
    },
    "a2c": {
        # Longer than the library's 5, since a step's reward may be far ahead; still one gradient step for each rollout,
        "n_steps": 16,
        # so that the rate must be larger than its 7e-4, by which 10,000 steps on DCL(1) bring 0.45 of the best value,
        # against 0.99 by this one.
        "learning_rate": 3e-3,
        "ent_coef": 0.01,
        # Curiosity pays between nothing and one at every step, so the size of advantages says little.
        "normalize_advantage": True,
    },
    # A step goes to the edge of the trust region, so there is no rate to choose for the actor.
    "trpo": {"n_steps": 256, "batch_size": 128},
}
"""What the algorithms are told where `SB3.hyperparameters` does not say otherwise."""
DECIDED_ELSEWHERE = {
    "gamma": "gamma of the call",
    "policy_kwargs": "net_arch and activation",
    "use_sde": "nothing: state-dependent exploration cannot be stored with a reset model",
    "sde_sample_freq": "nothing: state-dependent exploration cannot be stored with a reset model",
}
"""Arguments of the algorithms, and what to use instead."""
EPISODES_GO_ON = {"a2c"}
"""Whose rollouts are too short to begin every one of them with a roll-in."""
LEAST_UPDATES = 10
"""Rollouts are shortened, unless their length is given, so that a small budget suffices for so many of them."""
LEAST_STEPS = 16


@dataclass(frozen=True)
class SB3:
    """An on-policy algorithm of Stable-Baselines3 or sb3-contrib."""

    algorithm: str = "ppo"
    """"ppo", "a2c" or "trpo"."""
    _: KW_ONLY
    num_envs: int = 8
    """Episodes run side by side; in a world that cannot be copied, one after the other."""
    normalize_observations: bool = True
    """Whether the network sees observations shifted and scaled by their running mean and variance."""
    policy: str = "MlpPolicy"
    """The kind of network; multilayer perceptrons only."""
    net_arch: Sequence[int] = (64, 64)
    """Units of each hidden layer, of the actor and, apart from it, of the critic."""
    activation: str = "tanh"
    """"tanh" or "relu"."""
    horizon: int | None = None
    """When an episode is cut off; by default where gamma**horizon is 0.01."""
    steps: int = 100_000
    """How many steps to learn with, roll-ins included, where a call has no budget."""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the algorithm, such as ``{"learning_rate": 1e-3}``; see `DEFAULTS`."""
    seed: int = 0
    device: str = "cpu"
    """Small networks are faster on the CPU."""
    torch_threads: int = 1
    """More threads than one make a small network slower."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {self.algorithm!r}, expected one of {', '.join(map(repr, ALGORITHMS))}")
        if self.policy != "MlpPolicy":
            raise ValueError(
                f"policy is {self.policy!r}, but only 'MlpPolicy' can be stored with a reset model; flatten pictures "
                "and dicts by a wrapper (gymnasium.wrappers.FlattenObservation) and explore with it in place"
            )
        if self.activation not in ("tanh", "relu"):
            raise ValueError(f"activation is {self.activation!r}, expected 'tanh' or 'relu'")
        for name in ("num_envs", "steps", "torch_threads"):
            check_count(getattr(self, name), name, least=1)
        if self.horizon is not None:
            check_count(self.horizon, "horizon", least=1)
        for width in self.net_arch:
            check_count(width, "net_arch", least=1)
        check_seed(self.seed)
        object.__setattr__(self, "net_arch", tuple(self.net_arch))
        object.__setattr__(self, "hyperparameters", dict(self.hyperparameters))

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> OptimizerResult:
        """Alternate rollouts and gradient steps until the budget does not suffice for another; see `Optimizer`."""
        task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        algorithm = algorithm_class(self.algorithm, self.hyperparameters, DECIDED_ELSEWHERE)
        if isinstance(world, RecordingWorld):
            raise ValueError("SB3 does not record the transitions that it sees; explore with record=False")
        meter = Meter(self.steps if task.budget is None else task.budget)
        try:
            return self._learn(world, task, algorithm, meter, watch)
        finally:
            if isinstance(world, GymWorld):  # its environments are others, made for this
                world.count_samples(meter.taken)

    def _learn(self, world: World, task: Task, algorithm: Any, meter: Meter, watch: Watch | None) -> OptimizerResult:
        from curious_explorer.sb3.sb3_rollouts import RolloutLog, RolloutPolicy  # they need Stable-Baselines3

        own = spawned_seed(self.seed, int(world.identity().get("seed", 0)), world.samples)
        make, discretisation, num_envs = self._environment(world, task.roll_in)
        with private_randomness(own, self.torch_threads):
            horizon = self.horizon or default_horizon(task.gamma)
            envs, episodes = make_training_envs(
                make,
                meter,
                num_envs=num_envs,
                resets=(task.roll_in, discretisation),
                task=lambda env: TaskEnv(env, discretisation, task.reward, gamma=task.gamma, horizon=horizon),
                normalize=self.normalize_observations,
            )
            try:
                envs.seed(own)
                model = algorithm(RolloutPolicy, envs, **self._arguments(task, num_envs, meter.left))
                model.set_logger(quiet_logger())
                example = episodes[0].env

                def policy() -> Policy:
                    network = network_policy(
                        model.policy, example.observation_space, example.action_space, model.get_vec_normalize_env()
                    )
                    if isinstance(world, GymWorld):
                        return network
                    return frozen(network.probabilities(range(world.num_states)))

                watched = [-1]

                def show() -> None:
                    if watch is not None and watched[-1] != meter.taken:
                        watched.append(meter.taken)
                        numbers = {"return": log.curve[-1][1], "episodes": log.curve[-1][2]} if log.curve else {}
                        tell(watch, BATCH, LEARN, meter.taken, numbers, policy)

                log = RolloutLog(meter, episodes, fresh=self.algorithm not in EPISODES_GO_ON, watch=show)
                with suppress(BudgetSpent):
                    model.learn(meter.left, callback=log)
                show()
                return OptimizerResult(
                    policy=policy(),
                    samples=meter.taken,
                    curve=learning_curve(log.curve),
                    accepted=len(log.curve),
                    occupancy=occupancy_of(log.recent, world.num_states, task.gamma) if log.curve else None,
                )
            finally:
                envs.close()

    def _environment(self, world: World, roll_in: RollIn) -> tuple[Callable[[], Env], Discretisation, int]:
        """What to learn in: how to make one, what its states are, and how many run side by side."""
        if not isinstance(world, GymWorld):
            for policy in roll_in.policies:
                as_table(policy, "a roll-in in a world of states")
            return lambda: WorldEnv(world), Discretisation.of_states(world.num_states, world.num_actions), 1
        example = world.make_environment()
        try:  # refuse what no network can see or act in
            num_inputs(example.observation_space)
            num_outputs(example.action_space)
        finally:
            example.close()
        return world.make_environment, world.discretisation, self.num_envs

    def _arguments(self, task: Task, num_envs: int, budget: int) -> dict[str, Any]:
        """What the algorithm is told."""
        import torch

        arguments = {**DEFAULTS[self.algorithm], **self.hyperparameters}
        if "n_steps" not in self.hyperparameters:
            each = self.num_envs // num_envs  # where there is one environment only, it takes the steps of all of them
            affordable = budget // (2 * LEAST_UPDATES * num_envs)  # about half of all steps are roll-ins
            arguments["n_steps"] = max(LEAST_STEPS, min(each * arguments["n_steps"], affordable))
        if "batch_size" in DEFAULTS[self.algorithm] and "batch_size" not in self.hyperparameters:
            arguments["batch_size"] = largest_divisor(arguments["n_steps"] * num_envs, arguments["batch_size"])
        activation = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[self.activation]
        network: dict[str, Any] = {"net_arch": list(self.net_arch), "activation_fn": activation}
        if self.algorithm != "a2c":  # which has another gradient method; one kernel for all weights is six times faster
            network["optimizer_kwargs"] = {"eps": 1e-5, "fused": True}
        return {**arguments, "gamma": task.gamma, "device": self.device, "policy_kwargs": network}
