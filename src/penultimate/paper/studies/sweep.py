"""The dose-response study: families of objectives at several strengths, at which transfer is measured.

    penultimate run sweep
    penultimate run sweep_smallest    # a part of it: 19 networks for each of three seeds

If the strength of an objective is raised, does transfer fall as class separation R² rises, at equal accuracy,
and is the price the same for all objectives? The strength is what is set; R² is an outcome. The values, the
pairs of equal accuracy and the rules (`paper.claims.strengths`) were fixed on pretraining rows before any
network was transferred. `docs/world.md` says how the paper's strengths are translated, and which families
joined later.
"""

import dataclasses

from penultimate.paper import arms
from penultimate.paper.claims.filed import DEPTHS, DISCARDING, behind
from penultimate.paper.studies.searches import RECIPE
from penultimate.paper.studies.world import (
    CHANGES,
    OBJECTIVES,
    PAPERS_STRENGTHS,
    SHORT_MEASURE,
    TARGETS,
    TUNED_BY,
)
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study
from penultimate.study.sweeps import Sweep

SEEDS = (200, 201, 202, 203, 204)
WITH_SNAPSHOTS = {"evaluate_every": 4, "snapshot_every": 4}
TEMPERATURES = (0.035, 0.05, 0.07, 0.1)
COSINE = "cosine_softmax(scale=1)"
CHANGES_BY_SPEC = {
    "softmax": WITH_SNAPSHOTS,
    **{f"cosine_softmax(scale=1, temperature={tau})": dict(*CHANGES.values()) for tau in TEMPERATURES},
}
"""What differs from the recipe: softmax keeps snapshots, and cosine softmax has its own learning rate."""

FAMILIES = (
    Sweep("label_smoothing", "label_smoothing", "alpha", (0.1, 0.2, 0.4, 0.8), zero="softmax"),
    Sweep(
        "final_layer_l2", "final_layer_l2", "lambda_final", (0.000128, 0.0008, 0.002, 0.005), zero="softmax"
    ),
    Sweep("logit_penalty", "logit_penalty", "beta", (0.0006, 0.0024, 0.0047, 0.0094), zero="softmax"),
    Sweep("sigmoid", "sigmoid + logit_penalty", "beta", (0.0003, 0.0006, 0.0012), zero="sigmoid"),
    Sweep("logit_norm", "logit_norm", "temperature", (0.028, 0.04, 0.057, 0.08, 0.113)),
    Sweep("cosine_softmax", COSINE, "temperature", TEMPERATURES),
    Sweep("squared_error", "squared_error(kappa=9, scale=1.28)", "target", (0.94, 1.88, 3.75, 7.5)),
    Sweep("dropout", "dropout", "keep", (0.9813, 0.95, 0.85, 0.7), zero="softmax"),
    Sweep("projector", "projector", "depth", (1, 2, 3), zero="softmax"),
    Sweep("center_loss", "center_loss", "weight", (0.004, 0.016, 0.064), zero="softmax"),
    Sweep("entropy", "entropy", "weight", (0.05, 0.2, 0.8), zero="softmax"),
)
"""The families of the study, each from its weakest strength to its strongest."""
BEHIND = {
    behind(spec, depth): CHANGES_BY_SPEC.get(spec, {})
    for spec in DISCARDING
    for depth in DEPTHS
    if depth and spec != "softmax"
}
"""Four of the holdout's objectives with hidden layers that are thrown away, and what differs from the recipe;
softmax with a projector is a family."""
SMALLEST = {
    "label_smoothing": (0.2, 0.8),
    "final_layer_l2": (0.0008, 0.002),
    "logit_penalty": (0.0006, 0.0024),
    "sigmoid": (0.0003, 0.0006),
    "logit_norm": (0.028, 0.08, 0.113),
    "cosine_softmax": (0.05, 0.07, 0.1),
    "squared_error": (0.94, 1.88, 3.75),
}
"""The strengths of the smallest design, which leaves dropout out. Logit normalization at .028 is one of them
since it is the weak side of a pair of equal accuracy, whose strong side, .08, is among them as well."""
OF_SOFTMAX = ("dynamics", "transfer_dynamics", "depth")
"""What is measured of softmax beside the rest: its course, for the line of under-training, and its layers."""


def of_strengths(seeds: tuple[int, ...], sweeps: tuple[Sweep, ...]) -> tuple[Runs, ...]:
    """Return the grids of some sweeps, with the nine objectives of the holdout that are among them."""
    families = tuple(
        dataclasses.replace(one, seeds=seeds, recipe=RECIPE, changes=CHANGES_BY_SPEC) for one in sweeps
    )
    trained = {spec for one in families for spec in one.specs}
    main = runs_by_recipe(
        tuple(text for text in OBJECTIVES if text in trained), RECIPE, CHANGES_BY_SPEC, seeds=seeds
    )
    softmax = Runs(("softmax",), main[0].recipe, seeds=seeds, measure=OF_SOFTMAX)
    return (*main, softmax, *(grid for one in families for grid in one.runs))


STUDY = Study(
    name="sweep",
    title="Eleven families of objectives, each at several strengths, on the embedded image world",
    question="Does an objective that separates classes further transfer worse, at equal accuracy?",
    source="glyphs",
    targets=TARGETS,
    networks=(
        *of_strengths(SEEDS, FAMILIES),
        *runs_by_recipe(PAPERS_STRENGTHS, RECIPE, CHANGES_BY_SPEC, seeds=SEEDS, arm=arms.PAPERS_STRENGTHS),
        *runs_by_recipe(tuple(BEHIND), RECIPE, BEHIND, seeds=SEEDS, arm=arms.BEHIND_A_PROJECTOR),
    ),
    measure=SHORT_MEASURE,
    tuned_by=TUNED_BY,
    expected_seconds={"train": 176.0},
)
SWEEP_SMALLEST = dataclasses.replace(
    STUDY,
    name="sweep_smallest",
    title="Seven families of objectives, each at three strengths, on the embedded image world",
    networks=of_strengths(
        SEEDS[:3],
        tuple(
            dataclasses.replace(one, values=SMALLEST[one.family])
            for one in FAMILIES
            if one.family in SMALLEST
        ),
    ),
)
