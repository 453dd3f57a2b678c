"""The panels and quantities that the page and exhibits of the old report still ask for."""

from __future__ import annotations

from penultimate.paper.printed import mean_of_printed
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.scatter import PrintedPanel, ScatterPanel

R2_TRAIN = Quantity("class_separation", "train", label="Class separation R² on the training images")
LINEAR = Quantity("linear_{accuracy}", label="Mean linear transfer accuracy, %", target="targets")
RIGHT_HALF = "The figure's right half, a sweep of cosine softmax over temperatures"
SEPARATION = ScatterPanel(
    "figure5-ours",
    "Objectives on {source}",
    R2_TRAIN,
    LINEAR,
    "Class separation against linear transfer",
    measured_by="quickstart",
)
SEPARATION_IN_PAPER = PrintedPanel(
    "figure5-published",
    "Objectives on ImageNet (ResNet-50)",
    ("neurips_table3_class_separation", "class_separation_r2"),
    ("neurips_table1_linear", mean_of_printed),
    R2_TRAIN.label,
    LINEAR.label,
    x_digits=3,
)
