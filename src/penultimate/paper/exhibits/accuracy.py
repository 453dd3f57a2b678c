"""Accuracy on the images that the networks were trained on (section C.1 of the paper)."""

from __future__ import annotations

from penultimate.paper import printed
from penultimate.report.quantity import Quantity
from penultimate.report.shapes import findings
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.table import PrintedTable, TableOfRuns, as_printed
from penultimate.report.spec import Exhibit

COLUMNS = tuple(
    Quantity(
        metric,
        label=heading,
        key=f"{split}_{metric}_percent",
        split=split,
        group=group,
        decimals=2,
        bold=True,
        with_error=True,
    )
    for split, group in (("train", "Training images"), ("test", "Test images"))
    for metric, heading in (("top1", "Top-1, %"), ("top5", "Top-5, %"))
)
TABLE_C1 = Exhibit(
    name="tableC1",
    title="How well the networks know the images they were trained on",
    caption="Accuracy of the finished networks on the training images of {source}, seen without"
    " augmentation, and beside it on the test images. An objective can do worse on the first and better on"
    " the second: that is what regularization is for. ± is the standard error over runs.",
    parts=(
        TableOfRuns(
            "tableC1",
            "Accuracy in training and test",
            COLUMNS,
            missing="Accuracy on the training images",
            needs=("train_top1_percent",),
        ),
        PrintedTable(
            "tableC1",
            "neurips_tableC1_train_accuracy",
            "The paper's Table C.1: ResNet-50, ImageNet",
            as_printed(COLUMNS[:2]),
        ),
    ),
    findings=(
        findings.beside_baseline(
            Asked("training accuracy", COLUMNS[0], ("neurips_tableC1_train_accuracy", COLUMNS[0].key)),
            printed.TEST,
        ),
    ),
    section="C.1",
    summary="Training accuracy",
    short="Training accuracy",
)
