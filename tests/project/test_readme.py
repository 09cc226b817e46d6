"""The README tells the truth: its example runs as printed, and the files and modules it names exist."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    example, _ = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "samples in all" in capsys.readouterr().out
    assert (tmp_path / "lock-resets" / "reset_model.json").is_file()
    best = names["trained"].evaluation.value / (0.05 * 0.95**20)  # the optimal value of the lock, in closed form
    assert best > 0.95


def test_the_gymnasium_example_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, example = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    quicker = example.replace("samples=60_000", "samples=6_000")
    assert quicker != example, "the example's size has other names now"
    names = {}
    exec(compile(quicker, "README.md", "exec"), names)
    assert names["info"]["roll_in_steps"] >= 0
    assert names["exploration"].discretisation.environment == "MountainCar-v0"


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_modules_and_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake (\w+)\b", README)) - {"it"}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for module in set(re.findall(r"python -m ([\w.]+)", README)):
        assert importlib.util.find_spec(module) is not None, module
