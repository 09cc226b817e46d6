"""The reset model that Curious Explorer hands out: how to start episodes all over the state space by restart and step.

It is a chain of policies pi_0, ..., pi_N and says how a start is drawn. With mu_{-1} = rho and, as in Algorithm 2,

    D_i = visit(pi_i, mu_{i-1})      walk pi_i from mu_{i-1}, stopping with probability 1 - gamma before each step,
    mu_i = 1/2 rho + 1/2 D_i,

the paper hands out mu_N (`weighting="last"`). That is not the covered one: the thresholds guarantee that the *average*
of the D_i is large outside K_N, while mu_N forgets its past geometrically. So the default is

    mu = 1/2 rho + 1/2 (D_0 + ... + D_N) / (N + 1)      (`weighting="average"`),

sampled by drawing i uniformly. For whoever trains a learner there is a third (`weighting="spread"`), which draws i with
the shares that spread starts most widely over what was seen (see `spread_shares`). In all of them, drawing a start
means choosing a chain pi_j, ..., pi_i and walking it from rho. Algorithm 2 itself learns from half of that and half of
the newest D_N (`weighting="recent"`), because what is new is beyond what was reached last. A cover of policies that
were not learned one from the other (``chained=False``) is walked without chains: D_i = visit(pi_i, rho).

A reset model that has a counted model beside its policies (or in their place) also starts in **chosen states**:
`ResetModel.to` goes to one of them, `ResetModel.weighted` to all, as evenly or unevenly as one likes; see
`chosen_states`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.errors import ResetModelError
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.resets.chosen_states import (
    CHOSEN_WEIGHTINGS,
    LEAST_ARRIVAL,
    START_SHARE,
    Arrivals,
    ChosenStates,
    StateChoice,
    arrivals_table,
    given_weights,
    named_weights,
    reaching_of,
    state_number,
)
from curious_explorer.resets.reset_files import read_reset_files, write_reset_files
from curious_explorer.storage import reading
from curious_explorer.validation import as_list, check_count, check_walk_gamma
from curious_explorer.worlds.policies import KnownPolicy, ObservationPolicy, as_table, check_any_policy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.targets import DEFAULT_TRIES
from curious_explorer.worlds.world import World

if TYPE_CHECKING:
    from curious_explorer.mdp.finite_mdp import FiniteMDP


FIXED_WEIGHTINGS = ("average", "last")
"""Those whose shares depend on nothing that was measured."""
WEIGHTINGS = (*FIXED_WEIGHTINGS, "spread", "recent")
RHO_WEIGHT = 0.5
"""How much of each mu_n is the start distribution: the paper's 1/2, on which its constants depend."""


MOST_STATES = 20_000
"""So many seen states are plenty to choose a few dozen shares by: of more, evenly spaced ones are taken."""
MOST_UPDATES = 200
TOLERANCE = 1e-4
"""At the best shares no round gains: the mean ratio is 1 for every round with a share, and at most 1 for the others.
No mixture is nearer to the uniform distribution than this one by more than the largest ratio's excess over 1."""


LEAST_SHARE = 1e-4
"""Rounds that would be drawn less often than this, beside the one drawn most often, are not drawn at all."""
MOST_LINKS = 30
"""Longer chains have a probability below one in a thousand million, and a hundred rounds would have thousands."""


class ResetModel:
    """A chain of policies as a distribution over states that can be sampled by restart and step.

    Args:
        policies: pi_0, ..., pi_N, each of shape (S, A), or one that sees observations; pi_0 must be a table. There may
            be none where there is a choice of states.
        gamma: the discount of the walks.
        weighting: "average" (the default), "last" (the paper's mu_N), "spread" (over as much as possible of what was
            seen) or "recent" (half of that and half of the last round); the last two need ``visited``.
        visited: D_0, D_1, ... as they were measured, each of shape (S,); fewer than there are policies if the last ones
            were not. A reset model from `explore` has them.
        discretisation: which observations the states are and which actions the numbers mean, where that needs saying:
            for a reset model of a `GymWorld`, its ``stored_discretisation()``.
        chained: whether D_i is walked from mu_{i-1}, as in Algorithm 2, or from rho.
        model: what was counted, for resets to chosen states.
        choice: the states to start in; then the policies are not walked.
    """

    def __init__(
        self,
        policies: Sequence[ArrayLike | ObservationPolicy] = (),
        *,
        gamma: float,
        weighting: str = "average",
        visited: Sequence[ArrayLike] | Floats = (),
        discretisation: StoredDiscretisation | None = None,
        chained: bool = True,
        model: CountedModel | None = None,
        choice: StateChoice | None = None,
    ) -> None:
        if choice is not None and model is None:
            raise ValueError("a choice of states needs a counted model, by which to go there; got none")
        policies = as_list(policies, "policies", "policies")
        if len(policies) == 0 and choice is None:
            raise ValueError("a reset model needs at least one policy, or a choice of states; got none")
        if weighting not in WEIGHTINGS:
            raise ValueError(f"weighting is {weighting!r}, expected one of {', '.join(map(repr, WEIGHTINGS))}")
        if len(policies) > 0 and isinstance(policies[0], ObservationPolicy):
            raise ValueError(
                "policy 0 sees observations, expected a table (S, A): exploration begins with the uniform one"
            )
        first: Any = policies[0] if len(policies) > 0 else None
        shape: tuple[int, ...] = np.shape(first) if model is None or first is not None else model.shape
        if len(shape) != 2:
            raise ValueError(f"policy 0 has shape {shape}, expected (S, A)")
        if model is not None and model.shape != shape:
            raise ValueError(f"the counted model has shape {model.shape}, but the policies have {shape}")
        self._shape = (shape[0], shape[1])
        self._policies = tuple(
            check_any_policy(policy, *self._shape, name=f"policy {index}") for index, policy in enumerate(policies)
        )
        self._discretisation = discretisation
        self._gamma = check_walk_gamma(gamma)
        self._visited = _check_visited(visited, len(policies), int(shape[0]))
        if weighting not in FIXED_WEIGHTINGS and len(self._visited) == 0:
            raise ValueError(
                f'weighting "{weighting}" needs the visits of the rounds, and this reset model has none; take the one '
                "that explore returned or saved, or give visited="
            )
        self._weighting = weighting
        self._chained = bool(chained)
        self._model, self._choice = model, choice
        self._chosen = None if choice is None or model is None else ChosenStates(model, choice)

    @property
    def policies(self) -> tuple[KnownPolicy, ...]:
        """pi_0, ..., pi_N."""
        return self._policies

    @property
    def discretisation(self) -> StoredDiscretisation | None:
        """Which observations the states are and which actions the numbers mean; None for the states of a finite MDP."""
        return self._discretisation

    @property
    def gamma(self) -> float:
        """The discount of the walks."""
        return self._gamma

    @property
    def weighting(self) -> str:
        """How rounds are weighed: "average", "last", "spread" or "recent"; or what the choice of states is called."""
        return self._weighting if self._choice is None else self._choice.name

    @property
    def model(self) -> CountedModel | None:
        """What was counted, for resets to chosen states, or None."""
        return self._model

    @property
    def choice(self) -> StateChoice | None:
        """The states to start in; None if policies are walked."""
        return self._choice

    @property
    def chosen(self) -> ChosenStates | None:
        """The choice on the counted model: arrival probabilities, limits and chains; None if policies are walked."""
        return self._chosen

    @property
    def chained(self) -> bool:
        """Whether each policy is walked from where the ones before it lead, and not from the start."""
        return self._chained

    @property
    def visited(self) -> Floats:
        """D_0, D_1, ... as they were measured, shape (rounds, S); no rows if they are not known."""
        return self._visited

    @cached_property
    def shares(self) -> Floats:
        """How much of what is walked falls to D_0, ..., D_N, shape (N + 1,)."""
        count = len(self._policies)
        if self._weighting in FIXED_WEIGHTINGS:
            return fixed_shares(count, self._weighting)
        spread = np.concatenate([spread_shares(self._visited), np.zeros(count - len(self._visited))])
        return spread if self._weighting == "spread" else 0.5 * spread + 0.5 * fixed_shares(count, "last")

    @property
    def num_states(self) -> int:
        """How many states the world has that this was made for."""
        return int(self._shape[0])

    @property
    def num_actions(self) -> int:
        """How many actions the world has that this was made for."""
        return int(self._shape[1])

    def weighted(
        self,
        weighting: str | ArrayLike | Mapping[int | str, float],
        *,
        start_share: float = START_SHARE,
        limit: int | None = None,
        tries: int = DEFAULT_TRIES,
        least_arrival: float = LEAST_ARRIVAL,
    ) -> ResetModel:
        """The same resets, weighed in another way.

        Args:
            weighting: "average", "last" or "recent", over rounds; "spread", over what was seen; on a counted model also
                "uniform", "near the reward" or "frontier" (see `chosen_states.named_weights`), or weights of states,
                as an array of shape (S,) or by state. "spread" is over rounds where their visits were measured, and
                else over levels of distance from the start.
            start_share: how much of the mixture stays the world's own start, in resets to states.
            limit: after how many steps a try to reach a state is given up.
            tries: how many tries in a row may fail to arrive before that is an error.
            least_arrival: named weightings leave out states that are reached less often than this.
        """
        name = weighting if isinstance(weighting, str) else "given"
        of_rounds = name in (*FIXED_WEIGHTINGS, "recent") or (
            name == "spread" and (len(self._visited) > 0 or self._model is None)
        )
        if of_rounds or (isinstance(weighting, str) and name not in CHOSEN_WEIGHTINGS):
            return self._with(weighting=name)
        model = self._counted("weights of states")
        if isinstance(weighting, str):
            weights = named_weights(weighting, model, least_arrival)
        else:
            weights = given_weights(weighting, self.num_states, self._keys)
        return self._with(choice=StateChoice(name, weights, start_share, limit, tries))

    def to(self, state: int | str, *, limit: int | None = None, tries: int = DEFAULT_TRIES) -> ResetModel:
        """Resets to one state, or cell: rolls in until it arrives there.

        A roll-in looks where it is and acts by a plan on the counted model, step by step; it is never a list of actions
        that is played again. `arrivals` of what is returned says how likely it arrives, and in how many steps.

        Args:
            state: its number, or, of a cell that was discovered, its key.
            limit: after how many steps a try is given up; by default more than twice what it takes as a rule.
            tries: how many tries in a row may fail before that is an `ArrivalError`.

        Raises:
            UnreachableStateError: if the state was never met, or no way leads there any more.
        """
        model = self._counted("resets to a chosen state")
        number = state_number(state, self.num_states, self._keys)
        weights = np.zeros(model.num_states)
        weights[number] = 1.0
        return self._with(choice=StateChoice(f"to {number}", weights, 0.0, limit, tries))

    @property
    def arrivals(self) -> Arrivals:
        """How likely roll-ins arrive in the chosen states, or in all that can be reached, and in how many steps."""
        if self._chosen is not None:
            return self._chosen.arrivals()
        reaching = reaching_of(self._counted("arrivals"))
        return arrivals_table(reaching, np.flatnonzero(reaching.reachable), None)

    def _counted(self, purpose: str) -> CountedModel:
        if self._model is None:
            raise ResetModelError(
                f"{purpose}: this reset model has policies and no counted model; one that counts comes from an "
                "explorer that learns a model (R-MAX, MBIE-EB, PSRL, ...), from explore(world, ModelBased(), ...), or "
                "from ResetModel(..., model=...)"
            )
        return self._model

    @property
    def _keys(self) -> Sequence[str]:
        return () if self._discretisation is None else self._discretisation.discovered

    def _with(self, *, weighting: str | None = None, choice: StateChoice | None = None) -> ResetModel:
        return ResetModel(
            self._policies,
            gamma=self._gamma,
            weighting=self._weighting if weighting is None else weighting,
            visited=self._visited,
            discretisation=self._discretisation,
            chained=self._chained,
            model=self._model,
            choice=choice,
        )

    @cached_property
    def roll_in(self) -> RollIn:
        """How to reach a state by steps alone."""
        if self._chosen is not None:
            return self._chosen.roll_in()
        weights, chains = reset_chains(self.shares, chained=self._chained)
        return RollIn.mixture(self._policies, self._gamma, weights, chains)

    def sample(self, world: World, count: int) -> Indices:
        """``count`` states, by rolling in from the world's start; every step is counted in ``world.samples``."""
        self.check_world(world)
        return world.walk(self.roll_in, check_count(count, "count"))

    def distribution(self, mdp: FiniteMDP) -> Floats:
        """The exact distribution over states, for whoever has the MDP, shape (S,)."""
        if self._chosen is not None:
            self.check_world(mdp)
            return chosen_distribution(self._chosen, mdp)
        visited: Floats = self.shares @ np.array(exact_visits(self, mdp))
        return RHO_WEIGHT * mdp.start + (1.0 - RHO_WEIGHT) * visited

    def check_world(self, world: World | FiniteMDP) -> None:
        """Refuse a world with other spaces than this was made for."""
        if (world.num_states, world.num_actions) != (self.num_states, self.num_actions):
            raise ResetModelError(
                f"the reset model was made for {self.num_states} states and {self.num_actions} actions, but the world "
                f"has {world.num_states} and {world.num_actions}; explore this world to get a reset model for it"
            )
        found = world.stored_discretisation() if isinstance(world, World) else None
        if self._discretisation is not None and found is not None:
            self._discretisation.check_alike(found)

    def save(self, folder: str | Path) -> Path:
        """Write to a folder of JSON and ``.npz``, replacing a reset model that is already there, atomically."""
        return write_reset_files(
            folder,
            policies=self._policies,
            gamma=self._gamma,
            weighting=self._weighting,
            visited=self._visited,
            discretisation=self._discretisation,
            chained=self._chained,
            model=self._model,
            choice=self._choice,
        )

    @staticmethod
    def load(folder: str | Path, *, cell_function: Callable[[Any], Any] | None = None) -> ResetModel:
        """Read what `save` wrote; raises `ResetModelError` on anything else, and never unpickles.

        ``cell_function`` is the function that made the cells, where one did: code is not stored.
        """
        parts = read_reset_files(folder, cell_function)
        with reading(folder, ResetModelError, "a reset model"):
            return ResetModel(**parts)

    def __repr__(self) -> str:
        return (
            f"ResetModel({len(self._policies)} policies, num_states={self.num_states}, "
            f"num_actions={self.num_actions}, gamma={self._gamma}, weighting={self.weighting!r})"
        )


def fixed_shares(count: int, weighting: str) -> Floats:
    """The shares of ``count`` rounds: the same for each, or all for the last."""
    return np.full(count, 1.0 / count) if weighting == "average" else np.eye(count)[-1]


def reset_chains(shares: ArrayLike, *, chained: bool = True) -> tuple[Floats, Integers]:
    """1/2 rho + 1/2 (shares[0] D_0 + ... + shares[N] D_N), as weights (C,) and ranges of policies (C, 2)."""
    given = np.asarray(shares, dtype=np.float64)
    walked = np.flatnonzero(given > 0.0)
    parts = [visit_chains(int(last)) if chained else (np.ones(1), np.array([[last, last + 1]])) for last in walked]
    weights = [(1.0 - RHO_WEIGHT) * given[last] * weight for last, (weight, _) in zip(walked, parts, strict=True)]
    return np.concatenate([[RHO_WEIGHT], *weights]), np.concatenate([[[0, 0]], *(chain for _, chain in parts)])


def _check_visited(visited: Sequence[ArrayLike] | Floats, num_policies: int, num_states: int) -> Floats:
    if len(visited) == 0:
        return np.zeros((0, num_states))
    rounds = np.asarray(visited, dtype=np.float64)
    if rounds.ndim != 2 or rounds.shape[1] != num_states or len(rounds) > num_policies:
        raise ValueError(
            f"visited has shape {rounds.shape}, expected at most {num_policies} rows, one for each policy, of "
            f"{num_states} states"
        )
    if not (np.isfinite(rounds).all() and (rounds >= 0.0).all() and rounds.any(axis=1).all()):
        raise ValueError("visited must be shares of visits: finite, not negative, and not all zero in any round")
    return rounds


def visit_chains(last: int) -> tuple[Floats, Integers]:
    """D_last = visit(pi_last, mu_{last - 1}), as weighted chains that all end by walking pi_last.

    Walking starts at pi_j with probability rho_weight * (1 - rho_weight)**(last - j), and the rest starts at pi_0, or
    at the first policy that is not more than `MOST_LINKS` before the last.
    """
    earliest = max(0, last - MOST_LINKS)
    first = np.arange(last, earliest - 1, -1)
    left = (1.0 - RHO_WEIGHT) ** np.arange(len(first))
    weights = left * RHO_WEIGHT
    weights[-1] = left[-1]
    ranges: Integers = np.column_stack([first, np.full(len(first), last + 1)])
    return weights.astype(np.float64), ranges


def spread_shares(visited: Floats) -> Floats:
    """The shares with which starts are spread as widely as the policies allow; (rounds, S) gives (rounds,).

    The average of D_0, ..., D_N gives every round the same share, and rounds that went to the same places drown the few
    that reached the far ones. Here the shares w are chosen instead so that

        sum over seen states s of log(w_0 D_0(s) + ... + w_N D_N(s))

    is largest: of all mixtures, the one nearest to the uniform distribution on the states that were seen, by relative
    entropy. It is a concave problem, and expectation maximisation,

        w_i <- w_i * mean over seen s of D_i(s) / mixture(s),

    climbs it from the average without a step size, so what comes out is never less spread than the average.
    """
    seen = np.flatnonzero(visited.any(axis=0))
    chosen = visited[:, seen[:: -(-len(seen) // MOST_STATES)]]
    shares, quotients = np.full(len(visited), 1.0 / len(visited)), np.empty_like(chosen)
    for _ in range(MOST_UPDATES):
        ratios = np.add.reduce(np.divide(chosen, shares @ chosen, out=quotients), axis=1) / chosen.shape[1]
        if ratios.max() <= 1.0 + TOLERANCE:
            break
        shares *= ratios
    shares[shares < LEAST_SHARE * shares.max()] = 0.0
    spread: Floats = shares / shares.sum()
    return spread


def exact_visits(reset_model: ResetModel, mdp: FiniteMDP) -> list[Floats]:
    """D_0, ..., D_N for whoever has the MDP: the recursion of Algorithm 2, solved and not sampled."""
    from curious_explorer.exact.visitation import visitation

    reset_model.check_world(mdp)
    visits: list[Floats] = []
    mu = mdp.start
    for policy in reset_model.policies:
        table = as_table(policy, "an exact distribution")
        visits.append(visitation(mdp, table, gamma=reset_model.gamma, start=mu / mu.sum()))
        if reset_model.chained:
            mu = RHO_WEIGHT * mdp.start + (1.0 - RHO_WEIGHT) * visits[-1]
    return visits


def chosen_distribution(chosen: ChosenStates, mdp: FiniteMDP) -> Floats:
    """Where roll-ins to chosen states end, for whoever has the MDP: the mixture, given arrival."""
    share, *weights = chosen.chain_weights.tolist()
    mu: Floats = share * mdp.start
    for state, weight, arrival in zip(chosen.states, weights, exact_arrivals(chosen, mdp), strict=True):
        mu[state] += weight * arrival
    mu /= mu.sum()
    return mu


def exact_arrivals(chosen: ChosenStates, mdp: FiniteMDP) -> Floats:
    """The probabilities with which plans arrive in the chosen states of an MDP within their limits, shape (T,)."""
    from curious_explorer.models.reaching import arrival_of

    rows, starts = mdp.transitions, np.flatnonzero(mdp.start)
    indices, chances = rows.indices.astype(np.int64), np.array(rows.data, dtype=np.float64)
    row_start = rows.indptr.astype(np.int64)
    found = np.zeros(len(chosen.states))
    for index, state in enumerate(chosen.states):
        actions = chosen.targets.actions(index).copy()
        actions[mdp.terminal] = -1
        limit = int(chosen.targets.limits[index])
        found[index] = arrival_of(row_start, indices, chances, actions, starts, mdp.start[starts], state, limit)[0]
    return found
