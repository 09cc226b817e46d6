"""Walks and episodes of B independent runs in one launch, on torch tensors.

A *run* is one agent in its own copy of one MDP: it has its own key (so its own random numbers), its own policies, its
own rewards and its own critic. What all runs of a batch share is the MDP and the shape of the roll-in: how many
policies, their discounts, and which chains of them are walked with which weight. Run b of a batch gets exactly what it
would get alone, and what the CPU kernels of `TabularWorld` give for the same key: the same integers (where walks end,
steps taken, lengths, counts), and the same floats up to the order of summation.

All tensors of a call live on the device of the `Model`.

    model = load_model(mdp)                                          # once for an MDP
    keys = stream_keys(seeds, 0, model.device)                       # (B,); the second is the number of the call
    uniform = prepare_policies(model, policy)                        # policy: (B, S, A)
    rho = roll_in_batch(model, [])                                   # B = 1, shared by all runs
    visits = walk_batch(model, roll_in_batch(model, [uniform], [gamma], tail=1), keys, 10_000)
    batch = episode_statistics_batch(model, uniform, rho, keys, episodes=50, horizon=90, gamma=gamma)
"""

from __future__ import annotations

from curious_explorer.gpu.device_model import (
    Model,
    Policies,
    RollIns,
    load_model,
    prepare_policies,
    roll_in_batch,
    stream_keys,
)
from curious_explorer.gpu.launch import Launch
from curious_explorer.gpu.triton_episodes import EpisodeBatch, episode_statistics_batch
from curious_explorer.gpu.triton_walks import WalkBatch, pays_to_compose, walk_batch

__all__ = [
    "EpisodeBatch",
    "Launch",
    "Model",
    "Policies",
    "RollIns",
    "WalkBatch",
    "episode_statistics_batch",
    "load_model",
    "pays_to_compose",
    "prepare_policies",
    "roll_in_batch",
    "stream_keys",
    "walk_batch",
]
