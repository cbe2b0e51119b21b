# On a machine with Python 3.11 and make, each target sets up what it needs in a local virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test servers benchmark clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(STAMP)

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $(VENV)/.demo

# PostgreSQL and Java for the tests of the data layer; where they cannot be installed those tests say so and are skipped.
servers:
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && ! { ls /usr/lib/postgresql/*/bin/initdb && command -v java; } >/dev/null 2>&1; \
	then apt-get update -qq && apt-get install -y -qq postgresql openjdk-17-jre-headless >/dev/null; fi || true

test: $(STAMP) servers
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile

benchmark:
	test -d .venv-benchmark || $(PYTHON) -m venv .venv-benchmark
	.venv-benchmark/bin/python -m pip install --quiet --editable '.[data,estimators]' -r benchmarks/requirements.txt
	.venv-benchmark/bin/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-benchmark build *.egg-info
