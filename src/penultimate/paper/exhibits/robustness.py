"""Shifted test sets and corrupted images (section C.2 of the paper).

The mean corruption error is computed here, because it takes the errors of a reference: AlexNet's on the
published ImageNet-C, and elsewhere those of the study's softmax network of the same seed.
"""

from __future__ import annotations

import math
from dataclasses import replace

from penultimate.data.catalog import SHIFTS, shifted
from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.metrics import UndefinedError
from penultimate.metrics.robustness import mean_corruption_error
from penultimate.paper import BASELINE
from penultimate.report.base import Cell, ExhibitTable, Missing
from penultimate.report.marks import bold_notes
from penultimate.report.measurements import ByRun, Measurements, Seed, measured_by
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked
from penultimate.report.shapes.findings import beside_baseline, either
from penultimate.report.shapes.table import Printed, PrintedTable, RunColumn, run_column, run_table
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import listed

PUBLISHED = "published_robustness"
"""The measurement whose images are those of the published ImageNet-V2, -A, -R, -Sketch and -C."""
GROUPS = {
    "Noise, error %": ("Gauss.", "Shot", "Impulse"),
    "Blur, error %": ("Defocus", "Glass", "Motion", "Zoom"),
    "Weather, error %": ("Snow", "Frost", "Fog", "Bright"),
    "Digital, error %": ("Contrast", "Elastic", "Pixel", "JPEG"),
}
"""The headings of the corruptions, in the order of the benchmark and as in its own tables."""
HEADINGS = tuple((heading, group) for group, headings in GROUPS.items() for heading in headings)
MADE_HERE = (
    "The reference is the study's softmax network of the same seed; in the paper it is AlexNet. Frost is a"
    " procedural texture here, where ImageNet-C has photographs."
)
SHIFT_GROUP = "Accuracy on other images"
SETS = {"imagenet_v2": "V2", "imagenet_a": "A", "imagenet_r": "R", "imagenet_sketch": "Sketch"}

TEST = Quantity("top1", label="Test, %", key="test_percent", group="Accuracy", bold=True, with_error=True)
SHIFTED = {
    shift: replace(TEST, target=shift, label=f"-{title}, %", key=f"{shift}_percent", group=SHIFT_GROUP)
    for shift, (title, *_) in SHIFTS.items()
}
ERROR = Quantity("corruption_error", setting="corruption, severity", bold=True)
MCE = replace(ERROR, setting="", label="-C, mCE", key="mce", sign="", with_error=True)

Errors = dict[str, dict[Seed, dict[str, list[float]]]]
"""{objective: {seed: {corruption: [error at each severity]}}}, for networks with all of these errors."""


def _errors(measurements: Measurements) -> Errors:
    by_setting = measurements.by_setting(ERROR)
    wanted = [(name, str(severity)) for name in BENCHMARK for severity in SEVERITIES]
    whole: Errors = {}
    for spec, seeds in by_setting.get(wanted[0], {}).items():
        for seed in seeds:
            values = [by_setting.get(place, {}).get(spec, {}).get(seed) for place in wanted]
            if None not in values:
                numbers = iter(values)
                of_seed = {name: [next(numbers) for _ in SEVERITIES] for name in BENCHMARK}
                whole.setdefault(spec, {})[seed] = of_seed  # type: ignore[assignment]
    return whole


def _is_published(measurements: Measurements) -> bool:
    """Return whether the errors were measured on the published sets, and not on those made here."""
    rows = measurements.rows(ERROR.metric)
    return len(rows) > 0 and set(map(measured_by, rows)) == {PUBLISHED}


def _relative(measurements: Measurements, errors: Errors) -> tuple[ByRun, str]:
    """Return the mean corruption error of each network that has a reference, and why some have none."""
    if not errors:
        return {}, ""
    if _is_published(measurements):
        return {
            spec: {seed: mean_corruption_error(_means(values)) for seed, values in runs.items()}
            for spec, runs in errors.items()
        }, ""
    reference = errors.get(BASELINE)
    if reference is None:
        return {}, (
            "No mCE: its reference is the study's softmax network, and this study has measured none."
            " `metrics.robustness.mean_corruption_error` takes any other's errors."
        )
    try:
        relative = {
            spec: {
                seed: mean_corruption_error(values, reference[seed])
                for seed, values in runs.items()
                if seed in reference
            }
            for spec, runs in errors.items()
        }
    except UndefinedError as error:
        return {}, f"No mCE: {error}."
    lacking = {seed for runs in errors.values() for seed in runs} - set(reference)
    without = [f"seed {seed}" for seed in sorted(seed for seed in lacking if seed is not None)]
    without += ["networks that were not trained here"] if None in lacking else []
    reason = (
        f"mCE without {listed(without)}, of which there is no softmax network to compare with."
        if lacking
        else ""
    )
    return {spec: runs for spec, runs in relative.items() if runs}, reason


def _means(errors: dict[str, list[float]]) -> dict[str, float]:
    """Return each corruption's mean error over severities."""
    return {name: math.fsum(of_severities) / len(SEVERITIES) for name, of_severities in errors.items()}


def _build(measurements: Measurements) -> Piece:
    errors = _errors(measurements)
    relative, reason = _relative(measurements, errors)
    published = _is_published(measurements)
    test, *sets = (
        run_column(quantity, measurements.values(quantity)) for quantity in (TEST, *SHIFTED.values())
    )
    mce = run_column(MCE, relative)
    columns = [column for column in (test, *sets, mce) if column.runs]
    ours = run_table(measurements, "tableC2", f"Robustness on {measurements.title}", columns, [*sets, mce])
    tables = [ours if published else _with_reference(ours)] if ours else []
    by_corruption = _by_corruption(measurements, errors)
    tables += [by_corruption] if by_corruption else []
    missing = [] if errors else [Missing("Corrupted images")]
    missing += [] if any(column.runs for column in sets) else [Missing("Shifted test sets")]
    notes = (bold_notes(measurements) if ours else (), (reason,))
    return Piece(
        tuple(tables),
        notes=tuple(note for group in notes for note in group),
        missing=tuple(missing),
        words={
            "sets": _sets(measurements),
            "reference": "The reference is AlexNet on the published ImageNet-C, as in the paper."
            if published
            else MADE_HERE,
        },
    )


def _sets(measurements: Measurements) -> str:
    """Return a sentence on the images that take the place of each ImageNet set."""
    known = shifted(measurements.source)
    if measurements.source == "imagenet":
        return (
            "Top-1 accuracy of the networks, as they are, on the published ImageNet-V2, -A, -R and -Sketch:"
            " among their 200 classes on -A and -R, among all on the others."
        )
    if not known:
        return f"{measurements.title} has no shifted test sets."
    words = {shift: relation for shift, (_, relation, *_) in SHIFTS.items()}
    words["a"] = "what a network outside the study gets wrong"
    said = "; ".join(f"-{SHIFTS[shift][0]}: {words[shift]}" for shift in known)
    return f"Top-1 accuracy of the networks, as they are, in the place of ImageNet's sets. {said}."


def _reference_cell(cell: Cell) -> Cell:
    """Return a plain 100 in place of a cell, with its marks."""
    return Cell("100", 100.0, best=cell.best, detail="the reference", beaten=cell.beaten)


def _with_reference(table: ExhibitTable) -> ExhibitTable:
    """Return the table with a plain 100 for the mCE of the network that is the reference."""
    if table.columns[-1].key != MCE.key:
        return table
    rows = (
        replace(row, cells=(*row.cells[:-1], _reference_cell(row.cells[-1])))
        if row.objective == BASELINE and row.cells[-1].value is not None
        else row
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def _by_corruption(measurements: Measurements, errors: Errors) -> ExhibitTable | None:
    """Return the top-1 errors on each corruption, as means over its severities."""
    columns: list[RunColumn] = []
    for name, (heading, group) in zip(BENCHMARK, HEADINGS, strict=True):
        runs: ByRun = {
            spec: {seed: _means(of_run)[name] for seed, of_run in of_seeds.items()}
            for spec, of_seeds in errors.items()
        }
        columns.append(
            run_column(replace(ERROR, label=heading, group=group, key=f"{name}_error_percent"), runs)
        )
    title = "Errors on corrupted images, means of five severities"
    return run_table(measurements, "tableC2_corruptions", title, columns)


def _mce(measurements: Measurements) -> ByRun:
    """Return the mean corruption error of every run that has one."""
    relative, _ = _relative(measurements, _errors(measurements))
    return relative


TABLE_C2 = Exhibit(
    name="tableC2",
    title="What the networks make of images unlike those they were trained on",
    caption="{sets} mCE, of images under 15 corruptions at 5 severities: the errors of a network as a share"
    " of those of a reference, 100 where they are equal; lower is better. {reference}",
    parts=(
        Bespoke(_build, (TEST, *SHIFTED.values(), ERROR)),
        PrintedTable(
            "tableC2",
            "neurips_tableC2_robustness",
            "The paper's Table C.2: ResNet-50, ImageNet, eight runs",
            (
                *(
                    Printed(f"{name}_percent", f"-{title}, %", SHIFT_GROUP, "%")
                    for name, title in SETS.items()
                ),
                Printed("imagenet_c_mce", "-C, mCE"),
            ),
        ),
    ),
    findings=(
        either(
            beside_baseline(
                Asked(
                    "mCE (lower is better)", MCE, ("neurips_tableC2_robustness", "imagenet_c_mce"), read=_mce
                )
            ),
            beside_baseline(
                *(
                    Asked(
                        f"accuracy on -{title}",
                        SHIFTED[shift],
                        ("neurips_tableC2_robustness", f"imagenet_{shift}_percent"),
                    )
                    for shift, (title, *_) in SHIFTS.items()
                )
            ),
        ),
    ),
    section="C.2",
    summary="Robustness: shifted test sets and corrupted images",
    short="Robustness",
)
