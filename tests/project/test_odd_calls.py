"""A small part of `benchmarks.odd_calls`: arguments nobody should give work, or are refused by a ``ValueError``."""

from __future__ import annotations

from benchmarks.odd_calls import CALLS, run_all


def test_odd_arguments_are_refused_or_work() -> None:
    tally, found = run_all(0, 60 * len(CALLS))
    assert found == []
    assert {name for name, outcome in tally if outcome == "refused"} == set(CALLS)
