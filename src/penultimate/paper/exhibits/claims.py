"""The paper's claims, judged on a study by rules that are dated."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penultimate.paper.claims.aspects import MEASURED_BY, read_by_claims
from penultimate.paper.claims.rules import Ranked
from penultimate.paper.exhibits.verdict_table import CLAIM
from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, listed

if TYPE_CHECKING:
    from penultimate.paper.claims.criteria import Criterion
    from penultimate.paper.claims.rules import Claim
    from penultimate.paper.claims.verdicts import Judged

EVIDENCE = (
    Column("verdict", "Verdict"),
    Column("ours", "This study's evidence"),
    Column("paper", "The paper's evidence"),
    Column("printed", "The rule on the paper's numbers"),
    Column("whose", "Whose claim"),
    Column("reason", "Why"),
)
OF_SEPARATION = (Ranked("separation", "linear", -1), Ranked("separation", "knn", -1))
"""The rules of claims that transfer falls with R²."""
NUMBERS = (Column("value", "Value"), Column("reason", "Why"))
PLURAL = {"holds": "hold", "does not hold": "do not hold"}
NOT_PRINTED = "the paper prints no number for it"


def _table(measurements: Measurements) -> Piece:
    from penultimate.paper.claims.filed import filed_reasons, filed_spoken
    from penultimate.paper.claims.further import further_reasons, further_spoken
    from penultimate.paper.claims.joint import SETS, judge_jointly, judge_set
    from penultimate.paper.claims.quick import is_quick
    from penultimate.paper.claims.stated import reasons, spoken

    of_sets = {each: judge_set(measurements, each.claims) for each in SETS}
    asked = [each for each, judged in of_sets.items() if judged]
    every = (*(one for each in asked for one in of_sets[each]), *judge_jointly(measurements))
    quick = is_quick(measurements)
    judged = tuple(
        one for one in every if one.ours.missing is None and (one.ours.verdict != "undecided" or not quick)
    )
    gaps = dict.fromkeys(one.ours.missing for one in every if one.ours.missing is not None)
    if not judged:
        return Piece(missing=() if quick else tuple(gaps))
    (((verdict, reason), count),) = Counter(
        (one.ours.verdict, one.ours.reason) for one in judged
    ).most_common(1)
    of_most = 2 * count > len(judged) > 1
    of_all = of_most and count == len(judged)
    columns = EVIDENCE[:-1] if of_all else EVIDENCE
    by_claim = ExhibitTable(
        "claims",
        "Claim by claim",
        CLAIM,
        columns,
        tuple(
            _evidence(one, reason if of_most else "", len(columns), close_together(measurements, one.claim))
            for one in judged
        ),
        folded_title=undecided_title(sum(one.ours.verdict == "undecided" for one in judged)),
    )
    numbers = ExhibitTable(
        "claims_numbers",
        "Every number in the rules, and why it is this one",
        "Number",
        NUMBERS,
        tuple(
            _number(name, criterion) for name, criterion in (*reasons(), *further_reasons(), *filed_reasons())
        ),
        folded=True,
    )
    notes = []
    if of_most:
        of_one_verdict = {one.ours.verdict for one in judged} == {verdict}
        what = shared_verdict(verdict, count, len(judged), of_one_verdict)
        notes.append(f"{OURS}: {what}. {reason}")
    notes += _filed_after(measurements, judged)
    if gaps:
        left = counted(len(every) - len(judged), "claim")
        notes.append(
            f"{left[0].upper()}{left[1:]} more are not decided by three objectives in so few draws."
            if quick
            else f"{left[0].upper()}{left[1:]} more could be judged if what they need were measured."
        )
    return Piece(
        (by_claim, numbers),
        notes=tuple(notes),
        missing=() if quick else tuple(gaps),
        method=(
            *spoken(),
            *further_spoken(),
            *filed_spoken(),
            *(sentence for each in asked for sentence in each.spoken()),
        ),
    )


def undecided_title(count: int) -> str:
    """Return the title of the claims that the page folds.

    >>> undecided_title(1), undecided_title(25)
    ('One claim is undecided', '25 claims are undecided')
    """
    words = counted(count, "claim")
    return f"{words[0].upper()}{words[1:]} {'is' if count == 1 else 'are'} undecided"


def shared_verdict(verdict: str, count: int, judged: int, of_one_verdict: bool) -> str:
    """Return the note that `count` of the judged claims have one verdict for one reason.

    >>> shared_verdict("does not hold", 2, 3, True)
    'every claim does not hold, 2 of 3 for one reason'
    >>> shared_verdict("undecided", 12, 19, False)
    '12 of 19 claims are undecided for one reason'
    """
    part = f"{count} of {judged}"
    if not of_one_verdict:
        return f"{part} claims {PLURAL.get(verdict, f'are {verdict}')} for one reason"
    each = verdict if verdict in PLURAL else f"is {verdict}"
    return f"every claim {each}{'' if count == judged else f', {part} for one reason'}"


def close_together(measurements: Measurements, claim: Claim) -> str:
    """Return sentences for a claim that transfer falls with R²: on its range here, and on single seeds."""
    from penultimate.paper.claims.evidence import gather
    from penultimate.paper.claims.narrow import separation_range
    from penultimate.paper.claims.repeats import with_repeats
    from penultimate.paper.claims.steadiness import steadiness

    if claim.rule not in OF_SEPARATION:
        return ""
    evidence = with_repeats(gather(measurements))
    found = separation_range(evidence)
    narrow = found.sentence if found and found.is_narrow else ""
    said = " ".join(filter(None, (narrow, steadiness(evidence, claim.rule))))
    return f" {said}" if said else ""


def _evidence(judged: Judged, said: str, columns: int, close: str = "") -> TableRow:
    """Return the row of a claim, with that many columns; a reason that most claims share is not repeated."""
    claim, ours = judged.claim, judged.ours
    cells = (
        Cell(ours.verdict),
        Cell(ours.ours),
        Cell(f"{judged.paper} ({claim.where})".lstrip()),
        Cell(judged.printed.verdict if judged.printed else NOT_PRINTED),
        Cell(_whose(claim)),
        Cell("as most" if ours.reason == said else ours.reason.replace("`", "") + close),
    )
    return TableRow(claim.says, cells[:columns], folded=ours.verdict == "undecided")


def _whose(claim: Claim) -> str:
    """Return whose claim it is: the paper's, ours, or that of other authors."""
    from penultimate.paper.claims.certainty import AUTHORS, CERTAINTY_RULES

    if claim.since == CERTAINTY_RULES:
        return AUTHORS
    return "ours" if claim.ours else "the paper's"


def _number(name: str, criterion: Criterion) -> TableRow:
    words = name.replace("_", " ").capitalize()
    value = criterion.value
    text = f"{value:,.0f}" if value == int(value) else f"{value:.3g}"
    return TableRow(words, (Cell(text, value), Cell(criterion.reason)))


def _filed_after(measurements: Measurements, judged: tuple[Judged, ...]) -> list[str]:
    """Return a sentence on the claims whose rules were filed after this run was measured, if it says when."""
    day = str(measurements.results.provenance.get("measured", ""))
    late = [one.claim for one in judged if day and one.claim.since[:10] > day]
    if not late:
        return []
    since = listed(sorted({claim.since[:10] for claim in late}))
    return [
        f"The rules of {counted(len(late), 'claim')} were filed on {since}, after this run, which was"
        f" measured on {day}: they describe it, and do not test it."
    ]


CLAIMS = Exhibit(
    name="claims",
    title="The paper's claims, and a few of ours",
    caption="Each claim of the paper that this study can judge, and a few of ours: the paper's numbers,"
    " recomputed from its printed tables, and whether they satisfy the rule (means without a standard error"
    " are taken as they stand); the same numbers measured here, with 95 % intervals; and what they come to."
    " Undecided means that these data cannot tell, not that the claim is in doubt.",
    parts=(Bespoke(_table, read_by_claims()),),
    place=2,
    measured_by=MEASURED_BY,
    of_given=False,
    summary="The paper's claims, the evidence here, and a verdict on each",
    short="Claim by claim",
)
