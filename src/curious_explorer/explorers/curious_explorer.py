"""Algorithm 2: Curious Explorer.

    mu_{-1} = rho,  pi_0 = uniform
    for n = 0, 1, ..., N-1:
        D_n     = visit(pi_n, mu_{n-1})                       where does the current policy go?
        K_n     = {s : D_0(s) + ... + D_n(s) <= beta_n}       which states are poorly visited?
        r_n     = 1 on K_n                                    reward exactly those
        mu_n    = 1/2 D_n + 1/2 rho                           start from where we have learned to go
        pi_{n+1} = opt(r_n, mu_n)                             and learn to reach them

`CuriousExplorer.explore_in_pieces` is that loop. It needs of the world only restart and step, and of the optimizer only
that it learns.

Three things differ from the paper by default.

- mu_n forgets its past geometrically, so when a round learns nothing the next one no longer starts near the frontier,
  and exploration falls back to rho: at depth 40 the crossroads are lost that way. So half of what opt learns from,
  beside rho, is spread over all that was seen (`learn_from="recent"`); `learn_from="last"` asks for mu_n. The
  theorems ask of opt's reset model only that at least half of it is rho, which holds for both.
- beta_n is constant, so that K_n only shrinks, and exploration ends when it is empty.
- Where nothing new was reached, the next round samples twice as much, and where something was, half; when sixteen times
  as much brought nothing either, what is left counts as out of reach. An optimizer that learns by itself how long
  (`TRPO()`, `Reinforce()`) begins a round with the policy of the last. How many rounds that takes need not be said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.callbacks.events import BATCH, EXPLORE, ROUND, Callback, part_of, tell
from curious_explorer.explorers.checkpoint import Checkpoint
from curious_explorer.explorers.exploration import Exploration, Explorer, count_starts, uniform_policy
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.explorers.progress import RoundProgress
from curious_explorer.explorers.rounds import EMPTY, NOTHING_NEW, Round
from curious_explorer.explorers.sample_budget import SampleAccount, SampleBudget
from curious_explorer.explorers.thresholds import Schedule, schedule_values
from curious_explorer.explorers.visits import FreshVisits, OccupancyVisits, Visits, default_visits, limited
from curious_explorer.learners import annealed
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.optimizer import (
    Optimizer,
    OptimizerResult,
    Pause,
    Pieces,
    ResumableOptimizer,
    RoundOptimizer,
    Watch,
    can_be_watched,
    check_budget,
    check_learned,
    check_optimizer,
    complete,
    learning_curve,
)
from curious_explorer.resets.reset_model import WEIGHTINGS, ResetModel
from curious_explorer.settings_description import describe
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import KnownPolicy, check_any_policy
from curious_explorer.worlds.world import Reward, World, check_world
from curious_explorer.worlds.wrappers import RecordingWorld

REWARDS = ("curiosity", "combined")
MOST_ROUNDS = 500
"""Where no number of rounds is given: a limit for worlds that are larger than anybody would wait for."""
MOST_EFFORT = 16
"""How many times as much a round samples as usual before what is left counts as out of reach."""
MOST_STEPS = annealed.MOST_STEPS // 2
"""Where no samples are given, no round begins after so many steps: half of those after which learning ends, which has
the other half. In a windy grid of 630 cells the last dozen of states took exploring 10 million steps more, and left
learning too few: TRPO got 0.88 of the best value on one seed of four, with half of the steps 0.96 or more on all."""


def explore(
    world: World,
    optimizer: Optimizer | Explorer | None = None,
    *,
    gamma: float,
    rounds: int | None = None,
    samples: int | None = None,
    thresholds: Schedule | float | None = None,
    visits: Visits | int | None = None,
    budget: int | None = None,
    reward: str = "curiosity",
    learn_from: str = "recent",
    record: bool = False,
    watch: Watch | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Exploration:
    """Explore a world from its start; what comes back has the reset model.

    An optimizer means Algorithm 2 with it: ``explore(world, TRPO(), gamma=0.95, rounds=20)`` is
    ``CuriousExplorer(TRPO(), rounds=20).explore(world, gamma=0.95)``. An explorer, such as `RMax`, explores by itself;
    none at all means `Frontier`, which goes by counts alone.

    Args:
        world: where to act; every step is counted in ``world.samples``.
        optimizer: ``opt`` of the paper: `TRPO`, `Reinforce`, `ModelBased`, or anything with their signature; or an
            explorer; None: `Frontier`.
        gamma: the discount.
        rounds: N, how many policies Algorithm 2 learns at most; `CuriousExplorer` says more about its options.
        samples: the most steps that the exploration takes in all; Algorithm 2 shares them out over its rounds.
        thresholds: beta_n, by a number or a function of n.
        visits: how D_n is measured.
        budget: the most steps that the optimizer may take in a round.
        reward: "curiosity" or "combined".
        learn_from: the resets opt learns from: "recent", "spread", "average" or "last".
        record: whether to keep the transitions seen while learning.
        watch: called with a new policy and the samples so far, whenever there is one; or a `Callback`, which is told of
            every round and every batch.
        checkpoint: a folder to save each round in, and to go on from if it holds the same exploration already.
        progress: whether to show a progress bar.
    """
    check_world(world)
    if optimizer is None:
        optimizer = ManyLayouts() if world.layouts else Frontier()
    if isinstance(optimizer, type) or not isinstance(optimizer, Explorer):
        check_optimizer(optimizer)
    if isinstance(optimizer, Explorer):
        kept = isinstance(optimizer, Frontier)  # the only one that keeps a checkpoint
        options = (rounds, thresholds, visits, budget, None if kept else checkpoint, reward, learn_from, record)
        if options != (None, None, None, None, None, "curiosity", "recent", False):
            name = type(optimizer).__name__
            raise ValueError(
                f"{name} explores by itself, by its own settings: give it gamma, samples and watch alone, Frontier a "
                f"checkpoint too, or let Algorithm 2 use it: explore(world, CuriousExplorer({name}(), rounds=...), ...)"
            )
        if isinstance(optimizer, Frontier):
            return optimizer.explore(world, gamma=gamma, samples=samples, watch=watch, checkpoint=checkpoint)
        return optimizer.explore(world, gamma=gamma, samples=samples, watch=watch)
    explorer = CuriousExplorer(
        optimizer,
        rounds=rounds,
        thresholds=thresholds,
        visits=visits,
        budget=budget,
        reward=reward,
        learn_from=learn_from,
        record=record,
    )
    return explorer.explore(world, gamma=gamma, samples=samples, watch=watch, checkpoint=checkpoint, progress=progress)


@dataclass(frozen=True, eq=False)
class CuriousExplorer:
    """Algorithm 2 with an optimizer."""

    optimizer: Optimizer
    """``opt`` of the paper."""
    _: KW_ONLY
    rounds: int | None = None
    """N, how many policies to learn at most. Exploration ends before that when K_n is empty, unless thresholds are
    given that may fill it again. Where this is None, or an optimizer learns by itself how long, it also ends when
    nothing new is reached however much is tried, and begins no round after `MOST_STEPS`."""
    thresholds: Schedule | float | None = None
    """beta_n: a number beta for all rounds, a function of n (see `curious_explorer.explorers.thresholds`), or None for
    beta = 1 / (2 |S|)."""
    visits: Visits | int | None = None
    """How D_n is measured: how many walks, or one of the ways in `curious_explorer.explorers.visits`."""
    budget: int | None = None
    """The most steps the optimizer may take in a round; its own default if None."""
    reward: str = "curiosity"
    """What to learn for: "curiosity" is r_n alone, as in the paper; "combined" is max(r_n, the world's own reward), so
    that the last policy is already trained on both and no second phase is needed."""
    learn_from: str = "recent"
    """The resets opt learns from: the "average" of all rounds so far, the "last" one's, as in the paper, "spread" over
    as much as possible of what was seen, or "recent", half of that and half of the last round's, but "spread" after a
    round that reached nothing new."""
    record: bool = False
    """Whether to keep the transitions seen while learning, for learning off-policy afterwards."""

    def __post_init__(self) -> None:
        check_optimizer(self.optimizer)
        if self.rounds is not None:
            check_count(self.rounds, "rounds", least=1)
        if self.visits is not None and not callable(self.visits):
            check_count(self.visits, "visits", least=1)
        check_budget(self.budget)
        if self.reward not in REWARDS:
            raise ValueError(f"reward is {self.reward!r}, expected one of {', '.join(map(repr, REWARDS))}")
        if self.learn_from not in WEIGHTINGS:
            raise ValueError(f"learn_from is {self.learn_from!r}, expected one of {', '.join(map(repr, WEIGHTINGS))}")

    def explore(
        self,
        world: World,
        *,
        gamma: float,
        samples: int | None = None,
        watch: Watch | None = None,
        checkpoint: str | Path | None = None,
        progress: bool = False,
    ) -> Exploration:
        """Run Algorithm 2; see `explore`."""
        rounds: list[Round] = []
        complete(
            self.explore_in_pieces(
                world, rounds, gamma=gamma, samples=samples, watch=watch, checkpoint=checkpoint, progress=progress
            )
        )
        return self.exploration(world, rounds, gamma=check_gamma(gamma))

    def explore_in_pieces(
        self,
        world: World,
        done: list[Round],
        *,
        gamma: float,
        samples: int | None = None,
        watch: Watch | None = None,
        checkpoint: str | Path | None = None,
        progress: bool = False,
    ) -> Pieces[None]:
        """Algorithm 2 with a pause before each measurement of D_n and after each batch of the optimizer's.

        Rounds are appended to ``done`` when they are done, so that there is an `exploration` at every pause. An
        optimizer that cannot be left (see `ResumableOptimizer`) learns in one piece.
        """
        check_world(world)
        plan = self._plan(world, check_gamma(gamma), samples)
        with (
            Checkpoint(checkpoint, world, self.optimizer, plan.described(self)) as saved,
            RoundProgress(world, plan.rounds, show=progress) as bar,
        ):
            done[:] = saved.resume()[: plan.rounds]
            for finished in done:
                bar.advance(finished)
            run = _Rounds(self, world, plan, done, watch)
            for n in range(len(done), plan.rounds):
                if run.is_over:
                    break
                yield run.pause()
                visited = run.visit(n)  # D_n
                poorly_visited = run.poorly_visited(n, visited)  # K_n
                reward = curiosity_reward(poorly_visited, world.num_actions, self.reward)  # r_n
                resets = run.resets(visited)  # mu_n
                learned = yield from run.learn(n, resets, reward)  # pi_{n+1}
                done.append(run.finish(n, visited, poorly_visited, learned))
                saved.save(done[-1])
                bar.advance(done[-1])
                run.tell_of(done[-1])

    def _plan(self, world: World, gamma: float, samples: int | None) -> _Plan:
        """How many rounds there are at most, and what each is told; checked before a step is taken."""
        shares = None
        if samples is not None:
            walks = self.visits if isinstance(self.visits, int) else None
            num_envs = int(world.identity().get("num_envs", 1))
            shares = SampleBudget.plan(samples, gamma, rounds=self.rounds, visits=walks, num_envs=num_envs)
        rounds = shares.rounds if shares is not None else MOST_ROUNDS if self.rounds is None else self.rounds
        betas = schedule_values(self.thresholds, rounds, world.num_states)
        return _Plan(gamma, samples, shares, rounds, betas, self._visits(shares, world.num_states))

    def exploration(self, world: World, rounds: Sequence[Round], *, gamma: float) -> Exploration:
        """What these rounds in this world leave behind."""
        model = self.optimizer.model if isinstance(self.optimizer, ModelBased) else None
        if model is not None and not model.starts.any():
            count_starts(world, model)
        return Exploration(
            tuple(rounds),
            gamma,
            policy=rounds[-1].learned_policy if self.reward == "combined" else None,
            model=model,
            discretisation=world.stored_discretisation(),
        )

    def _visits(self, shares: SampleBudget | None, num_states: int) -> Visits:
        """How D_n is measured; checked before a step is taken."""
        if shares is None:
            if self.visits is None or isinstance(self.visits, int):
                return FreshVisits(default_visits(num_states) if self.visits is None else self.visits)
            return self.visits
        if self.visits is None or isinstance(self.visits, int):
            return OccupancyVisits(shares.visits)
        limited(self.visits, shares.samples)
        return self.visits


class _Plan(NamedTuple):
    """What all rounds of one exploration are told."""

    gamma: float
    samples: int | None
    shares: SampleBudget | None
    rounds: int
    betas: Sequence[float]
    measure: Visits

    def described(self, explorer: CuriousExplorer) -> dict[str, Any]:
        """Everything that the rounds depend on, as a checkpoint keeps it."""
        return {
            "gamma": self.gamma,
            "samples": self.samples,
            "rounds": None if self.shares is None else self.rounds,  # other numbers of them share samples out otherwise
            "thresholds": self.betas,
            "visits": describe(self.measure),
            "budget": explorer.budget,
            "reward": explorer.reward,
            "learn_from": explorer.learn_from,
            "record": explorer.record,
        }


class _Rounds:
    """The steps of one round after the other, and the account of what was spent."""

    def __init__(
        self, explorer: CuriousExplorer, world: World, plan: _Plan, done: list[Round], watch: Watch | None
    ) -> None:
        self._explorer, self._world, self._plan, self._done, self._watch = explorer, world, plan, done, watch
        self._ends_by_itself = plan.shares is None and (
            explorer.rounds is None or (explorer.thresholds is None and _learns_by_itself(explorer.optimizer))
        )
        self._learning_world = RecordingWorld(world) if explorer.record else world
        self._account = SampleAccount(world, plan.shares, spent=sum(finished.samples for finished in done))
        self._total: Floats = np.zeros(world.num_states)  # D_0 + ... + D_n
        self._left: list[int] = []  # how many states were poorly visited, by round
        for finished in done:
            self._total = self._total + finished.visited
            self._left.append(int(finished.poorly_visited.sum()))
        self._ended: str | None = None
        self._before = self._between = world.samples  # where the round began, and where it began to learn
        tell(watch, BATCH, EXPLORE, 0, find_policy=lambda: uniform_policy(world))

    @property
    def is_over(self) -> bool:
        """Whether no round follows."""
        ended = bool(self._done) and self._done[-1].ended is not None
        return ended or (self._ends_by_itself and self._account.spent >= MOST_STEPS)

    @property
    def policy(self) -> KnownPolicy:
        """pi_n, which the last round has learned."""
        return self._done[-1].learned_policy if self._done else uniform_policy(self._world)

    def pause(self) -> Pause:
        """A pause before the measurement of D_n, which takes about as long as the last one."""
        return Pause(self._done[-1].visit_samples if self._done else _steps_of(self._plan.measure, self._plan.gamma))

    def visit(self, n: int) -> Floats:
        """D_n: where pi_n goes from mu_{n-1}."""
        self._before = self._world.samples
        policies, gamma = [finished.policy for finished in self._done], self._plan.gamma
        mu = ResetModel(policies, gamma=gamma, weighting="last") if policies else None  # mu_{n-1}; None is rho
        visits = self._account.limit_visits(self._plan.measure, n)
        visited = visits(self._world, self.policy, mu, self._done[-1].occupancy if self._done else None, gamma)
        self._between = self._world.samples
        return visited

    def poorly_visited(self, n: int, visited: Floats) -> NDArray[np.bool_]:
        """K_n, and whether exploration ends with it."""
        self._total = self._total + visited
        poorly_visited: NDArray[np.bool_] = self._total <= self._plan.betas[n]
        self._left.append(int(poorly_visited.sum()))
        if not poorly_visited.any() and self._explorer.thresholds is None:
            self._ended = EMPTY
        elif self._ends_by_itself and effort_of(self._left) > MOST_EFFORT:
            self._ended = NOTHING_NEW
        return poorly_visited

    def resets(self, visited: Floats) -> ResetModel:
        """mu_n, as this exploration weighs its rounds."""
        policies = [*(finished.policy for finished in self._done), self.policy]
        measured = [*(finished.visited for finished in self._done), visited]
        weighting = self._explorer.learn_from
        if weighting == "recent" and effort_of(self._left) > 1:
            weighting = "spread"  # the last policy reached nothing new
        return ResetModel(policies, gamma=self._plan.gamma, weighting=weighting, visited=measured)

    def learn(self, n: int, resets: ResetModel, reward: Reward) -> Pieces[OptimizerResult]:
        """opt: pi_{n+1}, for r_n from mu_n; pi_n once more where exploration ends and nothing is left to learn."""
        if self._ended is not None:
            return OptimizerResult(policy=self.policy, samples=0, curve=learning_curve([]))
        budget = self._account.limit_learning(self._explorer.budget, n, self._between - self._before)
        opt = self._explorer.optimizer
        if isinstance(opt, RoundOptimizer):
            opt = opt.for_round(self.policy, min(effort_of(self._left), MOST_EFFORT))
        task: dict[str, Any] = {"gamma": self._plan.gamma, "reward": reward, "budget": budget}
        if isinstance(self._watch, Callback) and can_be_watched(opt):
            task["watch"] = part_of(self._watch, EXPLORE, self._account.spent, round=n)
        if isinstance(opt, ResumableOptimizer):
            learned = yield from opt.learn_in_pieces(self._learning_world, resets, **task)
        else:
            learned = opt(self._learning_world, resets, **task)
        check_learned(learned, self._world.samples - self._between, budget)
        return learned

    def finish(self, n: int, visited: Floats, poorly_visited: NDArray[np.bool_], learned: OptimizerResult) -> Round:
        """What the round leaves behind."""
        world, recording = self._world, self._learning_world
        return Round(
            number=n,
            threshold=self._plan.betas[n],
            policy=self.policy,
            visited=visited,
            poorly_visited=poorly_visited,
            learned_policy=check_any_policy(learned.policy, world.num_states, world.num_actions),
            visit_samples=self._between - self._before,
            learning_samples=world.samples - self._between,
            accepted=learned.accepted,
            rejected=learned.rejected,
            occupancy=learned.occupancy,
            seen=recording.take() if isinstance(recording, RecordingWorld) else None,
            ended=self._ended,
        )

    def tell_of(self, done: Round) -> None:
        """Tell whoever watches that a round is done."""
        numbers: dict[str, float] = {
            "round": done.number,
            "threshold": done.threshold,
            "poorly_visited": int(done.poorly_visited.sum()),
            "states_seen": int((self._total > 0.0).sum()),
            "visit_samples": done.visit_samples,
            "learning_samples": done.learning_samples,
        }
        tell(self._watch, ROUND, EXPLORE, self._account.spent, numbers, lambda: done.learned_policy)


def effort_of(poorly_visited: Sequence[int]) -> int:
    """How many times as much to sample in the next round, after rounds that left so many states poorly visited.

    Twice as much after a round that left no fewer than any before it, half after any other.
    """
    effort, fewest = 1, poorly_visited[0]
    for count in poorly_visited[1:]:
        effort = max(1, effort // 2) if count < fewest else 2 * effort
        fewest = min(fewest, count)
    return effort


def _learns_by_itself(optimizer: Optimizer) -> bool:
    """Whether an optimizer decides how long a round learns; one that was given updates is let do all rounds."""
    return isinstance(optimizer, RoundOptimizer) and getattr(optimizer, "updates", None) is None


def _steps_of(measure: Visits, gamma: float) -> float:
    """About how many steps the first measurement takes."""
    return measure.count / (1.0 - gamma) if isinstance(measure, FreshVisits) else 0.0


def curiosity_reward(poorly_visited: NDArray[np.bool_], num_actions: int, kind: str) -> Reward:
    """r_n: 1 in every poorly visited state, alone or together with the world's own reward."""
    combine = "max" if kind == "combined" else "replace"
    return Reward.of_states(poorly_visited.astype(np.float64), num_actions, combine)
