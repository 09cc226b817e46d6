"""What an explorer is, and what it leaves behind: a reset model above all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.errors import DemonstrationError
from curious_explorer.explorers.checkpoint import read_exploration
from curious_explorer.explorers.demonstrations import Demonstration, demonstrations
from curious_explorer.explorers.frontier_files import FrontierCounts, read_counts
from curious_explorer.explorers.rounds import Round
from curious_explorer.explorers.stored_ways import StoredWays
from curious_explorer.learners.optimizer import Watch
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.worlds.policies import KnownPolicy, frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.world import World

__all__ = ["Exploration", "Explorer", "Round", "uniform_policy"]

MOST_POLICIES = 20
"""How many policies a reset model keeps of a run, evenly spaced in samples."""
RESTARTS, COMPILED_RESTARTS = 500, 100_000
"""By how many restarts an explorer that did not count its own finds out where the world starts; in a compiled world so
many take a few milliseconds."""


class Exploration:
    """What an explorer leaves behind: a reset model, what it cost, and, where there are any, a policy and a model.

    Args:
        rounds: of Algorithm 2; none for an explorer that has no rounds.
        gamma: the discount.
        reset_model: where to start episodes; by default the one that the rounds' policies make.
        samples: every step that was taken; by default those of the rounds.
        policy: the best for what was seen of the world's own reward, or None.
        model: what was counted, in a table or as states were met, or None.
        discretisation: cells and actions, for an exploration of observations.
        planned_rounds: how many rounds it was to have, where it was read from a folder; more than there are if it was
            interrupted.
        first_reward: after how many samples the world first paid anything, where that was watched; None: never.
        complete: whether the explorer stopped because nothing was left that it knew a way to.
        ways: kept as actions, where cells mix states of a world that repeats.

    The reset model and the policy may be given as functions that make them when they are asked for.
    """

    def __init__(
        self,
        rounds: tuple[Round, ...],
        gamma: float,
        *,
        reset_model: ResetModel | Callable[[], ResetModel] | None = None,
        samples: int | None = None,
        policy: KnownPolicy | Callable[[], KnownPolicy] | None = None,
        model: CountedModel | GrowingModel | None = None,
        discretisation: StoredDiscretisation | None = None,
        planned_rounds: int | None = None,
        first_reward: int | None = None,
        complete: bool = False,
        ways: StoredWays | None = None,
    ) -> None:
        self.rounds, self.gamma = rounds, gamma
        self._reset_model, self._samples = reset_model, samples
        self._policy, self.model = policy, model
        self.discretisation, self.planned_rounds = discretisation, planned_rounds
        self.first_reward, self.complete, self.ways = first_reward, complete, ways

    @staticmethod
    def of_counts(found: FrontierCounts) -> Exploration:
        """What is left of an exploration by counts alone; policies are made when they are asked for."""
        num_states, gamma, model = found.num_states, found.gamma, found.model

        def resets() -> ResetModel:
            counted = model.counted(num_states)
            policies = found.policies(MOST_POLICIES)
            return ResetModel(policies, gamma=gamma, chained=False, discretisation=found.discretisation, model=counted)

        def best() -> KnownPolicy:
            from curious_explorer.models.planning import exploitation

            return frozen(exploitation(model.counted(num_states), None, gamma, np.zeros(num_states)))

        return Exploration(
            (),
            gamma,
            reset_model=resets,
            samples=found.samples,
            policy=best,
            model=model,
            discretisation=found.discretisation,
            first_reward=found.first_reward,
            complete=found.complete,
            ways=found.ways,
        )

    @cached_property
    def policy(self) -> KnownPolicy | None:
        """The best policy for what was seen of the world's own reward, or None."""
        return self._policy() if callable(self._policy) else self._policy

    @cached_property
    def policies(self) -> tuple[KnownPolicy, ...]:
        """pi_0, ..., pi_N of Algorithm 2; those of the reset model for an explorer without rounds."""
        if not self.rounds:
            return self.reset_model.policies
        return (*(round_.policy for round_ in self.rounds), self.rounds[-1].learned_policy)

    @cached_property
    def reset_model(self) -> ResetModel:
        """Where to start episodes: for Algorithm 2 by all its policies, starts spread as widely as these allow.

        ``reset_model.weighted("last")`` is the paper's, ``reset_model.weighted("average")`` the one that the thresholds
        say something about.
        """
        if self._reset_model is not None:
            return self._reset_model() if callable(self._reset_model) else self._reset_model
        visited = [round_.visited for round_ in self.rounds]
        return ResetModel(
            self.policies,
            gamma=self.gamma,
            weighting="spread",
            visited=visited,
            discretisation=self.discretisation,
            model=self.model if isinstance(self.model, CountedModel) else None,
        )

    def resets_to(self, state: int | str, **settings: Any) -> ResetModel:
        """Resets to one state, or cell, where a model was counted; see `ResetModel.to`."""
        return self.reset_model.to(state, **settings)

    def demonstrations(self, world: World, episodes: int = 10, **settings: Any) -> list[Demonstration]:
        """Episodes along the best known way to the reward, where a model was counted; see `demonstrations`.

        Every step of them is one of ``world``, and is counted there.
        """
        model = self.reset_model.model
        if model is None:
            raise DemonstrationError(
                "this exploration counted no transitions, so that no way to a reward is known; explore with Frontier "
                "(the default) or another explorer that counts"
            )
        self.reset_model.check_world(world)
        return demonstrations(world, model, **{"gamma": self.gamma, "episodes": episodes, **settings})

    def __repr__(self) -> str:
        words = "complete" if self.complete else f"{len(self.rounds)} rounds" if self.rounds else "by counts"
        return f"Exploration({words}, gamma={self.gamma}, samples={self.samples:,})"

    @property
    def finished(self) -> bool:
        """Whether all planned rounds are done, or no more of them are needed."""
        return self.planned_rounds is None or len(self.rounds) >= self.planned_rounds or self.ended is not None

    @property
    def ended(self) -> str | None:
        """Why exploration ended before its limit; None if it did not."""
        return self.rounds[-1].ended if self.rounds else None

    @property
    def samples(self) -> int:
        """All steps: visits, roll-ins and learning."""
        return self._samples if self._samples is not None else sum(round_.samples for round_ in self.rounds)

    @cached_property
    def total_visited(self) -> Floats:
        """D_0 + ... + D_{N-1}, shape (S,); for a model that grows, the share of all steps that led to each state."""
        if isinstance(self.model, GrowingModel):
            visited, visits = np.zeros(self.reset_model.num_states), self.model.visits()
            visited[self.model.states] = visits / visits.sum()
            return visited
        if not self.rounds:
            return np.zeros(self.reset_model.num_states)
        total: Floats = np.sum([round_.visited for round_ in self.rounds], axis=0)
        return total

    @staticmethod
    def load(folder: str | Path, *, cell_function: Callable[[Any], Any] | None = None) -> Exploration:
        """Read an exploration, finished or not, from its checkpoint folder.

        ``cell_function`` is the function that made the cells, where one did: code is not stored.
        """
        counted = read_counts(folder, cell_function)
        if counted is not None:
            return Exploration.of_counts(counted)
        stored = read_exploration(folder, cell_function)
        return Exploration(
            stored.rounds,
            stored.gamma,
            discretisation=stored.discretisation,
            planned_rounds=stored.planned_rounds,
        )


@runtime_checkable
class Explorer(Protocol):
    """Anything that explores a world: Algorithm 2 with its optimizer (`CuriousExplorer`), R-MAX, PSRL, ..."""

    def explore(
        self, world: World, *, gamma: float, samples: int | None = None, watch: Watch | None = None
    ) -> Exploration:
        """Explore from the world's start.

        Args:
            world: where to act.
            gamma: the discount.
            samples: the most steps to take; the explorer's own default if None.
            watch: called with a policy and the samples so far, first with the uniform one and zero.
        """


def count_starts(world: World, model: CountedModel) -> None:
    """Count where restarts lead, which takes no step, so that ways from there can be found on the model.

    The world's random numbers go on as if nothing had happened, where it can be put back. Starts in states that were
    never met are not counted: no way leads on from there.
    """
    restarts = RESTARTS if world.compiled_steps() is None else COMPILED_RESTARTS
    position = None
    with contextlib.suppress(NotImplementedError):
        position = world.position()
    starts = world.count_ends(RollIn.from_start(), restarts)
    if position is not None:
        world.restore(position)
    model.starts += np.where(model.met(), starts, 0)


def uniform_policy(world: World) -> Floats:
    """The policy that every exploration begins with: pi_0 of Algorithm 2, shape (S, A)."""
    return frozen(np.full((world.num_states, world.num_actions), 1.0 / world.num_actions))
