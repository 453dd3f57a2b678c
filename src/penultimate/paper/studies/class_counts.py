"""Three objectives on 16 to 128 classes: does separation cost less transfer, the more classes there are?

    penultimate run class_counts

The classes are every eighth, fourth, second or each class of the world, with as many images in all. The
network is half as wide as usual, for time. Strengths at fewer classes are translated from those at 128: the
logit gap that minimises the penalised loss stays the same share of log K, and squared error's scale is K /
100.
"""

import dataclasses

from penultimate.paper.studies import quickstart
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

ALL = 128
"""The number of classes of the world."""
PENALTIES = {ALL: 0.0047, 64: 0.0076, 32: 0.0125, 16: 0.0208}
"""The strength of the logit penalty at each number of classes."""


def of_classes(classes: int) -> Runs:
    """Return the networks that are trained on a number of classes; with all of them they have no arm."""
    return Runs(
        (
            "softmax",
            f"logit_penalty(beta={PENALTIES[classes]})",
            f"squared_error(kappa=9, scale={classes / 100}, target=3.75)",
        ),
        dataclasses.replace(quickstart.RECIPE, epochs=16, evaluate_every=16),
        ("glyphnet(width=8, features=128)",),
        seeds=(210, 211, 212),
        arm="" if classes == ALL else f"{classes} classes",
        classes=classes,
    )


STUDY = Study(
    name="class_counts",
    title="Three objectives on 16 to 128 classes, three draws of the embedded image world",
    question="Does class separation cost less transfer, the more classes a network is trained on?",
    source="glyphs",
    targets=tuple(name for name in quickstart.TARGETS if name != "maths"),
    networks=tuple(map(of_classes, PENALTIES)),
    measure=("accuracy", "class_separation", "linear", "knn"),
    tuned_by=("matched_search_scaled",),
    expected_seconds={"train": 49.0, "accuracy": 1.5},
)
