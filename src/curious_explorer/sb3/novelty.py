"""Bonuses for what is new, as published rivals pay them: from batches of steps, a bonus for each.

    RND       || f_hat(s') - f(s') ||^2, f a fixed random network, f_hat trained to predict it    Burda et al. 2018
    NovelD    max(n(s') - alpha n(s), 0) where s' is new in this episode, n being RND's error     Zhang et al. 2021
    counts    1 / sqrt(N(s')), N counting observations that are equal                   Strehl and Littman 2008, on PPO

A step's next observation is the one it led to, also where it ended an episode: what the reset after it shows was not
earned by it. Observations are those of the environment, before any scaling that changes as it learns, so that equal
ones stay equal. `IntrinsicPPO` learns for these bonuses.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping

import numpy as np
import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from torch import nn

from curious_explorer.arrays import Floats, Mask, Singles

CLIP = 5.0
"""Of normalised observations, as published."""
FEATURES, WIDTH = 64, 128
"""Published: 512, for pictures behind convolutions."""
PREDICTOR_BATCH = 256
LEARNING_RATE = 1e-4
"""As published."""
DIGEST = 12
"""Bytes that stand for an observation."""
EXPERIENCES = 32
"""As published, the predictor sees a share 32 / (number of environments) of the steps, at most all."""


class Novelty(ABC):
    """What is paid for steps; learns from them afterwards.

    Args:
        numbers: how many an observation has.
        num_envs: how many environments are stepped side by side.
    """

    @abstractmethod
    def __init__(self, numbers: int, num_envs: int) -> None: ...

    @abstractmethod
    def state(self) -> dict[str, torch.Tensor]:
        """All that it has learned."""

    @abstractmethod
    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Know what `state` said."""

    def begin_episodes(self) -> None:  # noqa: B027 (only NovelD has something to forget)
        """Know that all environments begin anew."""

    @abstractmethod
    def bonus(self, seen: Singles, following: Singles, ended: Mask) -> Floats:
        """The bonus of each step, shape (T, E).

        Observations have shape (T, E, numbers); ``ended`` says which steps ended an episode.
        """

    @abstractmethod
    def learn(self, following: Singles, *, warming_up: bool = False) -> None:
        """Learn from the steps that were paid; at first from what random actions lead to."""


class Distillation(Novelty):
    """Random network distillation: the error of predicting a random network; the predictor is the larger one."""

    def __init__(self, numbers: int, num_envs: int) -> None:
        self._normaliser = RunningMeanStd(shape=(numbers,))
        self._target = nn.Sequential(nn.Linear(numbers, WIDTH), nn.ReLU(), nn.Linear(WIDTH, FEATURES))
        self._predictor = nn.Sequential(
            nn.Linear(numbers, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, FEATURES),
        )  # fmt: skip
        for module in (*self._target, *self._predictor):
            if isinstance(module, nn.Linear):
                nn.init.orthogonal_(module.weight, gain=float(np.sqrt(2.0)))
                nn.init.zeros_(module.bias)
        self._optimizer = torch.optim.Adam(self._predictor.parameters(), lr=LEARNING_RATE)
        self._share = min(1.0, EXPERIENCES / num_envs)

    def state(self) -> dict[str, torch.Tensor]:
        """The two networks, the moments of the gradient method, and the scale of observations."""
        networks = {"target": self._target, "predictor": self._predictor}
        kept = {
            f"{name}.{key}": value for name, network in networks.items() for key, value in network.state_dict().items()
        }
        kept |= {f"optimizer.{key}": value for key, value in moments_of(self._optimizer).items()}
        return kept | {f"scale.{key}": value for key, value in statistics_of(self._normaliser).items()}

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Know what `state` said."""
        self._target.load_state_dict(beginning_with(state, "target."))
        self._predictor.load_state_dict(beginning_with(state, "predictor."))
        restore_moments(self._optimizer, beginning_with(state, "optimizer."))
        restore_statistics(self._normaliser, beginning_with(state, "scale."))

    def error(self, observations: Singles) -> Floats:
        """How badly they are predicted, shape (T, E)."""
        with torch.no_grad():
            batch = self._normalised(observations)
            error = (self._predictor(batch) - self._target(batch)).square().mean(dim=1)
        found: Floats = error.numpy().astype(np.float64).reshape(observations.shape[:2])
        return found

    def bonus(self, seen: Singles, following: Singles, ended: Mask) -> Floats:
        """The error at what the step led to."""
        return self.error(following)

    def learn(self, following: Singles, *, warming_up: bool = False) -> None:
        """One pass over the steps, each with the published probability.

        Warming up measures their mean and variance alone, without which all look alike to a random network.
        """
        self._normaliser.update(following.reshape(-1, following.shape[-1]))
        if warming_up:
            return
        batch = self._normalised(following)
        for part in torch.split(torch.randperm(len(batch)), PREDICTOR_BATCH):
            error = (self._predictor(batch[part]) - self._target(batch[part]).detach()).square().mean(dim=1)
            kept = (torch.rand(len(part)) < self._share).float()
            loss = (error * kept).sum() / kept.sum().clamp(min=1.0)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()

    def _normalised(self, observations: Singles) -> torch.Tensor:
        flat = observations.reshape(-1, observations.shape[-1])
        scaled = (flat - self._normaliser.mean) / np.sqrt(self._normaliser.var + 1e-8)
        return torch.as_tensor(np.clip(scaled, -CLIP, CLIP), dtype=torch.float32)


class NoveltyDifference(Distillation):
    """NovelD: what is paid is the rise of novelty along a step, and only the first time in an episode."""

    ALPHA = 0.5  # as published

    def __init__(self, numbers: int, num_envs: int) -> None:
        super().__init__(numbers, num_envs)
        self._met: list[set[bytes]] = [set() for _ in range(num_envs)]

    def begin_episodes(self) -> None:
        """Nothing was met in any of them."""
        for met in self._met:
            met.clear()

    def bonus(self, seen: Singles, following: Singles, ended: Mask) -> Floats:
        """The rise where the next observation is new in its episode."""
        rise = np.maximum(self.error(following) - self.ALPHA * self.error(seen), 0.0)
        first = np.zeros_like(rise)
        for step, env in np.ndindex(*rise.shape):
            met = self._met[env]
            met.add(digest(seen[step, env]))
            key = digest(following[step, env])
            first[step, env] = key not in met
            met.add(key)
            if ended[step, env]:
                met.clear()
        return rise * first


class Counts(Novelty):
    """1 / sqrt(N), N counting how often an equal observation was met."""

    def __init__(self, numbers: int, num_envs: int) -> None:
        self._times: Counter[bytes] = Counter()

    def state(self) -> dict[str, torch.Tensor]:
        """What was counted."""
        digests = np.frombuffer(b"".join(self._times), dtype=np.uint8).reshape(-1, DIGEST)
        return {"digests": torch.tensor(digests), "times": torch.tensor(list(self._times.values()), dtype=torch.int64)}

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Know what `state` said."""
        keys = [row.tobytes() for row in state["digests"].numpy()]
        self._times = Counter(dict(zip(keys, state["times"].tolist(), strict=True)))

    def bonus(self, seen: Singles, following: Singles, ended: Mask) -> Floats:
        """Count, then pay."""
        paid = np.zeros(following.shape[:2])
        for step, env in np.ndindex(*paid.shape):
            key = digest(following[step, env])
            self._times[key] += 1
            paid[step, env] = 1.0 / np.sqrt(self._times[key])
        return paid

    def learn(self, following: Singles, *, warming_up: bool = False) -> None:
        """Nothing: counting is all there is to learn."""


def digest(observation: Singles) -> bytes:
    """Equal for observations that are equal to three decimals, which hides how they were scaled and put back."""
    return hashlib.blake2b((np.round(observation, 3) + 0.0).tobytes(), digest_size=DIGEST).digest()


# What is kept with a training -----------------------------------------------------------------------------------------


def beginning_with(state: Mapping[str, torch.Tensor], beginning: str) -> dict[str, torch.Tensor]:
    """The part of a state under a name."""
    return {key.removeprefix(beginning): value for key, value in state.items() if key.startswith(beginning)}


def moments_of(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """What a gradient method remembers of each parameter."""
    remembered = optimizer.state_dict()["state"]
    return {f"{number}.{name}": value for number, values in remembered.items() for name, value in values.items()}


def restore_moments(optimizer: torch.optim.Optimizer, moments: Mapping[str, torch.Tensor]) -> None:
    """Remember them."""
    remembered: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in moments.items():
        number, _, name = key.partition(".")
        remembered.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": remembered, "param_groups": optimizer.state_dict()["param_groups"]})


def statistics_of(running: RunningMeanStd) -> dict[str, torch.Tensor]:
    """A running mean and variance."""
    named = {"mean": running.mean, "variance": running.var, "count": running.count}
    return {name: torch.tensor(np.asarray(value, dtype=np.float64)) for name, value in named.items()}


def restore_statistics(running: RunningMeanStd, kept: Mapping[str, torch.Tensor]) -> None:
    """Go on from them."""
    running.mean, running.var = kept["mean"].numpy().copy(), kept["variance"].numpy().copy()
    running.count = float(kept["count"])
