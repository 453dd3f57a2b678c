"""Calibration, further: the Brier score and its parts, adaptive and class-wise errors, of probes too."""

from __future__ import annotations

from penultimate.report.base import Missing
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import Bespoke, Exhibit, Piece

PANELS = {"": "As trained", "_scaled": "With temperature scaling"}
ERRORS = {"adaptive_ece": "Adaptive ECE, %", "classwise_ece": "Class-wise ECE, %"}
PARTS = {
    "brier": "Brier score",
    "brier_reliability": "Reliability",
    "brier_resolution": "Resolution",
    "brier_within": "Within bins",
}


def _columns(prefix: str, names: dict[str, str], target: str = "source") -> tuple[Quantity, ...]:
    return tuple(
        Quantity(
            f"{prefix}{name}{suffix}",
            target=target,
            label=label,
            group=group,
            key=f"{prefix}{name}{suffix}",
            bold=name in ("brier", "adaptive_ece", "classwise_ece"),
            optional=True,
        )
        for suffix, group in PANELS.items()
        for name, label in names.items()
    )


OF_LAYERS = (
    *_columns("", {**ERRORS, **PARTS}),
    Quantity(
        "brier_uncertainty",
        label="Uncertainty",
        group="Of the classes",
        key="brier_uncertainty",
        optional=True,
    ),
)
OF_PROBES = (
    *_columns("probe_", {"nll": "NLL", "ece": "ECE, %", **ERRORS, "brier": "Brier score"}, TARGETS),
    Quantity(
        "probe_temperature",
        target=TARGETS,
        label="Temperature",
        group=PANELS["_scaled"],
        key="probe_temperature",
        optional=True,
    ),
)


def _build(measurements: Measurements) -> Piece:
    """Return a table of the final layers, and one of linear probes in the mean over tasks."""
    titles = {
        "brier": (f"The final layers on {measurements.title}", OF_LAYERS),
        "brier_probes": ("Linear probes on the tasks, mean of all of them", OF_PROBES),
    }
    tables = []
    for name, (title, quantities) in titles.items():
        columns = [run_column(one, runs) for one in quantities if (runs := measurements.values(one))]
        table = run_table(measurements, name, title, columns)
        tables += [table] if table else []
    if not tables:
        asked = any(measurements.networks.requested(name) for name in ("brier", "probe_calibration"))
        return Piece(missing=(Missing("Brier scores"),)) if asked else Piece(wanted=False)
    return Piece(tuple(tables))


EXHIBIT = Exhibit(
    name="brier",
    title="How far are probabilities from frequencies, class by class?",
    caption="The Brier score is the mean squared distance of an image’s probabilities from its class. It is"
    " its reliability (how far probabilities differ from frequencies), less its resolution (how far"
    " frequencies differ from one probability to another), plus the uncertainty of the classes, plus what"
    " lies within bins. The adaptive ECE has bins of equally many images; the class-wise ECE looks at each"
    " class’s probability. All have 15 bins; of the resolution more is better, of the others less.",
    parts=(Bespoke(_build, (*OF_LAYERS, *OF_PROBES)),),
    method=(
        "Reliability, resolution and uncertainty alone add up to the score if each bin holds a single"
        " probability. A linear probe’s temperature is that of a probe of the same strength, on a fifth of"
        " the training images that this one was not fitted to.",
    ),
    place=7,
    measured_by="certainty",
    summary="Brier score and its parts, adaptive and class-wise calibration errors, of probes too",
    short="Brier scores",
)
