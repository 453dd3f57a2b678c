"""Two more small networks, trained as the ICLR version of the paper trains on CIFAR (its table 1)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penultimate.paper.arms import COSINE_DECAY
from penultimate.paper.claims.trials import runs_each
from penultimate.report.base import Missing
from penultimate.report.marks import bold_notes
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.networks import USUAL_PAGE, is_further
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked, already
from penultimate.report.shapes.findings import goes_with
from penultimate.report.shapes.numbers import rank_correlation
from penultimate.report.shapes.table import Printed, PrintedTable, RunColumn, run_column, run_table
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, p_value, plain

TOP1 = Quantity("top1", label="Top-1, %", key="top1_percent", arm=COSINE_DECAY, bold=True, with_error=True)
FAR = 0.05
"""The difference in accuracy from the objective's median beyond which a run is far off."""
MAIN = replace(TOP1, arm="", optional=True)
"""The same quantity in a study whose only architecture is one of these, and whose networks all train so."""


def _columns(measurements: Measurements) -> list[RunColumn]:
    """Return the accuracies of each further architecture that was measured in the arm."""
    top1 = _quantity(measurements)
    return [
        run_column(replace(top1, group=plain(other.backbone), key=f"{other.backbone}_{top1.key}"), runs)
        for other in measurements.of_others
        if (runs := other.values(top1))
    ]


def _quantity(measurements: Measurements) -> Quantity:
    """Return the accuracy in the arm; for a study of one such architecture alone, that in its main arm."""
    return (
        MAIN
        if is_further(measurements.backbone, USUAL_PAGE) and _is_unaveraged(measurements.recipe)
        else TOP1
    )


def _is_unaveraged(recipe: Mapping[str, Any]) -> bool:
    averaged = recipe.get("averaging_window") or recipe.get("averaging_momentum")
    return recipe.get("schedule") == "cosine" and not averaged


def _build(measurements: Measurements) -> Piece:
    columns = _columns(measurements)
    title = f"Test accuracy on {measurements.title} under cosine decay, without averaging"
    table = run_table(measurements, "iclr_table1", title, columns) if columns else None
    if table is None:
        gap = Missing("Accuracy of two more architectures under cosine decay")
        return Piece(missing=(gap,))
    return Piece((table,), notes=(_regime(measurements, columns), *bold_notes(measurements)))


def _alike(measurements: Measurements) -> str:
    """Return whether the first two architectures rank the objectives alike."""
    columns = _columns(measurements)
    if len(columns) < 2:
        return ""
    one, other = (
        Asked(
            f"test accuracy of {column.quantity.group}",
            TOP1,
            ("iclr_table1_accuracy", f"{name}_top1_percent"),
            read=already(column.runs),
        )
        for name, column in zip(("cifar10", "cifar100"), columns[:2], strict=True)
    )
    return goes_with(one, other)(measurements)


def _far_off(measurements: Measurements) -> str:
    """Return the runs far from the others of their objective, and the result with medians instead."""
    far, medians = [], []
    for column in _columns(measurements):
        middle = {spec: statistics.median(runs.values()) for spec, runs in column.runs.items()}
        medians.append(middle)
        label = {each.spec: each.label for each in measurements.in_arm(column.quantity.arm).objectives}
        far += [
            f"{label[spec]} {run_name(seed)}, {fixed(100 * value, 1)} % ({column.quantity.group})"
            for spec, runs in column.runs.items()
            for seed, value in runs.items()
            if len(runs) > 2 and abs(value - middle[spec]) > FAR
        ]
    if not far:
        return ""
    said = f"More than {fixed(100 * FAR, 0)} points from the median of its objective: {'; '.join(far)}."
    if len(medians) < 2:
        return said
    one, other = medians[:2]
    specs = [spec for spec in one if spec in other]
    found = rank_correlation([one[spec] for spec in specs], [other[spec] for spec in specs])
    return f"{said} By medians ρ = {fixed(found.rho, 2)}, {p_value(found.p)}." if found else said


def _regime(measurements: Measurements, columns: list[RunColumn]) -> str:
    """Return a sentence on how the arm was trained here."""
    arm = measurements.in_arm(_quantity(measurements).arm)
    recipe = arm.recipe
    if not recipe:
        return ""
    rates = {
        text: grid["recipe"]["learning_rate"]
        for grid in arm.networks.grids(arm.arm)
        if "recipe" in grid
        for text in grid["objectives"]
    }
    rate = f"learning rate {recipe['learning_rate']:g}"
    if len({*rates.values()}) > 1:
        usual, count = Counter(rates.values()).most_common(1)[0]
        shared = (
            f" ({in_words(count)} of {counted(len(rates), 'objective')} with {usual:g})" if count > 1 else ""
        )
        rate = f"learning rates from {min(rates.values()):g} to {max(rates.values()):g}{shared}"
    averaging = "no averaging of the weights" if _is_unaveraged(recipe) else "averaged weights"
    return (
        f"Trained here for {counted(int(recipe['epochs']), 'epoch')}, {rate}, {plain(recipe['schedule'])}"
        f" schedule down to {fixed(100 * recipe['final_fraction'], 0)} % of it, {averaging};"
        f" {runs_each(len(runs) for column in columns for runs in column.runs.values())}."
    )


ICLR_TABLE1 = Exhibit(
    name="iclr_table1",
    title="Do two more small networks, trained otherwise, rank the objectives alike?",
    caption="Test accuracy of networks of two more architectures, trained with a cosine decay of the"
    " learning rate and without averaging of the weights. ± is the standard error over runs.",
    parts=(
        Bespoke(_build, (TOP1, MAIN)),
        PrintedTable(
            "iclr_table1",
            "iclr_table1_accuracy",
            "Table 1 of the paper's ICLR version: ResNet-50; All-CNN-C; WRN-16-8",
            (
                Printed("imagenet_top1_percent", "Top-1, %", "ImageNet"),
                Printed("imagenet_top5_percent", "Top-5, %", "ImageNet"),
                Printed("cifar10_top1_percent", "Top-1, %", "CIFAR-10"),
                Printed("cifar100_top1_percent", "Top-1, %", "CIFAR-100"),
            ),
        ),
    ),
    findings=(_alike, _far_off),
    paper_says="The paper's ICLR version trains All-CNN-C on CIFAR-10 and WRN-16-8 on CIFAR-100 with cosine"
    " decay and no averaging, 25 runs an objective. Learning rate and weight decay were searched for each"
    " objective, and several have the same (its Table A.2).",
    section="B",
    measured_by="full",
    of_another=True,
    summary="Accuracy of two more architectures under cosine decay, without weight averaging",
    short="Two more small networks",
)
