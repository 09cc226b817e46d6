"""An environment whose layout changes with every episode, small enough to be explored in a few dozen steps."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Signposts(gymnasium.Env):
    """A row of places; in each of them one of three actions goes on, any other goes back to the first.

    Which one it is depends on the layout, and a signpost shows it. The last place pays and ends the episode, which is
    cut off after ``limit`` steps. Seeds that are ``broken`` raise; a ``deaf`` one has another layout for every reset.
    """

    def __init__(self, length=5, broken=(), deaf=False, limit=None):
        self.observation_space = spaces.MultiDiscrete([length, 3])
        self.action_space = spaces.Discrete(3)
        self.length, self.broken, self.deaf, self.limit, self.taken = length, broken, deaf, limit, 0
        self.own = np.random.default_rng(5)
        self.place, self.signs = 0, np.zeros(length, dtype=int)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed in self.broken:
            raise KeyError(f"no map of {seed}")
        self.place = self.taken = 0
        self.signs = (self.own if self.deaf else self.np_random).integers(3, size=self.length)
        return self.look(), {}

    def look(self):
        return np.array([self.place, self.signs[self.place]])

    def step(self, action):
        self.place = self.place + 1 if action == self.signs[self.place] else 0
        self.taken += 1
        ended = self.place == self.length - 1
        return self.look(), float(ended), ended, self.limit is not None and self.taken >= self.limit, {}
