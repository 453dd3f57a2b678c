"""Selective classification: how many errors remain if a network answers only where it is sure."""

from __future__ import annotations

from penultimate.measures.selective import SCORES
from penultimate.report.base import Curve, Figure, Missing, Panel
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.density import arrays_of
from penultimate.report.shapes.numbers import average, summarise
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import signed

SHORT = {
    "msp": "Maximum softmax probability",
    "max_logit": "Maximum logit",
    "energy": "Energy",
    "normalised_logit": "Normalised logit",
}
"""The scores as titles of panels, and over columns."""
METRICS = {"aurc": "AURC, %", "augrc": "AUGRC, %", "aurc_excess": "Excess, %"}
SHOWN = tuple(
    Quantity(
        metric,
        setting=f"score={score}",
        label=label,
        group=SHORT[score],
        key=f"{metric}_{score}_percent",
        decimals=2,
        bold=metric == "aurc",
        optional=True,
    )
    for score in SCORES
    for metric, label in METRICS.items()
)
NORM = Quantity("logit_norm", label="p", group=SHORT["normalised_logit"], key="logit_norm", optional=True)
CURVES = Quantity("risk_coverage", arrays=("coverage", *SCORES))


def _build(measurements: Measurements) -> Piece:
    """Return the table of areas, and a panel of risk-coverage curves for each score."""
    columns = [
        run_column(quantity, runs) for quantity in (*SHOWN, NORM) if (runs := measurements.values(quantity))
    ]
    title = f"Errors on {measurements.title} among the surest images"
    table = run_table(measurements, "selective", title, columns)
    if table is None:
        asked = measurements.networks.requested("selective") is not None
        return Piece(missing=(Missing("Selective classification"),)) if asked else Piece(wanted=False)
    panels = _panels(measurements)
    figure = Figure(
        "selective",
        "Risk-coverage curves",
        "Lines of the share of errors among the surest images over the share of images that are answered, a"
        " network or the mean of an objective's runs each, one panel for each score of confidence.",
        panels,
        legend=True,
    )
    return Piece((table,), (figure,) if panels else ())


def _panels(measurements: Measurements) -> tuple[Panel, ...]:
    coverage, *risks = arrays_of(measurements, CURVES)
    panels = []
    for score, of_score in zip(SCORES, risks, strict=True):
        curves = []
        for spec, runs in of_score.items():
            objective = measurements.objective(spec)
            shown = [values for values in runs.values() if all(value == value for value in values)]
            if not shown or len({len(values) for values in shown}) > 1:
                continue
            places = next(iter(coverage[spec].values()))
            line = tuple((100 * x, 100 * average(at)) for x, *at in zip(places, *shown, strict=True))
            curves.append(Curve(line, objective.slug, objective.label))
        if curves:
            panels.append(
                Panel(
                    f"selective-{score}",
                    SHORT[score],
                    "Answered, % of the images",
                    "Errors among them, %",
                    curves=tuple(curves),
                    labelled=False,
                    x_limits=(0.0, 100.0),
                )
            )
    return tuple(panels)


def _changes(measurements: Measurements) -> str:
    """Return what label smoothing changes for each of two scores, within seeds."""
    told = []
    for score in ("msp", "normalised_logit"):
        quantity = next(one for one in SHOWN if one.key == f"aurc_{score}_percent")
        runs = measurements.values(quantity)
        smoothed = next((one for one in measurements.objectives if one.slug == "label_smoothing"), None)
        if smoothed is None or smoothed.spec not in runs or measurements.baseline not in runs:
            return ""
        own, other = runs[smoothed.spec], runs[measurements.baseline]
        shared = [100 * (own[seed] - other[seed]) for seed in own if seed in other]
        if not shared:
            return ""
        change = summarise(shared)
        told.append(f"{signed(change.mean, 2)} points by the {SCORES[score]} (n = {change.n})")
    return f"{OURS}: label smoothing changes the AURC of softmax by {' and '.join(told)}."


EXHIBIT = Exhibit(
    name="selective",
    title="Are the surest answers right?",
    caption="Test images of {source}, the surest first: the share of errors among those that are answered"
    " (risk) by how many are (coverage). AURC: the mean of that risk over every number of answers. AUGRC: the"
    " same of how often an image is answered and wrong. Excess: the AURC less that of a ranking that puts"
    " every error last. Lower is better. Confidence by four scores of the logits; the normalised logit is the"
    " largest one, centred, divided by the p-norm of all.",
    parts=(Bespoke(_build, (*SHOWN, NORM, CURVES)),),
    findings=(_changes,),
    method=(
        "Images of equal confidence count as the mean over their orders. p is the one of 1 to 10 with the"
        " smallest AURC on held-out images, and 4 without any. The softmax is that of the logits as they are,"
        " whatever objective trained them.",
    ),
    place=6,
    measured_by="certainty",
    summary="Risk-coverage curves, AURC and AUGRC by four scores of confidence",
    short="Selective classification",
)
