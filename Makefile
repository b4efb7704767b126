# Every target works as the first command on a machine with Python >= 3.11 and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
WORKERS ?= 2

# The papers' data sets, where the folder exists; the package itself knows no such path.
ifneq ($(wildcard ../shared/data),)
export DISCERNEL_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test test-oldest check format bench reproduce docs docs-check build clean
help:
	@echo "make demo    set up, then compare with forest, boosting and SVC; ends with a report"
	@echo "make test    set up, then run all tests"
	@echo "make test-oldest    run the tests with the oldest versions that it allows"
	@echo "make check   formatting, lint, types, spelling, layering"
	@echo "make bench   the measured claims of README and docs (needs DISCERNEL_DATA)"
	@echo "make reproduce    set up, then reproduce the papers' tables, three splits each"
	@echo "make docs    the documentation site, in build/docs; warnings are errors"
	@echo "make docs-check    links, search and accessibility of the built site, with pictures"
	@echo "make build   the sdist and the wheel, in dist/"
	@echo "make format  format all files"

$(VENV)/.app: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[app]"
	@touch $@

# Installing compiles the loops of discernel.arrays.loops, where there is a C compiler.
LOOPS := hatch_build.py $(wildcard src/discernel/arrays/loops/*.[ch])
$(VENV)/.dev: pyproject.toml reproduction/pyproject.toml $(LOOPS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]" -e reproduction
	@touch $@ $(VENV)/.app $(VENV)/.reproduction

$(VENV)/.docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@ $(VENV)/.app

demo: $(VENV)/.app
	$(BIN)/discernel demo

# One BLAS thread per worker: two workers with two threads each only get in each other's way.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# In an environment of its own, with the lowest versions of pyproject.toml. PyTorch, Dask and ONNX
# are left out, and what needs them is skipped; so are conic programs, whose last digits depend on
# the solver. What these versions say of newer ones of their own dependencies is no error.
OLDEST ?= .venv-oldest
OLDEST_TESTS := arrays bank default estimators inspection kernels papers plan programs \
  tables views
$(OLDEST)/.made: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check -c tests/oldest.txt -e ".[app,conic]" \
	  array-api-compat array-api-strict hypothesis mpmath polars pytest pytest-xdist python-flint pyyaml
	@touch $@

test-oldest: $(OLDEST)/.made
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n $(WORKERS) -m "not conic" \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning \
	  $(addprefix tests/,$(OLDEST_TESTS))

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell src tests reproduction benchmarks examples docs README.md CHANGELOG.md CONTRIBUTING.md
	$(BIN)/python -m pytest -q tests/test_layers.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	for script in speed prediction many_kernels convergence newton_against_sdp separability_default \
	  margin_cost cost_in_factorisations ridge_and_labels runner_overhead \
	  default_against_baselines default_against_peers quantiles prediction_sets default_cost iterative forecasts low_rank automatic streams cluster; do \
	  $(BIN)/python benchmarks/$$script.py || exit 1; done

$(VENV)/.reproduction: pyproject.toml reproduction/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e . -e reproduction
	@touch $@ $(VENV)/.app

# TABLES="kim2006-table1 fung2004" runs some of them, with all divisions of the papers.
TABLES ?= all --quick
reproduce: $(VENV)/.reproduction
	$(BIN)/discernel reproduce $(TABLES)

# GALLERY=0 leaves the stories unexecuted: pages in a third of the time.
GALLERY ?= 1
docs: $(VENV)/.docs
	rm -rf docs/api/generated build/docs/_modules  # pages of names that went
	$(BIN)/sphinx-build -W --keep-going -q -b html -D plot_gallery=$(GALLERY) docs build/docs
	@echo "written: build/docs/index.html"

# Needs Chromium, and a site that make docs built.
docs-check: $(VENV)/.docs
	$(BIN)/python docs/check_pages.py build/docs

# The wheel is for every machine: without compiled loops, which `pip install .` compiles.
build: $(VENV)/.dev
	DISCERNEL_COMPILED=0 $(BIN)/python -m build

clean:
	rm -rf $(VENV) $(OLDEST) build docs/gallery docs/api/generated dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
