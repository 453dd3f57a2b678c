"""Table C.2: accuracy on shifted test sets, and errors on corrupted images.

Shifted sets have rows of the metric `top1`, with the set as target. Corrupted images have rows of
`corruption_error` on the source, split "test", with corruption and severity in the column `layer`: "fog 3".
The mean corruption error is worked out here: it takes another network's errors, those of the study's softmax
network of the same seed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from penultimate.data.catalog import SHIFTS, card, shifted
from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
from penultimate.metrics import UndefinedError
from penultimate.metrics.robustness import mean_corruption_error
from penultimate.objectives.presets import resolve
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import (
    bold_note,
    not_measured,
    printed,
    published_table,
    run_cell,
    run_rows,
)
from penultimate.report.exhibits.measurements import Measurements, Runs, admit_compared
from penultimate.report.exhibits.numbers import best_of, published_rows, summarise
from penultimate.statistics.comparison import bold

REFERENCE = resolve("softmax").canonical
PLACE = re.compile(rf"({'|'.join(BENCHMARK)}) ([1-5])")
HEADINGS = (
    *((name, "Noise, error %") for name in ("Gauss.", "Shot", "Impulse")),
    *((name, "Blur, error %") for name in ("Defocus", "Glass", "Motion", "Zoom")),
    *((name, "Weather, error %") for name in ("Snow", "Frost", "Fog", "Bright")),
    *((name, "Digital, error %") for name in ("Contrast", "Elastic", "Pixel", "JPEG")),
)
"""Of each corruption, as the benchmark's own tables have it: heading, group."""
SHIFT_GROUP = "Accuracy on other images"
PUBLISHED = (
    ("imagenet_v2_percent", "imagenet_v2_se", "-V2, %", SHIFT_GROUP, "%"),
    ("imagenet_a_percent", "imagenet_a_se", "-A, %", SHIFT_GROUP, "%"),
    ("imagenet_r_percent", "imagenet_r_se", "-R, %", SHIFT_GROUP, "%"),
    ("imagenet_sketch_percent", "imagenet_sketch_se", "-Sketch, %", SHIFT_GROUP, "%"),
    ("imagenet_c_mce", "imagenet_c_mce_se", "-C, mCE", "", ""),
)
"""Column of the paper's table, its error, heading, group, unit."""

Severities = dict[str, list[float]]
"""A network's errors by corruption, one a severity."""


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    errors = _corruption_errors(measurements)
    sets = {shift: measurements.runs("top1", name) for shift, name in shifted(measurements.source).items()}
    sets = {shift: runs for shift, runs in sets.items() if runs}
    relative, reason = _relative(errors)
    tables: list[ExhibitTable] = []
    notes = [reason] if reason else []
    if errors or sets:
        tables.append(_ours(measurements, sets, relative))
        notes = [bold_note(measurements), *notes, *_finding(measurements.without(relative))]
    if errors:
        tables.append(_by_corruption(measurements, errors))
    else:
        notes.append(not_measured("Corrupted images"))
    if not sets:
        notes.append(not_measured("Shifted test sets"))
    return Exhibit(
        "tableC2",
        "What the networks make of images unlike those they were trained on",
        f"{_titles(measurements)} mCE, of images under 15 corruptions at 5 severities: the errors of a"
        " network as a share of those of a reference, 100 where they are equal; lower is better. The"
        " reference is the study's softmax network of the same seed; in the paper it is AlexNet. Frost is a"
        " procedural texture here, where ImageNet-C has photographs.",
        (*tables, _published()),
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _titles(measurements: Measurements) -> str:
    """What stands in each ImageNet set's place, in a sentence."""
    known = shifted(measurements.source)
    if not known:
        return f"{card(measurements.source).title} has no shifted test sets."
    said = "; ".join(f"-{SHIFTS[shift][0]}: {_words(shift)}" for shift in known)
    return f"Top-1 accuracy of the networks, as they are, in the place of ImageNet's sets. {said}."


def _words(shift: str) -> str:
    return "what a network outside the study gets wrong" if shift == "a" else SHIFTS[shift][1]


def _corruption_errors(measurements: Measurements) -> dict[str, dict[int, Severities]]:
    """{objective: {seed: errors}}, of the networks that have all corruptions at all severities."""
    found: dict[str, dict[int, Severities]] = {}
    for row in measurements.results.table:
        place = PLACE.fullmatch(row.layer or "")
        if row.metric != "corruption_error" or place is None or row.target != measurements.source:
            continue
        if row.status == "diverged" or not measurements.shows(row):
            continue
        if row.objective and row.seed is not None:
            own = found.setdefault(row.objective, {}).setdefault(row.seed, {})
            own.setdefault(place[1], [math.nan] * len(SEVERITIES))[int(place[2]) - 1] = row.value
    whole = {spec: {seed: own for seed, own in runs.items() if _whole(own)} for spec, runs in found.items()}
    return {spec: runs for spec, runs in whole.items() if runs}


def _whole(errors: Severities) -> bool:
    return set(errors) == set(BENCHMARK) and all(
        math.isfinite(value) for values in errors.values() for value in values
    )


def _relative(errors: dict[str, dict[int, Severities]]) -> tuple[Runs, str]:
    """The mean corruption error of each network that has a reference; why there is none, or not for all."""
    if not errors:
        return {}, ""
    reference = errors.get(REFERENCE)
    if reference is None:
        return {}, (
            "No mCE: its reference is the study's softmax network, and this study has measured none."
            " `metrics.robustness.mean_corruption_error` takes any other's errors."
        )
    relative: Runs = {}
    lacking: set[int] = set()
    for spec, runs in errors.items():
        lacking |= set(runs) - set(reference)
        try:
            own = {
                seed: mean_corruption_error(values, reference[seed])
                for seed, values in runs.items()
                if seed in reference
            }
        except UndefinedError as error:
            return {}, f"No mCE: {error}."
        if own:
            relative[spec] = own
    if not lacking:
        return relative, ""
    seeds = ", ".join(map(str, sorted(lacking)))
    return relative, f"mCE without seed {seeds}, of which there is no softmax network to compare with."


def _ours(measurements: Measurements, sets: dict[str, Runs], relative: Runs) -> ExhibitTable:
    title = card(measurements.source).title
    columns, cells, shown = [], [], [*sets.values(), relative]
    own = measurements.runs("top1")
    if own:
        columns.append(Column("test_percent", "Test, %", "Accuracy", "%"))
        cells.append(partial(_accuracy, own))
    for shift, runs in sets.items():
        columns.append(Column(f"{shift}_percent", f"-{SHIFTS[shift][0]}, %", SHIFT_GROUP, "%"))
        cells.append(partial(_accuracy, runs))
    if relative:
        columns.append(Column("mce", "-C, mCE"))
        values = {spec: runs.values() for spec, runs in relative.items()}
        cells.append(partial(_mce, relative, bold(values, higher_is_better=False).bold))
    rows = run_rows(measurements, cells, shown)
    return ExhibitTable("tableC2", f"Robustness on {title}", "Objective", tuple(columns), rows)


def _accuracy(runs: Runs, spec: str) -> Cell:
    return run_cell(runs.get(spec), 1, scale=100, best=spec in best_of(runs), shows_error=True)


def _mce(relative: Runs, best: frozenset[str], spec: str) -> Cell:
    if spec == REFERENCE:
        return Cell("100", 100.0, detail="the reference", best=spec in best)
    return run_cell(relative.get(spec), 1, scale=100, best=spec in best, shows_error=True)


def _by_corruption(measurements: Measurements, errors: dict[str, dict[int, Severities]]) -> ExhibitTable:
    """Top-1 errors on each corruption, the mean of its severities."""
    columns: list[Column] = []
    cells: list[Callable[[str], Cell]] = []
    shown: list[Runs] = []
    for name, (heading, group) in zip(BENCHMARK, HEADINGS, strict=True):
        runs = {
            spec: {seed: math.fsum(own[name]) / len(SEVERITIES) for seed, own in of_seeds.items()}
            for spec, of_seeds in errors.items()
        }
        best = bold({spec: values.values() for spec, values in runs.items()}, higher_is_better=False).bold
        columns.append(Column(f"{name}_error_percent", heading, group, "%"))
        cells.append(partial(_error, runs, best))
        shown.append(runs)
    rows = run_rows(measurements, cells, shown)
    title = "Errors on corrupted images, means of five severities"
    return ExhibitTable("tableC2_corruptions", title, "Objective", tuple(columns), rows)


def _error(runs: Runs, best: frozenset[str], spec: str) -> Cell:
    return run_cell(runs.get(spec), 1, scale=100, best=spec in best)


def _finding(relative: Runs) -> tuple[str, ...]:
    """How many objectives err less than softmax on corrupted images, here and in the paper."""
    means = {spec: summarise(list(runs.values())).mean for spec, runs in relative.items()}
    others = [mean for spec, mean in means.items() if spec != REFERENCE]
    if not others:
        return ()
    better = sum(mean < 1 for mean in others)
    theirs = {row["objective"]: float(row["imagenet_c_mce"]) for row in published_rows("tableC2_robustness")}
    usual = theirs.pop("softmax")
    lower = sum(value < usual for value in theirs.values())
    return (
        f"Of the {len(others)} other objectives, {better} err less than softmax on corrupted images, in the"
        f" mean of their runs; of the {len(theirs)} in the paper's table, {lower}.",
    )


def _published() -> ExhibitTable:
    columns = [
        (Column(key, heading, group, unit), printed(key, error))
        for key, error, heading, group, unit in PUBLISHED
    ]
    title = "The paper's Table C.2: ResNet-50, ImageNet, eight runs"
    return published_table("tableC2", "tableC2_robustness", title, columns)
