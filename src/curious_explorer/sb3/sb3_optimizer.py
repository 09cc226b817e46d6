"""`SB3`: PPO, A2C and TRPO with neural networks, by Stable-Baselines3, as an optimizer of Curious Explorer.

In a `GymWorld` it learns on raw observations; the cells serve only for the curiosity reward. In any other world it
learns on one-hot vectors of states and returns a table.

Two things are ours because the theory asks for them:

- episodes begin where the reset model's roll-ins end, and are cut off after a ``horizon`` of the learner's own, with
  what lies beyond valued by the critic;
- a terminated episode is absorbing. The step that terminates is paid, besides its own reward r_t,
  ``gamma * r(s_end) / (1 - gamma)``: all that the last state pays for ever after.

Rewards are multiplied by ``1 - gamma`` on their way into the network's critic, so that it has to predict values between
0 and 1 for rewards between 0 and 1, whatever gamma is. Reported returns are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Reward, Task, Watch, check_task, learning_curve
from curious_explorer.sb3.network_heads import Categorical, head_of
from curious_explorer.sb3.network_inputs import Inputs
from curious_explorer.sb3.network_policy import NetworkPolicy
from curious_explorer.sb3.sb3_algorithm import (
    ALGORITHMS,
    Learner,
    check_hyperparameters,
    private_randomness,
    require_algorithm,
)
from curious_explorer.sb3.sb3_episodes import BudgetSpent, GymLane, Lane, Meter, Pay, WorldLane
from curious_explorer.sb3.sb3_rollouts import LaneRollouts, Scale
from curious_explorer.validation import check_count, check_seed
from curious_explorer.worlds.policies import Policy, as_table, frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import World
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
    """Episodes run side by side; in a world that leads one life only, after each other."""
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
        algorithm = require_algorithm(self.algorithm)
        check_hyperparameters(algorithm, self.hyperparameters)
        if isinstance(world, RecordingWorld):
            raise ValueError("SB3 takes no notes of the transitions it sees; explore with record=False")
        meter, pay = Meter(self.steps if task.budget is None else task.budget), Pay(task.reward, task.gamma)
        seeds = np.random.SeedSequence([self.seed, *_whereabouts(world)])
        horizon = self.horizon or default_horizon(task.gamma)
        lanes, inputs, action_space = self._lanes(world, task, meter, pay, horizon, seeds)
        try:
            learned = self._learn(world, task, algorithm, lanes, inputs, action_space, meter, seeds)
            if watch is not None:
                watch(learned.policy, learned.samples)
            return learned
        finally:
            if isinstance(world, GymWorld):
                world.count_samples(meter.taken)
            for lane in lanes:
                lane.close()

    def _lanes(
        self, world: World, task: Task, meter: Meter, pay: Pay, horizon: int, seeds: np.random.SeedSequence
    ) -> tuple[Sequence[Lane], Inputs, spaces.Space[Any]]:
        """Where episodes run, how observations become numbers, and which actions there are."""
        lane_seeds = [int(child.generate_state(1)[0]) >> 1 for child in seeds.spawn(self.num_envs)]
        if not isinstance(world, GymWorld):
            for policy in task.roll_in.policies:
                as_table(policy, "a roll-in in a world of states")
            lane = WorldLane(world, task, meter, pay, horizon, lane_seeds[0])
            return [lane], Inputs("one_hot", (world.num_states,), (0,)), spaces.Discrete(world.num_actions)
        example = world.make_environment()
        inputs, action_space = Inputs.of(example.observation_space), example.action_space
        head_of(action_space)  # refuses what no network can act in
        example.close()
        return [GymLane(world, task, meter, pay, horizon, seed) for seed in lane_seeds], inputs, action_space

    def _learn(
        self,
        world: World,
        task: Task,
        algorithm: Any,
        lanes: Sequence[Lane],
        inputs: Inputs,
        action_space: spaces.Space[Any],
        meter: Meter,
        seeds: np.random.SeedSequence,
    ) -> OptimizerResult:
        own, drawing = (int(child.generate_state(1)[0]) for child in seeds.spawn(2))
        scale = Scale(inputs.width, self.normalize_observations and inputs.kind == "box")
        travellers = LaneRollouts(lanes, inputs, scale, np.random.default_rng(drawing))
        curve: list[tuple[int, float, int]] = []
        budget = meter.left
        with private_randomness(own, self.torch_threads):
            learner = Learner(
                algorithm, inputs, action_space, len(lanes), arguments=self._arguments(task, lanes, budget)
            )
            policy = learner.policy(None)
            dearest = 0  # rollout so far: one that could not be finished would be paid for nothing
            while dearest <= meter.left:
                before = meter.taken
                try:
                    rollout = travellers.collect(policy, learner.steps, fresh=self.algorithm not in EPISODES_GO_ON)
                except BudgetSpent:
                    break
                learner.learn(rollout._replace(rewards=(1.0 - task.gamma) * rollout.rewards), meter.taken / budget)
                policy = learner.policy(scale.normalisation)
                dearest = max(dearest, meter.taken - before)
                curve.append((meter.taken, travellers.mean_return(), travellers.episodes))
        return OptimizerResult(
            policy=_as_result(policy, world),
            samples=meter.taken,
            curve=learning_curve(curve),
            accepted=len(curve),
            occupancy=travellers.occupancy(world.num_states, task.gamma) if curve else None,
        )

    def _arguments(self, task: Task, lanes: Sequence[Lane], budget: int) -> dict[str, Any]:
        """What the algorithm is told."""
        import torch

        arguments = {**DEFAULTS[self.algorithm], **self.hyperparameters}
        if "n_steps" not in self.hyperparameters:
            each = self.num_envs // len(lanes)  # where there is one lane only, it takes the steps of all of them
            affordable = budget // (2 * LEAST_UPDATES * len(lanes))  # about half of all steps are roll-ins
            arguments["n_steps"] = max(LEAST_STEPS, min(each * arguments["n_steps"], affordable))
        if "batch_size" in DEFAULTS[self.algorithm] and "batch_size" not in self.hyperparameters:
            arguments["batch_size"] = _largest_divisor(arguments["n_steps"] * len(lanes), arguments["batch_size"])
        activation = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[self.activation]
        return {
            **arguments,
            "gamma": task.gamma,
            "device": self.device,
            "policy_kwargs": {"net_arch": list(self.net_arch), "activation_fn": activation},
        }


def _whereabouts(world: World) -> list[int]:
    """Numbers that no two calls in a world share, and that a resumed run has in common with an uninterrupted one."""
    position = [int(value) for _, value in sorted(world.position().items()) if isinstance(value, int)]
    return [int(world.identity().get("seed", 0)), *position]


def _largest_divisor(total: int, most: int) -> int:
    """The largest size, not above ``most``, of batches that a rollout can be cut into evenly."""
    return max(size for size in range(1, min(total, most) + 1) if total % size == 0)


def _as_result(policy: NetworkPolicy, world: World) -> Policy:
    """The network itself where there are observations, and the table of all states where there are none."""
    return policy if isinstance(world, GymWorld) else table_of(policy, world)


def table_of(policy: NetworkPolicy, world: World) -> Floats:
    """The table of a network that sees states as one-hot vectors."""
    assert isinstance(policy.head, Categorical)
    return frozen(policy.head.probabilities(policy.outputs(policy.features(range(world.num_states)))))
