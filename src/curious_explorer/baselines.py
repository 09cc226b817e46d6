"""The explorers that Curious Explorer is compared with, by one name; each lives in `curious_explorer.explorers`."""

from curious_explorer.explorers.methods import (
    BEB,
    E3,
    MBIE,
    MBIEEB,
    METHODS,
    PCPG,
    PSRL,
    UCBVI,
    UCRL2,
    EpsilonGreedyQ,
    MaxEnt,
    RMax,
    UCBQLearning,
)

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
