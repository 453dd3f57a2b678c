"""The studies of the embedded world, but for all tables and figures (`full`) and for strengths (`sweep`).

    penultimate run quickstart    # six minutes on two idle cores
    penultimate run glyphs

Hyperparameters come from the searches on held-out pretraining images; none was chosen by a transfer result
(`docs/world.md`, which also says how the quickstart's epochs were chosen).
"""

import dataclasses

from penultimate.data.catalog import SHARES
from penultimate.paper import arms
from penultimate.paper.claims.filed import CHOOSING, CONFIRMING, NEW_CANDIDATES, QUICK
from penultimate.paper.studies import searches
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study

TARGETS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
COMPARED = ("similarity", "agreement")
"""Measurements that compare networks with each other, which must have seen the same images."""
MEASURE = (
    *("accuracy", "class_separation", "collapse", "hardness", "spectra", "distances", "calibration"),
    *("agreement", "layers", "similarity", "dynamics", "robustness", "linear", "knn"),
)
"""All measurements that exhibits can show of one seed."""
SHORT_MEASURE = ("accuracy", "class_separation", "linear", "knn")
OBJECTIVES, CHANGES = searches.CHOSEN, searches.CHANGES
"""The nine objectives with the hyperparameters that the searches chose, and what that changes in recipes."""
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
    title="Nine objectives, three seeds: calibration, and images of other data",
    question="Which objectives give networks that know what they do not know?",
    networks=runs_by_recipe(OBJECTIVES, SHORT_RECIPE, CHANGES, seeds=(0, 1, 2)),
    measure=("accuracy", "class_separation", "calibration", "outside", "probe_calibration"),
)
"""The transfer tasks are the outside data: near ones show letters, far ones digits or a typeface."""

# Softmax, a logit penalty that separates further, and squared error that separates far: `claims.quick` has
# the rule.
QUICK_RECIPE = dataclasses.replace(SHORT_RECIPE, epochs=12, evaluate_every=12, snapshot_every=0)
QUICKSTART = dataclasses.replace(
    NINE,
    name="quickstart",
    title="Three objectives, three draws of the embedded image world",
    targets=("syllabics", "armenian", "maths", "digits"),
    networks=(Runs(QUICK, QUICK_RECIPE, seeds=(0, 1, 2)),),
    measure=SHORT_MEASURE,
    tuned_by=TUNED_BY[1:],
    expected_seconds={"train": 49.0, "accuracy": 4.5},
)
CLASS_COUNTS = dataclasses.replace(
    QUICKSTART,
    name="class_counts",
    title="Three objectives on 16 to 128 classes, three draws of the embedded image world",
    question="Does class separation cost less transfer, the more classes a network is trained on?",
    targets=("syllabics", "armenian", "digits"),
    networks=tuple(
        Runs(
            (
                "softmax",
                f"logit_penalty(beta={beta})",
                f"squared_error(kappa=9, scale={classes / 100}, target=3.75)",
            ),
            dataclasses.replace(QUICK_RECIPE, epochs=16, evaluate_every=16),
            ("glyphnet(width=8, features=128)",),
            seeds=(210, 211, 212),
            arm="" if classes == 128 else f"{classes} classes",
            classes=classes,
        )
        for classes, beta in ((128, 0.0047), (64, 0.0076), (32, 0.0125), (16, 0.0208))
    ),
    expected_seconds={"train": 49.0, "accuracy": 1.5},
)
"""The classes are every eighth, fourth, second or each one, with as many images in all, the network half as
wide as usual. Strengths are translated: the logit gap that minimises the penalised loss stays the same share
of log K."""

# The study with statistics, in the paper's regime.
RECIPE = dataclasses.replace(searches.RECIPE, evaluate_every=4, snapshot_every=4)
SEEDS = tuple(range(9))
THE_DRAW = 9
"""The draw that all networks of the arm `ONE_DRAW` see, and no others."""
RELEARNING = ("relearning", "relearning_from_training")
EACH = (*(text for text in MEASURE if text not in COMPARED), *RELEARNING)
TEMPERATURES = tuple(f"cosine_softmax(scale={tau / 100}, temperature={tau / 100})" for tau in range(1, 9))
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
    # A second architecture, without residual sums, to compare layers (figure B.1).
    *runs_by_recipe(
        (*OBJECTIVES[:3], OBJECTIVES[-1]),
        RECIPE,
        CHANGES,
        backbones=("glyphplain",),
        seeds=SEEDS[:2],
        measure=("similarity",),
    ),
)
SWEEP = (
    Runs(
        TEMPERATURES,
        dataclasses.replace(RECIPE, learning_rate=searches.SWEEP_LEARNING_RATE),
        seeds=SEEDS[:3],
        arm=arms.SWEEP,
        measure=("accuracy", "class_separation", *RELEARNING, "linear"),
    ),
)
"""The paper's eight temperatures, with a loss that is scaled by them as in its table 4."""


def part(whole: Study, name: str, title: str, networks: tuple[Runs, ...]) -> Study:
    """Return some networks of a study as a study of their own, which is run and kept by itself."""
    return dataclasses.replace(whole, name=f"{whole.name}_{name}", title=title, networks=networks)


def _third_of_glyphs(name: str, words: str, seeds: tuple[int, ...]) -> Study:
    networks = runs_by_recipe(OBJECTIVES, RECIPE, CHANGES, seeds=seeds)
    return part(GLYPHS, name, f"Nine objectives, the {words} of nine seeds", networks)


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
GLYPHS_FIRST = _third_of_glyphs("first", "first three", SEEDS[:3])
GLYPHS_SECOND = _third_of_glyphs("second", "second three", SEEDS[3:6])
GLYPHS_THIRD = _third_of_glyphs("third", "last three", SEEDS[6:])
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
FEW_LABELS = dataclasses.replace(
    GLYPHS_FIRST,
    name="few_labels",
    title="Nine objectives on one to twenty images a class",
    question="Do objectives that separate their classes further transfer better from few labels?",
    measure=(
        *("accuracy", "class_separation", "collapse", "linear"),
        *("few_labels", "compactness"),
    ),
    tuned_by=TUNED_BY,
    expected_seconds={},
)
ALIKE = dataclasses.replace(
    FEW_LABELS,
    name="alike",
    title="Nine objectives compared by five measures of likeness",
    question="Do other measures find the same networks alike as CKA does?",
    networks=runs_by_recipe(OBJECTIVES, RECIPE, CHANGES, seeds=(0, 1), draws=THE_DRAW),
    measure=("accuracy", "class_separation", "pair_likeness"),
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
    "cosine_softmax(scale=1, temperature=0.05)",
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

# The search for an objective that is better than softmax in both (`paper.claims.filed`).
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
CHOSEN = "label_smoothing(alpha=0.2) + projector(depth=1)"
BETTER = dataclasses.replace(
    BETTER_SEARCH,
    name="better",
    title="Softmax and the chosen one of twelve candidates, on the four other tasks of the embedded world",
    question="Is this objective better than softmax in both pretraining accuracy and transfer?",
    targets=CONFIRMING,
    networks=(Runs(("softmax", CHOSEN), searches.RECIPE, seeds=tuple(range(230, 238))),),
)
"""The chosen candidate, with seeds and tasks that the choice did not see."""

# 512 classes: strengths are the paper's, translated as the searches' grids are, and not searched.
GLYPHS_512 = dataclasses.replace(
    NINE,
    name="glyphs_512",
    title="Nine objectives, ten seeds, 512 classes of the embedded image world",
    question="Do objectives that separate classes further give features that transfer worse?",
    source="glyphs_512",
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
    tuned_by=(),
    expected_seconds={},
)
