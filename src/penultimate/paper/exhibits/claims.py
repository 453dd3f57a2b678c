"""The paper's claims, judged on a run by rules that are dated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from penultimate.paper.claims.filed import NUMBERS
from penultimate.paper.claims.judging import CLAIM, JudgedClaim, judge
from penultimate.paper.claims.quick import is_quick
from penultimate.paper.claims.verdicts import Verdict
from penultimate.paper.page.came_out import NOTE, is_reference
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.rows import Run
from penultimate.results.table import Column, table_of_rows
from penultimate.results.text import counted

COLUMNS = (
    Column("verdict", "Verdict"),
    Column("ours", "This study's evidence"),
    Column("paper", "The paper's evidence"),
    Column("printed", "The rule on the paper's numbers"),
    Column("whose", "Whose claim"),
    Column("reason", "Why"),
)
VERBS: dict[Verdict, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
}


@exhibit("claims", "The paper's claims, and a few of ours", section="claims", study="glyphs")
def claims(run: Run) -> Iterator[Part]:
    """Each claim that this study can judge: the verdict of its rule on the numbers measured here, with 95 %
    intervals, and on the paper's printed ones (means without a standard error are taken as they stand).
    Undecided means that these data cannot tell, not that the claim is in doubt."""
    judged = judge(run)
    if is_quick(run):
        decided = [one for one in judged if one.ours.verdict != "undecided"]
        left = counted(len(judged) - len(decided), "claim").capitalize()
        yield f"{left} more are not decided by three objectives in so few draws."
        judged = decided
    if not judged:
        return
    yield table_of_rows(
        "claims", "Claim by claim", COLUMNS, [_row(one) for one in judged], corner=CLAIM, folded=True
    )
    yield table_of_rows(
        "claims_numbers",
        "Every number in the rules",
        [Column("value", "Value", digits=3)],
        [(name, [float(value)]) for name, value in NUMBERS],
        corner="Number",
        folded=True,
    )
    yield tally(judged)
    if is_reference(run):
        yield NOTE
    day = str(run.provenance.get("measured", ""))
    late = [one for one in judged if day and one.claim.since > day]
    if late:
        yield (
            f"The rules of {counted(len(late), 'claim')} were filed after this run, which was measured on"
            f" {day}: they describe it, and do not test it."
        )
    if len({one.ours.reason for one in judged}) == 1:
        yield f"All for one reason: {judged[0].ours.reason}"


def _row(one: JudgedClaim) -> tuple[str, list[str]]:
    evidence = f"{one.paper} ({one.claim.where})".lstrip()
    printed = one.printed.verdict if one.printed else "the paper prints no number for it"
    whose = "ours" if one.claim.ours else "the paper's"
    return one.claim.says, [one.ours.verdict, one.ours.numbers, evidence, printed, whose, one.ours.reason]


def tally(judged: Iterable[JudgedClaim]) -> str:
    """Return how many claims of the paper, and of ours, have each verdict."""
    judged, said = list(judged), []
    for ours, whose in ((False, "the paper's"), (True, "our own")):
        verdicts = Counter(one.ours.verdict for one in judged if one.claim.ours == ours)
        if verdicts:
            words = [f"{verdicts[each]} {verb[verdicts[each] != 1]}" for each, verb in VERBS.items()]
            said.append(
                f"of {whose} {counted(verdicts.total(), 'claim')} {', '.join(words)} and"
                f" {verdicts['undecided']} {'is' if verdicts['undecided'] == 1 else 'are'} undecided"
            )
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."
