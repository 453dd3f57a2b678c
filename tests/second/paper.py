"""A second, made-up paper as a client of the machine: a study, two exhibits, a claim, and its own page.

penultimate run forgetting --plugin tests/second/paper.py
"""

import dataclasses

from penultimate import register
from penultimate.paper.studies.smoke import STUDY as SMOKE
from penultimate.results.exhibit import exhibit
from penultimate.results.figure import Axis, Figure, scatter
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.page import Answer, Page, Section
from penultimate.results.rows import seeds
from penultimate.results.table import Column, table_of_rows
from penultimate.study.blocks import Runs

OBJECTIVES = ("softmax", "dropout(keep=0.5)", "label_smoothing(alpha=0.3)")
TRAIN = Column("train_percent", "Training images, %", better="high")
register.printed(
    (
        {"objective": "softmax", "train_percent": "99.0"},
        {"objective": "an objective of its own", "train_percent": "88.0"},
    ),
    name="forgetting_table1",
)
register.study(
    dataclasses.replace(
        SMOKE,
        name="forgetting",
        title="Do regularised objectives remember less?",
        targets=("digits_smoke",),
        networks=(Runs(OBJECTIVES, SMOKE.main.recipe, backbones=("glyphnet(width=4, features=16)",)),),
        measure=("accuracy", "linear"),
        page="forgetting",
    )
)


@exhibit("memories", "What is remembered", section="2", study="forgetting", page="forgetting")
def memories(run):
    """Accuracy on {source} in training and test."""
    train, test = seeds(run, "top1", "train", scale=100), seeds(run, "top1", scale=100)
    yield table_of_means(run, "memories", "Accuracy", {TRAIN: train})
    yield table_of_printed("memories", "As printed", "forgetting_table1", {TRAIN: "train_percent"})
    panel = scatter(run, "memories_drawn", "Both", train, test, (Axis("Training, %"), Axis("Test, %")))
    yield panel and Figure("memories", "Training and test", (panel,))


@exhibit("verdict", "Whether the claim holds", section="3", study="forgetting", page="forgetting")
def verdict(run):
    """Judged by one run of each."""
    found = seeds(run, "top1", "train").mean()
    held = "holds" if (found.drop("softmax") < found["softmax"]).all() else "does not hold"
    yield table_of_rows("verdict", "The claim", [Column("verdict", "Verdict")], [("Less", [held])])


SECTIONS = {"2": Section("What networks remember"), "3": Section("The claim")}
PAGE = Page("forgetting", lambda run: Answer("Softmax remembers."), SECTIONS, source="made up")
register.page(PAGE, first="forgetting", further=("glyphwide",))
