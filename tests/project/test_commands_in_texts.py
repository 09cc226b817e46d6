"""Every command that a text of the repository shows can be given: command lines parse, and what they name is there.

Those that take no time are given here; ``python -m benchmarks.printed_commands`` gives all of them.
"""

import importlib.util
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.printed_commands import COMMANDS, benchmark_lines, given, printed
from curious_explorer.cli.app import app

SHOWN = sorted({(page, line) for page, lines in printed().items() for line in lines})
QUICK = sorted(
    {
        (page, line)
        for page, line in SHOWN
        if given(line)[0] in ("hardness", "plan") or {"--help", "--list"} & set(given(line))
    }
)


def test_commands_are_found():
    assert len(SHOWN) > 100
    assert len(QUICK) > 15


@pytest.mark.parametrize(("page", "line"), SHOWN)
def test_every_command_in_a_text_can_be_given(page, line):
    name, *words = given(line)
    assert name in COMMANDS, f"{page} shows the command {name!r}"
    if "--help" not in words:
        COMMANDS[name].make_context(name, words, resilient_parsing=False)


@pytest.mark.parametrize(("page", "line"), QUICK)
def test_commands_that_take_no_time_are_given(page, line):
    done = CliRunner().invoke(app, given(line))
    assert done.exit_code == 0, f"{page} shows {line}: {done.output[-500:]}"


@pytest.mark.parametrize(("page", "module", "rest"), benchmark_lines())
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
