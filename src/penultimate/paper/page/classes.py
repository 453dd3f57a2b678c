"""The answer of a study that varies the number of classes, in sentences made from its rows."""

from __future__ import annotations

from penultimate.paper.claims.effects import Verdict
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.label_spaces import (
    CLASS_CLAIMS,
    LEAST_CHANGE,
    arms_by_classes,
    change_effect,
    label_spaces,
    prices,
)
from penultimate.paper.claims.strengths import price_text
from penultimate.paper.claims.trials import range_text
from penultimate.paper.claims.verdicts import LIMITED, judge
from penultimate.report.measurements import Measurements
from penultimate.report.page.form import Headline, Tile
from penultimate.report.text import fixed, listed, signed

UNIT = "points of linear transfer for each .1 of R²"
PRICE_SAID: dict[Verdict, str] = {
    "holds": "With few classes as with many, the further an objective pulls them apart, the worse its"
    " features transfer",
    "does not hold": "That features transfer worse the further an objective pulls the classes apart is not so"
    " at every number of classes",
    "undecided": "Whether features transfer worse the further an objective pulls the classes apart, at every"
    " number of classes, is open",
}
CHANGE_SAID: dict[Verdict, str] = {
    "holds": "with more classes it costs less",
    "does not hold": "that it costs less with more classes is excluded",
    "undecided": "whether it costs less with more classes is open",
}


def has_label_spaces(measurements: Measurements) -> bool:
    """Return whether a study trains on several numbers of classes."""
    return len(arms_by_classes(measurements)) > 1


def headline_of_classes(measurements: Measurements) -> Headline:
    """Return whether class separation costs transfer at each number of classes, and the less the more."""
    evidence = gather(measurements)
    spaces = label_spaces(evidence)
    by_key = {one.claim.key: one.ours for one in judge(evidence, CLASS_CLAIMS)}
    price, change = by_key["classes_price"], by_key["classes_change"]
    effects, trend = prices(spaces), change_effect(spaces)
    if not effects:
        return Headline(
            f"Whether the number of classes matters cannot be said yet: {price.reason} To go on:"
            f" `{measurements.results.provenance.get('command', 'penultimate run class_counts')}`."
        )
    each = listed([f"{price_text(effect)} with {classes} classes" for classes, effect in effects.items()])
    answer = f"{PRICE_SAID[price.verdict]}: {each}, in {UNIT}."
    if trend is not None:
        answer += (
            f" Each doubling of the classes changes that by {signed(trend.estimate, 2)} points"
            f" ({range_text(trend.low, trend.high, 2)}): {CHANGE_SAID[change.verdict]}."
        )
    if measurements.limited:
        return Headline(f"{answer} {LIMITED}")
    tiles = tuple(
        Tile(
            signed(-effect.estimate, 2),
            "points",
            f"linear transfer for each .1 of R² with {classes} classes"
            f" ({range_text(-effect.high, -effect.low, 2)})",
        )
        for classes, effect in effects.items()
    )
    least = f"A change counts from {fixed(LEAST_CHANGE.value, 2)} points a doubling."
    return Headline(answer, (price.reason, f"{change.reason} {least}"), tiles)
