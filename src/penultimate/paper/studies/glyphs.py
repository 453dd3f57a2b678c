"""The study with statistics: nine objectives and nine seeds in the paper's regime, 44 epochs.

    penultimate run glyphs

The plan says four and a half hours on two CPU cores with AVX-512 (2,800 images a second each). The study can
also be run in five parts (`penultimate.paper.studies.parts`), each of which is kept by itself:

    glyphs_first          nine objectives, seeds 0 to 2, each seed with its own draw of the world
    glyphs_second         the same with seeds 3 to 5
    glyphs_third          the same with seeds 6 to 8
    glyphs_one_draw       nine objectives and five seeds on one draw, as a seed is in the paper: networks are
                          compared with each other here (figures 2, C.4 to C.7)
    glyphs_temperatures   cosine softmax at the paper's eight temperatures, three seeds

The regime is the paper's (`penultimate.training.regime`). Images per class and epochs were chosen by how well
softmax fits and validates, and hyperparameters on a holdout of 51,200 images (`docs/world.md`, `penultimate
show tableA1 --reference`). The sweep of temperatures is an arm of its own: its loss is scaled by the
temperature, as in the paper's table 4, and it has its own learning rate.

A second architecture, without residual sums, serves only to compare layers (figure B.1). It has four of the
objectives, chosen before any result, two of the seeds, and the first architecture's hyperparameters, which
were not tuned for it.
"""

import dataclasses

from penultimate.paper import arms
from penultimate.paper.studies import chosen_matched_sweep, matched_search
from penultimate.paper.studies.nine import CHANGES, MEASURE, NINE, TARGETS
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study

SWEEP = tuple(f"cosine_softmax(scale={tau / 100}, temperature={tau / 100})" for tau in range(1, 9))
SWEEP_LEARNING_RATE = next(iter(chosen_matched_sweep.RECIPE_CHANGES.values()))["learning_rate"]
OF_PLAIN = tuple(
    text for text in NINE if text.startswith(("softmax", "label_smoothing", "sigmoid", "squared_error"))
)

RECIPE = dataclasses.replace(matched_search.RECIPE, evaluate_every=4, snapshot_every=4)
SEEDS = tuple(range(9))
THE_DRAW = 9
"""The draw that all networks of the arm `ONE_DRAW` see, and no others."""
COMPARED = ("similarity", "agreement")
"""Measurements that compare networks with each other, which must have seen the same images."""
RELEARNING = ("relearning", "relearning_from_training")
EACH = (*(text for text in MEASURE if text not in COMPARED), *RELEARNING)

ONE_DRAW = (
    *runs_by_recipe(
        NINE,
        RECIPE,
        CHANGES,
        seeds=SEEDS[:5],
        draws=THE_DRAW,
        arm=arms.ONE_DRAW,
        measure=("accuracy", "class_separation", *COMPARED),
    ),
    *runs_by_recipe(
        OF_PLAIN, RECIPE, CHANGES, backbones=("glyphplain",), seeds=SEEDS[:2], measure=("similarity",)
    ),
)
TEMPERATURES = (
    Runs(
        SWEEP,
        dataclasses.replace(RECIPE, learning_rate=SWEEP_LEARNING_RATE),
        seeds=SEEDS[:3],
        arm=arms.SWEEP,
        measure=("accuracy", "class_separation", *RELEARNING, "linear"),
    ),
)

STUDY = Study(
    name="glyphs",
    title="Nine objectives and eight temperatures, nine seeds, on the embedded image world",
    question="Which training objective gives features that transfer, and how sure can one be?",
    source="glyphs",
    targets=TARGETS,
    networks=(
        *runs_by_recipe(NINE, RECIPE, CHANGES, seeds=SEEDS),
        *ONE_DRAW,
        *TEMPERATURES,
    ),
    measure=EACH,
    tuned_by=("matched_search", "matched_search_scaled", "matched_sweep_search"),
    expected_seconds={"train": 176.0, "accuracy": 4.5, "dynamics": 9.7},
)
