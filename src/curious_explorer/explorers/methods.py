"""The methods that Curious Explorer is compared with, all on the same `World` and the same budget of samples."""

from __future__ import annotations

from collections.abc import Callable

from curious_explorer.explorers.bonuses import BEB, MBIEEB, UCBVI
from curious_explorer.explorers.intervals import MBIE, UCRL2
from curious_explorer.explorers.known_pairs import E3, RMax
from curious_explorer.explorers.policy_cover import PCPG, MaxEnt
from curious_explorer.explorers.psrl import PSRL
from curious_explorer.explorers.q_learning import EpsilonGreedyQ, UCBQLearning
from curious_explorer.learners.optimizer import Optimizer

METHODS: dict[str, Callable[[], Optimizer]] = {
    "r-max": RMax,
    "e3": E3,
    "mbie": MBIE,
    "mbie-eb": MBIEEB,
    "beb": BEB,
    "ucrl2": UCRL2,
    "psrl": PSRL,
    "ucbvi": UCBVI,
    "ucb-q": UCBQLearning,
    "eps-greedy-q": EpsilonGreedyQ,
    "pc-pg": PCPG,
    "maxent": MaxEnt,
    "r-max-published": lambda: RMax(known_after=None),
    "e3-published": lambda: E3(known_after=None),
    "mbie-published": lambda: MBIE(scale=1.0),
    "mbie-eb-published": lambda: MBIEEB(beta=None),
    "beb-published": lambda: BEB(beta=None),
    "ucrl2-published": lambda: UCRL2(scale=1.0),
    "ucbvi-published": lambda: UCBVI(scale=None),
    "ucb-q-published": lambda: UCBQLearning(bonus=5.656854249492381),
}
"""Every method by its name; ``-published`` has the constants of the paper, where those leave it inert."""

__all__ = [
    "BEB",
    "E3",
    "MBIE",
    "MBIEEB",
    "METHODS",
    "PCPG",
    "PSRL",
    "UCBVI",
    "UCRL2",
    "EpsilonGreedyQ",
    "MaxEnt",
    "RMax",
    "UCBQLearning",
]
