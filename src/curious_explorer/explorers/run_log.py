"""What a run tells the outside: a learning curve, policies it acted with, and the current policy for whoever watches.

``watch`` is called with the uniform policy before the first step, then whenever a hundredth more samples have been used
since the last call and the method has a new policy to show, and once more at the end.
"""

from __future__ import annotations

from collections.abc import Callable

from curious_explorer.arrays import Floats
from curious_explorer.callbacks.events import BATCH, EXPLORE, tell
from curious_explorer.explorers.exploration import MOST_POLICIES, uniform_policy
from curious_explorer.learners.optimizer import OptimizerResult, Watch, learning_curve
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.world import World

WATCH_GROWTH = 0.01
"""A hundredth more samples between two calls: about a thousand of them in a million steps."""
NEVER = 1 << 62


class RunLog:
    """The curve of one run of so many samples, its ``watch``, and some of the policies that the agent acted with."""

    def __init__(self, world: World, total: int, watch: Watch | None) -> None:
        self._total, self._watch = total, watch
        self._next_call, self._next_part = 0, 0
        self._curve: list[tuple[int, float, int]] = []
        self._episodes, self._new_episodes, self._returned = 0, 0, 0.0
        self.samples = 0
        """Steps taken so far."""
        self.policies: list[Floats] = []
        """Policies that the agent acted with, at most `MOST_POLICIES`, evenly spaced in samples."""
        self.show(lambda: uniform_policy(world))

    @property
    def next_call(self) -> int:
        """After how many samples `show` will do something next; never where nobody watches."""
        return NEVER if self._watch is None else self._next_call

    def note(self, samples: int, episodes: int, returned: float) -> None:
        """Some steps were taken; with the number and summed discounted return of their whole episodes."""
        self.samples += samples
        self._new_episodes += episodes
        self._returned += returned

    def wants_policy(self) -> bool:
        """Whether it is time to add the policy that the agent acts with now to `policies`; asked once for each."""
        part = self.samples * MOST_POLICIES // self._total
        wanted = part >= self._next_part
        self._next_part = max(self._next_part, part + 1)
        return wanted

    def show(self, policy: Callable[[], Floats], *, always: bool = False) -> None:
        """Call ``watch`` if it is time; the policy is worked out only then."""
        if not always and self.samples < self._next_call:
            return
        self._next_call = self.samples + max(1, int(WATCH_GROWTH * self.samples))
        numbers: dict[str, float] = {}
        if self._new_episodes:
            self._episodes += self._new_episodes
            self._curve.append((self.samples, self._returned / self._new_episodes, self._episodes))
            numbers = {"return": self._curve[-1][1], "episodes": self._episodes}
            self._new_episodes, self._returned = 0, 0.0
        tell(self._watch, BATCH, EXPLORE, self.samples, numbers, policy)

    def close(self, policy: Floats) -> OptimizerResult:
        """The result of the run; whoever watches sees it too."""
        self.show(lambda: policy, always=True)
        return OptimizerResult(
            policy=frozen(policy), samples=self.samples, curve=learning_curve(self._curve), accepted=len(self._curve)
        )
