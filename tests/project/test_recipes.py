"""The recipes of the documentation: short, shown as they are, and run for real on a few steps."""

import ast
import importlib.util
import re
import runpy
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from curious_explorer import GridCells, GymWorld, ResetModel

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RECIPES = {"sb3_ppo": "stable_baselines3", "torch_loop": "torch", "tianshou_ppo": "tianshou"}
"""Each, and the package that it needs."""
MOST_LINES = 25


def code_lines(source):
    """Lines of code: neither blank, nor a comment, a docstring or an import."""
    tree = ast.parse(source)
    left_out = set()
    for node in ast.walk(tree):
        is_text = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(source.splitlines(), start=1)
    return [line for number, line in lines if number not in left_out and line.split("#")[0].strip()]


@pytest.fixture(scope="module")
def resets(tmp_path_factory):
    """A reset model of two policies, which nobody had to learn: they drive left, and right."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        world = GymWorld("goal_mountain_car:GoalMountainCar-v0", cells=GridCells(2, [-1.2, -0.07], [0.6, 0.07]))
    finally:
        sys.path.remove(str(EXAMPLES))
    drives = [np.tile(np.eye(3)[action], (4, 1)) for action in (0, 2)]
    visited = np.eye(world.num_states)[: len(drives)]  # told, not measured: all that counts is that recipes run
    model = ResetModel(drives, gamma=0.8, visited=visited, discretisation=world.stored_discretisation())
    return model.save(tmp_path_factory.mktemp("resets"))


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_short_and_the_documentation_shows_them_as_they_are(name):
    source = (EXAMPLES / f"{name}.py").read_text()
    lines = code_lines(source)
    assert 5 < len(lines) <= MOST_LINES, f"{name} has {len(lines)} lines of code"
    assert "RestartWrapper" in source
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "gymnasium.md").read_text(), flags=re.DOTALL)
    assert source in shown


@pytest.mark.parametrize(("name", "package"), RECIPES.items())
def test_recipes_run(name, package, resets, monkeypatch, capsys):
    pytest.importorskip("torch", reason="the extra sb3 is not installed")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed, which this recipe needs")
    import torch

    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(resets), "100"])
    monkeypatch.syspath_prepend(EXAMPLES)
    import goal_mountain_car

    monkeypatch.setattr(goal_mountain_car, "report", partial(goal_mountain_car.report, episodes=2))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other libraries, whose business they are
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    arrived, episodes, steps = map(int, re.findall(r"\d+", capsys.readouterr().out.splitlines()[-1]))
    assert 0 <= arrived <= episodes == 2
    assert 1 <= steps <= 200


@pytest.mark.slow
def test_the_dataset_recipe_runs_and_is_shown_as_it_is(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch", reason="the extra sb3 is not installed")
    pytest.importorskip("minari", reason="the extra minari is not installed")
    pytest.importorskip("minigrid", reason="the extra gym is not installed")
    source = (EXAMPLES / "minari_cloning.py").read_text()
    assert f"```python\n{source}```" in (ROOT / "docs" / "starts.md").read_text()
    monkeypatch.setattr(sys, "argv", ["minari_cloning.py", "8000"])
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, whose business they are
        runpy.run_path(str(EXAMPLES / "minari_cloning.py"), run_name="__main__")
    assert "the cloned policy returns 0.9" in capsys.readouterr().out
