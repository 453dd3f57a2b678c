"""The rules on claims of another paper: does label smoothing spoil selective classification, is it mended?

Xia et al. (ICLR 2025, "Towards Understanding Why Label Smoothing Degrades Selective Classification and How to
Fix It") train networks with label smoothing and without, rank images by the maximum softmax probability, and
find more errors among the surest; ranked by the largest logit divided by a norm of all, they find the loss
made good. Two of the nine objectives here, softmax and label smoothing, can be asked the same.

The rules were written on 2026-11-26, before any network was ranked by its confidence here; no run that comes
with the package holds what they judge. The study `certainty` measures it. Both are differences of the area
under the risk-coverage curve (AURC) within seeds, in points, tested as all others are. AURC falls with
accuracy, which label smoothing raises a little; the claim is about the ranking and the errors together, as
theirs is. A t-test on three seeds finds a difference of six times its standard error within seeds, so that
small ones stay undecided.
"""

from __future__ import annotations

from penultimate.paper.claims.criteria import Criterion
from penultimate.paper.claims.evidence import BASELINE, Evidence, StudyEvidence
from penultimate.paper.claims.rules import Claim, Ranking
from penultimate.paper.claims.trials import EffectUnit, Trial, Trials, one, unmeasured
from penultimate.report.quantity import Quantity
from penultimate.report.text import fixed
from penultimate.statistics import mean

CERTAINTY_RULES = "2026-11-26, selective classification"
"""The date of these rules."""
STUDY = "certainty"
"""The study that measures what these rules judge."""
SMOOTHED = "label_smoothing"
AUTHORS = "Xia et al., 2025"
LEAST_AREA = Criterion(
    0.05,
    "A difference of the AURC counts from a twentieth of softmax's: a smaller one would speak for no"
    " objective where errors are what counts.",
)
AREA = {
    score: Quantity("aurc", setting=f"score={score}", optional=True) for score in ("msp", "normalised_logit")
}


def _claim(key: str, says: str, rule: Ranking) -> Claim:
    return Claim(key, says, AUTHORS, rule, True, f"{AUTHORS}: drawn, not printed", CERTAINTY_RULES)


CERTAINTY_CLAIMS: tuple[Claim, ...] = (
    _claim(
        "smoothing_degrades",
        "Ranked by the maximum softmax probability, the surest answers of networks trained with label"
        " smoothing hold more errors than softmax's",
        Ranking("degrades"),
    ),
    _claim(
        "normalising_mends",
        "Ranked by the normalised logit instead, label smoothing's surest answers gain more than softmax's",
        Ranking("mends"),
    ),
)


def certainty_spoken() -> tuple[str, ...]:
    """Return these rules in sentences; those of the first set on level, runs and verdicts hold here too."""
    return (
        f"The rules on selective classification are of {CERTAINTY_RULES.partition(',')[0]},"
        " before any network here was ranked by its confidence. They judge"
        f" claims of {AUTHORS}, by the area under the risk-coverage curve within seeds. A difference counts"
        f" from {fixed(100 * LEAST_AREA.value, 0)} % of softmax's area. Mended means that the change from the"
        " maximum softmax probability to the normalised logit takes away more of label smoothing's area than"
        " of softmax's.",
    )


def judge_ranking(evidence: Evidence, rule: Ranking) -> Trials:
    """Return the difference of AURC that a rule is about, in points, within seeds."""
    lacking = Trials({}, missing=unmeasured("selective classification", f"penultimate run {STUDY}").missing)
    if not isinstance(evidence, StudyEvidence):
        return lacking
    study = evidence.measurements
    specs = {each.slug: each.spec for each in study.objectives}
    areas = {score: study.values(quantity) for score, quantity in AREA.items()}
    scores = ["msp"] if rule.test == "degrades" else ["msp", "normalised_logit"]
    groups = [
        {seed: 100 * value for seed, value in areas[score].get(specs.get(slug, ""), {}).items()}
        for score in scores
        for slug in (SMOOTHED, BASELINE)
    ]
    if not all(groups):
        return lacking
    weights = [1, -1] if rule.test == "degrades" else [1, -1, -1, 1]
    effect = evidence.effect(groups, weights, LEAST_AREA.value * mean(groups[1].values()))
    runs = min(map(len, groups))
    lead = f"Softmax {fixed(mean(groups[1].values()), 2)} %"
    return one(Trial(effect, EffectUnit("{} points of AURC"), runs=runs), evidence.extent([runs]), lead)
