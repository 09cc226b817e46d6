"""Many runs made of single ones: the judge of everything that is batched."""

import torch

from curious_explorer import TabularWorld
from curious_explorer.gpu.triton_episodes import BatchStatistics
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward


class StackedWorlds:
    """`SeededWorlds` made of B `TabularWorld`s, asked one after the other."""

    def __init__(self, mdps, seeds):
        self.worlds = [TabularWorld(mdp, seed=seed) for mdp, seed in zip(mdps, seeds, strict=True)]
        self.num_runs = len(self.worlds)
        self.num_states, self.num_actions = self.worlds[0].num_states, self.worlds[0].num_actions
        self.device = torch.device("cpu")

    @property
    def samples(self):
        return torch.tensor([world.samples for world in self.worlds])

    def roll_in(self, many, run):
        weights = [weight for weight, _ in many.chains]
        policies = [policy[run].numpy() for policy in many.policies]
        mixture = RollIn.mixture(policies, many.gamma, weights, [chain for _, chain in many.chains])
        return RollIn(mixture.policies, mixture.gammas, mixture.weights, mixture.chains, many.tail)

    def walk_counts(self, roll_in, count):
        ends = [world.walk(self.roll_in(roll_in, run), count) for run, world in enumerate(self.worlds)]
        return torch.stack([torch.bincount(torch.from_numpy(end), minlength=self.num_states) for end in ends])

    def episodes(self, policy, *, reset, rewards, combine, critic, max_samples, **asked):
        parts = []
        for run, world in enumerate(self.worlds):
            limit = None if max_samples is None else int(max_samples[run])
            if limit == 0:
                parts.append(None)
                continue
            own = {} if rewards is None else {"reward": Reward(rewards[run].numpy(), combine)}
            asked_of_run = {"reset": self.roll_in(reset, run), "critic": critic[run].numpy(), "max_samples": limit}
            parts.append(world.episodes(policy[run].numpy(), EpisodeBatch(**own, **asked_of_run, **asked)))
        shapes = [(self.num_states, self.num_actions)] * 2 + [(self.num_states,)] * 2
        sums = [
            torch.stack([torch.zeros(shape).double() if p is None else torch.from_numpy(p[field]) for p in parts])
            for field, shape in enumerate(shapes)
        ]
        ran = [0 if part is None else len(part.returns) for part in parts]
        returns = torch.zeros((self.num_runs, asked["episodes"])).double()
        for run, part in enumerate(parts):
            returns[run, : ran[run]] = torch.zeros(0) if part is None else torch.from_numpy(part.returns)
        samples = torch.tensor([0 if part is None else part.samples for part in parts])
        stuck = torch.zeros(self.num_runs, dtype=torch.bool)
        return BatchStatistics(*sums, returns, torch.zeros(0), torch.tensor(ran), samples, stuck, None)

    def check(self):
        """Single worlds raise at once."""
