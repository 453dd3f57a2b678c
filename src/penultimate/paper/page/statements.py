"""The results in sentences that are made from the numbers; agreement and disagreement are stated alike."""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias

from penultimate.paper import FIRST_STUDY
from penultimate.paper.claims.both import is_pair
from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.claims.evidence import StudyEvidence, gather
from penultimate.paper.claims.narrow import separation_range
from penultimate.paper.claims.quick import is_quick
from penultimate.paper.claims.repeats import pooled_words, with_repeats
from penultimate.paper.claims.rules import Ranked
from penultimate.paper.claims.verdicts import apply_rule
from penultimate.paper.families import has_families
from penultimate.paper.page.both import headline_of_pair
from penultimate.paper.page.came_out import NOTE, POINTS, WORLD, is_reference
from penultimate.paper.page.quick import quick_headline
from penultimate.paper.page.strengths import headline_of_strengths
from penultimate.paper.panels import LINEAR, SEPARATION, SEPARATION_IN_PAPER
from penultimate.report.base import Built
from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.page.form import Headline, Tile
from penultimate.report.page.study import Tally
from penultimate.report.progress import way_on
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.numbers import summarise
from penultimate.report.shapes.scatter import correlation_of, leaning_on, mean_points
from penultimate.report.text import counted, fixed, listed, p_value, percent
from penultimate.statistics import Correlation, bold
from penultimate.statistics.comparison import LEVEL

MOST_NAMES = 3
LEAST_RHO = CRITERIA.least_correlation.value
TOP1 = Quantity("top1", label="Top-1 accuracy on the pretraining test set, %")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


VERDICTS = {"holds": ("holds", "hold"), "does not hold": ("does not hold", "do not hold")}
"""The verb for one claim and for several; claims with other verdicts are undecided."""

WHOSE = {"the paper's": "Of the paper's {} claims that were measured", "ours": "Of our own {}"}
"""The words for the claims of the exhibit's table, by whose claims they are."""


def tally(claims: Built) -> tuple[Tally, ...]:
    """Return the number of claims with each verdict: of the paper's claims, and of ours."""
    table = claims.tables[0]
    whose, verdict = ([column.key for column in table.columns].index(key) for key in ("whose", "verdict"))
    counts: dict[str, Counter[str]] = {}
    for row in table.rows:
        counts.setdefault(row.cells[whose].text, Counter())[row.cells[verdict].text] += 1
    return tuple(
        Tally(
            WHOSE.get(claimant, claimant).format(of_them.total()),
            tuple(
                (name, of_them[name], f"{of_them[name]} {_verdict_words(name, of_them[name])}")
                for name in (*VERDICTS, "undecided")
            ),
        )
        for claimant, of_them in counts.items()
    )


def _verdict_words(verdict: str, count: int) -> str:
    return VERDICTS[verdict][count != 1] if verdict in VERDICTS else verdict


def headline(measurements: Measurements) -> Headline:
    """Return the study's answer about class separation and transfer, beside the paper's."""
    if is_quick(measurements):
        return quick_headline(measurements)
    if has_families(measurements):
        return headline_of_strengths(measurements)
    if is_pair(measurements):
        return headline_of_pair(measurements)
    theirs = correlation_of(SEPARATION_IN_PAPER.points())
    assert theirs is not None
    own = gather(measurements)
    evidence = with_repeats(own)
    points = SEPARATION.means(evidence.measurements)
    ours = correlation_of(points)
    verdict = _verdict(evidence)
    narrow = separation_range(evidence)
    pooled = pooled_words(own, evidence).strip()
    details = [_beside(ours, theirs, verdict), *([pooled] if pooled else [])] if ours else []
    relation = "rank correlation of class separation with linear transfer"
    facts = [Tile(fixed(ours.rho, 2), "", f"{relation} ({p_value(ours.p)}, n = {ours.n})")] if ours else []
    same = "the same" if ours else relation
    facts.append(
        Tile(fixed(theirs.rho, 2), "", f"{same} on ImageNet, in the paper (n = {theirs.n})", "published")
    )
    top1, transfer = measurements.values(TOP1), measurements.values(LINEAR)
    for runs, what in (
        (top1, "on the classes trained on (test accuracy)"),
        (transfer, "in transfer (linear, mean of tasks)"),
    ):
        facts += _highest(measurements, runs, what)
    if is_reference(measurements):
        return Headline(WORLD, (pooled, NOTE), tuple(facts), points=POINTS)
    details += [narrow.sentence] if narrow and narrow.is_narrow else []
    details += _softmax(measurements, top1, transfer)
    details += _accuracy(measurements, top1, transfer)
    leaning = leaning_on(points, named=False)
    way = way_on(measurements, (SEPARATION.x, SEPARATION.y)) or f"penultimate run {FIRST_STUDY}"
    answer = _answer(ours, leaning, verdict, measurements.limited, way)
    return Headline(answer, tuple(details), tuple(facts))


Relation: TypeAlias = Literal["falls", "rises", "no fall", "undecided"]
"""The claims' verdict on transfer as separation grows; "no fall" excludes a fall as large as the paper's."""


def _verdict(evidence: StudyEvidence) -> Relation:
    falls = apply_rule(evidence, Ranked("separation", "linear", -1)).verdict
    rises = apply_rule(evidence, Ranked("separation", "linear", 1)).verdict
    if evidence.measurements.limited:
        return "undecided"
    if "holds" in (falls, rises):
        return "falls" if falls == "holds" else "rises"
    return "no fall" if falls == "does not hold" else "undecided"


def _answer(
    ours: Correlation | None,
    leaning: str,
    verdict: Relation,
    limited: bool,
    way: str,
) -> str:
    """Return the answer in one sentence; it states a relation only if the claims do."""
    if ours is None:
        return (
            "This study cannot say yet whether pulling classes apart costs transfer: fewer than three"
            f" objectives have both numbers. To measure them: `{way}`."
        )
    size = f"Spearman’s ρ = {fixed(ours.rho, 2)}, {p_value(ours.p)}, n = {ours.n}{leaning}"
    among = f"{'In this limited run, among' if limited else 'Among'} {counted(ours.n, 'objective')},"
    if verdict not in ("falls", "rises"):
        why = "but not beyond chance" if ours.p >= LEVEL else "which the rules of the claims leave undecided"
        lean = f"tend to transfer {'worse' if ours.rho < 0 else 'better'}, {why}"
        lean = lean if abs(ours.rho) >= 0.1 else "transfer neither better nor worse"
        return f"{among} those that pull the classes further apart {lean} ({size})."
    better = "worse" if verdict == "falls" else "better"
    return f"{among} those that pull the classes further apart transfer {better} ({size})."


def _beside(ours: Correlation, theirs: Correlation, verdict: Relation) -> str:
    leaning = leaning_on(SEPARATION_IN_PAPER.points(), named=False)
    paper = f"The paper found ρ = {fixed(theirs.rho, 2)} for its nine objectives on ImageNet{leaning}"
    direction = "points the same way" if ours.rho < 0 else "points the other way"
    found = {
        "falls": "this study agrees",
        "rises": "this study disagrees: the relation is reversed here",
        "no fall": f"this study disagrees: a ρ of {fixed(-LEAST_RHO, 2)} or stronger is excluded",
        "undecided": f"ours {direction} and is undecided, so it neither confirms nor refutes it",
    }
    return f"{paper}; {found[verdict]}."


def _ranked(runs: ByRun) -> list[tuple[str, float]]:
    """Return objectives by their mean, the best first; equal means keep the study's order."""
    means = [(spec, summarise(list(values.values())).mean) for spec, values in runs.items()]
    return sorted(means, key=lambda pair: -pair[1])


def _highest(measurements: Measurements, runs: ByRun, what: str) -> list[Tile]:
    """Return a tile of the highest mean, with the objectives that it does not beat beyond chance."""
    if not runs:
        return []
    (spec, value), *others = _ranked(runs)
    label = measurements.objective(spec).label
    meaning = f"the highest {'mean' if len(runs[spec]) > 1 else 'value'} {what}: {label}"
    return [Tile(percent(value), "%", f"{meaning}{_beyond(measurements, runs, spec) if others else ''}")]


def _beyond(measurements: Measurements, runs: ByRun, spec: str) -> str:
    """Return a clause with the result of the significance test of one objective against all others."""
    found = bold(runs)
    tested = {name: of[spec] for name, of in found.p_values.items() if spec in of}
    if not tested:
        seeds = counted(max(map(len, runs.values())), "seed")
        return f"; {seeds} cannot tell it from the others, and nothing is called best"
    others = f"the other {counted(len(runs) - 1, 'objective')}"
    if found.entries == {spec}:
        return f"; beyond chance above each of {others}"
    level = [name for name in runs if name != spec and tested.get(name, 1.0) > LEVEL]
    names = [measurements.objective(name).label for name in level]
    which = listed(names) if len(names) <= MOST_NAMES else f"{counted(len(names), 'of', 'of')} {others}"
    return f"; not beyond chance above {which}"


def _place(runs: ByRun, spec: str) -> str:
    position = [ranked for ranked, _ in _ranked(runs)].index(spec)
    word = ORDINALS[position] if position < len(ORDINALS) else f"number {position + 1}"
    return f"{word} of {counted(len(runs), 'objective').split()[0]}"


def _softmax(measurements: Measurements, top1: ByRun, transfer: ByRun) -> list[str]:
    spec = measurements.baseline
    if spec not in top1 or spec not in transfer or len(top1) < 2 or len(transfer) < 2:
        return []
    means = dict(_ranked(top1))
    higher = [measurements.objective(rival).label for rival in means if means[rival] > means[spec]]
    rivals = f" (after {listed(higher)})" if 0 < len(higher) <= MOST_NAMES else ""
    return [
        f"By its mean plain softmax, the usual choice, comes {_place(top1, spec)} on the classes it was"
        f" trained on{rivals} and {_place(transfer, spec)} in transfer; in the paper it is last of nine and"
        " first of nine."
    ]


def _accuracy(measurements: Measurements, top1: ByRun, transfer: ByRun) -> list[str]:
    points = mean_points(measurements, top1, transfer, TOP1, LINEAR)
    correlation = correlation_of(points)
    if correlation is None:
        return []
    size = f"ρ = {fixed(correlation.rho, 2)}, {p_value(correlation.p)}{leaning_on(points, named=False)}"
    says = "says nothing reliable about" if correlation.p >= LEVEL else "goes with"
    how = "" if correlation.p >= LEVEL else (" better" if correlation.rho > 0 else " worse")
    return [f"Accuracy on the pretraining classes {says}{how} transfer ({size}); in the paper, ρ = −0.21."]
