"""What happens in a run, as events, and who is told of them.

Whatever takes ``watch=`` takes a function of a policy and the samples so far, or a `Callback`, which is told more:

    round        a round of Algorithm 2 is done
    batch        something was learned from a batch of episodes, or a stretch of steps was taken
    evaluation   a policy was measured from the environment's own start

Being told costs no samples and changes no result. Policies are worked out only for those who ask for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curious_explorer.worlds.policies import KnownPolicy

ROUND, BATCH, EVALUATION = "round", "batch", "evaluation"
FIRST_REWARD = "first_reward"
"""The number that says after how many samples the first reward was met."""
EXPLORE, LEARN, TRAIN = "explore", "learn", "train"


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that has happened."""

    kind: str
    """"round", "batch" or "evaluation"."""
    phase: str
    """What it is part of: "explore", "learn" (by `improve`, or an optimizer that was called), "train", or a stage of
    `solve_task`."""
    samples: int
    """Steps taken so far in this phase, roll-ins included."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What there is to tell, by name; which names depends on the kind and on who tells."""
    find_policy: Callable[[], KnownPolicy] | None = field(default=None, repr=False)
    """Works out `policy`."""

    @property
    def policy(self) -> KnownPolicy | None:
        """The policy now, which may go on changing in place; None where there is none to show."""
        return None if self.find_policy is None else self.find_policy()


class Callback(ABC):
    """Told of a run while it goes on: given as ``watch=`` to `explore`, `improve`, `train_into` or `solve_task`."""

    @abstractmethod
    def on_event(self, event: Event) -> None:
        """Something has happened."""

    def __call__(self, policy: KnownPolicy, samples: int) -> None:
        """What an optimizer calls that knows of no events."""
        self.on_event(Event(kind=BATCH, phase=LEARN, samples=samples, find_policy=lambda: policy))


class Callbacks(Callback):
    """Several callbacks, told in order."""

    def __init__(self, *callbacks: Callback) -> None:
        for each in callbacks:
            if not isinstance(each, Callback):
                raise ValueError(f"callbacks has {each!r}, expected Callback objects: on_events(function) makes one")
        self._callbacks = callbacks

    def on_event(self, event: Event) -> None:
        """Tell each of them."""
        for each in self._callbacks:
            each.on_event(event)


class _Function(Callback):
    def __init__(self, function: Callable[[Event], object]) -> None:
        self._function = function

    def on_event(self, event: Event) -> None:
        self._function(event)


def on_events(function: Callable[[Event], object]) -> Callback:
    """A callback of a function of events: ``watch=on_events(print)``."""
    if not callable(function):
        raise ValueError(f"function is {function!r}, expected a function of an Event")
    return _Function(function)


def tell(
    watch: Callable[[KnownPolicy, int], None] | None,
    kind: str,
    phase: str,
    samples: int,
    numbers: Mapping[str, float] | None = None,
    find_policy: Callable[[], KnownPolicy] | None = None,
) -> None:
    """Tell whoever watches of an event: a callback of everything, a plain function of new policies."""
    if isinstance(watch, Callback):
        watch.on_event(Event(kind=kind, phase=phase, samples=samples, numbers=numbers or {}, find_policy=find_policy))
    elif watch is not None and find_policy is not None and kind != EVALUATION:
        watch(find_policy(), samples)


def part_of(watch: Callback, phase: str, before: int, **numbers: float) -> Callback:
    """Who is told, as events of a larger phase that had taken ``before`` samples when this part of it began."""

    def pass_on(event: Event) -> None:
        whole = {**event.numbers, **numbers}
        if FIRST_REWARD in whole:
            whole[FIRST_REWARD] += before
        watch.on_event(replace(event, phase=phase, samples=before + event.samples, numbers=whole))

    return on_events(pass_on)
