"""Settings as plain data: the same in every process, and told from others."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from curious_explorer.settings_description import describe, first_difference

PROGRAM = """
import json
from curious_explorer.settings_description import describe

def optimizer(world, reset, *, names=frozenset({"x", "y", "z", "w"})):
    if world in {"left", "right", "up", "down"}:
        return [name for name in names if name in {"p", "q", "r"}]

closed_over = {"one", "two", "three", "four"}
print(json.dumps([describe(optimizer), describe(lambda world: world in closed_over), describe(closed_over)]))

def outer():
    inside = set(closed_over)
    return lambda world: world in inside

print(json.dumps(describe(outer())))
"""


def test_a_set_in_a_function_is_described_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 5)
    }
    assert len(found) == 1


def with_closure(inside: object):
    return lambda world: world in inside


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x in {"a", "b"}, lambda x: x in {"a", "c"}),
        (lambda x: x in ("a", "b"), lambda x: x in {"a", "b"}),
        (with_closure({1, 2}), with_closure({1, 3})),
        (lambda x, y=1: x, lambda x, y=2: x),
        (lambda x, *, y=1: x, lambda x, *, y=2: x),
        (frozenset({1}), frozenset({2})),
    ],
)
def test_what_differs_is_described_differently(one: object, other: object) -> None:
    assert describe(one) != describe(other)


def test_the_first_difference_is_named() -> None:
    @dataclass
    class Inner:
        rate: float

    @dataclass
    class Outer:
        inner: Inner
        name: str

    found, wanted = describe(Outer(Inner(0.1), "x")), describe(Outer(Inner(0.2), "y"))
    difference = first_difference(found, wanted)
    assert difference is not None
    assert (difference.place, difference.found, difference.wanted) == ("inner.rate", "0.1", "0.2")
    assert first_difference(found, found) is None
