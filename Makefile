# Every target builds the virtual environment by itself, from Python 3.11+, make and the package registry: of the demo
# what the demo needs, of all others everything.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready-
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check pinned bench fuzz fuzz-service pages examples docs docs-test dist install clean

demo: $(READY)demo  ## generate scenes, train, evaluate, index, search, report
	$(BIN)/diptych demo

test: $(READY)test  ## everything that needs no network, no real data and no GPU
	$(BIN)/python -m pytest -n 2 --dist loadscope

check: $(READY)dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

pinned: $(READY)test  ## compare the results of users' commands with the stored numbers, bit for bit
	$(BIN)/python -m pins --jobs 2

bench: $(READY)test  ## the figures of benchmarks/figures.md that are ratios in one run
	$(BIN)/python -m benchmarks

fuzz: $(READY)test  ## 2,000 corrupt inputs; failures are printed with the command that repeats them
	$(BIN)/python -m fuzz

fuzz-service: $(READY)test  ## 10,000 requests and 2,000 images that no client should send to a service of INDEX
	@test -d build/fuzz/schemathesis || $(PIP) --target build/fuzz schemathesis  # its plug-in of pytest is not for the tests
	PYTHONPATH=build/fuzz $(BIN)/python -m fuzz.service $(INDEX)

INDEX ?= demo/index-images-exact

pages: $(READY)test  ## every page in a browser: widths, light and dark, axe-core (needs Chromium and npm)
	$(PIP) playwright
	npm install --silent --prefix build/npm axe-core@4.14.1
	$(BIN)/python -m pytest -m slow tests/cli/test_pages.py tests/service/test_browser.py

examples: $(READY)test  ## every command of the README and of every help, every next step that verbs print, a study on two devices
	$(BIN)/python -m pytest -m slow tests/cli/test_examples.py tests/cli/test_hints.py tests/studies/test_runner.py

docs: $(READY)test  ## the documentation in build/site; notebooks run once and are kept (about five minutes)
	$(PIP) --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-test: $(READY)test  ## run the documentation's Python blocks, marked commands and notebooks
	$(BIN)/python -m pytest -m slow tests/test_docs.py

dist: $(READY)test  ## build wheel and sdist, install the wheel in a clean environment and run it
	$(BIN)/python -m pytest -m slow tests/test_install.py

install: $(READY)dev

# Measured with du on Linux. 4 GB of each are the CUDA libraries and Triton that torch from PyPI depends on there.
SIZE_demo := 6 GB
SIZE_test  := 8 GB
SIZE_dev   := 8 GB

$(READY)%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing diptych[$*] into $(VENV) (about $(SIZE_$*), one to three minutes) …"
	@$(PIP) --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build src/*.egg-info
