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
TRAIN = Column("train_percent", "Training images, %", digits=1, better="high")
TEST = Column("test_percent", "Test images, %", digits=1, better="high")

register.printed(
    (
        {"objective": "softmax", "train_percent": "99.0"},
        {"objective": "dropout", "train_percent": "91.5"},
        {"objective": "an objective of its own", "train_percent": "88.0"},
    ),
    name="forgetting_table1",
)
register.study(
    dataclasses.replace(
        SMOKE,
        name="forgetting",
        title="Do regularised objectives remember less?",
        question="Which objective remembers the fewest training images?",
        targets=("digits_smoke",),
        networks=(Runs(OBJECTIVES, SMOKE.runs[0].recipe, backbones=("glyphnet(width=4, features=16)",)),),
        measure=("accuracy", "linear"),
        page="forgetting",
    )
)


def remembered(run, split="train"):
    """The accuracy [seed, objective] in per cent."""
    return seeds(run, "top1", split, scale=100)


@exhibit("memories", "What is remembered", section="2", study="forgetting", page="forgetting")
def memories(run):
    """Accuracy on {source} in training and test."""
    columns = {TRAIN: remembered(run), TEST: remembered(run, "test")}
    yield table_of_means(run, "memories", "Accuracy", columns)
    yield table_of_printed("memories", "As printed", "forgetting_table1", {TRAIN: "train_percent"})
    axes = Axis("Training", 1, "%"), Axis("Test", 1, "%")
    panel = scatter(run, "memories_drawn", "Training and test", *columns.values(), axes)
    yield panel and Figure("memories", "Training and test", (panel,))


@exhibit("verdict", "Whether the claim holds", section="3", study="forgetting", page="forgetting")
def verdict(run):
    """Regularised objectives remember fewer training images than softmax: judged by one run of each."""
    found = remembered(run).mean()
    held = "holds" if (found.drop("softmax") < found["softmax"]).all() else "does not hold"
    says = "Regularised objectives remember fewer training images"
    yield table_of_rows("verdict", "The claim", [Column("verdict", "Verdict")], [(says, [held])])


def answer(run):
    """The first line of the page."""
    found = remembered(run).mean()
    return Answer(f"Of {len(found)} objectives, {found.idxmin()} remembers least.")


register.page(
    Page(
        "forgetting",
        answer,
        {
            "2": Section("What networks remember", "Do objectives differ?", "Memory"),
            "3": Section("The claim", "Does it hold?", "Memory"),
        },
        source="made up",
    ),
    first="forgetting",
    further=("glyphwide",),
)
