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

from penultimate.objectives.presets import PRESETS
from penultimate.paper.claims.comparisons import HIGHER, against_softmax, all_sides, runs_compared
from penultimate.paper.claims.effects import corrected, decide
from penultimate.paper.claims.evidence import BASELINE, Evidence, StudyEvidence
from penultimate.paper.claims.quoted import paper
from penultimate.paper.claims.rules import ALTERNATIVES, Claim, Regained
from penultimate.paper.claims.trials import Trial, Trials, one, refused, unit, unmeasured
from penultimate.report.text import counted, fixed, in_words, listed
from penultimate.statistics import mean

HEAD_DECAY_RULES = "2026-11-26, the final layer's decay"
"""The date of this rule."""
STUDY = "head_decay"
"""The study that measures what this rule judges."""

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


def head_decay_spoken() -> tuple[str, ...]:
    """Return the rule in sentences; those of the first set on level, runs and objectives hold here too."""
    return (
        f"The rule on the final layer's weight decay is of {HEAD_DECAY_RULES.partition(',')[0]},"
        " before any network of the study that it judges was trained. It looks"
        " at networks whose recipe has a weight decay of the final layer's own (`head_decay`), and at the"
        " mean gain on softmax of seven alternatives within seeds; squared error, whose strength has no"
        " counterpart here, is left out. A mean gain counts from half of the paper's, both as shares of"
        " softmax's errors: a half has lost as much as it keeps. For how many of the seven a gain of their"
        " own is beyond chance (Holm) is told beside it.",
    )


def regained(evidence: Evidence, rule: Regained) -> Trials:
    """Return the mean gain of these alternatives on softmax where the final layer has its own decay."""
    own = _with_own_decay(evidence)
    softmax, alternatives = own.alternatives("accuracy") if own else ({}, {})
    there = {slug: alternatives[slug] for slug in rule.among if slug in alternatives}
    if own is None or not softmax or not there:
        what = "accuracy of networks whose final layer has a weight decay of its own"
        return Trials({}, missing=unmeasured(what, f"penultimate run {STUDY}").missing)
    groups, count = [*there.values(), softmax], len(there)
    errors = 100 - mean(softmax.values())
    effect = own.effect(groups, [1 / count] * count + [-1], rule.share * _papers_gain(rule) * errors)
    trial = Trial(effect, unit("accuracy"), runs=runs_compared(own, groups))
    share = fixed(100 * effect.estimate / errors, 1)
    told = f"mean of {counted(count, 'alternative')}: {share} in a hundred of softmax's errors"
    extent = f"{own.extent([trial.runs])}, {told}"
    absent = [PRESETS[slug].label for slug in rule.among if slug not in there]
    if absent:
        return refused(f"{trial.text}, {extent}", f"Not measured, or diverged: {listed(absent)}.")
    return dataclasses.replace(one(trial, extent), remark=_one_by_one(own, rule))


def _with_own_decay(evidence: Evidence) -> Evidence | None:
    """Return the evidence of the first arm whose recipe has a weight decay of the final layer's own.

    The paper's own numbers are all of that kind.
    """
    if not isinstance(evidence, StudyEvidence):
        return evidence
    study = evidence.measurements
    arms = (study.in_arm(arm) for arm in dict.fromkeys((study.arm, *study.arms)))
    own = next((arm for arm in arms if arm.recipe.get("head_decay") is not None), None)
    return None if own is None else dataclasses.replace(evidence, measurements=own)


def _papers_gain(rule: Regained) -> float:
    """Return the mean of the printed gains, as a share of the errors of the paper's softmax."""
    means = paper("accuracy")
    return mean([means[name] - means[BASELINE] for name in rule.among]) / (100 - means[BASELINE])


def _one_by_one(evidence: Evidence, rule: Regained) -> str:
    """Return for how many alternatives a gain that counts is beyond chance, corrected for their number."""
    trials = [
        trial
        for trial in against_softmax(evidence, "accuracy", all_sides(HIGHER, rule.among)).every
        if trial.is_tested
    ]
    family = corrected([trial.effect for trial in trials], "p_for")
    found = [
        trial.name
        for trial, effect in zip(trials, family, strict=True)
        if decide(effect, evidence.criteria) == "holds"
    ]
    named = f": {listed(found)}" if found else ""
    count = f"{in_words(len(found), 'none')} of {in_words(len(rule.among))}"
    return f" One by one, gains are beyond chance for {count}{named}."
