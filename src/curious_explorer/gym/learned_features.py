"""Features of many numbers, learned from what actions change: linear inverse dynamics.

The action is to be told from what happened in the k steps for which it was held (k = 1, 4, 16): with the differences
x_{t+k} - x_t as data and the actions as classes, the best linear directions are those of Fisher's discriminant, which
maximise the scatter between classes over the scatter within. What the agent has no hand in has no such direction,
however much it moves. Directions that tell actions apart no better than chance would are dropped; if none is left, the
principal components of the observations take their place.

LGE (Gallouedec and Dellandrea 2023) and E3B (Henaff et al. 2022) learn the same relation by a network; this needs a few
thousand steps and no library, and sees nothing that is not linear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from curious_explorer.arrays import Floats, Integers
from curious_explorer.gym.feature_cells import FeatureCells, first_within
from curious_explorer.gym.observation_look import Look
from curious_explorer.gym.observation_reader import Read

SPANS = (1, 4, 16)
MOST_FEATURES = 6
LEAST_SCATTER = 3.0
"""A direction counts if classes are this many times as far apart along it as classes drawn at random."""
RIDGE = 1e-6
EXPLAINED = 0.95


def fit_features(
    seen: Floats, look: Look, reads: Sequence[Read], steps_a_cell: float, *, max_cells: int
) -> FeatureCells:
    """Cells over learned features, with a radius so that there is one for every so many observations of the look."""
    scale = seen.std(axis=0)
    used = np.where(scale > 1e-9, 1.0 / np.where(scale > 1e-9, scale, 1.0), 0.0)
    mean = seen.mean(axis=0)
    scaled = (seen - mean) * used
    weights = controllable_directions(scaled, np.array(look.actions))
    if not len(weights):
        weights = principal_directions(scaled)
    spread = (scaled @ weights.T).std(axis=0)
    weights = weights / np.where(spread > 1e-12, spread, 1.0)[:, None]
    features = np.ascontiguousarray(scaled @ weights.T)
    radius = fit_radius(features, len(seen) / steps_a_cell)
    return FeatureCells(mean, weights * used, radius, reads, max_cells=max_cells)


def controllable_directions(scaled: Floats, actions: Integers) -> Floats:
    """Directions along which actions differ in what they do, shape (features, D); empty if there are none."""
    width = scaled.shape[1]
    found: list[Floats] = []
    generator = np.random.default_rng(0)
    for span in SPANS:
        places = held_for(actions, span)
        if len(places) < 2 * width or len(np.unique(actions[places])) < 2:
            continue
        changes, classes = scaled[places + span] - scaled[places], actions[places]
        values, directions = discriminants(changes, classes)
        chance = max(discriminants(changes, generator.permutation(classes))[0][0] for _ in range(3))
        found.extend(directions[values > LEAST_SCATTER * chance])
    kept: list[Floats] = []
    for direction in found:
        rest = direction / np.linalg.norm(direction)
        for other in kept:
            rest = rest - (rest @ other) * other
        if np.linalg.norm(rest) > 0.3 and len(kept) < MOST_FEATURES:
            kept.append(rest / np.linalg.norm(rest))
    return np.array(kept).reshape(-1, width)


def held_for(actions: Integers, span: int) -> Integers:
    """The places from which one action was held for so many steps of one episode."""
    count = len(actions) - span
    if count <= 0:
        return np.zeros(0, dtype=np.int64)
    same = actions[:count] >= 0
    for later in range(1, span):
        same &= actions[later : later + count] == actions[:count]
    return np.flatnonzero(same)


def discriminants(changes: Floats, classes: Integers) -> tuple[Floats, Floats]:
    """Fisher's discriminants: the ratios of scatter, largest first, and the directions as rows."""
    width = changes.shape[1]
    middle = changes.mean(axis=0)
    between, within = np.zeros((width, width)), np.zeros((width, width))
    names = np.unique(classes)
    for name in names:
        group = changes[classes == name]
        apart = group.mean(axis=0) - middle
        between += len(group) * np.outer(apart, apart)
        spread = group - group.mean(axis=0)
        within += spread.T @ spread
    total = np.trace(within) / width
    values, vectors = scipy.linalg.eigh(between, within + (RIDGE * total + 1e-12) * np.eye(width))
    count = min(len(names) - 1, width)
    return values[::-1][:count], vectors.T[::-1][:count]


def principal_directions(scaled: Floats) -> Floats:
    """The principal components that explain nearly all, at most `MOST_FEATURES`."""
    _, sizes, vectors = np.linalg.svd(scaled, full_matrices=False)
    explained = np.cumsum(sizes**2) / max(1e-12, float((sizes**2).sum()))
    return np.asarray(vectors[: min(MOST_FEATURES, int(np.searchsorted(explained, EXPLAINED)) + 1)])


def fit_radius(features: Floats, wanted: float) -> float:
    """The radius for which a cover of these features has about so many balls."""
    low, high = 1e-3, 10.0 * float(np.sqrt(features.shape[1]))
    for _ in range(16):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if cover_size(features, middle, int(wanted) + 1) > wanted else (low, middle)
    return high


def cover_size(features: Floats, radius: float, most: int) -> int:
    """How many balls of a radius cover the features, counted no further than ``most``."""
    centres, known = np.zeros((most + 1, features.shape[1])), 0
    for row in features:
        if first_within(centres, known, row, radius * radius) < 0:
            centres[known] = row
            known += 1
            if known > most:
                break
    return known
