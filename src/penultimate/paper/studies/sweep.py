"""The dose-response study: each family of objectives at several strengths, at which transfer is measured.

    penultimate run sweep

If the strength of an objective is raised, does transfer fall as class separation R² rises, at equal accuracy,
and is the price the same for all objectives? The strength is what is set; R² is an outcome. Every family is
an arm (`study.sweeps.Sweep`). The values, the pairs of equal accuracy and the rules
(`penultimate.paper.claims.doses`) were fixed on pretraining rows before any network was transferred.

51 networks for each of the seeds 200 to 204, each seed with its own draw of the world, which no other study
uses: by plan, six hours and forty minutes on two CPU cores. `sweep_smallest` is a part of it, which can be
run first: 19 networks for each of three seeds, an hour and a half. Both train the same networks in the same
steps.

The recipe is that of `matched_search`; cosine softmax has the learning rate .6 that its holdout chose, at
every temperature. Softmax keeps snapshots, so that its transfer and its accuracy are known in the course of
training: an objective that transfers worse than softmax did when softmax was as accurate is not merely
under-trained. The main arm holds the nine objectives at the strengths of the holdout, as `glyphs` does.

The paper trains on K = 1000 classes with M = 2048 features, this world has K = 128 and M = 256. Its
strengths, as printed (an arm of their own) and translated, lie inside the grid:

- Label smoothing: the logit gap of an example that is told apart, ln(1 + K (1 - a) / a), stays the same share
  of log K: a = .1 there is .176 here. Nearest in the grid: .2.
- Logit normalization and cosine softmax: 1 / temperature, the largest logit, scales with log K: .04 there is
  .057 here, and .05 is .071. Nearest: .057 and .07.
- Logit penalty: the gap g that minimises ln(1 + (K - 1) e^-g) + b g² stays the same share of log K: b = 6e-4
  there is 3.0e-3 here. Nearest: .0024. It does not scale with 1000 / K, as the search's grid did, since |z|²
  is the right class's logit and does not add up over classes.
- Dropout: the noise of a logit, (1 - p) / p / M, stays: p = .7 there is .949 here. Nearest: .95.
- Final layer L²: by K / M, which is .488 there and .5 here: 8e-4 there is 7.8e-4 here. Nearest: .0008. It is
  not kept at ten times the weight decay, as the search's grid had it, since exposure multiplies that by 15.7.
- Sigmoid has no strength of its own; it is varied by a logit penalty, which separates its classes further.
- Squared error: its target of M = 60 at the paper's scale, translated by K, diverges here (two of three seeds
  of the search; the third stays at chance), so that none of its networks is among the paper's strengths.

Dropout's networks are reported, and no slope is judged of them: R² moves by .05 for four points of accuracy.

Three families vary what the paper has not: the depth of a projector between features and head, and the
strength of a regulariser that pulls features to the centre of their class (center loss) or pushes each away
from its nearest (entropy). They were added on 2026-11-27, when the transfer of the others, and of networks
with a projector, was known; so their prices are told and no rule judges them. The regularisers' strengths
come from a pilot of one seed on the holdout: center loss has R² .390, .451 and .594 at 77.0, 73.0 and 66.8 %,
entropy .345, .328 and .279 at 77.1, 76.0 and 75.2 %, softmax .357 at 78.3 %.

One arm, added on the same day, has four of the holdout's objectives behind a projector of one hidden layer
and of two, which is thrown away after training: does the loss's specialisation go with it? Its rules
(`penultimate.paper.claims.projectors`) were fixed before any of its networks was trained.

The kept run was made on H100s (16 processes, each with a sixteenth of the GPU), in parts that were joined: on
2026-11-26 the first seven families and dropout with seeds 200 to 202, from main at f9e919d (`kept.json` names
751dbe0, the last commit that the copy of the repository on that machine knew of); on 2026-11-27 seeds 203 and
204, and the further families of all seeds, from b2fc2e0; then the arm behind a projector, from ee186f4. The
softmax networks at which the further families begin are those of the main arm. Center loss at .064 collapsed
in four of the five seeds (at most 4 % of the test images right), so that no curve holds it.
"""

import dataclasses

from penultimate.paper import arms
from penultimate.paper.claims import projectors
from penultimate.paper.studies import matched_search
from penultimate.paper.studies.nine import CHANGES, NINE, TARGETS
from penultimate.study.blocks import Runs, runs_by_recipe
from penultimate.study.spec import Study
from penultimate.study.sweeps import Sweep

RECIPE = matched_search.RECIPE
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
PAPERS = (
    "softmax",
    "label_smoothing(alpha=0.1)",
    "sigmoid",
    "final_layer_l2(lambda_final=0.0008)",
    "dropout(keep=0.7)",
    "logit_penalty(beta=0.0006)",
    "logit_norm(temperature=0.04)",
    "cosine_softmax(scale=1, temperature=0.05)",
)
"""The strengths that the paper prints (appendix A.1); squared error's diverges here."""
TRANSLATED = (
    "softmax",
    "label_smoothing(alpha=0.2)",
    "sigmoid",
    "final_layer_l2(lambda_final=0.0008)",
    "dropout(keep=0.95)",
    "logit_penalty(beta=0.0024)",
    "logit_norm(temperature=0.057)",
    "cosine_softmax(scale=1, temperature=0.07)",
    "squared_error(kappa=9, scale=1.28, target=3.75)",
)
"""The strengths of the grid nearest to the paper's as translated; squared error has the holdout's."""
BEHIND = {
    projectors.behind(spec, depth): CHANGES_BY_SPEC.get(spec, {})
    for spec in projectors.OBJECTIVES
    for depth in projectors.DEPTHS
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
MEASURE = ("accuracy", "class_separation", "linear", "knn")
OF_SOFTMAX = ("dynamics", "transfer_dynamics", "depth")
"""What is measured of softmax beside the rest: its course, for the line of under-training, and its layers."""


def of_strengths(seeds: tuple[int, ...], sweeps: tuple[Sweep, ...]) -> tuple[Runs, ...]:
    """Return the grids of some sweeps, with the nine objectives of the holdout that are among them."""
    families = tuple(
        dataclasses.replace(one, seeds=seeds, recipe=RECIPE, changes=CHANGES_BY_SPEC) for one in sweeps
    )
    trained = {spec for one in families for spec in one.specs}
    main = runs_by_recipe(
        tuple(text for text in NINE if text in trained), RECIPE, CHANGES_BY_SPEC, seeds=seeds
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
        *runs_by_recipe(PAPERS, RECIPE, CHANGES_BY_SPEC, seeds=SEEDS, arm=arms.PAPERS_STRENGTHS),
        *runs_by_recipe(tuple(BEHIND), RECIPE, BEHIND, seeds=SEEDS, arm=arms.BEHIND_A_PROJECTOR),
    ),
    measure=MEASURE,
    tuned_by=("matched_search", "matched_search_scaled"),
    expected_seconds={"train": 176.0},
)
