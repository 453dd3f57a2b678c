"""The answer of a study that varies the strength of objectives, in sentences made from its rows."""

from __future__ import annotations

from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.claims.doses import FAMILIES
from penultimate.paper.claims.effects import decide
from penultimate.paper.claims.evidence import StudyEvidence, gather
from penultimate.paper.claims.prices import (
    judge_one_line,
    judged_pairs,
    mean_of_pairs,
    overall,
    overall_effects,
    reading,
)
from penultimate.paper.claims.strengths import dose_curves, price_text
from penultimate.paper.claims.trials import range_text
from penultimate.paper.claims.verdicts import LIMITED
from penultimate.paper.families import complete, distinct, families_of, pareto_front
from penultimate.report.measurements import Measurements
from penultimate.report.page.form import Headline, Tile
from penultimate.report.text import counted, fixed, in_words, listed, signed

PRICE = "points of linear transfer for each 0.1 of R²"


def headline_of_strengths(measurements: Measurements) -> Headline:
    """Return whether class separation itself costs transfer, by the rules on strengths."""
    evidence = gather(measurements)
    judged = reading(evidence, "linear", CRITERIA)
    details = [*_pairs(evidence), *_lines(evidence), *_front(evidence)]
    if measurements.limited:
        return Headline(
            f"Whether class separation itself costs transfer stays open. {LIMITED}",
            (*_prices(evidence), *details),
        )
    apart = judge_one_line(evidence, "linear", CRITERIA).verdict == "does not hold"
    answer = {
        "holds": "Class separation itself costs transfer here, as the paper reads it.",
        "does not hold": "Each family pays its own price."
        if apart
        else "Class separation itself does not cost transfer here.",
        "undecided": "Whether it is class separation itself that costs transfer, as the paper has it, is"
        " open.",
    }[judged.verdict]
    return Headline(
        " ".join([*_prices(evidence), answer]),
        (*([] if apart else [judged.reason]), *details),
        _tiles(evidence),
    )


def _prices(evidence: StudyEvidence) -> list[str]:
    """Return a sentence on the mean price over families, by the verdict of the rule on it."""
    found = dose_curves(evidence, "linear")
    effects = overall_effects(evidence, "linear", CRITERIA)
    if not found or effects is None:
        return []
    said = {
        "holds": "The further the objectives of one family pull the classes apart, the worse their features"
        " transfer",
        "does not hold": "Objectives of one family that pull the classes further apart do not transfer worse",
        "undecided": "Whether objectives of one family transfer worse the further they pull the classes apart"
        " is open",
    }[overall(evidence, "linear", CRITERIA).verdict]
    return [
        f"{said}: {price_text(effects[0])} {PRICE}, in the mean of"
        f" {counted(len(found), 'family', 'families')} at several strengths each"
        f" ({range_text(-effects[1].high, -effects[1].low, 2)} over families)."
    ]


def _pairs(evidence: StudyEvidence) -> list[str]:
    every = judged_pairs(evidence, "linear", CRITERIA)
    counting = [one for one in every if not one.why_not]
    effect = mean_of_pairs(counting, CRITERIA)
    if effect is None:
        return []
    verdict = {
        "holds": "a fall beyond chance",
        "does not hold": "a fall that counts is excluded",
        "undecided": "neither a fall nor its absence is shown",
    }[decide(effect, CRITERIA)]
    return [
        f"At equal accuracy ({in_words(len(counting))} of {in_words(len(every))} pairs of strengths fixed"
        " beforehand) it is"
        f" {price_text(effect)}: {verdict}."
    ]


def _lines(evidence: StudyEvidence) -> list[str]:
    judged = judge_one_line(evidence, "linear", CRITERIA)
    words = {
        "holds": "The families lie on one line",
        "does not hold": "The families do not lie on one line",
        "undecided": "Whether the families lie on one line is open",
    }[judged.verdict]
    return [f"{words}: {judged.ours[0].lower()}{judged.ours[1:]}."] if judged.judged else []


def _front(evidence: StudyEvidence) -> list[str]:
    front = pareto_front(distinct(complete(families_of(evidence))))
    names = [
        f"{one.label} ({fixed(one.mean('accuracy'), 1)} %, {fixed(one.mean('linear'), 1)} %)" for one in front
    ]
    said = "The best in test accuracy and linear transfer together, by means (the Pareto front):"
    return [f"{said} {listed(names)}."] if names else []


def _tiles(evidence: StudyEvidence) -> tuple[Tile, ...]:
    effects = overall_effects(evidence, "linear", CRITERIA)
    counting = [one for one in judged_pairs(evidence, "linear", CRITERIA) if not one.why_not]
    of_pairs = mean_of_pairs(counting, CRITERIA)
    tiles = [
        *(
            [
                Tile(
                    signed(-effects[0].estimate, 2),
                    "points",
                    f"of linear transfer for each 0.1 of R², the mean of"
                    f" {counted(len(FAMILIES), 'family', 'families')}",
                )
            ]
            if effects
            else []
        ),
        *([Tile(signed(-of_pairs.estimate, 2), "points", "the same at equal accuracy")] if of_pairs else []),
    ]
    return tuple(tiles)
