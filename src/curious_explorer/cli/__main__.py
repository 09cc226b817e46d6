"""``python -m curious_explorer.cli``: the command without its script."""

from curious_explorer.cli.app import main

if __name__ == "__main__":
    main()
