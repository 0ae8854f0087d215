# make demo, make test: nothing else is needed on a machine with Python 3.11, make and a package index.
# PYTHON=python3.12 chooses the interpreter. A second run installs nothing unless pyproject.toml changed.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install

.PHONY: demo test e2e lint bench clean
.DEFAULT_GOAL := test

# The stamps remember what was installed; the environment is made by the first that is missing.
.venv/made:
	@$(PYTHON) tools/venv.py .venv
	@touch $@

.venv/run: .venv/made pyproject.toml
	@echo "Installing funes into .venv (a minute or two the first time)"
	@$(PIP) -e .
	@touch $@

.venv/dev: .venv/made pyproject.toml
	@echo "Installing funes and the development tools into .venv (a few minutes the first time)"
	@$(PIP) -e '.[dev]'
	@touch .venv/run $@

# The tests that need the model are skipped without it; the next run tries again.
.venv/model: .venv/dev
	@if $(BIN)/funes models pull; then touch $@; else echo "Going on without the model; tests that need it are skipped."; fi

# Show the program on the example sessions, in a throw-away FUNES_HOME.
demo: .venv/run
	@bash tools/demo.sh

# Everything that must hold: linters, types, layers, tests.
test: lint .venv/model
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

# The real agents with a scripted model and no network. The first run installs 1.4 GB of programs into .cache/agents.
e2e: .venv/dev
	$(BIN)/python -m tests.e2e

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Sizes and speeds next to their targets, then every table of docs/benchmarks.md; half an hour on two quiet cores.
bench: .venv/dev
	$(BIN)/python bench/run.py

clean:
	rm -rf .venv build dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
