"""Any finite MDP as a Gymnasium environment: discrete states and actions, text and pictures."""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count

HIGHLIGHT = "#2563eb"
PICTURE_DPI = 100


class TabularEnv(gymnasium.Env[np.int64, np.int64]):
    """A Gymnasium environment that walks a `FiniteMDP`.

    Observations are state numbers. An episode ends on entering a terminal state; episodes start in states drawn from
    the MDP's start distribution, restricted to states that are not terminal. Rewards are those of the MDP, in [0, 1].

    Args:
        mdp: what to walk.
        render_mode: None, ``"ansi"`` for a line of text or ``"rgb_array"`` for a picture of the graph.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's type)

    def __init__(self, mdp: FiniteMDP, render_mode: str | None = None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}, expected None, 'ansi' or 'rgb_array'")
        possible = np.where(mdp.terminal, 0.0, mdp.start)
        if possible.sum() <= 0.0:
            raise ValueError(
                "every state in which the MDP starts is terminal, so no episode could take a step; give it another "
                "start with mdp.with_start(...)"
            )
        self.mdp = mdp
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(mdp.num_states)
        self.action_space = spaces.Discrete(mdp.num_actions)
        self._starts = np.flatnonzero(possible)
        self._start_thresholds = np.cumsum(possible[self._starts]) / possible.sum()
        self._names = mdp.state_names if mdp.has_state_names else None
        self._state: int | None = None
        self._last_action: int | None = None
        self._last_reward = 0.0
        self._picture: _Picture | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start an episode in a state drawn from the start distribution."""
        super().reset(seed=seed)
        self._state = int(self._starts[_pick(self._start_thresholds, self.np_random.random())])
        self._last_action, self._last_reward = None, 0.0
        return np.int64(self._state), self._info()

    def step(self, action: np.int64 | int) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take an action; ``terminated`` says that a terminal state was entered."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("step was called before reset; call env.reset() first")
        action = check_count(action, "action")
        if action >= self.mdp.num_actions:
            raise ValueError(f"action is {action}, expected a whole number from 0 to {self.mdp.num_actions - 1}")
        rows = self.mdp.transitions
        row = self._state * self.mdp.num_actions + action
        begin, end = int(rows.indptr[row]), int(rows.indptr[row + 1])
        entry = begin + _pick(np.cumsum(rows.data[begin:end]), self.np_random.random())
        by_transition = self.mdp.transition_rewards
        reward = float(self.mdp.rewards[self._state, action] if by_transition is None else by_transition[entry])
        self._state, self._last_action, self._last_reward = int(rows.indices[entry]), action, reward
        return np.int64(self._state), reward, bool(self.mdp.terminal[self._state]), False, self._info()

    def render(self) -> str | NDArray[np.uint8] | None:
        """The current state as text or as a picture, whichever ``render_mode`` asks for."""
        if self.render_mode is None:
            spec_id = self.spec.id if self.spec is not None else "..."
            gymnasium.logger.warn(
                f"render was called without a render_mode; choose one: gymnasium.make({spec_id!r}, render_mode='ansi')"
            )
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("render was called before reset; call env.reset() first")
        if self.render_mode == "ansi":
            return self._text(self._state)
        if self._picture is None:
            self._picture = _Picture(self.mdp)
        return self._picture.of(self._state)

    def close(self) -> None:
        """Drop the picture."""
        self._picture = None

    def _info(self) -> dict[str, Any]:
        assert self._state is not None
        return {"state_name": self._names[self._state] if self._names is not None else str(self._state)}

    def _text(self, state: int) -> str:
        here = f"state {state}" + (f" ({self._names[state]})" if self._names is not None else "")
        here += ", terminal" if self.mdp.terminal[state] else ""
        if self._last_action is None:
            return f"start in {here}\n"
        done = f"action {self.mdp.action_names[self._last_action]}, reward {self._last_reward:g}"
        return f"{done}: {here}\n"


def make_tabular_env(environment: str, render_mode: str | None = None, **arguments: Any) -> TabularEnv:
    """One of `curious_explorer.environments` as a Gymnasium environment."""
    from curious_explorer.environments.environment_names import zoo_function
    from curious_explorer.registration import ZOO

    known = sorted({entry.function for entry in ZOO.values()})
    if environment not in known:
        raise ValueError(f"environment is {environment!r}, expected one of {', '.join(known)}")
    return TabularEnv(zoo_function(environment)(**arguments), render_mode=render_mode)


def _pick(thresholds: NDArray[np.float64], draw: float) -> int:
    """The first outcome whose cumulated probability exceeds the draw; the last one if sums round below 1."""
    return min(int(np.searchsorted(thresholds, draw, side="right")), len(thresholds) - 1)


class _Picture:
    """The drawing of an MDP, made once; only the ring around the current state is drawn anew."""

    def __init__(self, mdp: FiniteMDP) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.patches import Circle

        from curious_explorer.mdp.drawing import RADIUS, draw_mdp
        from curious_explorer.mdp.layout import layout_states

        self._positions = layout_states(mdp)
        self._axes = draw_mdp(mdp, positions=self._positions)
        figure: Any = self._axes.figure
        figure.set_dpi(PICTURE_DPI)
        self._canvas = cast(Any, FigureCanvasAgg(figure))  # its methods have no types
        self._canvas.draw()
        self._background = self._canvas.copy_from_bbox(figure.bbox)
        self._ring = Circle((0.0, 0.0), 1.12 * RADIUS, fill=False, edgecolor=HIGHLIGHT, linewidth=2.5, animated=True)
        self._axes.add_patch(self._ring)

    def of(self, state: int) -> NDArray[np.uint8]:
        """The picture with one state ringed, shape (height, width, 3)."""
        self._canvas.restore_region(self._background)
        self._ring.center = tuple(self._positions[state])
        self._axes.draw_artist(self._ring)
        return np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy()
