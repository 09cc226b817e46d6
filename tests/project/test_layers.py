"""The architecture, checked: imports point one way and make no circle, learners never reach the transition matrix, and
names stand for one thing. Every module is looked at, those inside packages too, and so is every import, those inside
functions too; only imports for the type checker (``if TYPE_CHECKING``) are left out, because they never run."""

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import curious_explorer

PACKAGE = "curious_explorer"
ROOT = Path(curious_explorer.__file__).parent

# From the bottom up: a package may import from itself and from those before it. docs/architecture.md draws it.
LAYERS = [
    "errors",
    "arrays",
    "compile",
    "optional_packages",
    "backends",
    "storage",
    "folder_lock",
    "settings_description",
    "validation",
    "callbacks",
    "registration",
    "mdp",
    "environments",
    "exact",
    "worlds",
    "models",
    "resets",
    "learners",
    "explorers",
    "theory",
    "gym",
    "sb3",
    "gpu",
    "studies",
    "cli",
    # Addresses for users, from which nothing here imports.
    "explorer",
    "baselines",
]
# Whoever lives here learns from restarts and steps alone.
LEARNERS = ["models", "resets", "learners", "explorers", "gym", "sb3"]
# Handed the model openly: that is what they are for.
GIVEN_THE_MODEL = {"learners/exact_planner.py", "resets/reset_model.py", "explorers/exact_visits.py"}
GIVEN_THE_MODEL |= {"gym/tabular_env.py"}  # no learner: the environment that a finite MDP is to Gymnasium
# Plan on a model that they have learned themselves, from counts.
PLANNING_ON_COUNTS = {"models/counted_model.py"}
TRANSITIONS = {"transitions", "transition_rewards", "dense_transitions", "successors", "_mdp", "_dynamics"}
LONGEST_MODULE = 700


@cache
def modules():
    """Each module of the package by its full name, as a path from the root and a tree."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        parts = relative.with_suffix("").parts
        name = ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))
        found[name] = (relative.as_posix(), ast.parse(path.read_text()))
    return found


def imports(tree):
    """The modules of the package that a tree imports, anywhere but for the type checker."""
    unseen = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            unseen |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be read, and checked here"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in modules():
                    yield full
                elif node.module.split(".")[0] == PACKAGE:
                    yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE)


def layer_of(name):
    """The layer of a module; None for the package itself, which is all of them."""
    return name.split(".")[1] if "." in name else None


@cache
def graph():
    return {name: sorted(set(imports(tree)) - {name}) for name, (_, tree) in modules().items()}


def test_the_graph_sees_inside_packages_and_functions():
    """Three imports known by hand: within a package, inside a function, and for the type checker alone."""
    assert "curious_explorer.explorers.rounds" in graph()["curious_explorer.explorers.checkpoint"]
    assert "curious_explorer.mdp.drawing" in graph()["curious_explorer.mdp.finite_mdp"]
    assert "curious_explorer.mdp.finite_mdp" not in graph()["curious_explorer.mdp.drawing"]
    assert set().union(*graph().values()) <= set(modules())


def test_every_module_has_a_layer():
    assert {layer_of(name) for name in modules()} - {None} == set(LAYERS)


def test_imports_point_one_way():
    for name, others in graph().items():
        for other in others:
            if layer_of(name) is None or layer_of(other) is None:
                continue
            higher = LAYERS.index(layer_of(other)) > LAYERS.index(layer_of(name))
            assert not higher, f"{name} imports {other}, which stands above it"


def test_nothing_but_the_version_is_imported_from_the_package_itself():
    """Its names are for users; here each comes from the module in which it lives."""
    for name, (path, tree) in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == PACKAGE and layer_of(name) is not None:
                asked = {alias.name for alias in node.names if f"{PACKAGE}.{alias.name}" not in modules()}
                assert asked <= {"__version__"}, f"{path} imports {asked} from the package itself"


def test_modules_import_in_no_circle():
    try:
        list(TopologicalSorter(graph()).static_order())
    except CycleError as error:
        pytest.fail("a circle of imports: " + " <- ".join(error.args[1]))


def test_learners_never_reach_the_transitions():
    for name, (path, tree) in modules().items():
        if layer_of(name) in LEARNERS and path not in GIVEN_THE_MODEL | PLANNING_ON_COUNTS:
            used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not used & TRANSITIONS, f"{path} reaches {sorted(used & TRANSITIONS)}"
            below = {layer_of(other) for other in graph()[name]} & {"mdp", "exact"}
            assert not below, f"{path} imports {below}: only who is given the model may"


def test_those_who_may_reach_the_transitions_exist():
    assert {path for path, _ in modules().values()} >= GIVEN_THE_MODEL | PLANNING_ON_COUNTS


def test_a_file_name_means_one_thing():
    names = Counter(Path(path).name for path, _ in modules().values())
    twice = [name for name, times in names.items() if times > 1 and name not in ("__init__.py", "__main__.py")]
    assert not twice, f"more than one module is called {twice}"


def test_types_of_arrays_are_named_in_one_place():
    aliases = {node.target.id for node in modules()[f"{PACKAGE}.arrays"][1].body if isinstance(node, ast.AnnAssign)}
    assert "Floats" in aliases
    for path, tree in modules().values():
        for node in tree.body if path != "arrays.py" else ():
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                value = ast.unparse(node.value)
                assert "NDArray[" not in value, f"{path} names a type of array: {ast.unparse(node)}"
                assert value not in aliases, f"{path} gives a type of array another name: {ast.unparse(node)}"


def test_modules_stay_readable():
    for path, _ in modules().values():
        lines = len((ROOT / path).read_text().splitlines())
        assert lines <= LONGEST_MODULE, f"{path} has {lines} lines: two files in one?"
