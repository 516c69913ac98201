# make demo       install what it runs, then run configs/quickstart.yaml; ends with the report's path
# make test       install the rest, then the fast tests
# make test-all   ... and the slow ones
# make test-changed ... only those that a change since BASE can touch
# make test-slurm ... those on a real Slurm alone, which is installed (Debian, as root)
# make lint       ruff and pyright
# make docs       install the extra `docs`, then build the documentation; ends with its path
# make looks      pictures of the page of every study, light, dark and on a phone, and one sheet of all
# make lock       write lock.txt: what would be installed here, with hashes (tools/lock.py)
# make clean      remove .venv and what tools left; runs/ stays
#
# PYTHON=python3.12   another interpreter
# PIP_ARGS=...        more for pip, e.g. an index that has torch without CUDA
# WORKERS=4           processes that run tests
# BASE=main           the commit since which `make test-changed` looks for changes
#
# Packages are installed by uv where it is on PATH, and by pip elsewhere.

PYTHON ?= python3
PIP_ARGS ?=
WORKERS ?= 2
BASE ?= main

BIN := .venv/bin
# What the demo runs is installed, and all that the tests need.
DEMO := .venv/demo
STAMP := .venv/installed

EXTRAS := bundled,tl,nnsight,notebook,judge,train,dev

# Without --no-compile pip would compile every file of every package, of which a run imports a tenth.
UV := $(shell command -v uv)
INSTALL = $(if $(UV),$(UV) pip install --python $(BIN)/python -q,$(BIN)/python -m pip install --no-compile --disable-pip-version-check -qq) $(PIP_ARGS) -c constraints.txt

.PHONY: demo test test-all test-changed test-slurm lint docs looks lock clean

demo: $(DEMO)
	@out=$$($(BIN)/faithscope run configs/quickstart.yaml) || exit $$?; \
	echo "report: $$(echo "$$out" | tail -n 1)/report.html"

# One thread for each worker: more threads than cores made the same work up to four times slower.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n $(WORKERS)

test-all: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

test-changed: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python tools/changed_tests.py $(BASE) -m "not slow" -n $(WORKERS)

test-slurm: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/experiments/engine/test_slurm.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# All pages are written (-a): the search forgets the index of those that are left as they were.
docs: $(STAMP)
	$(INSTALL) -e '.[docs]'
	$(BIN)/python -m sphinx -a -W --keep-going -q docs build/docs
	@echo "documentation: build/docs/index.html"

looks: $(STAMP)
	FAITHSCOPE_LOOKS=build/looks $(BIN)/python -m pytest -q tests/conformance/test_looks.py
	@echo "all pages: build/looks/sheet.png"

lock: $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check -q $(PIP_ARGS) --dry-run --ignore-installed --report .venv/report.json -c constraints.txt '.[$(EXTRAS)]'
	$(BIN)/python tools/lock.py .venv/report.json > lock.txt

# Stamps are written last, so that an installation cut short is done again. The pip that comes with
# Python 3.11 takes three times as long to find the same versions, hence pip itself first.
$(DEMO): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON) on PATH; install Python 3.11 or newer, or say make PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else "error: faithscope needs Python 3.11 or newer, $(PYTHON) is " + v + "; say make PYTHON=python3.11, or another")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "error: $(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(if $(UV),,$(INSTALL) pip)
	$(INSTALL) -e '.[bundled]'
	@touch $@

$(STAMP): $(DEMO)
	$(INSTALL) -e '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf .venv build dist docs/api docs/project docs/tutorials *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
