"""How cells are run: our settings, and the paper's two, which its text and its figures' file names tell apart.

| preset          | gamma                                               | beta              |
|-----------------|-----------------------------------------------------|-------------------|
| `tuned`         | 0.95                                                | 1 / (2 |S|)       |
| `paper-text`    | 0.95                                                | 1 / (2 |S|)       |
| `paper-figures` | 0.9; CCT20: REINFORCE 0.92, TRPO 0.96; TRPO DCL20 0.92 | CCT 1 / (4 d), DCL 1 / (12 d) |

Both presets of the paper also take its schedule beta * n, its reset model mu_N, and 2,400 learning episodes. What the
paper does not say (updates in a round, step sizes, a critic) is as in ours, and action labels are permuted everywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from curious_explorer.explorers.thresholds import Schedule, default_beta, linear, paper_linear
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.studies.paper_grid import Cell, check_name

PAPER_EPISODES = 2_400
"""The comparison figures' file names end in this; we read it as learning episodes."""
PAPER_UPDATES = PAPER_EPISODES // 50
FIGURE_GAMMA = 0.9
FIGURE_GAMMAS = {"cct/20/reinforce": 0.92, "cct/20/trpo": 0.96, "dcl/20/trpo": 0.92}
"""Where the figures' file names say something other than 0.9; for ``dcl/20/trpo`` only the comparison's does."""
SCHEDULES = {"linear": linear, "paper": paper_linear}


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """How a cell is run."""

    gamma: float
    rounds: int
    exploring: TRPO | Reinforce
    learning: TRPO | Reinforce
    visits: int = 2_000
    beta: float | None = None
    """None is the paper's 1 / (2 |S|)."""
    schedule: str = "linear"
    """``linear`` is beta * (n + 1), ``paper`` is beta * n."""
    weighting: str = "average"
    """Which reset model opt and learning get: the ``average`` of all rounds, or the paper's ``last``."""

    def __post_init__(self) -> None:
        check_name(self.schedule, SCHEDULES, "schedule")

    def beta_for(self, num_states: int) -> float:
        """beta, as a number."""
        return default_beta(num_states) if self.beta is None else self.beta

    def thresholds(self, num_states: int) -> Schedule:
        """beta_n."""
        return SCHEDULES[self.schedule](self.beta_for(num_states))

    def described(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self)


def tuned_settings(cell: Cell) -> CellSettings:
    """Our settings: the text's gamma and beta, d rounds, and enough updates for the optimizer to converge.

    REINFORCE learns for longer than TRPO because its steps shrink with the probability of the states it improves.
    """
    return CellSettings(
        gamma=0.95,
        rounds=cell.depth,
        exploring=_optimizer(cell, 60),
        learning=_optimizer(cell, 100 if cell.optimizer == "trpo" else 400),
    )


def paper_text_settings(cell: Cell) -> CellSettings:
    """What the paper's text says."""
    return _paper_settings(cell, gamma=0.95, beta=None)


def paper_figures_settings(cell: Cell) -> CellSettings:
    """What the file names of the paper's figures say."""
    beta = 1.0 / ((4 if cell.environment == "cct" else 12) * cell.depth)
    return _paper_settings(cell, gamma=FIGURE_GAMMAS.get(cell.name, FIGURE_GAMMA), beta=beta)


PRESETS = {"tuned": tuned_settings, "paper-text": paper_text_settings, "paper-figures": paper_figures_settings}


def settings_of(preset: str, cell: Cell) -> CellSettings:
    """The settings of a cell in a preset."""
    return PRESETS[check_name(preset, PRESETS, "preset")](cell)


def _paper_settings(cell: Cell, *, gamma: float, beta: float | None) -> CellSettings:
    return CellSettings(
        gamma=gamma,
        rounds=cell.depth,
        exploring=_optimizer(cell, PAPER_UPDATES),
        learning=_optimizer(cell, PAPER_UPDATES),
        beta=beta,
        schedule="paper",
        weighting="last",
    )


def _optimizer(cell: Cell, updates: int) -> TRPO | Reinforce:
    return TRPO(updates=updates) if cell.optimizer == "trpo" else Reinforce(updates=updates)
