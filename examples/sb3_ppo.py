"""Stable-Baselines3's PPO from explored resets: python sb3_ppo.py RESET_MODEL STEPS."""

import sys

import gymnasium
from goal_mountain_car import report, scaled
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from curious_explorer import ResetModel, RestartWrapper

resets, steps = ResetModel.load(sys.argv[1]).weighted("spread"), int(sys.argv[2])


def make():
    """The environment, restarted all over its state space."""
    return scaled(RestartWrapper(gymnasium.make("GoalMountainCar-v0"), resets))


model = PPO("MlpPolicy", make_vec_env(make, n_envs=8, seed=0), n_steps=256, seed=0, device="cpu")
model.learn(steps)
report(lambda observation: model.predict(observation, deterministic=True)[0])
