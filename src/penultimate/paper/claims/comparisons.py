"""Comparisons of softmax with the alternatives in one quantity: with each, with all, and task by task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from penultimate.objectives.presets import PRESETS
from penultimate.paper import published
from penultimate.paper.claims.aspects import NAMES, Aspect, is_ratio
from penultimate.paper.claims.criteria import Criteria
from penultimate.paper.claims.effects import (
    BySeed,
    Effect,
    Verdict,
    all_of,
    common_seeds,
    contrast,
    corrected,
    decide,
    difference,
    each,
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
from penultimate.paper.claims.rules import ALTERNATIVES, BestForMost, BestOfAll, OnlyThese, Unbeaten
from penultimate.paper.claims.wording import (
    COPIES,
    amount,
    difference_text,
    enough_seeds,
    least_gain,
    level_text,
    names_of,
    not_enough_runs,
    reason,
    runs_each,
)
from penultimate.paper.printed import PAPER_TARGETS
from penultimate.report.base import MISSING
from penultimate.report.text import counted
from penultimate.statistics import holm, mean, pooled_spread, seeds_needed


@dataclass(frozen=True)
class AgainstSoftmax:
    """Softmax and the alternatives in one quantity, by seed; alternatives with enough runs can be tested.

    With `blocks`, they are compared within the seeds that they share.
    """

    aspect: Aspect
    softmax: BySeed
    alternatives: Mapping[str, BySeed]
    criteria: Criteria
    blocks: bool

    @property
    def margin(self) -> float:
        """The smallest difference that counts: a share of softmax's distance from the highest value."""
        return least_difference(self.aspect, mean(self.softmax.values()), self.criteria)

    def groups(self, slug: str) -> tuple[BySeed, BySeed]:
        """Return the runs of the alternative and of softmax that are compared."""
        pair = self.alternatives[slug], self.softmax
        if not self.blocks:
            return pair
        seeds = common_seeds(pair)
        return {seed: pair[0][seed] for seed in seeds}, {seed: pair[1][seed] for seed in seeds}

    def effect(self, slug: str, sign: int = 1) -> Effect | None:
        """Return the effect sign * (alternative - softmax), or None if it has no interval."""
        return difference(self.groups(slug), (sign, -sign), self.margin, self.criteria, self.blocks)

    def gain(self, slug: str) -> float:
        """Return alternative - softmax, from the means over common seeds or, without any, over all seeds."""
        groups = self.groups(slug) if all(self.counts(slug)) else (self.alternatives[slug], self.softmax)
        return mean(groups[0].values()) - mean(groups[1].values())

    def counts(self, slug: str) -> tuple[int, int]:
        first, second = self.groups(slug)
        return len(first), len(second)

    def tested(self, sign: int = 1, among: Collection[str] = ALTERNATIVES) -> dict[str, Effect]:
        """Return the effects of those of these alternatives that can be tested."""
        enough = self.criteria.least_runs.value
        slugs = [slug for slug in among if slug in self.alternatives and min(self.counts(slug)) >= enough]
        effects = {slug: self.effect(slug, sign) for slug in slugs}
        return {slug: effect for slug, effect in effects.items() if effect is not None}

    def untested(self, ours: str, slugs: Iterable[str]) -> Assessment:
        """Return the assessment for the case that none of these alternatives can be tested."""
        counts = [count for slug in slugs for count in self.counts(slug)]
        few = min(counts) < self.criteria.least_runs.value
        return not_judged(ours, not_enough_runs(counts, self.criteria) if few else COPIES)

    def seeds_to_find(self, slug: str, gain: float) -> int | None:
        """Return the number of seeds that would find a gain of this size, given how differences spread here.

        The number is corrected for all alternatives. It is None if the comparison is not within blocks, or if
        no number of seeds can be given.
        """
        ours, softmax = self.groups(slug)
        differences = [ours[seed] - softmax[seed] for seed in common_seeds((ours, softmax))]
        if not self.blocks or gain <= 0 or len(differences) < 2:
            return None
        spread = pooled_spread([differences])
        return seeds_needed(gain, spread, len(self.alternatives)) if spread else None

    def text(self, slug: str) -> str:
        effect = self.effect(slug) if min(self.counts(slug)) > 1 else None
        return difference_text(self.gain(slug), effect, self.counts(slug), self.aspect)


def least_difference(aspect: Aspect, softmax: float, criteria: Criteria) -> float:
    """Return the smallest difference that counts if softmax has this value."""
    return criteria.least_gain.value * ((1 if is_ratio(aspect) else 100) - softmax)


def compare(evidence: Evidence, aspect: Aspect, criteria: Criteria, blocks: bool) -> AgainstSoftmax | None:
    """Return the comparison that a study allows, or None if softmax was not measured."""
    softmax, alternatives = evidence.alternatives(aspect)
    return AgainstSoftmax(aspect, softmax, alternatives, criteria, blocks) if softmax else None


def better(evidence: Evidence, aspect: Aspect, slug: str, criteria: Criteria, blocks: bool) -> Assessment:
    """Judge whether an alternative is above softmax, corrected for being one of several."""
    compared = compare(evidence, aspect, criteria, blocks)
    if compared is None or slug not in compared.alternatives:
        return _no_run(evidence, aspect, BASELINE if compared is None else slug)
    effects = compared.tested()
    if slug not in effects:
        return compared.untested(compared.text(slug), [slug])
    family = corrected(corrected(list(effects.values()), "p_for"), "p_against")
    effect = dict(zip(effects, family, strict=True))[slug]
    opposite = dict(zip(effects, holm([1 - one.p_for for one in effects.values()]), strict=True))[slug]
    verdict = decide(effect, criteria)
    why = reason(effect, verdict, least_gain(compared.margin, aspect), criteria, len(family), opposite)
    gain = paper(aspect)[slug] - paper(aspect)[BASELINE]
    seeds = compared.seeds_to_find(slug, gain) if verdict == "undecided" else None
    enough = enough_seeds(gain, seeds, aspect) if seeds else ""
    return Assessment(compared.text(slug), verdict, f"{why}{enough}")


def _no_run(evidence: Evidence, aspect: Aspect, slug: str) -> Assessment:
    labels = {entry.label for entry in evidence.measurements.objectives if entry.slug == slug}
    if labels & {run.objective for run in evidence.measurements.diverged if not run.backbone}:
        return not_judged(MISSING, f"No run of {PRESETS[slug].label} is left: all diverged.")
    return unmeasured(f"{PRESETS[slug].label}, {NAMES[aspect]}")


def better_in_paper(aspect: Aspect, slug: str, criteria: Criteria) -> str:
    """Return the paper's difference, with the interval from its standard errors if it prints them."""
    means, runs = paper(aspect), paper_runs(aspect)
    effect = contrast([runs[slug], runs[BASELINE]], (1, -1), 0.0, criteria) if runs else None
    return difference_text(means[slug] - means[BASELINE], effect, [PAPER_RUNS], aspect)


def against_all(
    evidence: Evidence, rule: BestOfAll | Unbeaten | OnlyThese, criteria: Criteria, blocks: bool
) -> Assessment:
    """Judge whether softmax is ahead of each alternative, behind each, behind none, or behind these alone.

    "Each" is an intersection: to hold, every test must pass, uncorrected; to fail, one must, corrected.
    """
    compared = compare(evidence, rule.aspect, criteria, blocks)
    sign, among, denied = _tests(rule)
    if compared is None or not {*among} & {*compared.alternatives}:
        return unmeasured(NAMES[rule.aspect])
    gains = {slug: compared.gain(slug) for slug in among if slug in compared.alternatives}
    rival = _rival(rule, gains)
    ours = _rivals_text(rule, mean(compared.softmax.values()), rival, compared.text(rival))
    effects = compared.tested(sign, among)
    if not effects:
        return compared.untested(ours, gains)
    verdicts = each(effects, denied, criteria)
    verdict = all_of(verdicts.values())
    absent = [slug for slug in among if slug not in verdicts]
    if verdict == "holds" and absent:
        why = f"It holds against all but {names_of(absent)}: too few runs, or none."
        return not_judged(ours, why)
    names = names_of(slug for slug, one in verdicts.items() if one == verdict)
    every = f"each of {counted(len(verdicts), 'alternative')}"
    least = f"{amount(compared.margin, rule.aspect)} or more"
    return Assessment(ours, verdict, _reasons(rule)[verdict].format(names=names, each=every, least=least))


def _tests(rule: BestOfAll | Unbeaten | OnlyThese) -> tuple[int, tuple[str, ...], frozenset[str]]:
    """Return the sign of the tested differences, the alternatives, and those for which a gain is denied."""
    match rule:
        case BestOfAll(_, sign, among):
            return -sign, among, frozenset()
        case Unbeaten():
            return 1, ALTERNATIVES, frozenset(ALTERNATIVES)
        case OnlyThese(_, objectives):
            return 1, ALTERNATIVES, frozenset(ALTERNATIVES) - {*objectives}


def _reasons(rule: BestOfAll | Unbeaten | OnlyThese) -> dict[Verdict, str]:
    match rule:
        case BestOfAll(_, sign):
            side = "Ahead of" if sign > 0 else "Behind"
            lead = "a lead of {least} over" if sign > 0 else "a gain of {least} by"
            return {
                "holds": side + " {each} beyond chance, by an estimated {least}.",
                "does not hold": "Excluded (corrected): " + lead + " {names}.",
                "undecided": "Open for {names}: no clear difference, and no clear lack of one.",
            }
        case Unbeaten():
            return {
                "holds": "Excluded for {each}: a gain of {least}.",
                "does not hold": "Better beyond chance (corrected), by an estimated {least}: {names}.",
                "undecided": "Open for {names}: a gain of {least} is neither shown nor excluded.",
            }
        case OnlyThese(_, objectives):
            these = names_of(objectives)
            return {
                "holds": f"Gains of {{least}} by {these} beyond chance; excluded for all others.",
                "does not hold": "Otherwise (corrected; a gain of {least} counts): {names}.",
                "undecided": "Open for {names}: a gain of {least} is neither shown nor excluded.",
            }


def in_paper(rule: BestOfAll | Unbeaten | OnlyThese) -> str:
    """Return the paper's softmax and its nearest rival."""
    means = paper(rule.aspect)
    rival = _rival(rule, {slug: means[slug] for slug in _tests(rule)[1]})
    gain = difference_text(means[rival] - means[BASELINE], None, [PAPER_RUNS], rule.aspect)
    return _rivals_text(rule, means[BASELINE], rival, gain)


def _rival(rule: BestOfAll | Unbeaten | OnlyThese, gains: Mapping[str, float]) -> str:
    """Return the alternative that decides the claim: the best, or the lowest if each is claimed to gain."""
    sign = rule.sign if isinstance(rule, BestOfAll) else 1
    return max(gains, key=lambda slug: sign * gains[slug])


def _rivals_text(rule: BestOfAll | Unbeaten | OnlyThese, softmax: float, rival: str, gain: str) -> str:
    which = "lowest" if isinstance(rule, BestOfAll) and rule.sign < 0 else "best"
    level = level_text(softmax, rule.aspect)
    return f"Softmax {level}; {which} alternative: {PRESETS[rival].label}, {gain}"


def best_for_most(evidence: Evidence, rule: BestForMost, criteria: Criteria, blocks: bool) -> Assessment:
    """Judge whether softmax is ahead of every alternative on more than half of the tasks.

    To hold, that many tasks must pass: with u of T needed, p_(u) (T - u + 1) <= a over the tasks' own p, each
    an intersection over alternatives. To fail, T - u + 1 of them must, likewise.

    Benjamini and Heller, 2008.
    """
    tasks = evidence.measurements.targets
    compared = {task: compare(evidence.on_task(task), rule.aspect, criteria, blocks) for task in tasks}
    if not tasks or any(one is None or not one.alternatives for one in compared.values()):
        return unmeasured(NAMES[rule.aspect])
    best, tied = _count_best({task: _means(one) for task, one in compared.items() if one})
    some = next(one for one in compared.values() if one)
    counts = [count for slug in some.alternatives for count in some.counts(slug)]
    ours = f"{_best_text(best, tied, len(tasks))}, {runs_each(counts)}"
    needed, verdicts = len(tasks) // 2 + 1, list[Verdict]()
    for one in compared.values():
        assert one is not None
        effects = one.tested(-1)
        if len(effects) < len(ALTERNATIVES):
            absent = [slug for slug in ALTERNATIVES if slug not in one.alternatives]
            if absent:
                return not_judged(ours, f"Not measured on every task: {names_of(absent)}.")
            return one.untested(ours, [slug for slug in ALTERNATIVES if slug not in effects])
        verdict_here = each(effects, (), criteria, len(tasks) - needed + 1, needed)
        verdicts.append(all_of(verdict_here.values()))
    ahead, behind = verdicts.count("holds"), verdicts.count("does not hold")
    said = f"ahead of all beyond chance on {ahead} of {len(tasks)} tasks, clearly not on {behind}"
    verdict: Verdict = "undecided"
    if ahead >= needed:
        verdict = "holds"
    elif behind > len(tasks) - needed:
        verdict = "does not hold"
    return Assessment(ours, verdict, f"Softmax is {said} (corrected); {needed} are most.")


def _means(compared: AgainstSoftmax) -> dict[str, float]:
    """Return means to a millionth of a point, so that ties stay ties in a kept study with nine digits."""
    runs = {BASELINE: compared.softmax, **compared.alternatives}
    return {slug: round(mean(values.values()), 6) for slug, values in runs.items()}


def best_for_most_in_paper(aspect: Aspect) -> str:
    """Return on how many of the paper's tasks softmax is best, as printed."""
    rows = published.printed(f"neurips_table1_{aspect}")
    by_task = {
        task: {row["objective"]: float(row[f"{task}_percent"]) for row in rows} for task in PAPER_TARGETS
    }
    return _best_text(*_count_best(by_task), len(by_task))


def _count_best(by_task: Mapping[str, Mapping[str, float]]) -> tuple[int, int]:
    """Return on how many tasks softmax has the highest mean, and on how many of these it shares it."""
    best = [means for means in by_task.values() if means[BASELINE] == max(means.values())]
    return len(best), sum([*means.values()].count(means[BASELINE]) > 1 for means in best)


def _best_text(best: int, tied: int, tasks: int) -> str:
    return f"Softmax best on {best} of {tasks} tasks{f' (tied on {tied})' if tied else ''}"
