"""MountainCar whose only reward is 1 at the goal: importing this module registers GoalMountainCar-v0 with Gymnasium."""

import gymnasium
from gymnasium.envs.classic_control import MountainCarEnv
from gymnasium.wrappers import RescaleObservation


class GoalMountainCar(MountainCarEnv):
    """A car that has to swing up a hill, and is told nothing until it is there."""

    def step(self, action):
        """One step; the reward is 1 when it reaches the goal, and 0 before."""
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float(terminated), terminated, truncated, info


gymnasium.register("GoalMountainCar-v0", entry_point=GoalMountainCar, max_episode_steps=200)


def scaled(env):
    """The environment with observations scaled to [-1, 1]."""
    return RescaleObservation(env, -1, 1)


def report(act, episodes=20):
    """Drive from the environment's own start; ``act`` is given observations scaled to [-1, 1]."""
    env = scaled(gymnasium.make("GoalMountainCar-v0"))
    arrived, steps = 0, 0
    for episode in range(episodes):
        (observation, _), over = env.reset(seed=episode), False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(int(act(observation)))
            arrived, steps, over = arrived + int(reward), steps + 1, terminated or truncated
    print(
        f"{arrived} of {episodes} episodes from the start reach the goal, after {steps / episodes:.0f} steps on average"
    )
