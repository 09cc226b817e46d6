"""Where episodes begin, by name: starts that move with the learner, or a mixture that stays as it is."""

from __future__ import annotations

import weakref

from curious_explorer.errors import ResetModelError
from curious_explorer.resets.moving_starts import MovingStarts
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.validation import check_name
from curious_explorer.worlds.roll_in import RollIn

ADAPTIVE, MIXTURE = "adaptive", "mixture"
STARTS = (ADAPTIVE, "spread", "uniform", MIXTURE)
"""Starts that move; `ResetModel.weighted` by that name; the reset model as it is weighed."""

_shared: weakref.WeakValueDictionary[int, MovingStarts] = weakref.WeakValueDictionary()


def starts_of(
    reset_model: ResetModel, starts: str | MovingStarts, *, gamma: float | None = None
) -> RollIn | MovingStarts:
    """Where episodes begin.

    Args:
        reset_model: what exploration found.
        starts: one of `STARTS`, or moving starts of one's own. "adaptive" means the reset model as it is weighed where
            that has no counts, by which starts could be chosen, and where a choice of states was made already.
        gamma: the discount that moving starts plan with; that of the reset model if None.
    """
    if isinstance(starts, MovingStarts):
        return starts
    check_name(starts, STARTS, "starts")
    if starts == MIXTURE:
        return reset_model.roll_in
    if starts != ADAPTIVE:
        return reset_model.weighted(starts).roll_in
    if not can_move(reset_model) or reset_model.choice is not None:
        return reset_model.roll_in
    return moving_starts(reset_model, gamma=gamma)


def can_move(reset_model: ResetModel) -> bool:
    """Whether the reset model has the counts that moving starts need."""
    return reset_model.model is not None and bool(reset_model.model.starts.any())


def moving_starts(reset_model: ResetModel, *, gamma: float | None = None) -> MovingStarts:
    """Starts that move, on the counts of a reset model."""
    if reset_model.model is None or not can_move(reset_model):
        raise ResetModelError(
            "starts that move need counts of where actions and restarts lead, and this reset model has none; "
            "explore with Frontier (the default) or another explorer that counts"
        )
    return MovingStarts(reset_model.model, gamma=reset_model.gamma if gamma is None else gamma)


def shared_starts(reset_model: ResetModel, starts: str | MovingStarts) -> RollIn | MovingStarts:
    """Like `starts_of`; whoever asks with the same reset model while another still holds its moving starts gets these.

    So the environments of one vector, made one by one from one reset model, learn together where to start.
    """
    if starts != ADAPTIVE:
        return starts_of(reset_model, starts)
    known = _shared.get(id(reset_model.model))
    if known is not None and reset_model.choice is None and known.gamma == reset_model.gamma:
        return known
    found = starts_of(reset_model, starts)
    if isinstance(found, MovingStarts):
        _shared[id(reset_model.model)] = found
    return found
