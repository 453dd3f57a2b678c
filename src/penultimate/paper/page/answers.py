"""The answer at the top of the page of a study: a verdict in a sentence, a few more, and panels beside."""

from __future__ import annotations

from penultimate.paper import FIRST_STUDY
from penultimate.paper.claims.effects import span
from penultimate.paper.claims.judging import JudgedClaim, judge
from penultimate.paper.claims.quick import Beside, QuickAnswer, answer_quickly, is_quick
from penultimate.paper.claims.rules import other_of
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.verdicts import Verdict, decide
from penultimate.paper.page.came_out import POINTS, WORLD, is_reference
from penultimate.results.page import Answer
from penultimate.results.rows import Run
from penultimate.results.table import MISSING
from penultimate.results.text import counted, signed

FIGURE_5 = ("figure5-ours", "figure5-published")
LEADING = (
    (("dose_overall", "dose_pairs", "dose_one_line"), ("doses-linear", "doses-linear-published")),
    (("better_in_both", "better_in_both_knn"), ("better-gains",)),
    (("separation_linear", "separation_knn", "separation_all"), FIGURE_5),
)
"""The claims that lead, those of a kind of study before the general ones, and the panels beside them."""
QUICKLY: dict[Verdict, str] = {
    "holds": "the further apart the classes, the worse the features transfer",
    "does not hold": "a fall that counts is ruled out",
    "undecided": "a fall that counts is neither shown nor ruled out",
}


def answer(run: Run) -> Answer:
    """Return the answer of a study, or of the first of several that has one."""
    if run.parts:
        found = [answer(part) for part in run.parts]
        return next((each for each in found if each.panels), found[0])
    if is_reference(run):
        return Answer(WORLD, tuple(POINTS), FIGURE_5)
    if is_quick(run):
        return _quick(quick) if (quick := answer_quickly(run)) else _cannot_say(run, "quickstart")
    for keys, panels in LEADING:
        judged = judge(run, [claim for key in keys for claim in claims_of(key) if claim.key == key])
        if judged:
            sentence, *points = (_sentence(one, run) for one in judged)
            is_pair = keys[0].startswith("better") and judged[0].ours.judged
            return Answer(sentence, tuple(points), panels, decides=is_pair)
    return _cannot_say(run, FIRST_STUDY)


def _cannot_say(run: Run, study: str) -> Answer:
    way = run.provenance.get("command") if run.unfinished else f"penultimate run {study}"
    said = "This study cannot say yet whether pulling classes apart costs transfer."
    return Answer(f"{said} To measure it: `{way}`.")


def _sentence(one: JudgedClaim, run: Run) -> str:
    """Return a claim with its verdict and numbers, and why it is not judged."""
    says, other = one.claim.says, other_of(run)
    says = says.replace("The other objective", other.label) if other else says
    numbers = one.ours.numbers.removesuffix(MISSING)
    told = [f"{numbers[:1].upper()}{numbers[1:]}." * bool(numbers), one.ours.reason * (not one.ours.judged)]
    return " ".join([f"{says}: {one.ours.verdict}.", *filter(None, told)])


def _quick(found: QuickAnswer) -> Answer:
    price = found.price
    sentence = (
        f"Over {counted(found.draws, 'draw')}, each .1 of class separation goes with"
        f" {signed(-price.estimate, 2)} points of linear transfer ({span(-price.low, -price.high, 2)}):"
        f" {QUICKLY[decide(price)]}."
    )
    return Answer(sentence, tuple(map(_beside, found.beside)), FIGURE_5, decides=True)


def _beside(one: Beside) -> str:
    transfer = one.transfer
    return (
        f"{one.label} against softmax: {signed(one.separation, 3)} of R², {signed(one.accuracy, 1)} points of"
        f" accuracy, and {signed(transfer.estimate, 2)} points of transfer"
        f" ({span(transfer.low, transfer.high, 2)})."
    )
