"""All numbers on which a verdict depends; `docs/explain/rules.md` has their reasons.

They are shares or ranks, never points, so that the same numbers serve the embedded world and ImageNet.
"""

from __future__ import annotations

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
