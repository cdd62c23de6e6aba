# Two commands: `make demo` runs a market, `make test` runs the tests. Each sets everything up by itself.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test bench figures schema lint clean

demo: .venv/ready
	$(BIN)/flmarket run scenarios/quickstart.toml

test: .venv/ready-dev lint
	$(BIN)/python -m pytest

bench: .venv/ready-bench
	$(BIN)/python -m benchmarks

figures: .venv/ready
	$(BIN)/python analysis/error_by_budget.py

schema: .venv/ready
	$(BIN)/flmarket validate --schema > scenarios/schema.json

.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

.venv/ready-dev: .venv/ready requirements-dev.txt
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt
	touch $@

.venv/ready-bench: .venv/ready requirements-bench.txt
	$(BIN)/python -m pip install --quiet --requirement requirements-bench.txt
	touch $@

lint: .venv/ready-dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

clean:
	rm -rf .venv runs build dist *.egg-info
