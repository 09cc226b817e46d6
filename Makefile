# Every target works on a bare clone: `setup` creates .venv from the pinned constraints.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint bench docs setup clean
.DEFAULT_GOAL := run

run: setup  ## the paper's experiments: table, figures, video and page in results/reproduction
	$(BIN)/curious-explorer reproduce --out results/reproduction --resume

test: lint  ## lint, types and the whole test suite
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## one table: ours against what a user would pick instead
	$(BIN)/python -m benchmarks.core

docs: setup
	$(BIN)/mkdocs build --strict

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "curious-explorer needs Python 3.11 or later, this is %s" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) results site .pytest_cache .mypy_cache .ruff_cache
