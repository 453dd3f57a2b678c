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

REFERENCE := src/penultimate/reference
STUDIES   := src/penultimate/studies
KEEP      := $(BIN)/penultimate keep --out $(OUT)
SHORT := alpha=0.05,0.1,0.2 lambda_final=1e-4,3e-4,9e-4 keep=0.8,0.9,0.95 beta=1e-3,3e-3,9e-3 \
  logit_norm.temperature=0.05,0.08,0.12 cosine_softmax.temperature=0.06 cosine_softmax.scale=0.25,0.5,1 \
  kappa=9 target=10 squared_error.scale=0.5,1,2
LONG := alpha=0.05,0.1,0.2 lambda_final=3e-5,1e-4,3e-4 keep=0.9,0.95,0.975 beta=1e-3,2e-3,4e-3 \
  logit_norm.temperature=0.03,0.045,0.07 cosine_softmax.temperature=0.06 cosine_softmax.scale=0.5,1,2 \
  kappa=9 target=10 squared_error.scale=0.25,0.5,1
SWEEP := temperature=0.05 scale=0.05 recipe.learning_rate=1.2,2.4,4.8

reference: $(READY)       ## every run that the package keeps, in the order of what they rest on: three hours
	$(BIN)/penultimate tune all --study rehearsal --budget 4 $(SHORT:%=--grid %) --out $(OUT)
	cp $(OUT)/studies/tune-rehearsal/chosen.py $(STUDIES)/chosen.py
	$(KEEP) --study tune-rehearsal --to $(REFERENCE)/tune-rehearsal
	$(BIN)/penultimate tune all --study glyphs_search --budget 3 $(LONG:%=--grid %) --out $(OUT)
	cp $(OUT)/studies/tune-glyphs_search/chosen.py $(STUDIES)/chosen_glyphs.py
	$(KEEP) --study tune-glyphs_search --to $(REFERENCE)/tune-glyphs_search
	$(BIN)/penultimate tune 'cosine_softmax(temperature=0.05, scale=0.05)' --study glyphs_search \
	  --set name=glyphs_sweep_search --budget 4 $(SWEEP:%=--grid %) --out $(OUT)
	$(KEEP) --study tune-glyphs_sweep_search --to $(REFERENCE)/tune-glyphs_sweep_search
	$(BIN)/penultimate run glyphs --out $(OUT)
	$(KEEP) --study glyphs --to $(REFERENCE)/glyphs

$(READY): requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (PyTorch among it: about two minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)
