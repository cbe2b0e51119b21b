# On a machine with Python 3.11 and make, each target sets up what it needs in a local virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# What `make check` runs: these, without the files that take more than ten seconds alone.
QUICK := src tests/architecture tests/core tests/exact_law tests/privacy
SLOW := tests/exact_law/test_affine.py tests/exact_law/test_affine_split.py tests/exact_law/test_box_tree.py \
	tests/exact_law/test_coins.py tests/exact_law/test_samplers.py tests/exact_law/test_vertex.py \
	tests/privacy/test_additivity.py tests/privacy/test_additivity_servers.py tests/privacy/test_neighbours.py
# What `make coverage` measures with; a part of it, such as `make coverage TESTS=tests/core`, for a quick look.
TESTS ?= tests src

.PHONY: demo docs lint check test additivity mutants servers coverage dist benchmark clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(STAMP)

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[cli,data]'
	touch $(VENV)/.demo

# A static site in site/ that asks no other host for anything; strict: a warning fails the build.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo 'Open site/index.html, or serve it: $(BIN)/python -m http.server -d site'

$(VENV)/.docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $(VENV)/.docs

# PostgreSQL and Java for the tests of the data layer, a browser for those of the page; where they cannot be installed those
# tests say so and are skipped.
servers:
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && ! { ls /usr/lib/postgresql/*/bin/initdb && command -v java && command -v chromium; } >/dev/null 2>&1; \
	then apt-get update -qq && { apt-get install -y -qq postgresql openjdk-17-jre-headless >/dev/null; apt-get install -y -qq chromium >/dev/null; }; fi || true

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples docs/hooks
	$(BIN)/ruff format --check src tests benchmarks examples docs/hooks
	$(BIN)/mypy

# Before a commit: about a minute on two cores, once mypy has its cache.
check: lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(addprefix --ignore=,$(SLOW)) $(QUICK)

test: lint servers
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# What a table contributes is the sum of what its rows contribute alone: 20,000 cases, and 500 on each server.
additivity: $(STAMP) servers
	EXPMECH_ADDITIVITY=long $(BIN)/python -m pytest -n 2 --dist loadgroup tests/privacy/test_additivity.py tests/privacy/test_additivity_servers.py

# Deliberate breakages, each of which some test must catch; a part of them: make mutants MUTANTS="--room coins".
mutants: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANTS)

coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup --cov=expmech --cov-report=term $(TESTS)
	@{ echo '# Coverage'; echo; \
	echo "The tests execute **$$($(BIN)/python -m coverage report --format=total) %** of the statements of \`src/expmech\`,"; \
	echo 'as measured by `make coverage TESTS="$(TESTS)"`. What runs in other processes is not counted.'; } > docs/coverage.md
	@cat docs/coverage.md

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build

benchmark:
	test -d .venv-benchmark || $(PYTHON) -m venv .venv-benchmark
	.venv-benchmark/bin/python -m pip install --quiet --editable '.[cli,data,estimators]' -r benchmarks/requirements.txt
	.venv-benchmark/bin/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-benchmark build dist site src/*.egg-info .coverage
