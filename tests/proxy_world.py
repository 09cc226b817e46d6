"""A world that shows what the contract promises, and nothing else."""

from curious_explorer.worlds.world import World


class Proxy(World):
    """The contract and nothing else: a learner that wants more fails on it."""

    def __init__(self, world):
        bulk = ("walk", "count_ends", "episodes", "compiled_steps")
        for method in ("identity", "position", "restore", "restart", "step", "begin", *bulk):
            setattr(self, method, getattr(world, method))
        self._count = lambda: world.samples  # a closure, so that the world itself is out of reach
        self.num_states, self.num_actions = world.num_states, world.num_actions

    def identity(self): ...
    def restart(self): ...
    def step(self, action): ...

    @property
    def samples(self):
        return self._count()
