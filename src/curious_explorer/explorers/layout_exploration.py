"""What is known of many layouts after exploring: each apart, and one report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.layout_slice import Found, Labelled


class LayoutSummary(NamedTuple):
    """An exploration of many layouts in numbers."""

    layouts: int
    found: int
    """In how many a reward was seen."""
    set_aside: int
    """How many could not be explored to a reward within the samples, or have none within reach."""
    failed: int
    """How many were left alone because the environment raised."""
    samples: int
    labels: int
    """How many states have labels to imitate."""


class LayoutExploration(Exploration):
    """What exploring many layouts leaves behind.

    Args:
        found: what is known of each layout.
        gamma: the discount.
        samples: every step that was taken, in all layouts together.
        first_reward: how many had been taken when the first layout paid; None: none ever did.
        repeatable: whether two restarts by one seed agreed. If not, ``found`` has one entry, for all layouts together.
    """

    def __init__(
        self, found: Sequence[Found], gamma: float, *, samples: int, first_reward: int | None, repeatable: bool = True
    ) -> None:
        super().__init__((), gamma, reset_model=self._refuse, samples=samples, first_reward=first_reward)
        self.layouts = {each.layout: each for each in found}
        self.repeatable = repeatable

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "many layouts were explored, and each has its own resets: exploration.in_layout(seed).reset_model"
        )

    def in_layout(self, layout: int) -> Exploration:
        """What is known of one layout, by its seed."""
        found = self.layouts.get(layout)
        if found is None or found.counts is None:
            raise ValueError(f"layout is {layout}, expected one that was explored: {self._seeds()}")
        return Exploration.of_counts(found.counts)

    def _seeds(self) -> str:
        seeds = [str(seed) for seed, found in self.layouts.items() if found.counts is not None]
        return ", ".join(seeds[:10]) + (", ..." if len(seeds) > 10 else "")

    @property
    def found(self) -> list[Found]:
        """The layouts in which a reward was seen."""
        return [each for each in self.layouts.values() if each.first_reward is not None]

    @property
    def set_aside(self) -> list[Found]:
        """Those in which none was, though nothing went wrong."""
        return [each for each in self.layouts.values() if each.first_reward is None and each.error is None]

    @property
    def failed(self) -> list[Found]:
        """Those that were left alone because the environment raised."""
        return [each for each in self.layouts.values() if each.error is not None]

    @property
    def labels(self) -> list[Labelled]:
        """What is best to do in states from which a way to a reward is known, layout by layout."""
        return [each.labels for each in self.layouts.values() if each.labels is not None]

    @property
    def summary(self) -> LayoutSummary:
        """The whole in numbers."""
        labels = sum(len(each.observations) for each in self.labels)
        failed = len(self.failed)
        return LayoutSummary(len(self.layouts), len(self.found), len(self.set_aside), failed, self.samples, labels)

    def report(self) -> str:
        """The whole in words, a line for each layout in which something is to be said."""
        told = self.summary
        lines = [
            f"{told.found} of {told.layouts} layouts paid; {told.set_aside} set aside, {told.failed} left alone since "
            f"the environment raised; {told.samples:,} samples, labels in {told.labels:,} states"
        ]
        if not self.repeatable:
            lines = [
                "two restarts by one seed did not agree, so that no layout can be explored by itself: all were "
                f"explored as one; {told.samples:,} samples, labels in {told.labels:,} states"
            ]
        for each in self.set_aside:
            why = "nothing is left within reach" if each.complete else "not within its share"
            lines.append(f"layout {each.layout}: no reward after {each.samples:,} samples ({why})")
        lines += [f"layout {each.layout}: {each.error}" for each in self.failed]
        return "\n".join(lines)

    def __repr__(self) -> str:
        told = self.summary
        return f"LayoutExploration({told.found} of {told.layouts} layouts paid, samples={told.samples:,})"

    def as_plain_data(self) -> dict[str, Any]:
        """The report as plain data, for files."""
        layouts = [
            {
                "layout": each.layout,
                "samples": each.samples,
                "first_reward": each.first_reward,
                "complete": each.complete,
                "error": each.error,
            }
            for each in self.layouts.values()
        ]
        return {**self.summary._asdict(), "repeatable": self.repeatable, "by_layout": layouts}
