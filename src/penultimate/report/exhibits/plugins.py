"""What metrics and probes from plug-ins have measured: the paper has nothing to put beside it."""

from __future__ import annotations

import math
import re
from functools import partial

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import bold_note, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, Runs, admit
from penultimate.report.exhibits.table1 import transfer_table
from penultimate.study.spec import METRICS, PROBES

SPEC = r"\w+(?:\(.*\))?"
NONE = (
    "This study names no metric or probe of a plug-in; one that does: `penultimate run STUDY --plugin FILE"
    " --set metrics=accuracy,class_separation,NAME` (or `--set probes=linear,knn,NAME`)."
)
DIGITS = 4
"""Significant digits of a number whose scale nobody knows beforehand."""


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    metrics, probes = _metrics(measurements), _probes(measurements)
    tables = [_metric_table(measurements, *one) for one in metrics.items()]
    tables += [
        transfer_table(measurements, probe, probe, f"plugins_probe_{_slug(probe)}") for probe in probes
    ]
    asked = [name for name in results.description.get("metrics", ()) if name not in METRICS]
    asked += [name for name in results.description.get("probes", ()) if name not in PROBES]
    notes = _missing(results, [name for name in asked if name not in {*metrics, *probes}])
    wanted = bool(tables or notes)
    if probes:
        notes.append(bold_note(measurements))
    return Exhibit(
        "plugins",
        "Measured by plug-ins",
        f"Metrics of one's own, taken of the penultimate features of {card(measurements.source).title};"
        " probes of one's own, fitted to those of each new task and scored as the others are. Means over"
        " runs, ± the standard error.",
        tuple(tables),
        notes=(*notes, *measurements.notes()) if wanted else (NONE,),
        limited=measurements.limited,
        wanted=wanted,
    )


def _missing(results: StudyResults, names: list[str]) -> list[str]:
    """Why nothing stands there for a plug-in: it has no value on these features, or it has to be run yet."""
    told = [str(reason) for reason in results.provenance.get("undefined", {}).values()]
    reasons = {name: [reason for reason in told if reason.startswith(f"{name} (")] for name in names}
    notes = [f"No value: {of[0]}" for of in reasons.values() if of]
    left = ", ".join(name for name, of in reasons.items() if not of)
    command = results.description.get("command", "penultimate run")
    return [*notes, *([f"{left}: not measured: run `{command}`"] if left else [])]


def _metrics(measurements: Measurements) -> dict[str, list[tuple[str, str, Runs]]]:
    """Of each metric: what its numbers are called ("" for a lone one), on which split, and their runs."""
    found: dict[str, list[tuple[str, str, Runs]]] = {}
    for metric, target, split in measurements.of_plugins("metric"):
        parts = re.fullmatch(rf"({SPEC})(?:\.(\w+))?", metric)
        if parts is not None:
            runs = measurements.plugin_runs(metric, target, split)
            found.setdefault(parts[1], []).append((parts[2] or "", split, runs))
    return found


def _probes(measurements: Measurements) -> list[str]:
    names = [metric for metric, _, _ in measurements.of_plugins("probe")]
    found = [re.fullmatch(rf"({SPEC})_(?:top1|mean_per_class)", name) for name in names]
    return list(dict.fromkeys(parts[1] for parts in found if parts is not None))


def _metric_table(
    measurements: Measurements, metric: str, numbers: list[tuple[str, str, Runs]]
) -> ExhibitTable:
    columns = [
        Column(f"{split}_{part or 'value'}", f"{part.replace('_', ' ') or 'Value'} ({split})")
        for part, split, _ in numbers
    ]
    shown = [runs for _, _, runs in numbers]
    largest: dict[str, float] = {}
    for part, _, runs in numbers:
        own = max(abs(value) for values in runs.values() for value in values.values())
        largest[part] = max(largest.get(part, 0.0), own)
    cells = [partial(_cell, runs, _decimals(largest[part])) for part, _, runs in numbers]
    rows = run_rows(measurements, cells, shown)
    return ExhibitTable(f"plugins_metric_{_slug(metric)}", metric, "Objective", tuple(columns), rows)


def _cell(runs: Runs, decimals: int, spec: str) -> Cell:
    return run_cell(runs.get(spec), decimals, shows_error=True)


def _decimals(largest: float) -> int:
    """So many that the largest value has four significant digits; none for large ones, six at most.

    >>> [_decimals(value) for value in (0.5, 12.0, 123456.0, 0.0)]
    [4, 2, 0, 0]
    """
    return min(6, max(0, DIGITS - 1 - math.floor(math.log10(largest)))) if largest else 0


def _slug(spec: str) -> str:
    return re.sub(r"\W", "_", spec)
