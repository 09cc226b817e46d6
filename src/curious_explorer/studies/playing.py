"""Looking at what was learned: `load_policy` in one line, episodes played, and their video.

Works for what `solve` and `train` leave.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from curious_explorer.errors import CheckpointError
from curious_explorer.gym.agents import Agent, Played, play_episodes
from curious_explorer.gym.cells import Env
from curious_explorer.gym.checked_env import CheckedEnv
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.flat_actions import with_flat_actions
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.sb3.training import SETTINGS_FILE as TRAINING_FILE
from curious_explorer.sb3.training import load_trained, training_folder
from curious_explorer.studies.solve_files import SETTINGS_FILE as SOLVE_FILE
from curious_explorer.studies.solve_files import chosen_agent, kept_stages, open_agent, solve_folder
from curious_explorer.studies.solving_layouts import layouts_agent, layouts_summary
from curious_explorer.studies.video_file import video_file
from curious_explorer.validation import check_count, check_seed

FRAMES_A_SECOND = 15
MOST_FRAMES = 2_000


def load_policy(folder: str | Path, which: str = "best", *, deterministic: bool | None = None, seed: int = 0) -> Agent:
    """What `solve` or `train` has learned into a folder: ``load_policy(folder)(observation)`` is an action.

    Args:
        folder: of the run.
        which: of a training, "best", as it was when it was evaluated best, or "last". What `solve` hands out is the
            best of what it measured.
        deterministic: whether it takes the likeliest action instead of drawing one; as it was measured by default.
        seed: where draws come from.

    The model of Stable-Baselines3 lies beside it, in ``model.zip`` with ``vecnormalize.pkl``, for that library to load.
    """
    path = Path(folder)
    if (path / SOLVE_FILE).is_file():
        described = chosen_agent(path)
        if described["kind"] == "network" and which != "best":
            described = described | {"which": which}
        if described["kind"] == "network" and deterministic is not None:
            described = described | {"deterministic": deterministic}
        return open_agent(path, described, seed=seed)
    if (path / TRAINING_FILE).is_file():
        return load_trained(path, which, deterministic=deterministic, seed=seed)[0]
    if layouts_summary(path) is not None:
        return layouts_agent(path, deterministic=deterministic, seed=seed)
    raise CheckpointError(f"{path} holds no run of curious-explorer solve or train; name the folder of one")


def environment_of(folder: str | Path, **arguments: Any) -> Env:
    """The environment that a run was made in, in its layout; one that draws layouts if the run is about many."""
    path = Path(folder)
    many = layouts_summary(path)
    if many is not None:
        return make_by_id(many["environment"], **arguments)
    if (path / SOLVE_FILE).is_file():
        settings = solve_folder(path).settings()
        layout = (kept_stages(path) or {}).get("layout", {}).get("layout")
    else:
        settings = training_folder(path).settings()
        layout = settings.get("layout")
    return with_layout(with_flat_actions(make_by_id(settings["environment"], **arguments)), layout)


def draws_pictures(folder: str | Path) -> bool:
    """Whether the environment of a run can be filmed."""
    env = environment_of(folder)
    env.close()
    return "rgb_array" in (env.metadata.get("render_modes") or [])


def play(
    folder: str | Path,
    *,
    episodes: int = 5,
    seed: int = 0,
    video: str | Path | None = None,
    which: str = "best",
    deterministic: bool | None = None,
) -> Played:
    """Play a run's agent from the environment's own start; with ``video``, film it.

    Args:
        folder: of the run.
        episodes: how many.
        seed: of the first episode.
        video: a file that ends in ``.mp4``.
        which: see `load_policy`.
        deterministic: see `load_policy`.
    """
    check_count(episodes, "episodes", least=1)
    check_seed(seed)
    agent = load_policy(folder, which, deterministic=deterministic, seed=seed)
    if video is None:
        env = environment_of(folder)
        try:
            return play_episodes(env, agent, episodes, seed=seed)
        finally:
            env.close()
    if not draws_pictures(folder):
        raise ValueError(
            f"the environment of {folder} draws no pictures (its metadata lacks 'rgb_array'); leave --video out"
        )
    return film(environment_of(folder, render_mode="rgb_array"), agent, episodes, Path(video), seed=seed)


def film(env: Env, agent: Agent, episodes: int, path: Path, *, seed: int) -> Played:
    """Play episodes and film them, the first `MOST_FRAMES` steps; closes the environment."""
    shown, env = 0, CheckedEnv(env)
    try:
        env.reset(seed=seed)
        first: Any = env.render()
        if getattr(first, "ndim", 0) != 3:
            raise ValueError(f"the environment renders {type(first).__name__}, expected a picture (rgb_array)")
        with video_file(path, first.shape[1], first.shape[0], frames_a_second=FRAMES_A_SECOND) as write:

            def on_step(env: Env, returned: float) -> None:
                nonlocal shown
                if shown < MOST_FRAMES:
                    frame: Any = env.render()
                    write(frame)
                    shown += 1

            return play_episodes(env, agent, episodes, seed=seed, on_step=on_step)
    finally:
        env.close()
