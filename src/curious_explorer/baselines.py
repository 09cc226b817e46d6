"""The explorers that Curious Explorer is compared with, by one name; each lives in `curious_explorer.explorers`."""

from curious_explorer.explorers.beb import BEB
from curious_explorer.explorers.e3 import E3
from curious_explorer.explorers.maxent import MaxEnt
from curious_explorer.explorers.mbie import MBIE
from curious_explorer.explorers.mbie_eb import MBIEEB
from curious_explorer.explorers.methods import METHODS
from curious_explorer.explorers.pc_pg import PCPG
from curious_explorer.explorers.psrl import PSRL
from curious_explorer.explorers.q_learning import EpsilonGreedyQ, UCBQLearning
from curious_explorer.explorers.rmax import RMax
from curious_explorer.explorers.ucbvi import UCBVI
from curious_explorer.explorers.ucrl2 import UCRL2

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
