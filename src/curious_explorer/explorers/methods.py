"""The explorers that Curious Explorer is compared with, by id; adding one takes its file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from curious_explorer.explorers.beb import BEB
from curious_explorer.explorers.e3 import E3
from curious_explorer.explorers.maxent import MaxEnt
from curious_explorer.explorers.mbie import MBIE
from curious_explorer.explorers.mbie_eb import MBIEEB
from curious_explorer.explorers.optimizing_explorer import OptimizingExplorer
from curious_explorer.explorers.pc_pg import PCPG
from curious_explorer.explorers.psrl import PSRL
from curious_explorer.explorers.q_learning import EpsilonGreedyQ, UCBQLearning
from curious_explorer.explorers.rmax import RMax
from curious_explorer.explorers.ucbvi import UCBVI
from curious_explorer.explorers.ucrl2 import UCRL2

METHODS: dict[str, Callable[[], OptimizingExplorer]] = {
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
    "mbie-published": lambda: MBIE(scale=1.0),
    "mbie-eb-published": lambda: MBIEEB(beta=None),
    "beb-published": lambda: BEB(beta=None),
    "ucrl2-published": lambda: UCRL2(scale=1.0),
    "ucb-q-published": lambda: UCBQLearning(bonus=5.656854249492381),
}
"""Every method by its name; ``-published`` has the constants of the paper, where those differ."""
WITHOUT_PUBLISHED = {
    "r-max": "a pair is known after 6.7e8 tries on dcl/10",
    "e3": "a pair is known after more than 1e12 tries on dcl/10",
    "ucbvi": "every bonus exceeds what can be earned until a pair has had 27,000 tries",
}
"""Methods that have no ``-published`` row, and why: with the constants of their papers nothing becomes known in 10^6
steps, so they walk at random, and what a row would time is a random walk whose counts are read out greedily. Whoever
wants to see that can: ``RMax(known_after=None)``, ``E3(known_after=None)``, ``UCBVI(scale=None)``."""
