"""What a training was asked to do, checked before anything is made or written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from curious_explorer.resets.starts import ADAPTIVE, STARTS
from curious_explorer.sb3.algorithms import ALGORITHMS, ROLLOUT, algorithm_class, largest_divisor
from curious_explorer.validation import check_count, check_name, check_seed

EVALUATIONS = 20
LAST_STRETCH = 0.1
"""The last share of the samples, in which all episodes begin at the environment's own start."""
PPO: dict[str, Any] = {
    # Fewer and larger gradient steps than the library's (10 epochs in batches of 64): a quarter of their time.
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 5e-4,
    # Keeps actions open until the reward has come back to them.
    "ent_coef": 0.01,
    "policy_kwargs": {"net_arch": [128, 128]},
}
"""What PPO is told where the hyperparameters do not say otherwise; chosen with the starts, see docs/starts.md."""


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
    seed: int = 0
    normalize: bool = True
    """Whether observations are shifted and scaled by their running mean and variance."""
    evaluate_every: int | None = None
    """Samples between two evaluations, each with a checkpoint; a twentieth of the samples by default."""
    evaluation_episodes: int = 10
    evaluation_steps: int = 1_000
    """When an episode of an evaluation is cut off, in an environment that has no time limit of its own."""
    deterministic: bool = True
    """Whether evaluations take the likeliest action instead of drawing one."""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    """What the algorithm is told beside, as Stable-Baselines3 calls it."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"unknown algorithm {self.algorithm!r}; expected one of {', '.join(ALGORITHMS)}")
        for name in ("samples", "num_envs", "evaluation_episodes", "evaluation_steps"):
            check_count(getattr(self, name), name, least=1)
        if self.evaluate_every is not None:
            check_count(self.evaluate_every, "evaluate_every", least=1)
        check_name(self.starts, STARTS, "starts")
        check_seed(self.seed)

    @property
    def interval(self) -> int:
        """Samples between two evaluations."""
        return self.evaluate_every or max(1, self.samples // EVALUATIONS)

    def arguments(self) -> dict[str, Any]:
        """The arguments of the algorithm: our defaults, and over them the hyperparameters given."""
        steps = max(8, ROLLOUT // self.num_envs)
        defaults: dict[str, Any] = {} if self.algorithm == "a2c" else {"n_steps": steps}
        arguments = defaults | (PPO if self.algorithm == "ppo" else {}) | dict(self.hyperparameters)
        if self.algorithm == "ppo" and "batch_size" not in self.hyperparameters:
            arguments["batch_size"] = largest_divisor(arguments["n_steps"] * self.num_envs, PPO["batch_size"])
        return arguments

    def algorithm_class(self) -> Any:
        """The algorithm, its hyperparameters checked."""
        return algorithm_class(self.algorithm, self.hyperparameters)


def hyperparameters(assignments: list[str]) -> dict[str, Any]:
    """``["n_steps=16", "gamma=0.9"]`` as a dictionary; values are JSON."""
    found = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = None
        if not equals or not isinstance(parsed, (bool, int, float)):
            raise ValueError(f"--set is {assignment!r}, expected a name and a number, as in --set n_steps=64")
        found[name.strip()] = parsed
    return found
