"""Tianshou's PPO from explored resets: python tianshou_ppo.py RESET_MODEL STEPS."""

import sys

import gymnasium
import torch
from goal_mountain_car import report, scaled
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from curious_explorer import ResetModel, RestartWrapper

torch.manual_seed(0)
resets, steps = ResetModel.load(sys.argv[1]).weighted("spread"), int(sys.argv[2])
cars = [lambda: scaled(RestartWrapper(gymnasium.make("GoalMountainCar-v0"), resets))] * 8
envs = DummyVectorEnv(cars)
envs.seed(0)
body = {"state_shape": 2, "hidden_sizes": [64, 64], "activation": torch.nn.Tanh}
actor = DiscreteActor(preprocess_net=Net(**body), action_shape=3, softmax_output=False)
critic = DiscreteCritic(preprocess_net=Net(**body))
policy = DiscreteActorPolicy(actor=actor, action_space=gymnasium.spaces.Discrete(3))
ppo = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4), ent_coef=0.0)
collector = Collector(ppo, envs, VectorReplayBuffer(4096, 8))
training = {"epoch_num_steps": steps, "collection_step_num_env_steps": 2048, "update_step_num_repetitions": 10}
ppo.run_training(OnPolicyTrainerParams(training_collector=collector, max_epochs=1, verbose=False, **training))
report(lambda observation: actor(observation[None])[0].argmax())
