"""Which of the paper's statements an objective follows."""

from __future__ import annotations

from collections import Counter

from penultimate import registry
from penultimate.portrait.traits import subject_of
from penultimate.report.base import Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import USUAL_PAGE
from penultimate.report.page.form import Followed
from penultimate.report.spec import OURS, PORTRAIT, Bespoke, Exhibit, Piece

COLUMNS = (
    Column("verdict", "Verdict"),
    Column("evidence", "Evidence"),
    Column("where", "In the paper"),
    Column("reason", "Why"),
)


def followed_by(measurements: Measurements) -> tuple[Followed, ...]:
    """Return what the usual page asks of the objective; nothing without such a page."""
    subject = subject_of(measurements)
    if subject is None or USUAL_PAGE not in registry.names("page"):
        return ()
    ask = getattr(registry.entry("page", USUAL_PAGE).resolve(), "follows", None)
    return ask(measurements, subject.spec) if ask and not measurements.limited else ()


def follows_words(found: tuple[Followed, ...]) -> str:
    """Return a sentence that counts the verdicts."""
    counts = Counter(one.verdict for one in found)
    return (
        f"Of {len(found)} statements that the paper makes about alternatives to softmax it follows"
        f" {counts['follows']}, departs from {counts['departs']}, and {counts['undecided']} are open."
    )


def _follows(measurements: Measurements) -> Piece:
    if subject_of(measurements) is None:
        return Piece(wanted=False)
    found = followed_by(measurements)
    if not found:
        return Piece(wanted=False)
    rows = tuple(
        TableRow(
            one.says,
            (Cell(one.verdict), Cell(one.evidence), Cell(one.where), Cell(one.reason.replace("`", ""))),
        )
        for one in found
    )
    table = ExhibitTable("portrait_follows", "Statement by statement", "The paper says", COLUMNS, rows)
    said = follows_words(found)
    return Piece((table,), notes=(f"{OURS}: {said[0].lower()}{said[1:]}",))


FOLLOWS = Exhibit(
    name="portrait_follows",
    title="Which of the paper's statements it follows",
    caption="What the paper says of every alternative to softmax, asked of this one, by the rules that judge"
    " the paper's claims; and whether it lies where the line of the other objectives expects it.",
    parts=(Bespoke(_follows),),
    page="portrait",
    measured_by=PORTRAIT,
    place=4,
    of_given=False,
    summary="Of a portrait: which of the paper's statements the objective follows",
    short="Which statements it follows",
)
