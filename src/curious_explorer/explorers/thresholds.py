"""Schedules of visit thresholds beta_n: how much a state must have been visited by round n not to be poorly visited.

A schedule is any function from the round's number to a number that is not negative. With beta = 1 / (2 |S|), half the
uniform distribution's share:

- `constant`: beta, the default. A state once well visited stays so, as in R-MAX: K_n shrinks, and exploration is done
  when it is empty. The paper's Remark has its stronger guarantee for this one.
- `linear`: beta * (n + 1). What is asked for grows with the rounds, so that the *average* visit is what counts; but it
  outgrows what any discounted walk can give to deep states, and on a deep sea K_n grows with it.
- `paper_linear`: beta * n, as printed. It starts at zero, so the first round's curiosity has no object except
  states never visited at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def linear(beta: float) -> Schedule:
    """Beta * (n + 1)."""
    return lambda n: beta * (n + 1)


def paper_linear(beta: float) -> Schedule:
    """The paper's: beta * n."""
    return lambda n: beta * n


def constant(beta: float) -> Schedule:
    """The same beta in every round."""
    return lambda n: beta


def default_beta(num_states: int) -> float:
    """The paper's beta: half of what the uniform distribution gives each state."""
    return 1.0 / (2.0 * num_states)


def schedule_values(thresholds: Schedule | float | None, rounds: int, num_states: int) -> list[float]:
    """beta_0, ..., beta_{N-1}, checked before any work begins.

    ``thresholds`` is a schedule, or a number beta for the constant one, or None for that with the default beta.
    """
    if thresholds is None:
        thresholds = default_beta(num_states)
    schedule = constant(float(thresholds)) if isinstance(thresholds, (int, float)) else thresholds
    if not callable(schedule):
        raise ValueError(f"thresholds is {thresholds!r}, expected a number beta or a function of the round")
    values = [float(schedule(n)) for n in range(rounds)]
    for n, value in enumerate(values):
        if not (math.isfinite(value) and value >= 0.0):
            raise ValueError(f"the threshold of round {n} is {value}, expected a finite number that is not negative")
    return values
