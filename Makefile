# Every target sets up .venv by itself; Python >= 3.11 and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench
DOCS := $(VENV)/.docs
WHEEL := $(VENV)/.wheel

.PHONY: demo test check unit slow mutants fuzz same-draws bench jumps tgp-reference docs experiment table wheel clean

# The installed metadata repeat the version in __init__.py; rows of experiments and reports ask for it there.
$(READY): pyproject.toml src/cadlag/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cadlag needs Python 3.11 or later: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,test]'
	@touch $@

$(BENCH): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,test,bench]'
	@touch $@

$(DOCS): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,test,docs]'
	@touch $@

$(WHEEL): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,test,wheel]'
	@touch $@

demo: $(READY)
	@$(BIN)/cadlag demo --out demo

test: check unit

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pydoclint --quiet src/cadlag

unit: $(READY)
	$(BIN)/pytest -m "not slow" -n 2 --dist worksteal

slow: $(READY)
	$(BIN)/pytest -m slow -n 2 --dist worksteal -rA

# Planted faults, each of which must fail a test: make mutants ONLY=nngp,storage JOBS=2
JOBS ?= 1

mutants: $(READY)
	$(BIN)/python -m tests.mutants --jobs $(JOBS) --only '$(ONLY)'

# Mutated tables and model files through the command: make fuzz CSV=50000 MODELS=20000 PROCESSES=200 SEED=7
CSV ?= 5000
MODELS ?= 2000
PROCESSES ?= 50
SEED ?= 0

fuzz: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore -m tests.fuzz --csv $(CSV) --models $(MODELS) \
		--processes $(PROCESSES) --seed $(SEED)

# Draws, predictions and files of this tree beside those of another revision, bit for bit:
# make same-draws BASE=v0.1.0 ONLY=network FRESH=1
BASE ?= HEAD
ONLY ?=
FRESH ?=

same-draws: $(READY)
	$(BIN)/python -m tests.same_draws --base $(BASE) --only "$(ONLY)" $(if $(FRESH),--fresh)

bench: $(BENCH)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks

JUMP_ROWS := experiments/jump_rows.jsonl

# The treed Gaussian process needs R with tgp (Debian: r-base-core r-cran-tgp), and is left out without.
jumps: $(BENCH)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.jumps --rows $(JUMP_ROWS) --jobs 2

# Installs R's tgp where it is missing and apt-get may be used, rewrites the frozen files in tests/reference with what it
# says on three simulations, and compares ours with it.
tgp-reference: $(READY)
	@Rscript -e "stopifnot(requireNamespace('tgp', quietly = TRUE))" >/dev/null 2>&1 || \
		{ command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y r-base-core r-cran-tgp; } || true
	$(BIN)/python -m benchmarks.tgp_reference
	$(BIN)/pytest -m "slow or not slow" tests/reference/test_tgp.py

docs: $(DOCS)
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

ROWS := src/cadlag/papers/loria2025/rows/tables.jsonl
PRINTED := src/cadlag/papers/loria2025/printed.csv

experiment: $(READY)
	for plan in kernel network baselines; do \
		$(BIN)/python -m cadlag.papers.experiment run experiments/$$plan.toml --rows $(ROWS) --jobs 2 || exit; done

table: $(READY)
	@$(BIN)/python -m cadlag.papers.experiment table --rows $(ROWS) --published $(PRINTED) --by data,method,configuration

# What a user would get: built, looked into, installed into an empty environment elsewhere, and used there.
wheel: $(WHEEL)
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist
	$(BIN)/python -m tests.wheel dist

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .same-draws
