# The habits of this project. Every target sets up what it needs; nothing is done twice.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
OUT    ?= runs
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-all lint format bench

demo: $(READY)            ## the quickstart study and its report
	@$(BIN)/penultimate run quickstart --out $(OUT)

test: $(READY)            ## every test but the long ones
	$(BIN)/python -m pytest -q -n 2 -m "not long"

test-all: $(READY)        ## every test
	$(BIN)/python -m pytest -q -n 2

lint: $(READY)            ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY)           ## our speed beside that of named peers, as ratios
	$(BIN)/python -m benchmarks

$(READY): requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (PyTorch among it: about two minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)
