"""The paper's experiments: an optimizer on an environment at a depth; which there are, and how they are run.

Four presets say how: the library's defaults, the same with everything fixed, and the paper's two, which its text and
its figures' file names tell apart.

| preset          | gamma                                                  | beta                          |
|-----------------|--------------------------------------------------------|-------------------------------|
| `tuned`         | 0.95                                                   | 1 / (2 |S|)                   |
| `fixed`         | 0.95                                                   | 1 / (2 |S|)                   |
| `paper-text`    | 0.95                                                   | 1 / (2 |S|)                   |
| `paper-figures` | 0.9; CCT20: REINFORCE 0.92, TRPO 0.96; TRPO DCL20 0.92 | CCT 1 / (4 d), DCL 1 / (12 d) |

`tuned` says nothing else: rounds, visits and learning end by themselves, as in `benchmarks.robustness`. `fixed` has as
many rounds as the environment is deep, and numbers of updates with which each optimizer converges.
(The comparison of REINFORCE on CCT10 was made with 1 / (12 d) = 0.0083, too.)
Both presets of the paper also take its schedule beta * n, its reset model mu_N, and 2,400 learning episodes. What the
paper does not say (updates in a round, step sizes, a critic) is as in ours, and action labels are permuted everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from curious_explorer import __version__
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.explorers.thresholds import Schedule, constant, default_beta, linear, paper_linear
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.studies.runner import MOST_RUNS
from curious_explorer.validation import check_count, check_name

ENVIRONMENTS: dict[str, Callable[..., FiniteMDP]] = {"cct": crossroad_traps, "dcl": combination_lock}
OPTIMIZERS: dict[str, type[TRPO] | type[Reinforce]] = {"reinforce": Reinforce, "trpo": TRPO}
DEPTHS = (5, 10, 20)
DEEPEST = 200
"""Beyond this an exact check of every round would take longer than the round."""
TITLES = {"cct": "Consecutive Crossroad Traps", "dcl": "Diabolical Combination Lock"}
OPTIMIZER_TITLES = {"reinforce": "REINFORCE", "trpo": "TRPO"}
PAPER_EPISODES = 2_400
"""The comparison figures' file names end in this; we read it as learning episodes."""
PAPER_UPDATES = PAPER_EPISODES // 50
FIGURE_GAMMA = 0.9
FIGURE_GAMMAS = {"cct/20/reinforce": 0.92, "cct/20/trpo": 0.96, "dcl/20/trpo": 0.92}
"""Where the figures' file names say something other than 0.9; for ``dcl/20/trpo`` only the comparison's does."""
FIGURE_BETAS = {"cct/10/reinforce": 1.0 / 120}
"""Where the comparison's file name says something other than the depth does: 0.0083, though its exploration's 0.025."""
SCHEDULES = {"constant": constant, "linear": linear, "paper": paper_linear}


@lru_cache(maxsize=64)
def _mdp(make: Callable[..., FiniteMDP], depth: int, seed: int) -> FiniteMDP:
    """The same object for all optimizers, so that what is found out about it is found once.

    Kept by what makes it, not by its name: another function under the same name is another MDP.
    """
    return make(depth, permute_actions=seed)


@dataclass(frozen=True)
class Experiment:
    """One experiment of the grid; its name, such as ``dcl/20/trpo``, is how results call it."""

    environment: str
    depth: int
    optimizer: str

    def __post_init__(self) -> None:
        check_name(self.environment, ENVIRONMENTS, "environment")
        check_name(self.optimizer, OPTIMIZERS, "optimizer")
        if check_count(self.depth, "depth", least=1) > DEEPEST:
            raise ValueError(f"depth is {self.depth}, expected at most {DEEPEST}")

    @property
    def name(self) -> str:
        """The experiment as a string id."""
        return f"{self.environment}/{self.depth}/{self.optimizer}"

    @property
    def title(self) -> str:
        """The experiment as the paper calls it, such as ``TRPO on DCL20``."""
        return f"{OPTIMIZER_TITLES[self.optimizer]} on {self.environment.upper()}{self.depth}"

    def mdp(self, seed: int) -> FiniteMDP:
        """The experiment's MDP; action labels are permuted from the seed."""
        return _mdp(ENVIRONMENTS[self.environment], self.depth, seed)

    def best_return(self, gamma: float) -> float:
        """The best return as the paper plots it: discounted on CCT, undiscounted on the lock, where it is 1.

        Every episode of the lock has the same length, so there the undiscounted return is the fraction of the best
        discounted one, too.
        """
        return float(gamma ** (self.depth - 1)) if self.environment == "cct" else 1.0


def grid(
    environments: Iterable[str] = ("cct", "dcl"),
    depths: Iterable[int] = DEPTHS,
    optimizers: Iterable[str] = ("reinforce", "trpo"),
) -> Iterator[Experiment]:
    """The experiments of a grid, by default the paper's twelve."""
    for optimizer, environment, depth in itertools.product(optimizers, environments, depths):
        yield Experiment(environment, depth, optimizer)


@dataclass(frozen=True, kw_only=True)
class ExperimentSettings:
    """How an experiment is run."""

    gamma: float
    rounds: int | None
    """None: until every state is well visited, or nothing new is reached."""
    exploring: TRPO | Reinforce
    learning: TRPO | Reinforce
    visits: int | None = 2_000
    """None: as many as the states ask for."""
    beta: float | None = None
    """None is the paper's 1 / (2 |S|)."""
    schedule: str = "linear"
    """``linear`` is beta * (n + 1), ``paper`` is beta * n, ``constant`` the default of `explore`."""
    learn_from: str = "average"
    """Which resets opt gets."""
    weighting: str = "average"
    """Which resets learning gets: the ``average`` of all rounds, the paper's ``last``, or the default ``spread``."""

    def __post_init__(self) -> None:
        check_name(self.schedule, SCHEDULES, "schedule")

    def beta_for(self, num_states: int) -> float:
        """beta, as a number."""
        return default_beta(num_states) if self.beta is None else self.beta

    def thresholds(self, num_states: int) -> Schedule | None:
        """beta_n; None is the default of `explore`, with which it ends when no state is poorly visited."""
        if self.schedule == "constant" and self.beta is None:
            return None
        return SCHEDULES[self.schedule](self.beta_for(num_states))


def tuned_settings(experiment: Experiment) -> ExperimentSettings:
    """The defaults of the library, which were chosen for problems of many kinds."""
    optimizer = OPTIMIZERS[experiment.optimizer]()
    return ExperimentSettings(
        gamma=0.95,
        rounds=None,
        exploring=optimizer,
        learning=optimizer,
        visits=None,
        schedule="constant",
        learn_from="recent",
        weighting="spread",
    )


def fixed_settings(experiment: Experiment) -> ExperimentSettings:
    """The text's gamma and beta, d rounds, and enough updates for the optimizer to converge.

    REINFORCE learns for longer than TRPO because its steps shrink with the probability of the states it improves.
    """
    return ExperimentSettings(
        gamma=0.95,
        rounds=experiment.depth,
        exploring=_optimizer(experiment, 60),
        learning=_optimizer(experiment, 100 if experiment.optimizer == "trpo" else 400),
    )


def paper_text_settings(experiment: Experiment) -> ExperimentSettings:
    """What the paper's text says."""
    return _paper_settings(experiment, gamma=0.95, beta=None)


def paper_figures_settings(experiment: Experiment) -> ExperimentSettings:
    """What the file names of the paper's figures say."""
    beta = 1.0 / ((4 if experiment.environment == "cct" else 12) * experiment.depth)
    return _paper_settings(
        experiment,
        gamma=FIGURE_GAMMAS.get(experiment.name, FIGURE_GAMMA),
        beta=FIGURE_BETAS.get(experiment.name, beta),
    )


PRESETS = {
    "tuned": tuned_settings,
    "fixed": fixed_settings,
    "paper-text": paper_text_settings,
    "paper-figures": paper_figures_settings,
}


def settings_of(preset: str, experiment: Experiment) -> ExperimentSettings:
    """The settings of an experiment in a preset."""
    return PRESETS[check_name(preset, PRESETS, "preset")](experiment)


def _paper_settings(experiment: Experiment, *, gamma: float, beta: float | None) -> ExperimentSettings:
    return ExperimentSettings(
        gamma=gamma,
        rounds=experiment.depth,
        exploring=_optimizer(experiment, PAPER_UPDATES),
        learning=_optimizer(experiment, PAPER_UPDATES),
        beta=beta,
        schedule="paper",
        learn_from="last",
        weighting="last",
    )


def _optimizer(experiment: Experiment, updates: int) -> TRPO | Reinforce:
    return TRPO(updates=updates) if experiment.optimizer == "trpo" else Reinforce(updates=updates)


class ExperimentJob(NamedTuple):
    """One run: an experiment with a seed, by a preset."""

    experiment: Experiment
    seed: int
    preset: str

    @property
    def key(self) -> tuple[Experiment, int]:
        """What tells this run from the others of its study."""
        return self.experiment, self.seed


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to run."""

    preset: str = "tuned"
    environments: tuple[str, ...] = tuple(ENVIRONMENTS)
    depths: tuple[int, ...] = DEPTHS
    optimizers: tuple[str, ...] = tuple(OPTIMIZERS)
    seeds: int = 10
    """How many; they are 0, 1, 2, ..."""

    def __post_init__(self) -> None:
        check_name(self.preset, PRESETS, "preset")
        check_count(self.seeds, "seeds", least=1)
        for name in ("environments", "depths", "optimizers"):
            given = getattr(self, name)
            if not given:
                raise ValueError(f"{name} is empty, expected at least one")
            if len(set(given)) != len(given):
                raise ValueError(f"{name} is {', '.join(map(str, given))}, expected each only once")
        many = len(self.experiments) * self.seeds  # every experiment checks its own name
        check_count(many, "the number of all runs", most=MOST_RUNS)

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, in the order of the paper."""
        return list(grid(self.environments, self.depths, self.optimizers))

    @property
    def jobs(self) -> list[ExperimentJob]:
        """All runs, the long ones first, so that none is left alone at the end."""
        experiments = sorted(self.experiments, key=lambda experiment: -experiment.depth)
        return [
            ExperimentJob(experiment, seed, self.preset) for experiment in experiments for seed in range(self.seeds)
        ]

    def described(self) -> dict[str, Any]:
        """Everything that the results depend on, as plain data."""
        return {
            "library": __version__,
            "preset": self.preset,
            "seeds": list(range(self.seeds)),
            "experiments": {
                experiment.name: asdict(settings_of(self.preset, experiment)) for experiment in self.experiments
            },
        }

    @property
    def command(self) -> str:
        """The command that does this study again."""
        words = ["curious-explorer reproduce", f"--preset {self.preset}", f"--seeds {self.seeds}"]
        given = {name: getattr(self, name) for name in ("environments", "depths", "optimizers")}
        words += [f"--{name} {','.join(map(str, of))}" for name, of in given.items() if of != getattr(Study, name)]
        return " ".join(words)
