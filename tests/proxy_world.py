"""A world that shows what the contract promises, and nothing else."""


class Proxy:
    """The `World` protocol and nothing else: a learner that wants more fails on it."""

    def __init__(self, world):
        asked = {}
        for method in ("identity", "position", "restore", "restart", "step", "walk", "episodes", "follow", "learn_q"):
            asked[method] = getattr(world, method)
        self.__dict__.update(asked)
        self._count = lambda: world.samples  # a closure, so that the world itself is out of reach
        self.num_states, self.num_actions = world.num_states, world.num_actions

    @property
    def samples(self):
        return self._count()
