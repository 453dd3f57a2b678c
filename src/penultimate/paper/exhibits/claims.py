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
VERDICTS: dict[Verdict, str] = {"holds": "hold", "does not hold": "do not hold", "undecided": "undecided"}


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
    rows, value = [_row(one) for one in judged], Column("value", "Value", digits=3)
    numbers = [(name, [float(number)]) for name, number in NUMBERS]
    yield table_of_rows("claims", "Claim by claim", COLUMNS, rows, corner=CLAIM, folded=True)
    title = "Every number in the rules"
    yield table_of_rows("claims_numbers", title, [value], numbers, corner="Number", folded=True)
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
    for ours, whose in ((False, "claims of the paper"), (True, "claims of our own")):
        verdicts = Counter(one.ours.verdict for one in judged if one.claim.ours == ours)
        if verdicts:
            counts = (f"{verdicts[verdict]} {words}" for verdict, words in VERDICTS.items())
            said.append(f"{verdicts.total()} {whose}: {', '.join(counts)}")
    return f"{'; '.join(said)}."
