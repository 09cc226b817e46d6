# Every target works on a bare clone. .venv is made from the pinned constraints in two steps: `run` stops at what the
# reproduction imports, everything else needs the rest too (PyTorch, Ray, MkDocs, ...), which is twenty times as large.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint bench bounds trust docs setup locked lock sbom release-check release-check-linked clean
.DEFAULT_GOAL := run

run: $(VENV)/.ready-run  ## the paper's experiments: table, figures, video and page in results/reproduction
	$(BIN)/curious-explorer reproduce --out results/reproduction --resume

test: lint  ## lint, types and the whole test suite
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## one table: ours against what a user would pick instead
	$(BIN)/python -m benchmarks.core

bounds: setup  ## the tests with every index of compiled code checked; slow
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.bounds_cache $(BIN)/python -m pytest -m "not slow"

trust: setup  ## a million damaged files, commands stopped at every file operation, at random and by each other, odd calls, a soak; hours
	$(BIN)/python -m benchmarks.fuzz --inputs 1000000
	$(BIN)/python -m benchmarks.crashes
	$(BIN)/python -m benchmarks.random_kills
	$(BIN)/python -m benchmarks.two_writers
	$(BIN)/python -m benchmarks.odd_calls
	$(BIN)/python -m benchmarks.soak

docs: setup
	$(BIN)/mkdocs build --strict

release-check: setup  ## build, twine, and the README's ten lines in an empty environment, from the index
	$(BIN)/python scripts/release_check.py

release-check-linked: setup  ## the same without a download: what the package asks for is linked from .venv
	$(BIN)/python scripts/release_check.py --linked

locked:  ## as setup, in a new .venv, and nothing but PyTorch is installed whose hash is not in requirements.lock
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(PIP) --no-build-isolation -e '.[dev]'
	$(BIN)/python -m pip check
	touch $(VENV)/.ready-run $(VENV)/.ready

lock: setup  ## requirements.lock anew, after constraints.txt: make lock INDEX=<the address of an index's simple pages>
	$(BIN)/python scripts/lock.py --index $(INDEX)

sbom: setup  ## licences of what is installed, and a bill of materials in results/sbom.json
	$(BIN)/python -m benchmarks.supply_chain --sbom results/sbom.json

setup: $(VENV)/.ready  ## everything: what users may want, and what development needs

PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

$(VENV)/.ready-run: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "curious-explorer needs Python 3.11 or later, this is %s" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[report]'
	touch $@

$(VENV)/.ready: $(VENV)/.ready-run
	$(PIP) -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) results site .pytest_cache .mypy_cache .ruff_cache
