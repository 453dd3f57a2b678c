"""Softmax against the alternatives in one accuracy: each alone, and all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penultimate.objectives.presets import PRESETS
from penultimate.report.base import MISSING
from penultimate.report.claims.aspects import NAMES, Aspect
from penultimate.report.claims.effects import Effect, Verdict, all_of, contrast, corrected, decide, negated
from penultimate.report.claims.evidence import (
    BASELINE,
    PAPER_RUNS,
    Assessment,
    Evidence,
    paper,
    paper_runs,
    unmeasured,
)
from penultimate.report.claims.rules import ALTERNATIVES, Criteria
from penultimate.report.claims.wording import (
    COPIES,
    difference_text,
    least_gain,
    names_of,
    not_enough_runs,
    reason,
    runs_each,
    signed,
)
from penultimate.report.text import counted, fixed
from penultimate.statistics import Summary, summarise


@dataclass(frozen=True)
class AgainstSoftmax:
    """Softmax and the alternatives in one accuracy, in per cent; those with enough runs can be tested."""

    softmax: Summary
    alternatives: dict[str, Summary]
    criteria: Criteria

    @property
    def margin(self) -> float:
        """The smallest difference that counts, in points: a share of softmax's errors."""
        return self.criteria.least_gain.value * (100 - self.softmax.mean)

    def effect(self, slug: str, sign: int = 1) -> Effect | None:
        """sign * (alternative - softmax)."""
        groups = (self.alternatives[slug], self.softmax)
        return contrast(groups, (sign, -sign), self.margin, self.criteria)

    def difference(self, slug: str) -> float:
        return self.alternatives[slug].mean - self.softmax.mean

    def counts(self, slug: str) -> tuple[int, int]:
        return self.alternatives[slug].n, self.softmax.n

    def tested(self, sign: int = 1) -> dict[str, Effect]:
        """The effect of every alternative that can be tested."""
        enough = self.criteria.least_runs.value
        effects = {
            slug: self.effect(slug, sign) for slug in self.alternatives if min(self.counts(slug)) >= enough
        }
        return {slug: effect for slug, effect in effects.items() if effect is not None}

    def untested(self, slugs: Iterable[str]) -> str:
        """Why none of these can be tested."""
        counts = [count for slug in slugs for count in self.counts(slug)]
        return (
            not_enough_runs(counts, self.criteria) if min(counts) < self.criteria.least_runs.value else COPIES
        )

    def text(self, slug: str) -> str:
        return difference_text(self.difference(slug), self.effect(slug), self.counts(slug))


def compare(evidence: Evidence, aspect: Aspect, criteria: Criteria) -> AgainstSoftmax | None:
    """The comparison that a study allows; None where softmax was not measured."""
    softmax, alternatives = evidence.alternatives(aspect)
    if not softmax:
        return None
    summaries = {slug: summarise(runs.values()) for slug, runs in alternatives.items()}
    return AgainstSoftmax(summarise(softmax.values()), summaries, criteria)


def better(evidence: Evidence, aspect: Aspect, slug: str, criteria: Criteria) -> Assessment:
    """Is this alternative above softmax? Corrected for being one of several."""
    compared = compare(evidence, aspect, criteria)
    if compared is None or slug not in compared.alternatives:
        return _no_run(evidence, aspect, BASELINE if compared is None else slug)
    effects = compared.tested()
    if slug not in effects:
        return Assessment(compared.text(slug), "undecided", compared.untested([slug]))
    family = corrected(corrected(list(effects.values()), "p_for"), "p_against")
    effect = dict(zip(effects, family, strict=True))[slug]
    verdict = decide(effect, criteria)
    why = reason(effect, verdict, least_gain(compared.margin), criteria, len(family))
    return Assessment(compared.text(slug), verdict, why)


def _no_run(evidence: Evidence, aspect: Aspect, slug: str) -> Assessment:
    labels = {entry.label for entry in evidence.measurements.objectives if entry.slug == slug}
    if labels & {run.objective for run in evidence.measurements.diverged if not run.backbone}:
        return Assessment(MISSING, "undecided", f"No run of {PRESETS[slug].label} is left: all diverged.")
    return unmeasured(f"{PRESETS[slug].label}, {NAMES[aspect]}")


def better_in_paper(aspect: Aspect, slug: str, criteria: Criteria) -> str:
    """The paper's difference, with the interval of its standard errors where it prints them."""
    runs = paper_runs(aspect)
    if not runs:
        means = paper(aspect)
        return difference_text(means[slug] - means[BASELINE], None, [PAPER_RUNS])
    return AgainstSoftmax(runs[BASELINE], {slug: runs[slug]}, criteria).text(slug)


def against_all(evidence: Evidence, aspect: Aspect, criteria: Criteria, unbeaten: bool) -> Assessment:
    """Softmax against every alternative: ahead of each (best), or behind none (unbeaten).

    "Each" is an intersection: to hold, every test must pass, uncorrected; to fail, one must, corrected.
    """
    compared = compare(evidence, aspect, criteria)
    if compared is None or not compared.alternatives:
        return unmeasured(NAMES[aspect])
    rival = max(compared.alternatives, key=lambda slug: compared.alternatives[slug].mean)
    ours = _rivals_text(compared.softmax.mean, rival, compared.text(rival))
    effects = compared.tested(1 if unbeaten else -1)
    if not effects:
        return Assessment(ours, "undecided", compared.untested(compared.alternatives))
    family = corrected(list(effects.values()), "p_for" if unbeaten else "p_against")
    single = [decide(effect, criteria) for effect in family]
    verdicts = dict(zip(effects, map(negated, single) if unbeaten else single, strict=True))
    verdict = all_of(verdicts.values())
    absent = [slug for slug in ALTERNATIVES if slug not in verdicts]
    if verdict == "holds" and absent:
        why = f"It holds against all but {names_of(absent)}: too few runs, or none."
        return Assessment(ours, "undecided", why)
    names = names_of(slug for slug, one in verdicts.items() if one == verdict)
    each = f"each of {counted(len(verdicts), 'alternative')}"
    least = f"{fixed(compared.margin, 2)} points or more"
    why = (_UNBEATEN if unbeaten else _BEST)[verdict].format(names=names, each=each, least=least)
    return Assessment(ours, verdict, why)


_BEST: dict[Verdict, str] = {
    "holds": "Ahead of {each} beyond chance, by an estimated {least}.",
    "does not hold": "Excluded (corrected): a lead of {least} over {names}.",
    "undecided": "Open for {names}: no clear lead, and no clear lack of one.",
}
_UNBEATEN: dict[Verdict, str] = {
    "holds": "Excluded for {each}: a gain of {least}.",
    "does not hold": "Better beyond chance (corrected), by an estimated {least}: {names}.",
    "undecided": "Open for {names}: a gain of {least} is neither shown nor excluded.",
}


def best_in_paper(aspect: Aspect) -> str:
    """The paper's softmax and its best alternative; it prints no spread of transfer accuracies."""
    means = paper(aspect)
    rival = max((slug for slug in means if slug != BASELINE), key=means.__getitem__)
    gain = f"{signed(means[rival] - means[BASELINE], 2)} points, {runs_each([PAPER_RUNS])}"
    return _rivals_text(means[BASELINE], rival, gain)


def _rivals_text(softmax: float, rival: str, gain: str) -> str:
    return f"Softmax {fixed(softmax, 1)} %; best alternative: {PRESETS[rival].label}, {gain}"
