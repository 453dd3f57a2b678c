"""Calibration of linear probes, before and after temperature scaling."""

from __future__ import annotations

from penultimate.report.base import Missing
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import Bespoke, Exhibit, Piece

PANELS = {"": "As trained", "_scaled": "With temperature scaling"}
OF_PROBES = (
    *(
        Quantity(f"probe_{name}{suffix}", target=TARGETS, label=label, group=group, bold=True, optional=True)
        for suffix, group in PANELS.items()
        for name, label in {"nll": "NLL", "ece": "ECE, %"}.items()
    ),
    Quantity(
        "probe_temperature", target=TARGETS, label="Temperature", group=PANELS["_scaled"], optional=True
    ),
)


def _build(measurements: Measurements) -> Piece:
    """Return a table of linear probes in the mean over tasks."""
    columns = [run_column(one, runs) for one in OF_PROBES if (runs := measurements.values(one))]
    title = "Linear probes on the tasks, mean of all of them"
    table = run_table(measurements, "probe_calibration", title, columns)
    if table:
        return Piece((table,))
    asked = measurements.networks.requested("probe_calibration")
    return Piece(missing=(Missing("Calibration of probes"),)) if asked else Piece(wanted=False)


EXHIBIT = Exhibit(
    name="probe_calibration",
    title="Are linear probes right as often as they are sure?",
    caption="The negative log likelihood and the calibration error of the linear probe on each task, in 15"
    " bins; less is better.",
    parts=(Bespoke(_build, OF_PROBES),),
    method=(
        "A linear probe’s temperature is that of a probe of the same strength, on a fifth of the training"
        " images that this one was not fitted to.",
    ),
    place=7,
    measured_by="certainty",
    summary="Calibration of linear probes, before and after temperature scaling",
    short="Calibration of probes",
)
