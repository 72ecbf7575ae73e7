PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGE := $(VENV)/.package
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A test that hangs ends, with what all of its threads were doing; the longest takes a minute here.
STUCK := --timeout 900 --timeout-method thread
PYTEST := $(BIN)/pytest -n 2 --dist worksteal $(STUCK)
CHECKED := SUFFICE_COMPILE=now NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba_bounds

SPARK := .venv-spark
BROWSER := $(VENV)/.browser
NODE := web/node_modules/.ready

# Where the environment forbids Python to keep what it compiled, every process of the tests would compile all sources again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo explore web test test-bounds test-spark test-browser chromium java fuzz lint style types reference docs docs-open docs-pasted bench clean

demo: $(PACKAGE)        ## set up and run the main job: a network fitted from data, in a few seconds
	$(BIN)/suffice demo

explore: $(READY)       ## set up and open ALARM with a sample in the explorer
	$(BIN)/suffice sample alarm -n 5000 --seed 1 -o $(VENV)/alarm.csv
	$(BIN)/suffice explore alarm $(VENV)/alarm.csv

# What is built is committed, so that installing needs no node; the same sources give the same bytes.
web: $(NODE)            ## rebuild the explorer's page from web/; needs node 20
	cd web && npx tsc --noEmit && node build.mjs

$(NODE): web/package-lock.json
	@command -v npm > /dev/null || { echo "this needs node 20 and npm: apt-get install nodejs npm"; exit 1; }
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

# All kernels are compiled first, or each of the two processes of the tests would compile its own. Types and layers are checked
# beside the tests, on a processor that waits for the other at their beginning and end.
test: $(READY)          ## set up and run everything that must hold
	$(BIN)/suffice warm & warming=$$!; \
	$(MAKE) --no-print-directory style || { kill $$warming; exit 1; }; \
	wait $$warming
	$(MAKE) --no-print-directory types > $(VENV)/types.log 2>&1 & types=$$!; \
	$(PYTEST); tested=$$?; wait $$types; checked=$$?; cat $(VENV)/types.log; exit $$((tested + checked))

# A kernel that leaves its arrays may go unnoticed for years, so tests run once more with every index checked. Most reach a kernel by
# some way; those below call none at all (seen by a trace of all calls of kernels; of house/ all but test_fuzz.py by reading), and the
# one that looks at what the cache keeps says nothing about indices. Checked code must not meet other code in one cache, so it has its own, which is filled first, as above.
WITHOUT_KERNELS := numerics/exponential graphs $(addprefix formats/test_,bundled.py formats.py formats_files.py formats_hostile.py) \
	$(addprefix interfaces/explorer/test_,page.py security.py tables.py words.py) $(addprefix house/test_,behaviour.py fuzz.py house.py names.py types.py)
test-bounds: $(READY)   ## run the tests with every index of every kernel checked
	$(CHECKED) $(BIN)/suffice warm
	$(CHECKED) $(PYTEST) $(WITHOUT_KERNELS:%=--ignore=tests/%) \
		--deselect tests/engines/test_engines.py::test_warm_kernels_are_those_that_calls_use

# Spark's pandas is older than that of the other tests, so it has an environment of its own.
test-spark: java $(SPARK)/.ready ## run every learner on Spark; needs Java 17
	$(SPARK)/bin/python -m pytest $(STUCK) -o 'norecursedirs=shared .*' tests/spark

java:
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { echo "test-spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless"; exit 1; }

$(SPARK)/.ready: pyproject.toml
	test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[spark]" "hypothesis>=6.100" "pytest>=8.2" "pytest-timeout>=2.3"
	touch $@

# The browser is the system's own, never one that is fetched from elsewhere; axe-core, which looks for barriers, is among web/'s tools.
# A run of CI stood still in the middle of these tests: what fails runs once more, and the log keeps what the first run said.
test-browser: chromium $(BROWSER) $(NODE) docs-pasted ## use the explorer, reports and the site as a person does, in the system's Chromium; keeps screenshots
	$(BIN)/suffice warm
	$(PYTEST) tests/browser || { echo "once more, those that failed:"; $(PYTEST) --last-failed tests/browser; }

chromium:
	@command -v chromium > /dev/null || { echo "test-browser needs Chromium: it is installed now, by apt-get"; apt-get update --quiet && apt-get install --yes --quiet chromium; } \
		|| { echo "test-browser needs Chromium, which could not be installed here: apt-get install chromium"; exit 1; }

$(BROWSER): $(READY)
	$(PIP) -e ".[browser]"
	touch $@

fuzz: $(READY)          ## feed every reader of files with broken ones, forty times as many as the tests do, from a seed that it prints
	$(BIN)/python -m tests.fuzz

lint: style types       ## check how the sources are written, their types and their layers

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	$(BIN)/lint-imports

reference: $(READY)     ## check numbers of other programs on the tables beside the checkout (../shared)
	$(PYTEST) tests/shared

# Warnings are errors, and so is a cell that takes 20 seconds of the processor; what a browser would ask for, follow or read aloud is
# looked at afterwards.
docs: $(VENV)/.docs     ## build the site of the documentation: docs/_build/html/index.html
	$(BIN)/suffice warm
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 -d docs/_build/doctrees docs docs/_build/html
	PYTHONPATH=docs $(BIN)/python -m building.checks docs/_build/html

# The site shows what its kernel gave; a reader pastes the same lines into an interpreter.
docs-pasted: docs       ## paste the blocks of every page into a fresh interpreter, and compare with what the site shows
	PYTHONPATH=docs $(BIN)/python -m building.pasted docs/_build/cells

docs-open: docs         ## the same, and open it
	$(BIN)/python -m webbrowser -t "file://$(CURDIR)/docs/_build/html/index.html"

bench: $(READY)         ## speed and memory beside other programs; installs them
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/run.py

# The compiler comes first: kernels are compiled while the rest is installed.
define install
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) numba
	PYTHONPATH=src $(BIN)/python -m suffice.numerics.kernels & warming=$$!; $(PIP) -e "$(1)" && wait $$warming
endef

$(READY): pyproject.toml
	$(call install,.[dev])
	touch $(PACKAGE) $(READY)

$(VENV)/.docs: pyproject.toml
	$(call install,.[docs])
	touch $(PACKAGE) $@

$(PACKAGE): pyproject.toml
	$(call install,.)
	touch $(PACKAGE)

clean:
	rm -rf docs/_build $(VENV) $(SPARK) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .numba_bounds
