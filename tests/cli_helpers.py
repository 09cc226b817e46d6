"""The command line as tests give it: in this process, and with what it printed."""

import sys

import pytest
from typer.testing import CliRunner

from curious_explorer.cli.app import app, main


def call(*words, code=0):
    """What a command prints that must end with this exit code."""
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def told(*words, code=0):
    """The same in one line, however wide the terminal is."""
    return " ".join(call(*words, code=code).split())


def refused(monkeypatch, capsys, *words):
    """What ``main`` prints about an error that users can mend; its exit code must be 2."""
    monkeypatch.setattr(sys, "argv", ["curious-explorer", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return message
