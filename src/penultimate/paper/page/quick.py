"""The quickstart's answer in sentences by template, whichever way it falls."""

from __future__ import annotations

import functools

from penultimate.paper.claims.criteria import CRITERIA, DOSES
from penultimate.paper.claims.effects import Verdict
from penultimate.paper.claims.quick import (
    COMPARED,
    QUICK_RULE,
    BesideSoftmax,
    QuickAnswer,
    answer_quickly,
    beside_softmax,
)
from penultimate.paper.claims.strengths import PER
from penultimate.paper.claims.trials import range_text
from penultimate.paper.panels import SEPARATION_IN_PAPER
from penultimate.report import read_reference
from penultimate.report.measurements import Measurements, admit
from penultimate.report.page.form import Headline, Tile
from penultimate.report.text import counted, fixed, p_value, signed
from penultimate.statistics import least_squares

REFERENCE_STUDY = "glyphs"
"""The kept run that trains the same objectives longer, and more of them."""
LEAST = fixed(DOSES.least_price.value, 1)
SAID: dict[Verdict, str] = {
    "holds": "the further apart the classes, the worse the features transfer",
    "does not hold": f"a fall of {LEAST} points or more is excluded",
    "undecided": f"open, since a fall of {LEAST} points or more is neither shown nor excluded",
}


def quick_headline(measurements: Measurements) -> Headline:
    """Return the answer of the quickstart's rule, or what it lacks."""
    found = answer_quickly(measurements)
    if found is None:
        command = measurements.results.provenance.get("command", "penultimate run quickstart")
        least = counted(int(CRITERIA.least_runs.value), "draw")
        return Headline(
            f"The quickstart's rule cannot be applied yet: it needs accuracy, class separation and linear"
            f" transfer of its three objectives in {least} at least. To go on: `{command}`."
        )
    label = {one.spec: one.label for one in measurements.objectives}
    penalty, squared = found.beside
    answer = f"{_price(found)} {_beside(penalty, label[penalty.spec])}"
    details = (
        _beside(squared, label[squared.spec]),
        f"The rule (of {QUICK_RULE.partition(',')[0]}, before any of these"
        " networks was transferred): the slope of mean linear transfer on R² within draws; it falls if the"
        f" estimate is {LEAST} points or more for each .1 of R², beyond chance ({p_value(found.price.p)}),"
        f" does not if {LEAST} is excluded, and is open otherwise. The slope rests mostly on the objective"
        " that separates furthest; accuracy differs as well, so that it is no price of separation by itself.",
        f"{_in_reference()}{_in_paper()}",
    )
    tiles = (
        Tile(
            signed(-found.price.estimate, 2),
            "points",
            f"linear transfer for each .1 of R² ({range_text(-found.price.high, -found.price.low, 2)})",
        ),
        *(
            Tile(
                signed(one.transfer.estimate, 2),
                "points",
                f"linear transfer of {label[one.spec].lower()} less softmax's"
                f" ({range_text(one.transfer.low, one.transfer.high, 2)})",
            )
            for one in found.beside
        ),
    )
    return Headline(answer, details, tiles, decides=True)


def _price(found: QuickAnswer) -> str:
    points = f"{signed(-found.price.estimate, 2)} points of linear transfer"
    interval = range_text(-found.price.high, -found.price.low, 2)
    return (
        f"Over {counted(found.draws, 'draw')}, each .1 of class separation goes with {points} ({interval}):"
        f" {SAID[found.verdict]}."
    )


def _beside(one: BesideSoftmax, label: str) -> str:
    """Return a sentence on an objective beside softmax."""
    further = "further" if one.separation > 0 else "less far"
    gained = one.transfer
    better = "better" if gained.estimate > 0 else "worse"
    chance = "" if gained.low > 0 or gained.high < 0 else ", not beyond chance"
    return (
        f"{label} separates {further} than softmax ({signed(one.separation, 3)} of R²) at"
        f" {signed(one.accuracy, 1)} points of accuracy and transfers {fixed(abs(gained.estimate), 2)} points"
        f" {better} ({range_text(gained.low, gained.high, 2)}{chance})."
    )


@functools.cache
def _in_reference() -> str:
    """Return a sentence on squared error in the reference run, which is longer and has more draws."""
    reference = admit(read_reference(REFERENCE_STUDY))
    spec = COMPARED[-1]
    found = beside_softmax(reference, spec)
    if found is None:
        return ""
    draws, epochs = counted(len(reference.seeds), "draw"), counted(int(reference.recipe["epochs"]), "epoch")
    told = _beside(found, reference.objective(spec).label)
    return (
        f"The reference run {REFERENCE_STUDY} ({draws}, {epochs}, nine objectives:"
        f" `penultimate report --reference --study {REFERENCE_STUDY}`): {told} "
    )


def _in_paper() -> str:
    points = SEPARATION_IN_PAPER.points()
    line = least_squares([point.x for point in points], [point.y for point in points])
    assert line is not None
    return (
        "In the paper a straight line through its nine objectives on ImageNet goes with"
        f" {signed(PER * line.slope, 1)} points for each .1 of R²."
    )
