"""What a training was asked to do, checked before anything is made or written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gymnasium import spaces

from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.agents import LONGEST_EPISODE, Agent
from curious_explorer.gym.cells import Env
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.flat_actions import FlatActions, with_flat_actions
from curious_explorer.gym.held_actions import ChoosingAgent
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.memory import check_memory, with_memory
from curious_explorer.gym.shifted_reward import without_price
from curious_explorer.gym.time_limits import time_limit_of
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.starts import ADAPTIVE, STARTS, can_move
from curious_explorer.sb3.algorithms import (
    ALGORITHMS,
    NETWORK_SETTINGS,
    OFF_POLICY,
    ROLLOUT,
    TRAINABLE,
    WITH_BONUS,
    algorithm_class,
    check_actions,
    check_numbers,
    largest_divisor,
    network_arguments,
)
from curious_explorer.validation import check_count, check_name, check_seed

EVALUATIONS = 20
EPISODES, FEWEST_EPISODES = 10, 3
"""Of an evaluation: as many, or fewer where they would cost too much."""
EVALUATION_SHARE = 4
"""Evaluations take at most one step for so many of training, where that leaves `FEWEST_EPISODES`."""
LAST_STRETCH = 0.1
"""The last share of the samples, in which all episodes begin at the environment's own start."""
MOST_ENVS, LONGEST_ROLLOUT = 10_000, 10_000_000
"""More environments in one process take minutes to be made, one after the other, and longer rollouts gigabytes."""
PPO: dict[str, Any] = {
    # Fewer and larger gradient steps than the library's (10 epochs in batches of 64): a quarter of their time.
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 5e-4,
    # Keeps actions open until the reward has come back to them.
    "ent_coef": 0.01,
    "net_arch": [128, 128],
}
"""What PPO is told where the hyperparameters do not say otherwise; chosen with the starts, see docs/starts.md."""
TARGET_KL = 0.02
"""An update of PPO ends before the policy has moved further, so that one rollout cannot undo what was learned."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """A training; two with equal settings give equal results."""

    environment: str
    algorithm: str = "ppo"
    samples: int = 300_000
    """Steps in all, those of roll-ins included."""
    num_envs: int = 8
    starts: str = ADAPTIVE
    """Where episodes begin, given a reset model: see `resets.starts`."""
    warm_start: bool = True
    """Whether the best known way to the reward is cloned into the policy first, given a reset model with counts; for
    "ppo", "a2c" and "trpo"."""
    snapshots: bool = False
    """Whether roll-ins to chosen cells may restore saved states of the environment, given a reset model: they take no
    steps then (see `gym.snapshots`)."""
    seed: int = 0
    normalize: bool = True
    """Whether observations are shifted and scaled by their running mean and variance."""
    evaluate_every: int | None = None
    """Samples between two evaluations, each with a checkpoint; a twentieth of the samples by default, or more where
    episodes are long."""
    evaluation_episodes: int | None = None
    """Ten by default, or fewer where episodes are long."""
    evaluation_steps: int = LONGEST_EPISODE
    """When an episode of an evaluation is cut off, in an environment that has no time limit of its own."""
    deterministic: bool = True
    """Whether evaluations take the likeliest action instead of drawing one."""
    layout: int | None = None
    """A seed that every episode is reset with, for environments that draw a new layout at every reset."""
    reward_scale: float = 1.0
    """What the learner sees of a reward is multiplied by this; evaluations are not."""
    price: float = 0.0
    """What a step costs whatever it leads to, if negative: the learner is paid it back (see `shifted_reward`)."""
    memory: int | None = None
    """How many earlier contents observations remember (see `gym.memory`); none by default."""
    action_list: Sequence[Any] | None = None
    """Actions of the environment, as plain data, of which one is chosen by number; all that there are by default."""
    hold: int = 1
    """For how many steps an action is taken; those of roll-ins are held as they were while exploring."""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    """What the algorithm is told beside, as Stable-Baselines3 calls it."""

    def __post_init__(self) -> None:
        if self.algorithm not in TRAINABLE:
            raise ValueError(f"unknown algorithm {self.algorithm!r}; expected one of {', '.join(TRAINABLE)}")
        for name in ("samples", "evaluation_steps"):
            check_count(getattr(self, name), name, least=1)
        check_count(self.num_envs, "num_envs", least=1)
        for name in ("evaluate_every", "evaluation_episodes"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, least=1)
        check_name(self.starts, STARTS, "starts")
        check_seed(self.seed)
        if self.layout is not None:
            check_seed(self.layout, "layout")
        check_count(self.num_envs, "num_envs", most=MOST_ENVS)
        check_count(self.hold, "hold", least=1)
        if self.memory is not None:
            check_memory(self.memory)
        if not 0.0 < self.reward_scale < math.inf:
            raise ValueError(f"reward_scale is {self.reward_scale!r}, expected a positive number")

    def make_env(self) -> Env:
        """The environment, in its layout."""
        env = self._made()
        if self.action_list is not None:
            env = FlatActions(env, self.choices(env.action_space))
        check_actions(self.algorithm, env.action_space, self.environment)
        return with_memory(env, self.memory)

    def _made(self) -> Env:
        return with_layout(with_flat_actions(make_by_id(self.environment)), self.layout)

    def choices(self, space: spaces.Space[Any]) -> list[Any]:
        """The actions that are chosen from, as the space has them."""
        return ActionSet.from_description(self.action_list or [], space).choices

    def choosing(self, agent: Agent) -> Agent:
        """Who acts in the environment as it is, for an agent whose actions are numbers of `action_list`."""
        if self.action_list is None:
            return agent
        env = self._made()
        env.close()
        return ChoosingAgent(agent, self.choices(env.action_space))

    def make_training_env(self) -> Env:
        """The environment as a learner sees it."""
        return without_price(self.make_env(), self.price)

    def starts_warm(self, reset_model: ResetModel) -> bool:
        """Whether there is a policy to clone into, and counts by which a way can be found."""
        return self.warm_start and self.algorithm in ALGORITHMS and can_move(reset_model)

    def with_evaluations(self) -> TrainingSettings:
        """The same with how often and how long to evaluate, so that evaluations do not cost as much as training."""
        env = self.make_env()
        longest = time_limit_of(env) or self.evaluation_steps
        env.close()
        episodes, interval = self.evaluation_episodes, self.evaluate_every
        if episodes is None:
            affordable = self.samples // (2 * EVALUATIONS * longest)
            episodes = min(max(affordable, FEWEST_EPISODES), EPISODES)
        if interval is None:
            interval = min(max(1, self.samples // EVALUATIONS, EVALUATION_SHARE * episodes * longest), self.samples)
        return replace(self, evaluation_episodes=episodes, evaluate_every=interval)

    def arguments(self) -> dict[str, Any]:
        """The arguments of the algorithm: our defaults, and over them the hyperparameters given."""
        defaults: dict[str, Any] = {}
        clipped = self.algorithm in ("ppo", *WITH_BONUS)
        if self.algorithm in OFF_POLICY:
            defaults = {"buffer_size": 100_000, "learning_starts": 1_000}
            # As many gradient steps for a step as in one environment: one in four for DQN, one for SAC.
            defaults["gradient_steps"] = self.num_envs if self.algorithm == "dqn" else -1
        elif self.algorithm != "a2c":
            defaults = {"n_steps": max(8, ROLLOUT // self.num_envs)}
        if self.algorithm == "ppo":
            defaults["target_kl"] = TARGET_KL
        arguments = defaults | (PPO if clipped else {}) | dict(self.hyperparameters)
        for name in ("n_steps", "batch_size"):
            if name in arguments:
                check_count(arguments[name], name, least=1)
        check_count(arguments.get("n_steps", 1) * self.num_envs, "n_steps times num_envs", most=LONGEST_ROLLOUT)
        if clipped and "batch_size" not in self.hyperparameters:
            arguments["batch_size"] = largest_divisor(arguments["n_steps"] * self.num_envs, PPO["batch_size"])
        network = {name: arguments.pop(name) for name in NETWORK_SETTINGS if name in arguments}
        return arguments | ({"policy_kwargs": network_arguments(network)} if network else {})

    def algorithm_class(self) -> Any:
        """The algorithm, its hyperparameters checked."""
        given = {name: value for name, value in self.hyperparameters.items() if name not in NETWORK_SETTINGS}
        found = algorithm_class(self.algorithm, given)
        check_numbers(found, given)
        return found


def hyperparameters(assignments: list[str]) -> dict[str, Any]:
    """``["n_steps=16", "net_arch=[128,128]", "activation_fn=relu"]`` as a dictionary; values are JSON, or names."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        value = value.strip()
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = value
        if not equals or not name.strip() or value == "" or not isinstance(parsed, (bool, int, float, str, list)):
            raise ValueError(
                f"--set is {assignment!r}, expected a name and a number, a word or a list, as in --set n_steps=64, "
                "--set net_arch=[128,128] or --set activation_fn=relu"
            )
        if name.strip() in found:
            raise ValueError(f"--set gives {name.strip()} twice, expected one value for each hyperparameter")
        found[name.strip()] = parsed
    return found
