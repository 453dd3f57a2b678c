"""Table 1: accuracy on the pretraining classes; transfer of the features by linear and kNN classifiers."""

from __future__ import annotations

from collections.abc import Mapping

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import (
    DATASET_TITLES,
    bold_note,
    not_measured,
    printed,
    published_table,
    run_cell,
    run_rows,
)
from penultimate.report.exhibits.measurements import (
    PROBES,
    Measurements,
    admit_compared,
    measure,
    short_title,
)
from penultimate.report.exhibits.numbers import best_of, best_on_average, mean_of_printed
from penultimate.report.text import fixed

MEAN_PER_CLASS = "†"


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    tables: list[ExhibitTable] = []
    notes: list[str] = []
    for probe, word in PROBES.items():
        if any(measurements.transfer(probe, target) for target in measurements.targets):
            tables.append(transfer_table(measurements, probe, word, f"table1_{probe}"))
        else:
            notes.append(not_measured(f"Transfer by {word} classifiers"))
        tables.append(_published(probe))
    if any(measure(target) == "mean_per_class" for target in measurements.targets):
        notes.append(f"{MEAN_PER_CLASS} mean per-class accuracy; all others top-1.")
    notes += [bold_note(measurements), *measurements.notes()]
    return Exhibit(
        "table1",
        "Accuracy where trained, and accuracy elsewhere",
        "The first columns say how well each network knows the classes it was trained on; the others how well"
        " a simple classifier on its frozen features learns each new task. All numbers are test accuracies in"
        " per cent, means over runs.",
        tuple(tables),
        notes=tuple(notes),
        limited=measurements.limited,
    )


def transfer_table(measurements: Measurements, probe: str, word: str, name: str) -> ExhibitTable:
    """Accuracy on the source, then by a probe on each target and on their mean; `word` is the probe's."""
    source = card(measurements.source).title
    columns, shown, best = [], [], []
    for metric, label in (("top1", "Top-1"), ("top5", "Top-5")):
        columns.append(Column(f"{metric}_percent", label, f"{source}, test", "%"))
        shown.append(measurements.runs(metric))
        best.append(best_of(shown[-1]))
    for target in measurements.targets:
        mark = MEAN_PER_CLASS if measure(target) == "mean_per_class" else ""
        columns.append(Column(f"{target}_percent", short_title(target) + mark, f"Transfer, {word}", "%"))
        shown.append(measurements.transfer(probe, target))
        best.append(best_of(shown[-1]))
    columns.append(Column("mean_percent", "Mean", f"Transfer, {word}", "%"))
    shown.append(measurements.mean_transfer(probe))
    per_target = [measurements.transfer(probe, target) for target in measurements.targets]
    best.append(best_on_average(shown[-1], per_target))

    def column(index: int, spec: str) -> Cell:
        return run_cell(shown[index].get(spec), 1, scale=100, best=spec in best[index])

    cells = [lambda spec, index=index: column(index, spec) for index in range(len(columns))]
    rows = run_rows(measurements, cells, shown)
    title = f"Classifiers on frozen features, {word}, %"
    return ExhibitTable(name, title, "Objective", tuple(columns), rows)


def _published(probe: str) -> ExhibitTable:
    word = PROBES[probe]
    columns = []
    for key, label in (("imagenet_top1_percent", "Top-1"), ("imagenet_top5_percent", "Top-5")):
        columns.append((Column(key, label, "ImageNet", "%"), printed(key)))
    for name, label in DATASET_TITLES.items():
        mark = MEAN_PER_CLASS if name in ("pets", "flowers") else ""
        key = f"{name}_percent"
        columns.append((Column(key, label + mark, f"Transfer, {word}", "%"), printed(key)))
    columns.append((Column("mean_percent", "Mean*", f"Transfer, {word}", "%"), _mean))
    return published_table(
        f"table1_{probe}",
        f"table1_{probe}",
        f"The paper's Table 1, {word} half: ResNet-50, ImageNet, eight runs, %",
        columns,
        ("* Not printed: the mean of the eight printed values. The paper's bold is not recorded.",),
    )


def _mean(row: Mapping[str, str]) -> Cell:
    value = mean_of_printed(row)
    return Cell(fixed(value, 1), value, detail="the mean of the printed values")
