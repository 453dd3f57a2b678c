"""The measurements of plug-ins: the user's metrics, probes and measurements, without a paper to compare."""

from __future__ import annotations

import math

from penultimate.data.catalog import card
from penultimate.report.base import ExhibitTable, Missing
from penultimate.report.marks import bold_notes
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.sets import official_accuracy
from penultimate.report.shapes.table import RunColumn, columns_of_targets, run_column, run_table
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import as_name

NONE = (
    "This study asks for nothing that a plug-in measures; one that does: `penultimate run STUDY --plugin FILE"
    " --set measure=accuracy,class_separation,linear,knn,NAME`."
)
DIGITS = 4
"""The number of significant digits of a number whose scale is not known beforehand."""


def _build(measurements: Measurements) -> Piece:
    """Return at most two tables for each measurement of a plug-in, in every arm of the study."""
    asked = measurements.networks.of_plugins
    if not asked:
        return Piece(notes=(NONE,), wanted=False)
    arms = [measurements.in_arm(arm) for arm in measurements.arms]
    tables = [
        table
        for arm in arms
        for text in asked
        for table in (_scores(arm, text), _numbers(arm, text))
        if table
    ]
    silent = [text for text in asked if not any(arm.plugin_values(text) for arm in arms)]
    undefined = [str(reason) for reason in measurements.results.provenance.get("undefined", {}).values()]
    reasons = {text: next((why for why in undefined if why.startswith(f"{text} (")), "") for text in silent}
    notes = [f"No value: {why}" for why in reasons.values() if why]
    if any(cell.best for table in tables for row in table.rows for cell in row.cells):
        notes += bold_notes(measurements)
    left = ", ".join(text for text, why in reasons.items() if not why)
    command = str(measurements.results.description.get("command", "penultimate run"))
    return Piece(tuple(tables), notes=tuple(notes), missing=(Missing(left, command),) if left else ())


def _scores(measurements: Measurements, text: str) -> ExhibitTable | None:
    """Return a table of a plug-in probe's scores on each target, beside the accuracy on the source."""
    values = measurements.plugin_values(text)
    per_target = {
        target: values.get((_score(text, target), target, "test", ""), {}) for target in measurements.targets
    }
    group = f"{measurements.title}, test"
    accuracies = (
        Quantity("top1", label="Top-1", key="top1_percent", group=group, bold=True),
        Quantity("top5", label="Top-5", key="top5_percent", group=group, bold=True),
    )
    on_target = Quantity("top1", key="{target}_percent", group=f"Transfer, {text}", bold=True)
    targets = columns_of_targets(on_target, per_target)
    columns = [*(run_column(quantity, measurements.values(quantity)) for quantity in accuracies), *targets]
    title = f"Classifiers on frozen features, {text}, %"
    return _table(measurements, ("plugins_probe", text), title, columns, targets)


def _score(text: str, target: str) -> str:
    """Return the metric that holds a probe's accuracy on a target."""
    return f"{text}_{official_accuracy(target)}"


def _numbers(measurements: Measurements, text: str) -> ExhibitTable | None:
    """Return a table of the other numbers of a measurement, in columns with digits that suit their values."""
    values = {
        place: runs
        for place, runs in measurements.plugin_values(text).items()
        if place[1] not in measurements.targets or place[0] != _score(text, place[1])
    }
    largest: dict[str, float] = {}
    for (metric, *_), runs in values.items():
        sizes = [abs(value) for of_seeds in runs.values() for value in of_seeds.values()]
        largest[metric] = max(largest.get(metric, 0.0), *sizes)
    columns = []
    for (metric, target, split, condition), runs in values.items():
        part = metric.removeprefix(text).removeprefix(".")
        on = "" if target == measurements.source else target
        where = ", ".join(filter(None, (on and card(on).title, split, condition)))
        label = f"{part.replace('_', ' ') or 'Value'} ({where})"
        key = "_".join(filter(None, (on, condition, split, part or "value")))
        decimals = _decimals(largest[metric])
        shown = Quantity(metric, label=label, key=key, sign="", factor=1, decimals=decimals, with_error=True)
        columns.append(run_column(shown, runs))
    return _table(measurements, ("plugins_metric", text), text, columns, columns)


def _table(
    measurements: Measurements,
    called: tuple[str, str],
    title: str,
    columns: list[RunColumn],
    needs: list[RunColumn],
) -> ExhibitTable | None:
    """Return the table under a name that suits a file; its title names the arm unless it is the main one."""
    arm = measurements.arm
    name = as_name(*called, *([arm] if arm else []))
    return run_table(measurements, name, f"{title}, {arm}" if arm else title, columns, needs)


def _decimals(largest: float) -> int:
    """Return the number of decimals, at most six, that gives the largest value four significant digits.

    >>> [_decimals(value) for value in (0.5, 12.0, 123456.0, 0.0)]
    [4, 2, 0, 0]
    """
    return min(6, max(0, DIGITS - 1 - math.floor(math.log10(largest)))) if largest else 0


PLUGINS = Exhibit(
    name="plugins",
    title="Measured by plug-ins",
    caption="Metrics of your own, taken of the penultimate features of {source}; probes of your own, fitted"
    " to those of each new task and scored as the others are. Means over runs, ± the standard error.",
    parts=(Bespoke(_build),),
    place=1,
    summary="What metrics and probes from plug-ins have measured",
    short="Plug-ins",
)
