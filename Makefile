PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest -n 2 --dist worksteal

.PHONY: demo test test-bounds fuzz lint reference bench clean

demo: $(READY)          ## set up and run the main job: a network fitted from data, in a few seconds
	$(BIN)/suffice demo

test: $(READY) lint     ## set up and run everything that must hold
	$(PYTEST)

# A kernel that leaves its arrays may go unnoticed for years, so every test runs once more with every index checked. All of them
# do, for most reach a kernel by some way; but the one that compiles all kernels twice over, to see what the cache keeps, says
# nothing about indices. Checked code must not meet other code in one cache, so it has its own.
test-bounds: $(READY)   ## run the tests with every index of every kernel checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba_bounds $(PYTEST) \
		--deselect tests/test_engines.py::test_warm_kernels_are_those_that_calls_use

fuzz: $(READY)          ## feed every reader of files with broken ones, ten times as many as the tests do, from a seed that it prints
	$(BIN)/python -m tests.fuzz

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reference: $(READY)     ## check numbers of other programs on the tables beside the checkout (../shared)
	$(PYTEST) tests/shared

bench: $(READY)         ## speed and memory beside other programs; installs them
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/run.py

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .numba_bounds
