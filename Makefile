# The habits of this project. Every target sets up what it needs; nothing is done twice.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3 python; do \
            $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo $$name && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TESTS  := $(VENV)/.tests
OUT    ?= runs
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Compiled modules are kept: else each of the many processes compiles the package and the tests again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all lint format docs bench example portraits searches parts reference

demo: $(READY)            ## three objectives, three draws, a verdict, and the report
	@$(BIN)/penultimate run quickstart --out $(OUT)

test: $(TESTS)            ## every test but the long ones
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not long"

test-all: $(TESTS)        ## every test
	CHECK_EVERY_SHAPE=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

lint: $(TESTS)            ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(TESTS)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/.docs       ## the numbers that pages quote, and the site in build/docs/html, without a network
	$(BIN)/python -m docs.quotes
	$(BIN)/python -m docs.site build/docs

$(VENV)/.docs: requirements-docs.lock $(TESTS)
	@$(BIN)/python -m pip install --quiet --requirement requirements-docs.lock
	@touch $@

bench: $(TESTS)           ## our speed beside that of named peers, as ratios
	$(BIN)/python -m benchmarks

example: $(READY)         ## the two networks of `penultimate evaluate --example`, trained again: three minutes
	$(BIN)/penultimate run quickstart --only softmax,squared_error --seeds 0 --set measure=accuracy --out $(OUT)/example
	$(BIN)/python -m penultimate.evaluation.example $(OUT)/example

REFERENCE := src/penultimate/paper/reference
KEEP      := $(BIN)/penultimate keep --out $(OUT)
SEARCHES  := matched_search matched_search_scaled matched_sweep_search
PARTS     := glyphs_first shared_classes glyphs_second glyphs_third glyphs_one_draw glyphs_temperatures \
             evidence_measured evidence_otherwise evidence_backbones full_objectives full_changed sweep head_decay \
             class_counts better_search better
GLYPHS    := $(filter glyphs_%,$(PARTS))
EVIDENCE  := $(filter evidence_%,$(PARTS))
FULL      := $(filter full_%,$(PARTS))

searches: $(READY)        ## the searches of hyperparameters: six hours; what they choose stands in paper/studies/searches.py
	set -e; for search in $(SEARCHES); do \
	  $(BIN)/penultimate tune all --study $$search --out $(OUT); \
	  $(KEEP) --study tune-$$search --to $(REFERENCE)/tune-$$search; done

parts: $(PARTS:%=$(OUT)/kept/%/kept.json)  ## glyphs, evidence, full and what rests on their networks, each part kept when it is done: twelve hours by plan, with AVX-512

$(OUT)/kept/%/kept.json: | $(READY)
	$(BIN)/penultimate run $* --out $(OUT)
	$(KEEP) --study $* --to $(@D)

PORTRAITS   := focal poly1 cosface arcface negative_margin logit_adjustment elogitnorm supcon
# The margins' own scale of 64 hardly trains in this world's recipe: the search begins where it does.
SPEC_cosface := cosface(margin=0.1, scale=16)
SPEC_arcface := arcface(margin=0.1, scale=16)
GRID_cosface := --grid scale=16,32 --grid recipe.learning_rate=0.6
GRID_arcface := $(GRID_cosface)

portraits: $(PORTRAITS:%=docs/portraits/%/kept.json)  ## the objectives that ship as examples, in the gallery: by plan 20 minutes each on two cores

docs/portraits/%/kept.json: | $(READY)
	$(BIN)/penultimate portrait "$(or $(SPEC_$*),$*)" --plugin examples:$* $(GRID_$*) --name portrait-$* --out $(OUT)
	$(KEEP) --study portrait-$* --to $(@D)

reference: searches parts ## every run that the package keeps, in the order of what they rest on
	$(BIN)/penultimate join glyphs $(GLYPHS:%=$(OUT)/kept/%) --to $(REFERENCE)/glyphs
	$(BIN)/penultimate join evidence $(REFERENCE)/glyphs $(EVIDENCE:%=$(OUT)/kept/%) --to $(REFERENCE)/evidence
	$(BIN)/penultimate join full $(FULL:%=$(OUT)/kept/%) --to $(REFERENCE)/full
	cp -R $(addprefix $(OUT)/kept/,shared_classes sweep head_decay class_counts better_search better) $(REFERENCE)/

$(READY): requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (PyTorch among it: about two minutes) ..."
	@test -n "$(PYTHON)" || { echo "penultimate needs Python 3.11 or later, and no python3 or python on PATH is:" \
	  "install one, or name it: make $(firstword $(MAKECMDGOALS)) PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

$(TESTS): requirements-test.lock $(READY)
	@echo "Adding what the tests need to $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --requirement requirements.lock --requirement requirements-test.lock
	@touch $(TESTS)
