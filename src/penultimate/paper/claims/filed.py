"""The numbers and choices on which verdicts depend, fixed before the runs; `docs/explain/rules.md` has their
reasons.

Numbers are shares or ranks, never points, so that they serve the embedded world and ImageNet alike.
"""

from __future__ import annotations

from typing import NamedTuple

from penultimate.objectives.presets import resolve
from penultimate.statistics.comparison import LEAST_RUNS as LEAST_RUNS
from penultimate.statistics.comparison import LEVEL as LEVEL

ONE_SIDED = LEVEL / 2
"""The probability with which each of the two decided verdicts may be wrong."""
LEAST_GAIN = 0.01
"""The share of softmax's errors (or of what R² lacks to 1) from which a difference counts."""
LEAST_RHO, LEAST_CONTRAST = 0.5, 0.1
"""The rank correlation that counts, and the difference of two that counts."""
LEAST_OBJECTIVES, LEAST_TEMPERATURES = 6, 5
"""The objectives, and the temperatures, that a rank correlation needs."""
PLATEAU = 0.25
"""Accuracy is level where it moves by less than this share of what it gained before."""
LIMITED_DATA = 40 / 1281.167
"""The share of the training images from which the paper relearns heads."""
RESAMPLES = 2000
"""How often seeds are resampled for the interval of a rank correlation."""

FAR = 0.25
"""The share below which a spread is far below another, and a change little."""
LITTLE = 0.04
"""The share of softmax's errors from which a difference of fine-tuned networks counts."""
LEAST_TASKS, LEAST_SETS = 8, 4
"""The tasks, and the shifted test sets, that a spread needs."""
TAIL, SPREAD_RESAMPLES = 0.2, 10_000
"""A tail of the resampled spreads counts this share of what it seems to: the interval is one of 99 %."""
MOST_EDGES = 0.1
"""The share of fine-tuning's best cells that may lie on the edge of their grid."""
REGAINED = 0.5
"""The share of the paper's mean gain that counts where the final layer has the paper's weight decay."""

NUMBERS = (
    ("Level", LEVEL),
    ("Least gain", LEAST_GAIN),
    ("Least correlation", LEAST_RHO),
    ("Least contrast", LEAST_CONTRAST),
    ("Least runs", LEAST_RUNS),
    ("Least objectives", LEAST_OBJECTIVES),
    ("Least temperatures", LEAST_TEMPERATURES),
    ("Plateau", PLATEAU),
    ("Limited data", LIMITED_DATA),
    ("Resamples", RESAMPLES),
    ("Far", FAR),
    ("Little", LITTLE),
    ("Least tasks", LEAST_TASKS),
    ("Least sets", LEAST_SETS),
    ("Tail", TAIL),
    ("Resamples", SPREAD_RESAMPLES),
    ("Most edges", MOST_EDGES),
)
"""The numbers of the rules on the paper's claims, by name."""

# Objectives at several strengths, of 2026-11-26.

PER = 0.1
"""The class separation for which a price is stated."""
LEAST_PRICE, LEAST_RANGE = 0.5, 0.5
"""The points for each .1 of R² from which a price counts, and from which families differ."""
EQUAL = 0.75
"""Two strengths are equally accurate if they are shown to differ by less than these points."""
ONE_PLACE = 0.4
"""The R² at which families are compared."""
SPAN, LEAST_FAMILIES = 0.07, 4
"""The R² that a family spans if it says something at equal accuracy, and how many families must."""
NUMBERS_OF_STRENGTHS = (
    ("Least price", LEAST_PRICE),
    ("Equal", EQUAL),
    ("One place", ONE_PLACE),
    ("Least range", LEAST_RANGE),
    ("Span", SPAN),
    ("Least families", LEAST_FAMILIES),
)
FAMILIES = (
    "label_smoothing",
    "final_layer_l2",
    "logit_penalty",
    "sigmoid",
    "logit_norm",
    "cosine_softmax",
    "squared_error",
)
"""The families that are judged. Dropout's is not: R² moves by .05 for four points of accuracy."""
WITHOUT_A_LINE = ("squared_error",)
"""The families that are left out where families are compared at one R², which these never reach."""


class Pair(NamedTuple):
    """Two strengths of a family whose accuracy on the search's holdout was the same, in per cent."""

    family: str
    weak: str
    strong: str
    holdout: tuple[float, float]


PAIRS = (
    Pair("logit_penalty", "softmax", "logit_penalty(beta=0.0024)", (77.0, 77.0)),
    Pair("label_smoothing", "label_smoothing(alpha=0.1)", "label_smoothing(alpha=0.4)", (77.5, 77.35)),
    Pair("logit_norm", "logit_norm(temperature=0.028)", "logit_norm(temperature=0.08)", (76.9, 76.7)),
    Pair(
        "squared_error",
        "squared_error(kappa=9, scale=1.28, target=1.88)",
        "squared_error(kappa=9, scale=1.28, target=7.5)",
        (73.4, 73.6),
    ),
)
"""The pairs of equal accuracy, fixed by the searches' holdout."""
WINDOW: dict[str, tuple[str, ...]] = {
    "label_smoothing": ("softmax", *(f"label_smoothing(alpha={alpha})" for alpha in (0.1, 0.2, 0.4))),
    "final_layer_l2": (
        "softmax",
        *(f"final_layer_l2(lambda_final={weight})" for weight in (0.000128, 0.0008)),
    ),
    "logit_penalty": ("softmax", *(f"logit_penalty(beta={beta})" for beta in (0.0006, 0.0024, 0.0047))),
    "sigmoid": ("sigmoid", *(f"logit_penalty(beta={beta}) + sigmoid" for beta in (0.0003, 0.0006))),
    "logit_norm": tuple(f"logit_norm(temperature={tau})" for tau in (0.028, 0.04, 0.057, 0.08)),
    "cosine_softmax": tuple(f"cosine_softmax(scale=1, temperature={tau})" for tau in (0.035, 0.05)),
}
"""The strengths whose accuracy on the search's holdout is at most a point below softmax's 77.0 %; of the
sigmoid with a logit penalty, which was not searched, those that the grid expected at about 77 %."""

# The quickstart, of 2026-11-26.

QUICK = ("softmax", "logit_penalty(beta=0.0047)", "squared_error(kappa=9, scale=1.28, target=3.75)")
"""The baseline of the quickstart, the objective of equal accuracy, and the one that separates far."""

# Hidden layers that are thrown away after training, of 2026-11-27.

DISCARDING = (
    "softmax",
    "label_smoothing(alpha=0.2)",
    "logit_norm(temperature=0.057)",
    "cosine_softmax(scale=1, temperature=0.05)",
    "squared_error(kappa=9, scale=1.28, target=3.75)",
)
"""The objectives that are compared, at the strengths that the holdout of the searches chose."""
DEPTHS = (0, 1, 2)
"""The numbers of hidden layers that are thrown away."""


def behind(objective: str, depth: int) -> str:
    """Return the canonical spec of an objective behind a projector of this depth.

    >>> behind("label_smoothing(alpha=0.2)", 1), behind("softmax", 0)
    ('label_smoothing(alpha=0.2) + projector(depth=1, width=512)', 'softmax')
    """
    return resolve(f"{objective} + projector(depth={depth})" if depth else objective).canonical


# The search for an objective that is better than softmax in both accuracy and transfer, of 2026-11-27.

STUDY = "better"
"""The study that confirms the choice: softmax and the candidate of the highest score, whose score is the
smaller one of its mean gains in test accuracy and in linear transfer to the tasks CHOOSING."""
NEW_CANDIDATES = (
    "projector(depth=1)",
    "projector(depth=2)",
    "projector(depth=3)",
    "projector(depth=1) + label_smoothing(alpha=0.2)",
    "projector(depth=1) + logit_penalty(beta=0.0006)",
    "projector(depth=1) + sigmoid",
    "label_smoothing(alpha=0.2) + logit_penalty(beta=0.0006)",
)
"""The candidates that `better_search` trains, beside softmax."""
KEPT_CANDIDATES = (
    "label_smoothing(alpha=0.2)",
    "logit_penalty(beta=0.0006)",
    "logit_penalty(beta=0.0024)",
    "sigmoid",
    "sigmoid + logit_penalty(beta=0.0003)",
)
"""The candidates that `sweep` holds already."""
SEARCHED = {"better_search": NEW_CANDIDATES, "sweep": KEPT_CANDIDATES}
"""The studies from whose networks the choice was made, each with its candidates."""
SEEN = {"sweep": (200, 201, 202)}
"""The seeds that the choice saw, of a study that has had more since."""
CHOOSING = ("syllabics", "armenian", "maths", "digits")
"""The tasks that the choice sees: every other one of the world's eight, from the first on."""
CONFIRMING = ("georgian", "cyrillic", "typeface", "newfaces")
"""The tasks that the choice does not see."""
