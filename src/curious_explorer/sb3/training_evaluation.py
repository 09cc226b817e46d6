"""What a learner is worth: episodes from the environment's own start, as whoever uses it will begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.gym.make_env import make_by_id
from curious_explorer.sb3.training_settings import TrainingSettings


class Evaluated(NamedTuple):
    """One evaluation; its own steps are no samples of the training and are told apart."""

    samples: int
    """Every step of the training so far."""
    learning_steps: int
    """Those of them that were not of roll-ins."""
    evaluation_steps: int
    """Steps of this evaluation."""
    mean_return: float
    """Of an episode, not discounted."""
    std_return: float
    mean_length: float


def evaluate(
    act: Callable[[Any], Any], settings: TrainingSettings, *, samples: int, learning_steps: int, seed: int
) -> Evaluated:
    """Run whole episodes of an environment of our own, reset by seeds ``seed``, ``seed + 1``, ..."""
    env = make_by_id(settings.environment)
    returns, lengths = [], []
    for episode in range(settings.evaluation_episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, length, ended = 0.0, 0, False
        while not ended and (length < settings.evaluation_steps or _has_limit(env)):
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, length, ended = total + float(reward), length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
    env.close()
    return Evaluated(
        samples,
        learning_steps,
        int(np.sum(lengths)),
        float(np.mean(returns)),
        float(np.std(returns)),
        float(np.mean(lengths)),
    )


def _has_limit(env: Any) -> bool:
    return env.spec is not None and env.spec.max_episode_steps is not None
