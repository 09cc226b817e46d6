"""``curious-explorer demo``: a lock that a learner cannot open, and the same learner after exploring.

Twice the same optimizer, with the same number of steps: once from the lock's start, where it never sees a reward, and
once from the resets that Curious Explorer found. The exploration's steps are counted and shown; the learner from the
start is given them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curious_explorer.environments import combination_lock
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.learners.improve import improve
from curious_explorer.learners.trpo import TRPO
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.settings_description import make_folder
from curious_explorer.studies.figures import save_figure
from curious_explorer.studies.paper_figures import draw_evolution
from curious_explorer.studies.paper_results import evenly_spread
from curious_explorer.validation import check_seed
from curious_explorer.worlds.tabular_world import TabularWorld

GAMMA = 0.95
LEARNER = TRPO(updates=100)
PANELS = 4


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration found; values are fractions of the best possible one.

    The picture is the MDP's graph at a few rounds: states turn from red to green as their visits near the threshold.
    """

    depth: int
    exploration_samples: int
    learning_samples: int
    with_exploration: float
    without_exploration: float
    picture: Path


def demonstrate(folder: str | Path, *, depth: int = 20, seed: int = 0, progress: bool = True) -> Demonstration:
    """Explore the combination lock, train with and without the reset model, and draw how the exploration went."""
    target = Path(folder)
    mdp = combination_lock(depth, permute_actions=check_seed(seed))
    make_folder(target)
    world = TabularWorld(mdp, seed=seed)
    exploration = explore(world, TRPO(updates=60), gamma=GAMMA, rounds=depth, progress=progress)
    trained = improve(world, LEARNER, exploration.reset_model, gamma=GAMMA)

    # The rival may use as many steps as exploring and learning took together.
    total = exploration.samples + trained.samples
    many_updates = TRPO(updates=10**9)
    alone = improve(TabularWorld(mdp, seed=seed), many_updates, None, gamma=GAMMA, budget=total)
    rounds = exploration.rounds
    figure = draw_evolution(
        mdp,
        np.array([round_.visited for round_ in rounds]),
        np.array([round_.poorly_visited for round_ in rounds]),
        np.array([round_.threshold for round_ in rounds]),
        evenly_spread(len(rounds), PANELS),
    )
    return Demonstration(
        depth=depth,
        exploration_samples=exploration.samples,
        learning_samples=trained.samples,
        with_exploration=fraction_of_optimum(mdp, trained.policy),
        without_exploration=fraction_of_optimum(mdp, alone.policy),
        picture=save_figure(figure, target / "exploration", pdf=False)[0],
    )


def fraction_of_optimum(mdp: FiniteMDP, policy: NDArray[np.float64]) -> float:
    """The policy's exact value from the start, over the best possible one."""
    best = float(mdp.start @ solve(mdp, gamma=GAMMA).values)
    return float(mdp.start @ evaluate(mdp, policy, gamma=GAMMA)) / best
