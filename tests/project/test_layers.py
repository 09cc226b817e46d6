"""The architecture, checked: imports point one way, and learners never reach the transition matrix."""

import ast
from pathlib import Path

import curious_explorer

ROOT = Path(curious_explorer.__file__).parent

# From the bottom up: a package may import from itself and from those before it.
LAYERS = [
    "errors",
    "arrays",
    "compile",
    "optional_packages",
    "backends",
    "storage",
    "settings_description",
    "validation",
    "registration",
    "mdp",
    "environments",
    "exact",
    "worlds",
    "models",
    "resets",
    "learners",
    "explorers",
    "explorer",
    "baselines",
    "theory",
    "gym",
    "sb3",
    "gpu",
    "studies",
    "cli",
]
# Whoever lives here learns from restarts and steps alone.
LEARNERS = ["models", "resets", "learners", "explorers", "gym", "sb3"]
# Handed the model openly: that is what they are for.
GIVEN_THE_MODEL = {"learners/exact_planner.py", "resets/reset_model.py", "explorers/exact_visits.py"}
GIVEN_THE_MODEL |= {"gym/tabular_env.py"}  # no learner: the environment that a finite MDP is to Gymnasium
# Plan on a model that they have learned themselves, from counts.
PLANNING_ON_COUNTS = {"models/counted_model.py"}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if relative != Path("__init__.py"):
            yield relative, relative.parts[0].removesuffix(".py"), ast.parse(path.read_text())


def imported_layers(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "curious_explorer":
            yield from (alias.name for alias in node.names if alias.name != "__version__")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("curious_explorer."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("curious_explorer."))


def test_every_module_has_a_layer():
    assert {layer for _, layer, _ in modules()} <= set(LAYERS)


def test_imports_point_one_way():
    for path, layer, tree in modules():
        for other in imported_layers(tree):
            assert other in LAYERS, f"{path} imports {other}, which has no layer"
            assert LAYERS.index(other) <= LAYERS.index(layer), f"{path} imports {other}, which stands above it"


def test_learners_never_reach_the_transitions():
    forbidden = {"transitions", "transition_rewards", "dense_transitions", "successors", "_mdp", "_dynamics"}
    for path, layer, tree in modules():
        if layer in LEARNERS and path.as_posix() not in GIVEN_THE_MODEL | PLANNING_ON_COUNTS:
            used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not used & forbidden, f"{path} reaches {sorted(used & forbidden)}"
            assert "exact" not in set(imported_layers(tree)), f"{path} imports exact solvers"


def test_modules_stay_readable():
    for path, _, _ in modules():
        lines = len((ROOT / path).read_text().splitlines())
        assert lines <= 700, f"{path} has {lines} lines: two files in one?"
