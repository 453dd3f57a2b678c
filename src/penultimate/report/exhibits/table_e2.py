"""Table E.2: how near class means and weights are to a simplex equiangular tight frame."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.objectives.presets import PRESETS
from penultimate.report.exhibits.base import Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import not_measured, printed, published_table, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, Runs, admit_compared
from penultimate.report.exhibits.numbers import published_rows, rank_correlation, summarise
from penultimate.report.text import counted, fixed, p_value

MEASURES = {
    "class_mean_norm_cv": ("Std/Avg |μ|", "Unequal lengths"),
    "weight_norm_cv": ("Std/Avg |w|", "Unequal lengths"),
    "class_mean_cosine_std": ("Std cos(μ, μ′)", "Unequal angles"),
    "weight_cosine_std": ("Std cos(w, w′)", "Unequal angles"),
    "class_mean_etf_deviation": ("Avg |cos(μ, μ′) + 1/(C−1)|", "Angles short of the widest"),
    "weight_etf_deviation": ("Avg |cos(w, w′) + 1/(C−1)|", "Angles short of the widest"),
    "weight_class_mean_distance_sq": ("‖W − M‖²", "Weights off means"),
    "trace_sw_pinv_sb_over_c": ("Tr(Σ_W Σ_B⁺)/C", "Spread in classes"),
}
"""Column of the paper's table -> heading, group; the metric of our rows is "nc_" and the column."""
TRACE = "trace_sw_pinv_sb_over_c"
NC4 = "nc4"


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    measured = any(_runs(measurements, key) for key in MEASURES)
    tables = (_ours(measurements), _published()) if measured else (_published(),)
    notes = () if measured else (not_measured("Simplex-ETF measures"),)
    return Exhibit(
        "tableE2",
        "How near do networks come to full collapse?",
        "At full collapse every image of a class has the same features, and class means and weights point to"
        " the corners of one regular simplex: all columns are 0. μ: the mean of a class less the mean of all"
        " C classes; w: its weights; M, W: the matrices of all, each scaled to length 1. Training images of"
        " the pretraining set; ± is the standard error over runs.",
        tables,
        notes=(*notes, *_findings(measurements), *measurements.notes()),
        limited=measurements.limited,
    )


def _runs(measurements: Measurements, key: str) -> Runs:
    return measurements.runs(key if key == NC4 else f"nc_{key}", split="train")


def _ours(measurements: Measurements) -> ExhibitTable:
    shown = [_runs(measurements, key) for key in (*MEASURES, NC4)]
    columns = (
        *(Column(key, heading, group) for key, (heading, group) in MEASURES.items()),
        Column("nc4_percent", "NC4, %", "Others nearer", "%"),
    )
    cells = [
        *(lambda spec, runs=runs: run_cell(runs.get(spec), 3, shows_error=True) for runs in shown[:-1]),
        lambda spec: run_cell(shown[-1].get(spec), 1, scale=100, shows_error=True),
    ]
    note = (
        "NC4: the share of images whose nearest class mean is not the class that the network names; the paper"
        " does not report it."
    )
    title = f"Measured on {card(measurements.source).title}"
    return ExhibitTable(
        "tableE2", title, "Objective", columns, run_rows(measurements, cells, shown), notes=(note,)
    )


def _published() -> ExhibitTable:
    columns = [
        (Column(key, heading, group), printed(key, f"{key}_se")) for key, (heading, group) in MEASURES.items()
    ]
    title = "The paper's Table E.2: ResNet-50, ImageNet"
    return published_table("tableE2", "tableE2_simplex_etf", title, columns)


def _findings(measurements: Measurements) -> tuple[str, ...]:
    """How the last column goes with class separation, here and in the paper."""
    separation = measurements.without(measurements.runs("class_separation", split="train"))
    traces = _runs(measurements, TRACE)
    both = [spec for spec in separation if spec in traces]
    ours = _correlation(
        "here",
        [summarise(list(traces[spec].values())).mean for spec in both],
        [summarise(list(separation[spec].values())).mean for spec in both],
    )
    r2 = {row["objective"]: row["class_separation_r2"] for row in published_rows("table3_class_separation")}
    rows = [row for row in published_rows("tableE2_simplex_etf") if row["objective"] in PRESETS]
    theirs = _correlation(
        "in the paper's printed tables",
        [float(row[TRACE]) for row in rows],
        [float(r2[row["objective"]]) for row in rows],
    )
    said = [words for words in (ours, theirs) if words]
    start = "The spread within classes, Tr(Σ_W Σ_B⁺)/C, against class separation R²: "
    return (start + "; ".join(said) + ".",) if said else ()


def _correlation(where: str, x: list[float], y: list[float]) -> str:
    found = rank_correlation(x, y)
    if found is None:
        return ""
    return f"ρ = {fixed(found.rho, 2)}, {p_value(found.p)} {where} ({counted(found.n, 'objective')})"
