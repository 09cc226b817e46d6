"""What an exact computation says about itself, and when it refuses to answer.

Every quantity here is the fixed point x of an equation x = F(x) in which F contracts by gamma, in the L1 norm for
visitation and in the sup norm for values. Whatever method produced x, its *residual* ||F(x) - x|| is computed afresh
from the equation, and bounds the error:

    ||x - x*|| <= residual / (1 - gamma).

An answer is accepted when this bound is within `TOLERANCE`, or when the residual itself is no more than rounding
(`ROUNDING`), since then no method in double precision could do better; the bound is reported either way. Anything else
raises `ConvergenceError`: a number that is returned has been checked. Residuals are measured against the scale of the
problem, which is one for visitation and the range of the rewards for values.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats

TOLERANCE = 1e-10
"""The error bound that every method aims at, for a problem of scale one."""

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""A residual that is no more than rounding, for a problem of scale one: a few dozen operations on numbers up to one."""

LOGGER = logging.getLogger("curious_explorer.exact")


class ConvergenceError(ArithmeticError):
    """No method reached the tolerance; the answer is withheld rather than returned wrong."""


@dataclass(frozen=True, eq=False)
class ExactReport:
    """An exact answer together with how it was found."""

    values: Floats
    """Shape (S,)."""
    method: str
    residual: float
    """How far the values are from satisfying their own equation (L1 for visitation, sup norm for values)."""
    error_bound: float
    """residual / (1 - gamma), which bounds the distance to the true answer in the same norm."""
    iterations: int
    """Sweeps, solves or policies evaluated; 1 for direct methods."""


def residual_target(gamma: float, scale: float) -> float:
    """The residual at which the error bound reaches the tolerance."""
    return TOLERANCE * (1.0 - gamma) * scale


def is_accurate(residual: float, gamma: float, scale: float) -> bool:
    """Whether a residual is small enough to return the answer."""
    return residual <= max(residual_target(gamma, scale), ROUNDING * scale)


def require_accurate(what: str, method: str, residual: float, gamma: float, scale: float) -> None:
    """Refuse an answer whose residual is too large, and log one that is fine."""
    if not is_accurate(residual, gamma, scale):
        raise ConvergenceError(
            f"{what} at gamma={gamma} by {method}: the residual is {residual:.3g}, expected at most "
            f"{max(residual_target(gamma, scale), ROUNDING * scale):.3g}; let the method be chosen automatically "
            "(method=None), or lower gamma"
        )
    LOGGER.debug("%s at gamma=%s: method %s, residual %.3g", what, gamma, method, residual)


def check_method(method: str | None, methods: tuple[str, ...]) -> None:
    """A method that exists, or None for the automatic choice."""
    if method is not None and method not in methods:
        raise ValueError(f"method is {method!r}, expected None (automatic) or one of {', '.join(methods)}")


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous view that cannot be written to, so that kernels are compiled for one kind of array only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
