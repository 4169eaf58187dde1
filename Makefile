# Every target builds the virtual environment by itself, from Python 3.11+, make and the package registry.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.complete

.PHONY: demo test check pinned bench fuzz pages examples docs docs-test install clean

demo: $(STAMP)  ## generate scenes, train, evaluate, index, search, report
	$(BIN)/diptych demo

test: $(STAMP)  ## everything that needs no network, no real data and no GPU
	$(BIN)/python -m pytest -n 2 --dist loadscope

check: $(STAMP)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

pinned: $(STAMP)  ## hold what a user runs against the stored numbers, bit for bit
	$(BIN)/python -m pins --jobs 2

bench: $(STAMP)  ## the figures of benchmarks/figures.md that are ratios in one run
	$(BIN)/python -m benchmarks

fuzz: $(STAMP)  ## 2,000 damaged inputs; falls are printed with what repeats them
	$(BIN)/python -m fuzz

pages: $(STAMP)  ## every page in a browser: widths, light and dark, axe-core (needs Chromium and npm)
	npm install --silent --prefix build/npm axe-core@4.14.1
	$(BIN)/python -m pytest -m slow tests/cli/test_pages.py

examples: $(STAMP)  ## every command of the README and of every help, in a folder that holds what they name
	$(BIN)/python -m pytest -m slow tests/cli/test_examples.py

docs: $(STAMP)  ## the documentation in build/site; notebooks run once and are kept (about five minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-test: $(STAMP)  ## run what the documentation shows: Python blocks, marked commands, notebooks
	$(BIN)/python -m pytest -m slow tests/test_docs.py

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about 5 GB, one to three minutes) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build src/*.egg-info
