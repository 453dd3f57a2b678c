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
    overall_effects,
    reading,
)
from penultimate.paper.claims.strengths import dose_curves, price_text
from penultimate.paper.claims.verdicts import LIMITED
from penultimate.paper.families import distinct, families_of, pareto_front
from penultimate.report.measurements import Measurements
from penultimate.report.page.form import Headline, Tile
from penultimate.report.text import counted, fixed, listed, signed

PRICE = "points of linear transfer for each .1 of R²"


def headline_of_strengths(measurements: Measurements) -> Headline:
    """Return whether class separation itself costs transfer, by the rules on strengths."""
    evidence = gather(measurements)
    judged = reading(evidence, "linear", CRITERIA)
    details = [*_prices(evidence), *_pairs(evidence), *_lines(evidence), *_front(evidence)]
    if measurements.limited:
        return Headline(
            f"Whether class separation itself costs transfer stays open. {LIMITED}", tuple(details)
        )
    answer = {
        "holds": "Class separation itself costs transfer here, as the paper reads it.",
        "does not hold": "Class separation by itself does not explain transfer here, as the paper reads it.",
        "undecided": "Whether class separation itself costs transfer, as the paper has it, is open here.",
    }[judged.verdict]
    return Headline(f"{answer} {judged.reason}", tuple(details), _tiles(evidence))


def _prices(evidence: StudyEvidence) -> list[str]:
    found = dose_curves(evidence, "linear")
    effects = overall_effects(evidence, "linear", CRITERIA)
    if not found or effects is None:
        return []
    over_seeds, over_families = effects
    return [
        f"In the mean of {counted(len(found), 'family', 'families')} of objectives, each at several"
        f" strengths, class separation goes with {price_text(over_seeds)} {PRICE} over seeds, and over"
        f" families {price_text(over_families)}."
    ]


def _pairs(evidence: StudyEvidence) -> list[str]:
    counting = [one for one in judged_pairs(evidence, "linear", CRITERIA) if not one.why_not]
    effect = mean_of_pairs(counting, CRITERIA)
    if effect is None:
        return []
    verdict = {
        "holds": "a fall beyond chance",
        "does not hold": "a fall that counts is excluded",
        "undecided": "neither a fall nor its absence is shown",
    }[decide(effect, CRITERIA)]
    return [
        f"At equal accuracy ({counted(len(counting), 'pair')} of strengths fixed beforehand) it is"
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
    front = pareto_front(distinct(families_of(evidence)))
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
                    f"of linear transfer for each .1 of R², the mean of"
                    f" {counted(len(FAMILIES), 'family', 'families')}",
                )
            ]
            if effects
            else []
        ),
        *([Tile(signed(-of_pairs.estimate, 2), "points", "the same at equal accuracy")] if of_pairs else []),
    ]
    return tuple(tiles)
