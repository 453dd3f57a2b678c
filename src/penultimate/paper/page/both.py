"""The answer of a study of softmax and one other objective: is it better in both, whichever way it falls?"""

from __future__ import annotations

from penultimate.paper.claims.aspects import Aspect
from penultimate.paper.claims.both import (
    BOTH_CLAIMS,
    BOTH_RULES,
    gain,
    other_of,
)
from penultimate.paper.claims.effects import Verdict
from penultimate.paper.claims.evidence import BASELINE, StudyEvidence, gather
from penultimate.paper.claims.trials import range_text
from penultimate.paper.claims.verdicts import judge
from penultimate.paper.exhibits.better import answer_of_pair, chosen_told, is_of_the_search
from penultimate.report.measurements import Measurements
from penultimate.report.page.form import Headline, Tile
from penultimate.report.text import fixed, signed
from penultimate.statistics import mean

ASPECTS: dict[Aspect, str] = {
    "accuracy": "test accuracy",
    "linear": "linear transfer",
    "knn": "kNN transfer",
}
WITH_KNN: dict[Verdict, str] = {
    "holds": "it is better in both",
    "does not hold": "it is not better in both",
    "undecided": "whether it is better in both is open",
}


def headline_of_pair(measurements: Measurements) -> Headline:
    """Return whether the other objective is better than softmax in both, or what the study lacks."""
    answer, decides = answer_of_pair(measurements)
    if not decides:
        return Headline(answer)
    evidence = gather(measurements)
    of_linear, of_knn = (one.ours for one in judge(evidence, BOTH_CLAIMS))
    accuracy, linear, knn = (gain(evidence, aspect) for aspect in ASPECTS)
    details = [of_linear.reason]
    if knn is not None and of_knn.judged:
        effect = knn.effect
        details.append(
            "With nearest neighbours instead of linear classifiers it gains"
            f" {signed(effect.estimate, 2)} points of transfer"
            f" ({range_text(effect.low, effect.high, 2)}): {WITH_KNN[of_knn.verdict]}."
        )
    details += [
        *_separation(evidence),
        *(chosen_told(measurements) if is_of_the_search(measurements) else ()),
    ]
    if accuracy is not None and linear is not None:
        details.append(
            f"By the rule of {BOTH_RULES.partition(',')[0]} a gain counts"
            f" from a hundredth of softmax's errors, {fixed(accuracy.effect.margin, 2)} points of test"
            f" accuracy and {fixed(linear.effect.margin, 2)} of linear transfer, beyond chance in both."
        )
    tiles = tuple(
        Tile(
            signed(trial.effect.estimate, 2),
            "points",
            f"{what}, less softmax's ({range_text(trial.effect.low, trial.effect.high, 2)})",
        )
        for trial, what in zip((accuracy, linear, knn), ASPECTS.values(), strict=True)
        if trial is not None and trial.is_tested
    )
    return Headline(answer, tuple(details), tiles, decides=True)


def _separation(evidence: StudyEvidence) -> list[str]:
    runs = evidence.values("separation")
    own, softmax = (runs.get(spec) for spec in (other_of(evidence.measurements).spec, BASELINE))
    if not own or not softmax:
        return []
    return [f"Its R² is {fixed(mean(own.values()), 3)}, softmax's {fixed(mean(softmax.values()), 3)}."]
