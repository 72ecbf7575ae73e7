PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint reference bench clean

demo: $(READY)          ## set up and run the main job: a network fitted from data, in a few seconds
	$(BIN)/suffice demo

test: $(READY) lint     ## set up and run everything that must hold
	$(BIN)/pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reference: $(READY)     ## check numbers of other programs on the tables beside the checkout (../shared)
	$(BIN)/pytest tests/shared

bench: $(READY)         ## speed and memory beside other programs; installs them
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/run.py

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
