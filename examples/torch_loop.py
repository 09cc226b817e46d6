"""PPO as one short PyTorch loop, from explored resets: python torch_loop.py RESET_MODEL SAMPLES."""

import sys

import torch
from goal_mountain_car import report, scaled
from gymnasium import make
from gymnasium.vector import SyncVectorEnv
from torch.distributions import Categorical
from torch.nn import Linear, Sequential, Tanh
from torch.nn.functional import normalize

from curious_explorer import ResetModel, RestartWrapper

model, budget, _ = ResetModel.load(sys.argv[1]).weighted("spread"), int(sys.argv[2]), torch.manual_seed(0)
envs = SyncVectorEnv([lambda: scaled(RestartWrapper(make("GoalMountainCar-v0"), model))] * 8, autoreset_mode="SameStep")
actor, critic = (Sequential(Linear(2, 64), Tanh(), Linear(64, 64), Tanh(), Linear(64, width)) for width in (3, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
(now, info), samples = envs.reset(seed=0), 0
while samples < budget:
    steps = []
    for _ in range(256):
        samples += 8 + int(sum(info.get("roll_in_steps", [])))  # roll-ins count, with the first step after them
        action = Categorical(logits=actor(before := torch.as_tensor(now))).sample()
        now, reward, terminated, truncated, info = envs.step(action.numpy())
        steps.append((before, action, torch.as_tensor(reward).float(), torch.as_tensor(~(terminated | truncated))))
    seen, action, target, goes_on = map(torch.stack, zip(*steps, strict=True))
    target[-1] += 0.99 * goes_on[-1] * critic(torch.as_tensor(now))[:, 0].detach()
    for t in reversed(range(255)):
        target[t] += 0.99 * goes_on[t] * target[t + 1]
    log_prob = Categorical(logits=actor(seen)).log_prob(action).detach()
    gain = 2048**0.5 * normalize(target - critic(seen)[..., 0].detach(), dim=(0, 1))
    for _ in range(20):
        ratio = (Categorical(logits=actor(seen)).log_prob(action) - log_prob).exp()
        loss = 0.5 * (critic(seen)[..., 0] - target).square() - torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
report(lambda observation: actor(torch.as_tensor(observation)).argmax())
