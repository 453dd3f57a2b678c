"""Sixteen classes to 128, with as many images in all: does class separation cost less with many classes?

    penultimate run class_counts

Softmax, a logit penalty that separates further and squared error are trained on 16, 32, 64 and 128 of the
world's classes, three draws each: 36 networks. The rules (`penultimate.paper.claims.label_spaces`) were
laid down on 2026-11-26 (commit 6803300a), before any of them was trained. The kept run was made on
2026-11-27, from 173da760, in 37 minutes on one core of an Intel Xeon. The networks of 16 and 64 classes had
been trained the day before on an AMD processor without AVX-512. Its sums round otherwise, so that the same
seeds give other images and networks. There .1 of R² cost 2.94 points with 16 classes and 1.91 with 64; in
the kept run it costs 2.22 and 4.70. The two runs differ by no more than their intervals allow.

What differs between the grids is the number of classes (`Runs(classes=...)`): every eighth, fourth, second or
each class of the world, so that the fewer are among the more. Each epoch shows 11,264 training images at each
number, 704 of a class with 16 classes and 88 with 128; the holdout and the test set are as large in all, too.
So fewer classes are fewer characters as well, each seen more often: 64 with 16 classes, 512 with 128. The
other way to have fewer labels, to merge the classes of the same images, was tried with seed 7001 on
pretraining numbers alone and given up: after twelve epochs softmax classifies 32 % of the test images of 16
merged classes (R² .18), too few to ask anything of.

The transfer tasks are those of the quickstart but the mathematical operators, whose probes take longest; ten
handwritten digits are among them, so that 16 classes go to ten. The recipe is that of the quickstart, but for
16 epochs in place of its twelve, and the network is half as wide. This is for time alone: no more than 50
minutes of processor time were to be had for all 36 networks, on cores that others used as well. As wide as
usual an epoch took 6.6 seconds of processor time there, which would have left eight epochs; half as wide it
took 4.2, which with 10 seconds of measurements makes 46 minutes. In a pilot of twelve epochs (seed 7001,
pretraining alone, test accuracy in % and R²) softmax came to 91.2 and .528, the logit penalty to 91.3 and
.681 and squared error to 90.0 and .701 with 16 classes; softmax to 34.2 and .342 and squared error to 32.8
and .365 with 128. With all classes the networks are young, and R² spans little. Seeds and draws 210 to 212
are used by no other study.

The strengths at fewer classes are translated from those at 128 (K classes):

- Logit penalty: .0047 at 128 classes, which separated further at equal accuracy in the quickstart's pilot.
  The gap g that minimises ln(1 + (K - 1) e^-g) + b g² stays the same share of log K, as in `sweep`: b is
  .0076, .0125 and .0208 at 64, 32 and 16 classes.
- Squared error: the loss is a mean over K classes. Its scale is K / 100, so that a class weighs as much in
  the gradient at every K, as it does at the paper's 10 for 1000 classes and at the search's 1.28 for 128. The
  target of 3.75 and the weight of 9 for the right class concern single logits and stay.
- Softmax has none.
"""

import dataclasses

from penultimate.paper.studies import quickstart
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

SEEDS = (210, 211, 212)
PENALTIES = {128: 0.0047, 64: 0.0076, 32: 0.0125, 16: 0.0208}
"""The strength of the logit penalty at each number of classes."""
RECIPE = dataclasses.replace(quickstart.RECIPE, epochs=16, evaluate_every=16)
BACKBONE = "glyphnet(width=8, features=128)"
ALL = 128
"""The number of classes of the world."""


def of_classes(classes: int) -> Runs:
    """Return the grid of networks that are trained on a number of classes; with all of them it has no arm."""
    return Runs(
        (
            "softmax",
            f"logit_penalty(beta={PENALTIES[classes]})",
            f"squared_error(kappa=9, scale={classes / 100}, target=3.75)",
        ),
        RECIPE,
        (BACKBONE,),
        seeds=SEEDS,
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
