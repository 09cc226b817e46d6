"""The command line: thin, no logic of its own."""

from curious_explorer.cli.app import main

__all__ = ["main"]
