"""Which colours of a picture matter: those whose things the agent moves, where most of what changes does so by itself.

A number of a colour (its share, the row or the column of its middle) is kept if the actions tell how it changes, by
Fisher's discriminant as in `learned_features`, or if it hardly ever changes: a door that opens. Colours that are
restless, and that no action steers, are beside the point. Only where these take up much more of the pictures than what
is steered are pictures looked at in this way: a ball in a game is steered by nobody, and matters all the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Integers
from curious_explorer.gym.colour_places import ColourPlaces, codes_of
from curious_explorer.gym.learned_features import LEAST_SCATTER, discriminants, held_for
from curious_explorer.gym.observation_look import Look
from curious_explorer.gym.observation_reader import Read

MOST_COLOURS, MOST_KEPT = 16, 8
SELDOM, RESTLESS = 0.1, 0.5
"""Numbers that change in a smaller share of steps than the first are kept; colours of which one changes in more than
the second are restless."""
BESIDE = 4.0
"""How many times as large what is beside the point is at least."""
LOOKED_AT = 64
"""Pictures of a look from which colours are taken."""
SPANS = (1, 4)
"""For so many steps actions are held. Over more of them things that move by themselves seem to follow actions."""
FEWEST_HELD, LEAST_TOLD = 50, 0.1
"""An action tells how a number changes if the scatter between actions is at least this share of that within."""
SHARE = 0
"""The place of a colour's share among its three numbers."""


def places_in(look: Look, **given: Any) -> ColourPlaces | None:
    """Where things that matter are, if most of what changes in the pictures of a look does so by itself.

    ``given`` says where the pictures are; see `ColourPlaces`.
    """
    seen, read = look.observations, Read(given["path"])
    often: Counter[int] = Counter()
    for observation in seen[:: max(1, len(seen) // LOOKED_AT)]:
        codes = codes_of(np.asarray(read.of(observation)), given["noise"], given["most"])
        often.update(np.unique(codes).tolist())
    colours = [code for code, _ in often.most_common(MOST_COLOURS)]
    numbers = ColourPlaces(colours, **given)
    rows = np.array([numbers.all_of(observation) for observation in seen])
    steered, changing = _steered(rows, np.array(look.actions)), _changing(rows, np.array(look.pairs))
    restless = {place // 3 for place in np.flatnonzero((changing > RESTLESS) & ~steered)} - {
        place // 3 for place in np.flatnonzero(steered)
    }
    largest = int(rows[:, SHARE::3].mean(axis=0).argmax())  # what lies behind all else changes with whatever moves
    beside = sum(float(rows[:, 3 * colour].mean()) for colour in restless - {largest})
    own = {place // 3 for place in np.flatnonzero(steered)} - {largest}
    if not own or beside < BESIDE * sum(float(rows[:, 3 * colour].mean()) for colour in own):
        return None
    places = [place for place in np.flatnonzero(steered).tolist() if place // 3 != largest]
    rare = np.flatnonzero((changing > 0.0) & (changing < SELDOM) & ~steered).tolist()
    places += [place for place in rare if place // 3 not in restless | {largest}]
    return ColourPlaces(colours, places[:MOST_KEPT], **given)


def _changing(rows: Floats, pairs: Integers) -> Floats:
    """In which share of steps each number changes."""
    return np.asarray((np.abs(rows[pairs + 1] - rows[pairs]) > 1e-9).mean(axis=0))


def _steered(rows: Floats, actions: Integers) -> NDArray[np.bool_]:
    """Of which numbers the actions tell how they change, by more than chance."""
    generator, found = np.random.default_rng(0), np.zeros(rows.shape[1], dtype=np.bool_)
    for span in SPANS:
        places = held_for(actions, span)
        if len(places) < FEWEST_HELD or len(np.unique(actions[places])) < 2:
            continue
        changes, classes = rows[places + span] - rows[places], actions[places]
        shuffled = [generator.permutation(classes) for _ in range(3)]
        for number in np.flatnonzero(changes.std(axis=0) > 1e-9):
            column = changes[:, [number]] / changes[:, number].std()
            chance = max(discriminants(column, each)[0][0] for each in shuffled)
            found[number] |= discriminants(column, classes)[0][0] > max(LEAST_TOLD, LEAST_SCATTER * chance)
    return found
