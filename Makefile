# Two commands: `make demo` runs a market, `make test` runs the tests. Each sets everything up by itself.
PYTHON ?= python3
BIN := .venv/bin
LOCKED := $(BIN)/python -m pip install --quiet --require-hashes
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test docs workbench bench figures notebooks schema lint lock licences coverage mutants dist clean

demo: .venv/ready
	$(BIN)/flmarket run scenarios/quickstart.toml

test: .venv/ready-dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

docs: .venv/ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The site is in site/. To read it: $(BIN)/python -m http.server --bind localhost --directory site"

workbench: .venv/ready
	$(BIN)/flmarket workbench

bench: .venv/ready-bench
	$(BIN)/python -m benchmarks

figures: .venv/ready
	$(BIN)/python analysis/error_by_budget.py

notebooks: .venv/ready-dev
	$(BIN)/python -m analysis.notebooks

schema: .venv/ready
	$(BIN)/flmarket validate --schema > scenarios/schema.json

# From here on: keeping the project in order (CONTRIBUTING.md, docs/testing.md).
lock: .venv/ready-dev
	$(BIN)/python -m upkeep.lock

licences: .venv/ready-dev
	$(LOCKED) --no-deps $(patsubst %,--requirement %,$(filter-out requirements-torch.lock,$(wildcard requirements*.lock)))
	$(BIN)/python -m upkeep.licences

coverage: .venv/ready-dev
	$(BIN)/python -m upkeep.coverage

mutants: .venv/ready-mutants
	$(BIN)/python -m upkeep.mutants

dist: .venv/ready
	$(BIN)/python -m upkeep.dist

# torch comes first and alone (CONTRIBUTING.md): the build that pip prefers here is checked against the hashes of all known builds of that
# version, and the last install adds what this build brings along. Both take wheels only: pip executes a source package before its hash is known.
.venv/ready: requirements.txt requirements.lock requirements-torch.lock pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip download --quiet --no-deps --only-binary :all: --dest .venv/torch `grep ^torch== requirements.txt`
	$(LOCKED) --no-deps --no-index --find-links .venv/torch --requirement requirements-torch.lock
	rm -r .venv/torch
	$(LOCKED) --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --only-binary :all: --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

.venv/ready-dev: .venv/ready requirements-dev.lock
	$(LOCKED) --no-deps --requirement requirements-dev.lock
	touch $@

.venv/ready-bench: .venv/ready requirements-bench.lock
	$(LOCKED) --requirement requirements-bench.lock
	touch $@

.venv/ready-mutants: .venv/ready-dev requirements-mutants.lock
	$(LOCKED) --requirement requirements-mutants.lock
	touch $@

lint: .venv/ready-dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

clean:
	rm -rf .venv runs build dist site *.egg-info
