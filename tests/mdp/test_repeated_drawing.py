"""Copies of a drawing show what the drawing shows, in other colours."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from curious_explorer.environments import combination_lock
from curious_explorer.mdp.drawing import draw_mdp
from curious_explorer.mdp.layout import layout_states
from curious_explorer.mdp.repeated_drawing import RepeatedDrawing


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(float)


def test_a_copy_looks_like_the_drawing_itself():
    mdp = combination_lock(3)
    values = np.linspace(0.0, 1.0, mdp.num_states)
    places = layout_states(mdp)
    drawn, copied = (Figure(figsize=(4.0, 2.4), dpi=150) for _ in range(2))
    ax = draw_mdp(mdp, ax=drawn.add_axes((0, 0, 1, 1)), values=values, colorbar=False, positions=places)
    fills = np.array([p.get_facecolor() for p in ax.patches if str(p.get_gid()).startswith("state-")])
    copy = RepeatedDrawing(mdp, (4.0, 2.4), 150.0, places)
    copy.draw(copied.add_axes((0, 0, 1, 1)), fills, title="")
    one, other = pixels(drawn), pixels(copied)
    assert np.abs(one - other).mean() < 1.5, "of 255; names are hinted differently"
    copied = Figure(figsize=(4.0, 2.4), dpi=150)
    copy.draw(copied.add_axes((0, 0, 1, 1)), fills[::-1], title="")
    assert np.abs(one - pixels(copied)).mean() > 5.0
