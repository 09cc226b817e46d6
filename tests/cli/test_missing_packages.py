"""A package that only some parts need is named where it is missing, with what installs it, before work is done."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.argv = ["curious-explorer", *{words!r}]
from curious_explorer.cli.app import main

main()
"""
LEARNERS = ("stable_baselines3", "sb3_contrib", "torch")


@pytest.mark.parametrize(
    ("names", "line", "extra"),
    [
        (LEARNERS, "train CartPole-v1 --samples 300", "sb3"),
        (LEARNERS, "solve CartPole-v1 --samples 12000", "sb3"),
        (LEARNERS, "solve MountainCar-v0 --layouts 2 --samples 6000", "sb3"),
        (LEARNERS, "compare --environments CartPole-v1 --methods ppo --seeds 1 --samples 2000", "sb3"),
        (("plotly",), "reproduce --depths 2 --seeds 1", "report"),
        (("ray",), "reproduce --depths 2 --seeds 1 --executor ray", "ray"),
        (("tensorboard",), "explore dcl/2 --tensorboard logs", "tensorboard"),
        (("wandb",), "explore dcl/2 --wandb mine", "wandb"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(names, line, extra, tmp_path):
    told = run(names, line, tmp_path)
    assert told.returncode == 2, told.stderr
    assert "Traceback" not in told.stderr
    assert f"pip install '.[{extra}]'" in told.stderr
    left = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {".json"}, "at most what was asked for"


def test_minigrid_is_named_by_its_own_name(tmp_path):
    told = run(("minigrid",), "explore MiniGrid-Empty-5x5-v0 --samples 300", tmp_path)
    assert (told.returncode, "pip install minigrid" in told.stderr) == (2, True)


def test_a_missing_package_is_no_damaged_file(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    few = "--samples 300 --num-envs 2 --set n_steps=64 --evaluation-episodes 1"
    assert run((), f"train CartPole-v1 {few} --out run", tmp_path).returncode == 0
    told = run(LEARNERS, "play run", tmp_path)
    assert told.returncode == 2
    assert "pip install '.[sb3]'" in told.stderr
    assert "delete" not in told.stderr


def test_a_package_that_drawing_needs_is_named(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    pytest.importorskip("imageio_ffmpeg", reason="the extra report is not installed")
    few = "--samples 300 --num-envs 2 --set n_steps=64 --evaluation-episodes 1"
    assert run((), f"train FrozenLake-v1 {few} --out run", tmp_path).returncode == 0
    told = run(("pygame",), "play run --video", tmp_path)
    assert told.returncode == 2, told.stderr
    assert "cannot be drawn, because a package is missing: pygame is not installed" in told.stderr
    assert "mean return" in run(("pygame",), "play run", tmp_path).stdout


def run(names, line, folder):
    program = PROGRAM.format(names=tuple(names), words=line.split())
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder)
