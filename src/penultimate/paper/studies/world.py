"""The studies of the embedded world, but for all tables and figures (`full`) and for strengths (`sweep`).

    penultimate run glyphs

Hyperparameters come from the searches on held-out pretraining images; none was chosen by a transfer result
(`docs/world.md`, `penultimate show tableA1 --reference`).
"""

import dataclasses

from penultimate.data.catalog import SHARES
from penultimate.paper import arms
from penultimate.paper.claims.both import CHOOSING, CONFIRMING, NEW_CANDIDATES
from penultimate.paper.studies import searches
from penultimate.paper.studies.chosen import matched_search, matched_search_scaled, matched_sweep_search
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
MEASURE = (
    "accuracy",
    "class_separation",
    "collapse",
    "hardness",
    "spectra",
    "distances",
    "calibration",
    "agreement",
    "layers",
    "similarity",
    "dynamics",
    "robustness",
    "linear",
    "knn",
)
"""All measurements that exhibits can show of one seed."""
SHORT_MEASURE = ("accuracy", "class_separation", "linear", "knn")
OBJECTIVES = (*matched_search.NINE, *matched_search_scaled.NINE)
"""The nine objectives with the hyperparameters that the searches chose."""
CHANGES = matched_search_scaled.RECIPE_CHANGES
TUNED_BY = ("matched_search", "matched_search_scaled")

# A run as short as `nine` would learn little under the paper's weight decay and short warm-up.
SHORT_RECIPE = dataclasses.replace(
    searches.RECIPE, epochs=14, warmup=0.2, exposure=5.0, evaluate_every=2, snapshot_every=3
)
NINE = Study(
    name="nine",
    title="Nine objectives, one seed, on the embedded image world",
    question="Do objectives that separate the classes further give features that transfer worse?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(OBJECTIVES, SHORT_RECIPE, CHANGES),
    measure=MEASURE,
    tuned_by=TUNED_BY,
    expected_seconds={"train": 57.0, "accuracy": 4.5, "dynamics": 4.0},
)
CERTAINTY = dataclasses.replace(
    NINE,
    name="certainty",
    title="Nine objectives, three seeds: calibration, selective classification, images of other data",
    question="Which objectives give networks that know what they do not know?",
    networks=runs_by_recipe(OBJECTIVES, SHORT_RECIPE, CHANGES, seeds=(0, 1, 2)),
    measure=(
        "accuracy",
        "class_separation",
        "calibration",
        "selective",
        "outside",
        "probe_calibration",
    ),
)
"""The transfer tasks are the outside data: near ones show letters, far ones digits or a typeface."""

# The study with statistics, in the paper's regime.
RECIPE = dataclasses.replace(searches.RECIPE, evaluate_every=4, snapshot_every=4)
SEEDS = tuple(range(9))
THE_DRAW = 9
"""The draw that all networks of the arm `ONE_DRAW` see, and no others."""
COMPARED = ("similarity", "agreement")
"""Measurements that compare networks with each other, which must have seen the same images."""
RELEARNING = ("relearning", "relearning_from_training")
EACH = (*(text for text in MEASURE if text not in COMPARED), *RELEARNING)
SWEEP_LEARNING_RATE = next(iter(matched_sweep_search.RECIPE_CHANGES.values()))["learning_rate"]
TEMPERATURES = tuple(f"cosine_softmax(scale={tau / 100}, temperature={tau / 100})" for tau in range(1, 9))
PLAIN_OBJECTIVES = tuple(
    text for text in OBJECTIVES if text.startswith(("softmax", "label_smoothing", "sigmoid", "squared_error"))
)
"""The objectives of a second architecture, without residual sums, to compare layers (figure B.1)."""
ONE_DRAW = (
    *runs_by_recipe(
        OBJECTIVES,
        RECIPE,
        CHANGES,
        seeds=SEEDS[:5],
        draws=THE_DRAW,
        arm=arms.ONE_DRAW,
        measure=("accuracy", "class_separation", *COMPARED),
    ),
    *runs_by_recipe(
        PLAIN_OBJECTIVES, RECIPE, CHANGES, backbones=("glyphplain",), seeds=SEEDS[:2], measure=("similarity",)
    ),
)
SWEEP = (
    Runs(
        TEMPERATURES,
        dataclasses.replace(RECIPE, learning_rate=SWEEP_LEARNING_RATE),
        seeds=SEEDS[:3],
        arm=arms.SWEEP,
        measure=("accuracy", "class_separation", *RELEARNING, "linear"),
    ),
)
"""The paper's eight temperatures, with a loss that is scaled by them as in its table 4."""


def part(whole: Study, name: str, title: str, networks: tuple[Runs, ...]) -> Study:
    """Return some networks of a study as a study of their own, which is run and kept by itself."""
    return dataclasses.replace(whole, name=f"{whole.name}_{name}", title=title, networks=networks)


def _of_seeds(words: str, seeds: tuple[int, ...]) -> Study:
    networks = runs_by_recipe(OBJECTIVES, RECIPE, CHANGES, seeds=seeds)
    return part(GLYPHS, words, f"Nine objectives, the {words} three of nine seeds", networks)


GLYPHS = Study(
    name="glyphs",
    title="Nine objectives and eight temperatures, nine seeds, on the embedded image world",
    question="Which training objective gives features that transfer, and how sure can one be?",
    source="glyphs",
    targets=TARGETS,
    networks=(*runs_by_recipe(OBJECTIVES, RECIPE, CHANGES, seeds=SEEDS), *ONE_DRAW, *SWEEP),
    measure=EACH,
    tuned_by=(*TUNED_BY, "matched_sweep_search"),
    expected_seconds={"train": 176.0, "accuracy": 4.5, "dynamics": 9.7},
)
GLYPHS_FIRST = _of_seeds("first", SEEDS[:3])
GLYPHS_SECOND = _of_seeds("second", SEEDS[3:6])
GLYPHS_THIRD = dataclasses.replace(
    _of_seeds("third", SEEDS[6:]), title="Nine objectives, the last three of nine seeds"
)
GLYPHS_ONE_DRAW = part(GLYPHS, "one_draw", "Nine objectives, five seeds on one draw of the world", ONE_DRAW)
GLYPHS_TEMPERATURES = part(GLYPHS, "temperatures", "Cosine softmax at eight temperatures, three seeds", SWEEP)

# Further measurements of networks of `glyphs`, which are not trained again in its store.
SHARED_CLASSES = dataclasses.replace(
    GLYPHS_FIRST,
    name="shared_classes",
    title="Nine objectives on tasks that share none to all of their classes with pretraining",
    question="Does class separation hurt transfer less, the more classes a task shares with pretraining?",
    targets=tuple(SHARES),
    measure=("class_separation", "overlap", "linear"),
)
FEW_LABELS = Study(
    name="few_labels",
    title="Nine objectives on one to twenty images a class",
    question="Do objectives that separate their classes further transfer better from few labels?",
    source="glyphs",
    targets=TARGETS,
    networks=GLYPHS_FIRST.networks,
    measure=(
        "accuracy",
        "class_separation",
        "collapse",
        "linear",
        "few_labels",
        "compactness",
        "source_compactness",
    ),
    tuned_by=TUNED_BY,
)
ALIKE = Study(
    name="alike",
    title="Nine objectives compared by five measures of likeness",
    question="Do other measures find the same networks alike as CKA does?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(OBJECTIVES, RECIPE, CHANGES, seeds=(0, 1), draws=THE_DRAW),
    measure=("accuracy", "class_separation", "pair_likeness"),
    tuned_by=TUNED_BY,
)

# The final layer decayed as little as in the paper, and objectives as strong as its table A.1 prints them.
PAPERS_STRENGTHS = (
    "softmax",
    "label_smoothing(alpha=0.1)",
    "sigmoid",
    "final_layer_l2(lambda_final=0.0008)",
    "dropout(keep=0.7)",
    "logit_penalty(beta=0.0006)",
    "logit_norm(temperature=0.04)",
    "cosine_softmax(temperature=0.05, scale=1)",
)
HEAD_DECAY = Study(
    name="head_decay",
    title="Nine objectives, the final layer with the paper's weight decay",
    question="Does the paper's weight decay in the final layer bring back the paper's gains on softmax?",
    source="glyphs",
    targets=TARGETS,
    networks=runs_by_recipe(
        (*PAPERS_STRENGTHS, OBJECTIVES[-1]),
        dataclasses.replace(searches.RECIPE, head_decay=8e-5),
        CHANGES,
        seeds=(200, 201, 202, 203, 204),
    ),
    measure=SHORT_MEASURE,
    tuned_by=("matched_search_scaled",),
    expected_seconds={"train": 176.0, "accuracy": 4.5},
)
"""The paper's squared error diverges here, so that it has the strength that the holdout chose."""

# The search for an objective that is better than softmax in both accuracy and transfer (`paper.claims.both`).
BETTER_SEARCH = Study(
    name="better_search",
    title="Seven candidates beside softmax, on four tasks of the embedded image world",
    question="Which objective may be better than softmax in both pretraining accuracy and transfer?",
    source="glyphs",
    targets=CHOOSING,
    networks=(Runs(("softmax", *NEW_CANDIDATES), searches.RECIPE, seeds=(220, 221)),),
    measure=SHORT_MEASURE,
    tuned_by=("matched_search",),
    expected_seconds={"train": 176.0},
)
BETTER = dataclasses.replace(
    BETTER_SEARCH,
    name="better",
    title="Softmax and the chosen one of twelve candidates, on the four other tasks of the embedded world",
    question="Is this objective better than softmax in both pretraining accuracy and transfer?",
    targets=CONFIRMING,
    networks=(
        Runs(
            ("softmax", "label_smoothing(alpha=0.2) + projector(depth=1)"),
            searches.RECIPE,
            seeds=tuple(range(230, 238)),
        ),
    ),
)
"""The chosen candidate, with seeds and tasks that the choice did not see."""

# 512 classes: strengths are the paper's, translated as the searches' grids are, and not searched.
GLYPHS_512 = Study(
    name="glyphs_512",
    title="Nine objectives, ten seeds, 512 classes of the embedded image world",
    question="Do objectives that separate classes further give features that transfer worse?",
    source="glyphs_512",
    targets=TARGETS,
    networks=(
        Runs(
            (
                "softmax",
                "label_smoothing(alpha=0.1)",
                "sigmoid",
                "final_layer_l2(lambda_final=3.14e-3)",
                "dropout(keep=0.7)",
                "logit_penalty(beta=1.17e-3)",
                "logit_norm(temperature=0.0443)",
                "cosine_softmax(temperature=0.0554)",
                "squared_error(kappa=9, target=60, scale=5.12)",
            ),
            dataclasses.replace(searches.RECIPE, evaluate_every=11, snapshot_every=11),
            backbones=("glyphnet(width=32, features=1024)",),
            seeds=tuple(range(10)),
        ),
    ),
    measure=MEASURE,
)
