"""The choices on the way to the main claim, as data.

The claim is that objectives which separate the classes of pretraining further transfer worse. Whoever tests
it chooses an index of separation, a probe, the layer that is probed, which objectives are compared, on which
draws of the images, and what is trained. Simonsohn, Simmons and Nelson (2020) call the result under all
defensible choices a specification curve; one set of choices is called a path here.

The list was written on 2026-11-27, when every run that it reads existed and many of their numbers were known.
It explores, and confirms nothing. CDNV and few labels, which no kept run has, are listed for studies that
measure them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from penultimate.measures.class_separation import UNBIASED
from penultimate.paper.claims.aspects import QUANTITIES
from penultimate.report.quantity import Quantity

LISTED = "2026-11-27"
"""The date of the list."""


@dataclass(frozen=True)
class PathReading:
    """A number of every network that a path may read: its words, where it is, and the sign of its order."""

    words: str
    quantity: Quantity
    sign: int = 1


def _of_separation(words: str, metric: str) -> tuple[PathReading, PathReading]:
    train, test = (Quantity(metric, split, optional=True) for split in ("train", "test"))
    return PathReading(f"{words} R², training", train), PathReading(f"{words} R², test", test)


INDEXES = (
    PathReading("Cosine R², training", QUANTITIES["separation"]),
    _of_separation("Cosine", "class_separation")[1],
    *_of_separation("Centred", "class_separation_cosine_centered"),
    *_of_separation("Euclidean", "class_separation_euclidean"),
    *_of_separation("Unbiased", UNBIASED),
    PathReading("NC1, training", Quantity("nc_trace_sw_pinv_sb_over_c", "train", optional=True), -1),
    PathReading("CDNV, training", Quantity("source_cdnv", "train", optional=True), -1),
)
"""How far apart the classes are, on training or on test images: the claim's own index first. Small values of
NC1 and CDNV mean far apart, so that their order is reversed."""
PROBES = (
    PathReading("Linear", QUANTITIES["linear"]),
    PathReading("kNN", replace(QUANTITIES["knn"], optional=True)),
    *(
        PathReading(f"Ridge, {shots} a class", replace(QUANTITIES["few_labels"], setting=f"shots={shots}"))
        for shots in (1, 5, 20)
    ),
)
"""How transfer is measured, in the mean over tasks: the claim's own probe first."""

TRAINED, INDEX, PROBE, OBJECTIVES, DRAWS, LAYER = CHOICES = (
    "What is trained",
    "Index of separation",
    "Probe",
    "Objectives",
    "Draws",
    "Layer probed",
)
HOLDOUT, MAIN, TRANSLATED, PRINTED, OWN_DECAY, FAMILIES = (
    "Strengths of the holdout",
    "The study's objectives",
    "The paper's, translated",
    "The paper's, as printed",
    "Printed, and its decay",
    "Families of strengths",
)
"""What is trained: objectives at one strength each, or families of objectives at several."""
ALL = "All"
SUBSETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ALL: (),
        "No normalised heads": ("logit_norm", "cosine_softmax"),
        "No squared error": ("squared_error",),
    }
)
"""Which objectives, or families of them, are left out; the last that fits says what a set lacks anyway."""
ONE_LESS = "One other left out"
"""The level of all paths without one of the other objectives, which are those of the claim but for that."""
WHOLE, FIRST_HALF, SECOND_HALF = "All of the run", "First half", "Second half"
LAST, BEST = "Penultimate", "Best by validation"
LISTED_LEVELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        TRAINED: (HOLDOUT, MAIN, TRANSLATED, PRINTED, OWN_DECAY, FAMILIES),
        INDEX: tuple(one.words for one in INDEXES),
        PROBE: tuple(one.words for one in PROBES),
        OBJECTIVES: (*SUBSETS, ONE_LESS),
        DRAWS: (WHOLE, FIRST_HALF, SECOND_HALF),
        LAYER: (LAST, BEST),
    }
)
"""The levels of each choice in the order in which they are shown; others of a study follow."""
