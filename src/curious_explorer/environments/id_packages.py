"""Ids of Gymnasium that other packages register: which package it is, and how to get it.

Only strings here: a package is imported when somebody makes one of its environments.
"""

from __future__ import annotations

from typing import NamedTuple

import gymnasium


class Package(NamedTuple):
    """A package that registers environments when it is imported."""

    module: str
    requirement: str
    """What pip is told to install."""

    @property
    def name(self) -> str:
        """Without its extras."""
        return self.requirement.partition("[")[0]

    @property
    def installing(self) -> str:
        """How to get it, as a shell takes it."""
        plain = self.requirement.replace("-", "").replace("_", "").isalnum()
        return f"pip install {self.requirement if plain else repr(self.requirement)}"


_ROBOTICS = Package("gymnasium_robotics", "gymnasium-robotics")
PACKAGES = {
    "MiniGrid-": Package("minigrid", "minigrid"),
    "BabyAI-": Package("minigrid", "minigrid"),
    "ALE/": Package("ale_py", "ale-py"),
    "dm_control/": Package("shimmy", "shimmy[dm-control]"),
    "bsuite/": Package("shimmy", "shimmy[bsuite]"),
    "Meta-World/": Package("metaworld", "metaworld"),
    "MiniWorld-": Package("miniworld", "miniworld"),
    "highway-": Package("highway_env", "highway-env"),
    **dict.fromkeys(("PointMaze_", "AntMaze_", "Fetch", "HandManipulate", "HandReach", "Adroit"), _ROBOTICS),
    "FrankaKitchen-": _ROBOTICS,
}
"""How ids begin that a package registers when it is imported."""


def package_of(identifier: str) -> Package | None:
    """The package that registers ids which begin so, if it is one of `PACKAGES`."""
    return next((package for begins, package in PACKAGES.items() if identifier.startswith(begins)), None)


def import_hint(identifier: str) -> str:
    """A sentence that says how an id may become known that is not."""
    package, (namespace, slash, _) = package_of(identifier), identifier.rpartition("/")
    if package is not None:
        return f"Ids that begin so are those of the package {package.name}: {package.installing}"
    if slash and not any(known.startswith(f"{namespace}/") for known in gymnasium.registry):
        return (
            f"No package that was imported has ids of {namespace!r}: install the one that has, and name it, as in "
            f"'package:{identifier}'"
        )
    return "Ids of other packages are known once their package is imported, as in 'package:Id-v0'"
