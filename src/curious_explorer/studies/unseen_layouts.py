"""The test that counts where layouts change: how many layouts that were never seen a policy solves.

**Apart by construction.** Seeds below `FIRST_TEST` are for exploring and learning, those from there on for tests, so
that no test layout can have been explored; seeds of one's own are compared, and one that is in both is an error.

**The interval** is that of Clopper and Pearson, exact for any number of layouts: of 500 it is at most 0.09 wide.

A layout is solved if one episode from its own start, with the environment's own time limit, returns more than a
threshold. Steps of tests are counted apart from those of exploring and learning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.stats import binomtest

from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.gym.cells import Env
from curious_explorer.gym.fixed_layout import FIRST_TEST
from curious_explorer.gym.gym_world import check_layouts
from curious_explorer.studies.executors import Executor, Inline
from curious_explorer.validation import check_count, check_seed
from curious_explorer.worlds.policies import ObservationPolicy

END_OF_TESTS = 1 << 31
"""Test layouts that are drawn here have seeds from `FIRST_TEST` to before this."""
LEAST_TESTS = 500
MOST_STEPS = 10_000
"""Where an environment has no time limit, an episode that is longer has failed."""
TESTS_A_JOB = 25
CONFIDENCE = 0.95


@runtime_checkable
class Remembering(Protocol):
    """A policy that remembers an episode."""

    def begin(self) -> None:
        """Forget the last one."""


class LayoutSplit(NamedTuple):
    """Seeds of layouts to explore and learn in, and of others to test on."""

    train: tuple[int, ...]
    test: tuple[int, ...]


def split_layouts(
    layouts: int | Iterable[int], tests: int | Iterable[int] = LEAST_TESTS, *, seed: int = 0
) -> LayoutSplit:
    """Layouts to train in and to test on, with nothing in common.

    Args:
        layouts: how many to train in, which are then drawn; or their seeds.
        tests: how many to test on, which are then drawn from seeds that training never draws; or their seeds.
        seed: where drawing begins: other seeds give other layouts.
    """
    check_seed(seed)
    if isinstance(layouts, int):
        layouts = _draw(seed, 0, FIRST_TEST, check_count(layouts, "layouts", least=1))
    if isinstance(tests, int):
        tests = _draw(seed, FIRST_TEST, END_OF_TESTS, check_count(tests, "tests", least=1))
    split = LayoutSplit(check_layouts(layouts), check_layouts(tests))
    check_apart(*split)
    return split


def _draw(seed: int, low: int, high: int, count: int) -> list[int]:
    """Different seeds; the first of many are those of few."""
    generator = np.random.default_rng([seed, low])
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn.update(dict.fromkeys(generator.integers(low, high, size=count - len(drawn)).tolist()))
    return list(drawn)


def check_apart(train: Iterable[int], test: Iterable[int]) -> None:
    """Refuse to test on layouts that were trained in."""
    both = sorted(set(train) & set(test))
    if both:
        named = ", ".join(map(str, both[:5])) + (", ..." if len(both) > 5 else "")
        raise ValueError(
            f"{len(both)} layouts are for training and for tests ({named}); give other seeds, or a number of tests, "
            "which are drawn apart"
        )


class UnseenSuccess(NamedTuple):
    """How a policy did in layouts that it never saw."""

    solved: int
    tested: int
    low: float
    """The interval of Clopper and Pearson."""
    high: float
    return_mean: float
    steps: int
    """Of all test episodes; they are no samples of exploring or learning."""
    failed: tuple[int, ...] = ()
    """Layouts in which the environment raised; they count as not solved."""

    @property
    def share(self) -> float:
        """Of the layouts tested, those that were solved."""
        return self.solved / self.tested

    def __str__(self) -> str:
        words = f"{self.solved} of {self.tested} unseen layouts ({self.share:.3f}, {self.low:.3f} to {self.high:.3f})"
        return words + (f"; the environment raised in {len(self.failed)}: {self.failed[:5]}" if self.failed else "")


@dataclass(frozen=True)
class _Tests:
    """Some test layouts, for one process."""

    make: Callable[[], Env]
    policy: ObservationPolicy
    layouts: tuple[int, ...]
    seed: int
    threshold: float


class _Outcome(NamedTuple):
    solved: int
    returned: float
    steps: int
    failed: tuple[int, ...]


def play_unseen(
    make: Callable[[], Env],
    policy: ObservationPolicy,
    layouts: Sequence[int],
    *,
    explored: Iterable[int],
    seed: int = 0,
    threshold: float = 0.0,
    executor: Executor | None = None,
) -> UnseenSuccess:
    """Play one episode in each test layout.

    Args:
        make: makes the environment; it must be possible to pickle it for an executor of processes.
        policy: acts on the environment's own observations; its actions are drawn.
        layouts: the seeds of the layouts.
        explored: the seeds of all layouts that were explored or trained in; one that is tested, too, is an error.
        seed: where the draws of actions come from.
        threshold: a layout is solved if its episode returns more.
        executor: where to play; in this process if None.
    """
    tested = check_layouts(layouts)
    check_apart(explored, tested)
    jobs = [
        _Tests(make, policy, tested[first : first + TESTS_A_JOB], check_seed(seed), threshold)
        for first in range(0, len(tested), TESTS_A_JOB)
    ]
    outcomes = list((executor or Inline()).run(_play, jobs))
    solved = sum(outcome.solved for outcome in outcomes)
    interval = binomtest(solved, len(tested)).proportion_ci(CONFIDENCE, "exact")
    return UnseenSuccess(
        solved,
        len(tested),
        float(interval.low),
        float(interval.high),
        sum(outcome.returned for outcome in outcomes) / len(tested),
        sum(outcome.steps for outcome in outcomes),
        tuple(sorted(layout for outcome in outcomes for layout in outcome.failed)),
    )


def _play(tests: _Tests) -> _Outcome:
    env = tests.make()
    solved, returned, steps, failed = 0, 0.0, 0, []
    for layout in tests.layouts:
        try:
            got, taken = _episode(env, tests.policy, layout, np.random.default_rng([tests.seed, layout]))
        except EnvironmentFailureError:
            failed.append(layout)
            continue
        solved, returned, steps = solved + (got > tests.threshold), returned + got, steps + taken
    env.close()
    return _Outcome(solved, returned, steps, tuple(failed))


def _episode(env: Env, policy: ObservationPolicy, layout: int, generator: np.random.Generator) -> tuple[float, int]:
    """What an episode in one layout returns, and how many steps it takes."""
    total, steps, ended = 0.0, 0, False
    if isinstance(policy, Remembering):
        policy.begin()
    try:
        observation, _ = env.reset(seed=layout)
    except Exception as error:
        raise EnvironmentFailureError(f"layout {layout}: {error}") from error
    while not ended and steps < MOST_STEPS:
        action: Any = policy.act([observation], generator)[0]
        try:
            observation, reward, terminated, truncated, _ = env.step(action)
        except Exception as error:
            raise EnvironmentFailureError(f"layout {layout}: {error}") from error
        total, steps, ended = total + float(reward), steps + 1, bool(terminated or truncated)
    return total, steps
