"""Explore, keep all that was seen as a Minari dataset, clone its best episodes: python minari_cloning.py SAMPLES."""

import sys

import gymnasium
import minari
import numpy as np
import torch
from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper
from torch.nn import Flatten, Linear, ReLU, Sequential

from curious_explorer import GymWorld, MiniGridCells, explore
from curious_explorer.gym import EpisodeRecorder

env = ImgObsWrapper(FullyObsWrapper(gymnasium.make("MiniGrid-DoorKey-8x8-v0")))
recorder = EpisodeRecorder(env, "explored/door-key-v0", folder="datasets")
world = GymWorld(recorder, cells=MiniGridCells(100_000, things=True), actions=list(range(6)), layout=0)
exploration = explore(world, gamma=0.99, samples=int(sys.argv[1]))
exploration.demonstrations(world, 20, noise=0.1)  # the recorder sees these, too
print("written to", folder := recorder.write())

rewarded = [one for one in minari.MinariDataset(folder / "data").iterate_episodes() if one.rewards.sum() > 0]
best = sorted(rewarded, key=lambda one: len(one.rewards))[:20]
seen = torch.as_tensor(np.concatenate([one.observations[:-1] for one in best]), dtype=torch.float32)
done = torch.as_tensor(np.concatenate([one.actions for one in best]))
actor = Sequential(Flatten(), Linear(8 * 8 * 3, 128), ReLU(), Linear(128, 7))
optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
for _ in range(1_000):
    batch = torch.randint(len(seen), (64,))
    loss = torch.nn.functional.cross_entropy(actor(seen[batch]), done[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

(observation, _), over, steps = env.reset(seed=0), False, 0
while not over:
    action = int(actor(torch.as_tensor(observation[None], dtype=torch.float32)).argmax())
    observation, reward, terminated, truncated, _ = env.step(action)
    over, steps = terminated or truncated, steps + 1
print(f"the cloned policy returns {reward:.2f} after {steps} steps")
