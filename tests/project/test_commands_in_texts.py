"""Every command that a text of the repository shows can be given: command lines parse, and what they name is there."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from curious_explorer.cli.app import app

ROOT = Path(__file__).parents[2]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS += [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]
TEXTS += [*sorted((ROOT / "benchmarks").glob("*.py")), *sorted((ROOT / "notebooks").glob("*.ipynb"))]
COMMANDS = typer.main.get_command(app).commands
PLACES = r"(?<= )(?:[A-Za-z]|ID|RUN|DIR|PROJECT|FOLDER)(?= |$)|<[^>]*>"
"""Words that stand for what the reader gives."""
INCOMPLETE = ("MissingParameter", "BadOptionUsage")
"""Errors of the parser: `train --snapshots` in a sentence leaves out the rest, or an option's value."""


def command_lines(text):
    """Commands on lines of their own, and those within a sentence that are set as code."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        whole = re.match(r"^\s*(?:\$ )?(curious-explorer [a-z].*)$", line)
        if whole:
            yield re.split(r"\s+#|\s{3,}\(", whole[1])[0]
            continue
        yield from re.findall(r"`{1,2}(curious-explorer [a-z][^`]*)`", line)


SHOWN = sorted(
    {
        (path.relative_to(ROOT).as_posix(), line)
        for path in TEXTS
        if path.suffix != ".py" or path.parent.name != "cli"  # the commands' own texts have places filled in by them
        for line in command_lines(path.read_text(encoding="utf-8"))
    }
)


def test_commands_are_found():
    assert len(SHOWN) > 60


@pytest.mark.parametrize(("page", "line"), SHOWN)
def test_every_command_in_a_text_can_be_given(page, line):
    name, *words = shlex.split(re.sub(PLACES, "7", line).replace("[", "").replace("]", ""))[1:]
    assert name in COMMANDS, f"{page} shows the command {name!r}"
    command = COMMANDS[name]
    if not words or "..." in words or set(words) & {"--help"}:
        return
    options = [word for word in words if word.startswith("--")]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {option.partition("=")[0] for option in options} <= known, page
    try:
        command.make_context(name, list(words), resilient_parsing=False)
    except Exception as error:
        if type(error).__name__ not in INCOMPLETE:
            raise


BENCHMARKS = sorted(
    {
        (path.relative_to(ROOT).as_posix(), *found)
        for path in TEXTS
        for found in re.findall(r"python -m (benchmarks\.\w+)([^`\n\"\\]*)", path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize(("page", "module", "rest"), BENCHMARKS)
def test_every_benchmark_in_a_text_is_there_with_its_options(page, module, rest):
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"{page} names {module}"
    home = Path(spec.origin)
    files = home.parent.glob("*.py") if home.name == "__init__.py" else [home]
    source = "".join(path.read_text() for path in files)
    for name in re.findall(r"from (benchmarks\.\w+) import", source):  # its options may be those that it shares
        source += Path(importlib.util.find_spec(name).origin).read_text()
    for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest.partition("#")[0]):
        assert option in source, f"{page} gives {option} to {module}"
