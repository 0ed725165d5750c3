# make demo   set up, train on the embedded corpus, translate a sentence
# make test   set up, run the default tests, in about four minutes
# make test-all   those that take long as well, before a change lands that touches many parts
# make coverage   all of them, and which lines they run
# make lint   style and types, as CI checks them
# make docs   the documentation site, in docs/_build/html
PYTHON ?= python3
BIN := .venv/bin
# Without caches each of the tests' processes compiles each module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all coverage lint docs configs sample
demo: .venv/ready
	$(BIN)/mt-train
	echo "I love you." | $(BIN)/mt-translate runs/sample
	@echo
	@echo 'The last line is its translation of "I love you." It knows the sentences of the embedded corpus and no others.'
	@echo "To go on: source .venv/bin/activate, and README.md, Your own text, in three commands"
	@echo "How it was trained, and what it gets wrong: runs/sample/report.html"

# worksteal: tests of one file stay in one process, so that what they share is made once.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

test: .venv/ready
	$(PYTEST)

test-all: .venv/ready
	$(PYTEST) -m "not gpu"

coverage: .venv/ready
	$(PYTEST) -m "not gpu" --cov=tolka --cov-report=term:skip-covered

lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src tests benchmarks scripts
	$(BIN)/mypy --strict data/sample/generator

# A second thread of the notebook's training spins where the cores have other work.
docs: export OMP_NUM_THREADS = 1
docs: .venv/docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@

# The YAML files from the dataclasses, the sample corpus from its grammar.
configs: .venv/ready
	$(BIN)/python scripts/write_configs.py

sample: .venv/ready
	$(BIN)/python data/sample/generator

.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tolka needs Python 3.11 or newer: make PYTHON=python3.11 demo")'
	@echo "installing tolka, torch and all else that it needs into .venv; this takes some minutes"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@
