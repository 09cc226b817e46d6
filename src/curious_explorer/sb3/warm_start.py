"""A warm start: the network imitates the best known way to the reward before it learns by itself.

Demonstrations are walked in environments of their own and paid for like all other steps. Then the policy is cloned,
to the most likely action where the plan advises one, and the critic learns what these episodes returned, for a few
seconds. What follows begins with a policy that often gets there, and starts that move find that out by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.errors import DemonstrationError
from curious_explorer.explorers.demonstrations import UNADVISED, Demonstration, demonstrations
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.resets.chosen_states import reaching_of
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.network_view import NUMBERS

EPISODES, NOISE = 30, 0.1
"""How many episodes, and how often a random action is taken in them where nothing else is random."""
SHARE = 0.1
"""The most of a training's samples that demonstrations may take."""
BATCHES, LEARNING_RATE = 600, 1e-3
"""The most gradient steps, and how large they are."""
LOOK_EVERY, SURE = 50, 0.02
"""After so many of them each, cloning ends if the advised actions have become as sure as this, in nats."""
CRITIC_WEIGHT = 0.5
STEPS_SEEN = 100_000
"""For as many steps the mean and the variance of demonstrations count in those that observations are scaled by. What is
seen next would soon outweigh some hundred steps, and a policy that sees the same places at other numbers is another
one: one that solved its task forgot within 2,000 steps where it has to press (docs/starts.md)."""
SOFTNESS = 0.25
"""Where two tries of an action always differ, this share of what is cloned are random actions instead of the plan's; in
proportion where they differ less often, and none where nothing is random."""


class WarmStart(NamedTuple):
    """What a warm start was made from."""

    episodes: int
    samples: int
    """Every step of the demonstrations, those of episodes that failed included."""
    agreement: float
    """How often the cloned policy's likeliest action is the plan's, in the states of the demonstrations."""


def demonstrate(
    make: Callable[[], Env], reset_model: ResetModel, seed: int, samples: int
) -> tuple[list[Demonstration], int]:
    """Demonstrations in an environment of their own, and the steps that they took; none where no way is known.

    The reset model must have counts.
    """
    made = Discretisation.of_reset_model(reset_model)
    world = GymWorld(make, cells=made.cells, actions=made.action_set.choices, seed=seed, time_limits=True)
    model = reset_model.model
    assert model is not None
    try:
        if model.shape != (world.num_states, world.num_actions):
            return [], 0
        noise = NOISE * (1.0 - reaching_of(model).doubt)
        found = demonstrations(
            world, model, gamma=reset_model.gamma, episodes=EPISODES, noise=noise, samples=samples, seed=seed
        )
        return found, world.samples
    except DemonstrationError:
        return [], world.samples
    finally:
        world.close()


def softness(reset_model: ResetModel) -> float:
    """How unsure the cloned policy is to be: a plan on few counts of a noisy world is no certainty to start from."""
    assert reset_model.model is not None
    return SOFTNESS * reaching_of(reset_model.model).doubt


def clone(
    learner: Any,
    found: list[Demonstration],
    choices: list[Any],
    seed: int,
    reward_scale: float = 1.0,
    soft: float = 0.0,
) -> float:
    """Teach a learner's policy what demonstrations advise, and its critic what they returned, times the scale.

    A share of the actions, ``soft``, is random instead, so that what the plan advises is not the only thing that is
    ever tried. Returns how often the policy's likeliest action is the advised one then. PPO is reminded of it later.
    """
    import torch

    from curious_explorer.sb3.reminders import FIRST, MOST_BYTES, Reminders

    model = learner.model
    seen, acted, returned = _examples(found, learner.view, choices, model.gamma)
    if learner.normalizer is not None:
        learner.statistics.update(seen[NUMBERS] if isinstance(seen, dict) else seen)
        learner.statistics.count = max(learner.statistics.count, STEPS_SEEN)
    others = np.array([learner.view.action_seen(choice) for choice in choices])
    reminders = Reminders(seen, acted, others, soft, first=FIRST * (1.0 - soft / SOFTNESS))
    policy, targets = model.policy, torch.as_tensor(reward_scale * returned, dtype=torch.float32)
    inputs, sure = reminders.inputs(policy, learner.normalizer), SURE + _entropy(soft, len(choices))
    optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
    policy.set_training_mode(True)
    doubt = 0.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for number in range(1, BATCHES + 1):
            places, batch, cloned = reminders.batch(inputs)
            values, log_probability, _ = policy.evaluate_actions(batch, cloned)
            loss = CRITIC_WEIGHT * (values[:, 0] - targets[places]).square().mean() - log_probability.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doubt -= float(log_probability.detach().mean())
            if number % LOOK_EVERY == 0:
                if doubt < sure * LOOK_EVERY:
                    break
                doubt = 0.0
    policy.set_training_mode(False)
    with torch.no_grad():
        same = policy.get_distribution(inputs).mode() == reminders.advised
    if learner.reminded and not reminders.over and reminders.bytes <= MOST_BYTES:
        learner.reminders = reminders
    return float((same if same.ndim == 1 else same.all(dim=1)).float().mean())


def _entropy(soft: float, choices: int) -> float:
    """Of the advice, in nats, where a share of it is random."""
    other = soft / choices
    likely = 1.0 - soft + other
    return 0.0 if other == 0.0 else -likely * math.log(likely) - (choices - 1) * other * math.log(other)


def _examples(
    found: list[Demonstration], view: Any, choices: list[Any], gamma: float
) -> tuple[Any, NDArray[Any], Floats]:
    """What was seen, what was advised there, and what was returned from there on, discounted."""
    seen, acted, returned = [], [], []
    for episode in found:
        ahead = 0.0
        for place in reversed(range(len(episode))):
            ahead = episode.rewards[place] + gamma * ahead
            if episode.advised[place] != UNADVISED:
                seen.append(view.see(episode.observations[place]))
                acted.append(view.action_seen(choices[episode.advised[place]]))
                returned.append(ahead)
    if isinstance(seen[0], dict):
        return {name: np.stack([one[name] for one in seen]) for name in seen[0]}, np.array(acted), np.array(returned)
    return np.stack(seen), np.array(acted), np.array(returned)
