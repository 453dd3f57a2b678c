"""A second, made-up paper as a client of the machine: a study, two exhibits, a claim, and its own page.

penultimate run forgetting --plugin tests/second/paper.py
"""

import dataclasses
from pathlib import Path

from penultimate import register
from penultimate.paper.studies.smoke import STUDY as SMOKE
from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.page.form import Explained, Headline, Tile
from penultimate.report.page.study import Section, StudyPage
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.scatter import Scatter, ScatterPanel
from penultimate.report.shapes.table import PrintedTable, TableOfRuns, as_printed
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.study.blocks import Runs

PAGE = "forgetting"
OBJECTIVES = ("softmax", "dropout(keep=0.5)", "label_smoothing(alpha=0.3)")
TRAIN = Quantity("top1", label="Training images, %", key="train_percent", split="train", bold=True)
TEST = Quantity("top1", label="Test images, %", key="test_percent", bold=True)

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
        page=PAGE,
    )
)


def remembered(measurements):
    """The training accuracy of each objective by its slug, in per cent: one run each."""
    values = measurements.values(TRAIN)
    return {
        measurements.objective(spec).slug: 100 * value
        for spec, runs in values.items()
        for value in runs.values()
    }


def judge(measurements):
    """The claim: regularised objectives remember fewer training images than softmax."""
    found = remembered(measurements)
    fewer = [slug for slug, value in found.items() if value < found["softmax"]]
    verdict = "holds" if len(fewer) == len(found) - 1 else "does not hold"
    row = TableRow("Regularised objectives remember fewer training images", (Cell(verdict),))
    return Piece((ExhibitTable("verdict", "The claim", "", (Column("verdict", "Verdict"),), (row,)),))


def answer(measurements):
    """The first lines of the page."""
    found = remembered(measurements)
    least = min(found, key=found.__getitem__)
    facts = (Tile(str(len(found)), "", "objectives"),)
    return Headline(f"Of {len(found)} objectives, {least} remembers least.", facts=facts)


register.exhibit(
    Exhibit(
        name="memories",
        title="What is remembered",
        caption="Accuracy on {source} in training and test.",
        parts=(
            TableOfRuns("memories", "Accuracy", (TRAIN, TEST), "accuracy"),
            PrintedTable("memories", "forgetting_table1", "As it was printed", as_printed((TRAIN,))),
            Scatter(
                "memories_drawn",
                "Training and test",
                "Accuracy on test images against that on training images.",
                (ScatterPanel("memories_panel", "Training and test", TRAIN, TEST, "accuracy"),),
            ),
        ),
        section="2",
        page=PAGE,
    )
)
register.exhibit(
    Exhibit(
        name="verdict",
        title="Whether the claim holds",
        caption="Judged by one run of each objective.",
        parts=(Bespoke(judge, (TRAIN,)),),
        section="3",
        page=PAGE,
    )
)
register.page(
    StudyPage(
        PAGE,
        {
            "2": Section("Memory", "What networks remember", "Do objectives differ?"),
            "3": Section("Memory", "The claim", "Does it hold?"),
        },
        answer,
        {"softmax": Explained("The usual loss.")},
        (("Remembering", Explained("To be right on a training image.")),),
        Path(__file__).with_name("paper.html"),
    ),
    first="forgetting",
    further=("glyphwide",),
)
