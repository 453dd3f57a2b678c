"""The rule on the final layer's weight decay: does the paper's value bring back the paper's gains on softmax?

The recipe of `matched_search` has the paper's exposure to weight decay in fewer steps, and therefore 16 times
the paper's weight decay, in the final layer too. Exposure is what counts for weights before a batch
normalisation, of which only the direction matters; what the final layer comes to depends on the decay itself.
So softmax here nearly is the paper's "more final layer L²". The study `head_decay` gives the final layer the
paper's decay, 8e-5, and the objectives the paper's strengths.

The rule was written before any network of that study was trained. What was known is a pilot of three
networks (one seed, 7001, which no study uses): label smoothing gained 1.1 points on softmax and logit penalty
1.5, where the paper's gain .6 and .7. With the spread and the correlation of the gains in `glyphs` (.38
points within a seed, .66) and five seeds, 4,000 simulated studies decide so: gains as large as the paper's
are found in 95 %, and denied in none; if there are none, that is shown in 53 %, and denied in .2 %. (A rule
that counts the alternatives whose own gain is beyond chance, and asks for four of the seven, would find the
paper's in 56 % and deny absent ones in 2 %; it is told beside the verdict.)

If the claim holds, the free settings of the regime (images a class, epochs) are chosen again by softmax's
three pretraining numbers, logged in `docs/world.md`, and used for the next reference run. If it does not
hold, or stays undecided, the regime stays, and the report says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from penultimate.paper.claims.aspects import Aspect
from penultimate.paper.claims.comparisons import AgainstSoftmax, compare, least_difference
from penultimate.paper.claims.criteria import CRITERIA, Criteria
from penultimate.paper.claims.effects import (
    Effect,
    common_seeds,
    contrast,
    corrected,
    decide,
    difference,
)
from penultimate.paper.claims.evidence import (
    BASELINE,
    PAPER_RUNS,
    Assessment,
    Evidence,
    not_judged,
    paper,
    paper_runs,
    unmeasured,
)
from penultimate.paper.claims.rules import ALTERNATIVES, Claim, Regained
from penultimate.paper.claims.stated import digest_of
from penultimate.paper.claims.wording import (
    COPIES,
    difference_text,
    least_gain,
    names_of,
    not_enough_runs,
    reason,
)
from penultimate.report.text import counted, fixed, in_words
from penultimate.statistics import mean

HEAD_DECAY_RULES = "2026-11-26, the final layer's decay"
"""The date of this rule."""
STUDY = "head_decay"
"""The study that measures what this rule judges."""
ACCURACY: Aspect = "accuracy"

HEAD_DECAY_CLAIMS: tuple[Claim, ...] = (
    Claim(
        "head_decay_gains",
        "With the paper's weight decay in the final layer, the alternatives gain on softmax in accuracy as"
        " they do in the paper",
        "section 3.1, table 3; the decay: appendix A.1",
        Regained(tuple(name for name in ALTERNATIVES if name != "squared_error"), 0.5),
        ours=True,
        since=HEAD_DECAY_RULES,
    ),
)


def head_decay_digest() -> str:
    """Return the sha256 of this rule and of the numbers that it shares with the first set."""
    return digest_of(CRITERIA, HEAD_DECAY_CLAIMS)


def head_decay_spoken() -> tuple[str, ...]:
    """Return the rule in sentences; those of the first set on level, runs and objectives hold here too."""
    return (
        f"The rule on the final layer's weight decay is of {HEAD_DECAY_RULES.partition(',')[0]} (sha256"
        f" {head_decay_digest()[:12]}), before any network of the study that it judges was trained. It looks"
        " at networks whose recipe has a weight decay of the final layer's own (`head_decay`), and at the"
        " mean gain on softmax of seven alternatives within seeds; squared error, whose strength has no"
        " counterpart here, is left out. A mean gain counts from half of the paper's, both as shares of"
        " softmax's errors: a half has lost as much as it keeps. For how many of the seven a gain of their"
        " own is beyond chance (Holm) is told beside it.",
    )


def regained(evidence: Evidence, rule: Regained, criteria: Criteria) -> Assessment:
    """Judge the mean gain of these alternatives on softmax where the final layer has its own decay."""
    compared = _with_own_decay(evidence, criteria)
    if compared is None or not {*rule.among} & {*compared.alternatives}:
        what = "accuracy of networks whose final layer has a weight decay of its own"
        return unmeasured(what, f"penultimate run {STUDY}")
    there = [slug for slug in rule.among if slug in compared.alternatives]
    runs = [compared.alternatives[slug] for slug in there]
    seeds = common_seeds((compared.softmax, *runs))
    errors = 100 - mean(compared.softmax.values())
    margin = rule.share * _papers_gain(rule) * errors
    gains = {seed: mean([one[seed] for one in runs]) - compared.softmax[seed] for seed in seeds}
    effect = difference([gains], [1], margin, criteria) if len(gains) > 1 else None
    gain = mean(gains.values()) if gains else mean([compared.gain(slug) for slug in there])
    ours = f"{difference_text(gain, effect, [len(gains)], ACCURACY)}, {_of_errors(len(there), gain / errors)}"
    absent = [slug for slug in rule.among if slug not in there]
    if absent:
        return not_judged(ours, f"Not measured, or diverged: {names_of(absent)}.")
    if len(seeds) < criteria.least_runs.value:
        return not_judged(ours, not_enough_runs([len(seeds)], criteria))
    if effect is None:
        return not_judged(ours, COPIES)
    verdict = decide(effect, criteria)
    found = _beyond_chance(compared.tested(1, rule.among), criteria)
    by_itself = (
        f" One by one, gains are beyond chance for {in_words(len(found), 'none')} of {in_words(len(there))}"
    )
    named = f": {names_of(found)}." if found else "."
    why = reason(effect, verdict, least_gain(margin, ACCURACY), criteria)
    return Assessment(ours, verdict, why + by_itself + named)


def _with_own_decay(evidence: Evidence, criteria: Criteria) -> AgainstSoftmax | None:
    """Return the comparison in the first arm whose recipe has a weight decay of the final layer's own."""
    measurements = evidence.measurements
    arms = (measurements.in_arm(arm) for arm in dict.fromkeys((measurements.arm, *measurements.arms)))
    own = next((arm for arm in arms if arm.recipe.get("head_decay") is not None), None)
    if own is None:
        return None
    return compare(dataclasses.replace(evidence, measurements=own), ACCURACY, criteria, blocks=True)


def _papers_gain(rule: Regained) -> float:
    """Return the mean of the printed gains, as a share of the errors of the paper's softmax."""
    means = paper(ACCURACY)
    return mean([means[name] - means[BASELINE] for name in rule.among]) / (100 - means[BASELINE])


def _of_errors(count: int, share: float) -> str:
    return (
        f"mean of {counted(count, 'alternative')}: {fixed(100 * share, 1)} in a hundred of softmax's errors"
    )


def _beyond_chance(effects: Mapping[str, Effect], criteria: Criteria) -> list[str]:
    """Return the alternatives that gain what counts beyond chance, corrected for their number."""
    family = corrected(list(effects.values()), "p_for")
    return [slug for slug, effect in zip(effects, family, strict=True) if decide(effect, criteria) == "holds"]


def regained_in_paper(rule: Regained, criteria: Criteria) -> str:
    """Return the mean of the printed gains, and how many of them are beyond chance by the printed errors."""
    means, runs = paper(ACCURACY), paper_runs(ACCURACY)
    margin = least_difference(ACCURACY, means[BASELINE], criteria)
    effects = {name: contrast([runs[name], runs[BASELINE]], (1, -1), margin, criteria) for name in rule.among}
    found = _beyond_chance({name: one for name, one in effects.items() if one is not None}, criteria)
    gain = mean([means[name] - means[BASELINE] for name in rule.among])
    text = difference_text(gain, None, [PAPER_RUNS], ACCURACY)
    told = _of_errors(len(rule.among), _papers_gain(rule))
    return f"{text}, {told}; {in_words(len(found), 'none')} of {in_words(len(rule.among))} beyond chance"
