"""Transfer to images with several labels (section D.3 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penultimate.data.catalog import card
from penultimate.errors import as_sentence
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Missing, TableRow
from penultimate.report.marks import bold_notes
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.asked import Asked, already
from penultimate.report.shapes.findings import beside_baseline
from penultimate.report.shapes.numbers import average
from penultimate.report.shapes.table import Printed, PrintedTable, RunColumn, run_column, run_table
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import as_name, counted, in_words, plain
from penultimate.report.text import percent as in_percent

WHAT = "AUC of each label of images that have several"
DRAWN = " On test images a faint letter is uncertain; on validation images it is known which letter it is."
FINDINGS = {"findings", "findings_smoke"}
"""The data sets with faint letters."""
SPLITS = {"validation": "validation images", "test": "test images"}
"""Splits in the paper's order: a few images labelled with care, and images split off the training set."""
COUNTED = {
    "zeros": "",
    "ignore": "; uncertain labels left out",
    "ones": "; uncertain labels counted as present",
}
OF_LABEL = "label, uncertain"


def _of_split(split: str) -> dict[str, Quantity]:
    """Return the area of each label, the ends of its interval, and the mean over the labels."""
    of_label = Quantity("multilabel_auc", split=split, target=TARGETS, setting=OF_LABEL, bold=True)
    of_label = replace(of_label, optional=split != "test")
    return {
        "auc": of_label,
        "low": replace(of_label, metric="multilabel_auc_low", bold=False),
        "high": replace(of_label, metric="multilabel_auc_high", bold=False),
        "mean": replace(
            of_label, metric="multilabel_mean_auc", setting="uncertain", label="Mean", key="mean_auc_percent"
        ),
    }


QUANTITIES = {split: _of_split(split) for split in SPLITS}


def _by_policy(measurements: Measurements, quantity: Quantity, target: str) -> dict[str, dict[str, ByRun]]:
    """Return a quantity's final values by policy for uncertain labels, and by label ("" for the mean)."""
    values: dict[str, dict[str, ByRun]] = {}
    for text, runs in measurements.conditions(quantity.metric, target, quantity.split).items():
        settings = dict(part.split("=") for part in text.split(", ") if text)
        if "uncertain" in settings:
            values.setdefault(settings["uncertain"], {})[settings.get("label", "")] = runs
    return values


def _build(measurements: Measurements) -> Piece:
    """Return a table of areas and one of their intervals for each data set, split and policy.

    The intervals are folded, and so are areas for which uncertain labels do not count as in the paper.
    """
    tables: list[ExhibitTable] = []
    notes: list[str] = []
    for target in measurements.several_labels:
        for split, shown in QUANTITIES.items():
            values = {part: _by_policy(measurements, shown[part], target) for part in shown}
            for policy, by_label in values["auc"].items():
                of_policy = {part: values[part].get(policy, {}) for part in values}
                name = "_".join(["tableD1", as_name(target), split, *([policy] if COUNTED[policy] else [])])
                columns = [_column(shown["auc"], label, runs) for label, runs in by_label.items()]
                mean = of_policy["mean"].get("", {})
                columns += [run_column(shown["mean"], mean)] if mean else []
                where = f"{card(target).title}, {SPLITS[split]}{COUNTED[policy]}"
                table = run_table(measurements, name, f"{where}: AUC, %", columns)
                if table is not None:
                    ends = _intervals(measurements, f"{name}_intervals", where, of_policy)
                    tables += [replace(table, folded=COUNTED[policy] != ""), replace(ends, folded=True)]
                    notes += _finding(measurements, by_label, where) if split == "test" else []
    if not tables:
        return Piece(missing=(Missing(WHAT),), words={"drawn": ""})
    reasons = measurements.results.provenance.get("undefined", {}).values()
    lacking = [str(why) for why in reasons if str(why).startswith("multilabel_auc")]
    notes += [as_sentence(f"No value: {plain(why)}") for why in dict.fromkeys(lacking)]
    drawn = not FINDINGS.isdisjoint(measurements.several_labels)
    return Piece(
        tuple(tables),
        notes=(*bold_notes(measurements), *notes),
        words={"drawn": DRAWN if drawn else ""},
        method=_thresholds(measurements),
    )


def _thresholds(measurements: Measurements) -> tuple[str, ...]:
    asked = measurements.networks.requested("multilabel")
    if asked is None or asked.settings["thresholds"] is None:
        return ()
    thresholds = in_words(asked.settings["thresholds"])
    return (f"Areas are over {thresholds} thresholds of the probability, intervals of the exact ones.",)


def _column(quantity: Quantity, label: str, runs: ByRun) -> RunColumn:
    return run_column(replace(quantity, label=plain(label), key=f"{label}_auc_percent"), runs)


def _intervals(
    measurements: Measurements, name: str, where: str, values: Mapping[str, Mapping[str, ByRun]]
) -> ExhibitTable:
    """Return the ends of the intervals, each as the mean over an objective's runs."""
    rows = []
    for objective in measurements.objectives:
        ends = {
            label: [values[end].get(label, {}).get(objective.spec, {}) for end in ("low", "high")]
            for label in values["auc"]
        }
        if any(low for low, _ in ends.values()):
            cells = tuple(_interval(low, high) for low, high in ends.values())
            rows.append(TableRow(objective.label, cells, objective.slug))
    heads = tuple(Column(f"{label}_interval", plain(label), unit="%") for label in values["auc"])
    title = f"{where}: 95 % interval of the AUC of one network (DeLong), its ends averaged over runs"
    return ExhibitTable(name, title, "Objective", heads, tuple(rows))


def _interval(low: Mapping[int | None, float], high: Mapping[int | None, float]) -> Cell:
    if not low or not high:
        return Cell(MISSING, detail="not measured")
    ends = " to ".join(in_percent(average(list(of_end.values()))) for of_end in (low, high))
    return Cell(ends, count=len(low), of_runs=True)


def _finding(measurements: Measurements, by_label: Mapping[str, ByRun], where: str) -> list[str]:
    """Return on how many labels softmax has the highest mean, and on how many of these it shares it."""
    softmax = measurements.baseline
    means = [
        {spec: average(list(of_seed.values())) for spec, of_seed in runs.items()}
        for runs in by_label.values()
    ]
    if not all(softmax in of_label and len(of_label) > 1 for of_label in means):
        return []
    first = [of_label for of_label in means if of_label[softmax] == max(of_label.values())]
    tied = sum([*of_label.values()].count(of_label[softmax]) > 1 for of_label in first)
    return [
        f"{where}: softmax has the highest mean AUC on {in_words(len(first), 'none')} of"
        f" {counted(len(means), 'label')}{f' (tied on {in_words(tied)})' if tied else ''}."
    ]


def _mean_area(measurements: Measurements) -> str:
    """Return a sentence on the mean over the labels of the first data set with several labels.

    It is for test images, with uncertain labels counted as absent.
    """
    for target in measurements.several_labels:
        means = _by_policy(measurements, QUANTITIES["test"]["mean"], target).get("zeros", {}).get("", {})
        words = f"mean AUC over the labels of {card(target).title}, test images,"
        said = beside_baseline(Asked(words, QUANTITIES["test"]["mean"], read=already(means)))
        if means:
            return said(measurements)
    return ""


PATHOLOGIES = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural effusion")


def _printed(split: str, table: str, what: str) -> PrintedTable:
    columns = tuple(
        Printed(f"{name.lower().replace(' ', '_')}_auc_percent", name, unit="%") for name in PATHOLOGIES
    )
    title = f"The paper's Table D.1: CheXpert, {what}; ResNet-50, eight runs, AUC, %"
    return PrintedTable(f"tableD1_{split}", table, title, columns)


TABLE_D1 = Exhibit(
    name="tableD1",
    title="Images of several labels",
    caption="The area under the ROC curve of each label, in per cent, by a logistic regression of that label"
    " alone on the frozen features; means over runs.{drawn}",
    parts=(
        Bespoke(_build, tuple(one for of_split in QUANTITIES.values() for one in of_split.values())),
        _printed("validation", "neurips_tableD1_chexpert_official", "the 234 official validation images"),
        _printed("test", "neurips_tableD1_chexpert_iid", "22,431 images of the training set"),
    ),
    paper_says="The paper: of 22,431 images, softmax is significantly better than all others on four of five"
    " pathologies, and tied on the fifth; on the official validation images many are tied. Its areas are of"
    " 1,000 bins.",
    findings=(_mean_area,),
    method=(
        "Uncertain labels count as absent, unless a table says otherwise, in training and testing alike. Each"
        " label has a lambda of its own, chosen by its AUC on a fifth of the training images. Areas are"
        " exact.",
    ),
    section="D.3",
    measured_by="full",
    of_given=True,
    summary="AUC of each label of images with several labels",
    short="Several labels",
)
