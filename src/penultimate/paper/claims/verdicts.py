"""The verdicts on claims, on a run and on the paper's own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from penultimate.paper.claims.evidence import FRESH, Evidence
from penultimate.paper.claims.margins import MOST_EDGES
from penultimate.paper.claims.rules import Rule
from penultimate.paper.claims.stated import EVERY_CLAIM, SETS, Claim
from penultimate.paper.claims.trials import Judged, verdict_on
from penultimate.results.rows import Run, read_reference
from penultimate.results.table import Column, Table, table_of_rows

CLAIM = "The claim, in our words"
LIMITED = "A limited run is no evidence."
REPEATED_IN = {"evidence": "sweep", "glyphs": "sweep"}
"""The kept run that trained the nine objectives of another one again, on draws of its own."""
POOLED = ("separation_linear", "separation_knn")
"""The claims that are judged on all draws of both runs."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict on a run, and on the paper's printed numbers (None if it prints none)."""

    claim: Claim
    ours: Judged
    printed: Judged | None

    @property
    def paper(self) -> str:
        """The paper's numbers in a line."""
        return self.claim.prints or (self.printed.numbers if self.printed else "")


def judge(run: Run, claims: Sequence[Claim] = EVERY_CLAIM) -> list[JudgedClaim]:
    """Return the verdict on every claim that the run has numbers for; a limited run decides none."""
    own = Evidence(run)
    pooled = Evidence(with_repeats(run)) if any(claim.key in POOLED for claim in claims) else own
    judged = []
    for claim in claims:
        of = pooled if claim.key in POOLED else own
        ours = apply(of, claim.rule)
        if ours is not None:
            ours = replace(ours, reason=ours.reason + _pooled_words(own, of))
            judged.append(JudgedClaim(claim, _undecided(own, claim, ours), on_printed(claim.rule)))
    return judged


def judge_all(run: Run) -> list[JudgedClaim]:
    """Return the verdicts on the claims of every set that the run has numbers for."""
    return judge(run, [claim for claims in (*SETS, EVERY_CLAIM) for claim in claims])


def apply(of: Evidence, rule: Rule) -> Judged | None:
    """Return what a rule says of the evidence, or None if what it asks for was not measured."""
    found = rule(of)
    return found if found is None or isinstance(found, Judged) else verdict_on(found, of.is_printed)


@cache
def on_printed(rule: Rule) -> Judged | None:
    """Return what a rule says of the paper's printed numbers."""
    return apply(Evidence(), rule)


def _undecided(of: Evidence, claim: Claim, ours: Judged) -> Judged:
    """Return a verdict, taken back for a limited run and where fine-tuning's grid was too narrow."""
    if of.study.limited:
        return replace(ours, verdict="undecided", reason=LIMITED, judged=False)
    on_edge, cells = edges(of.study) if claim.fine_tuned else (0, 0)
    if ours.judged and on_edge > MOST_EDGES * cells:
        why = f"Not judged: {on_edge} of {cells} best cells lie on the edge of their grid, where a tenth may."
        return replace(ours, verdict="undecided", reason=why, judged=False)
    return ours


def edges(run: Run) -> tuple[int, int]:
    """Return how many of the best cells of fine-tuning lie on the edge of their grid, and of how many."""
    found = [run.rows("fine_tuned_edges", "train", target) for target in run.targets]
    cells = [
        rows[rows["setting"] == FRESH].groupby("objective", observed=True)["value"].max() for rows in found
    ]
    return sum(int((each > 0).sum()) for each in cells), sum(map(len, cells))


@cache
def with_repeats(run: Run) -> Run:
    """Return a kept run with the draws on which another kept run repeats its networks, or the run."""
    import pandas as pd

    if run.name not in REPEATED_IN or "rows_sha256" not in run.provenance:
        return run
    rows = read_reference(REPEATED_IN[run.name]).frame
    rows = rows[rows[["arm", "epoch", "layer", "objective_b"]].isna().all(axis=1)]
    if {*rows["objective"].dropna()} != {each.spec for each in run.objectives()}:
        return run
    return replace(run, frame=pd.concat([run.frame, rows], ignore_index=True))


def _pooled_words(own: Evidence, pooled: Evidence) -> str:
    """Return the sentence that says what was pooled, or nothing if nothing was."""
    if own.run is pooled.run:
        return ""
    counts = [of.study.frame["seed"].nunique() for of in (own, pooled)]
    repeating = REPEATED_IN[own.study.name]
    return (
        f" Runs that repeat the same networks are pooled: {counts[0]} draws of this run and"
        f" {counts[1] - counts[0]} of `{repeating}`."
    )


def verdict_table(name: str, title: str, judged: Iterable[JudgedClaim]) -> Table | None:
    """Return the table of claims with their verdicts, this study's evidence and the reasons."""
    columns = Column("verdict", "Verdict"), Column("ours", "This study's evidence"), Column("reason", "Why")
    rows = [(one.claim.says, [one.ours.verdict, one.ours.numbers, one.ours.reason]) for one in judged]
    return table_of_rows(name, title, columns, rows, corner=CLAIM)
