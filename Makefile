# The habits of this project. Every target sets up what it needs; nothing is done twice.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
OUT    ?= runs
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-all lint format bench reference

demo: $(READY)            ## the quickstart study and its report
	@$(BIN)/penultimate run quickstart --out $(OUT)

test: $(READY)            ## every test but the long ones
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not long"

test-all: $(READY)        ## every test
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

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

REFERENCE := src/penultimate/reference
STUDIES   := src/penultimate/studies
KEEP      := $(BIN)/penultimate keep --out $(OUT)

reference: $(READY)       ## every run that the package keeps, in the order of what they rest on: three hours
	$(BIN)/penultimate tune all --study rehearsal --out $(OUT)
	cp $(OUT)/studies/tune-rehearsal/chosen.py $(STUDIES)/chosen_quickstart.py
	$(KEEP) --study tune-rehearsal --to $(REFERENCE)/tune-rehearsal
	$(BIN)/penultimate tune all --study glyphs_search --out $(OUT)
	cp $(OUT)/studies/tune-glyphs_search/chosen.py $(STUDIES)/chosen_glyphs.py
	$(KEEP) --study tune-glyphs_search --to $(REFERENCE)/tune-glyphs_search
	$(BIN)/penultimate tune all --study glyphs_sweep_search --out $(OUT)
	$(KEEP) --study tune-glyphs_sweep_search --to $(REFERENCE)/tune-glyphs_sweep_search
	$(BIN)/penultimate run glyphs --out $(OUT)
	$(KEEP) --study glyphs --to $(REFERENCE)/glyphs

$(READY): requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (PyTorch among it: about two minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)
