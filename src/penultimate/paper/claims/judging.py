"""The verdicts on claims, on a run and on the paper's own numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from penultimate.paper.claims.numbers import Numbers
from penultimate.paper.claims.rules import Rule
from penultimate.paper.claims.stated import Claim, claims_of, general_claims
from penultimate.paper.claims.verdicts import Judged
from penultimate.results.rows import Run, read_reference
from penultimate.results.table import Column, Table, table_of_rows

CLAIM = "The claim, in our words"
LIMITED = "A limited run is no evidence."
REPEATED_IN = {"evidence": "sweep", "glyphs": "sweep"}
"""The kept run that trained the nine objectives of another one again, on draws of its own."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict on a run, and on the paper's printed numbers (None if it prints none)."""

    claim: Claim
    ours: Judged
    printed: Judged | None

    @property
    def paper(self) -> str:
        """The paper's numbers in a line."""
        unprinted = "" if self.claim.ours else "drawn, not printed"
        return self.claim.prints or (self.printed.numbers if self.printed else unprinted)


def judge(run: Run, claims: Sequence[Claim] | None = None) -> list[JudgedClaim]:
    """Return the verdict on every claim that the run has numbers for; a limited run decides none.

    The claims are by default all but those about strengths, which have an exhibit of their own.
    """
    judged = []
    for claim in claims or [*claims_of("better", "head_decay", "projector"), *general_claims()]:
        of = pooled(run) if claim.pooled else run
        ours = claim.rule(Numbers(of))
        if ours is None:
            continue
        if run.limited:
            ours = Judged("undecided", ours.numbers, LIMITED, False, ours.effects)
        elif of is not run:
            ours = replace(ours, reason=f"{ours.reason} {_pooled_words(run, of)}")
        judged.append(JudgedClaim(claim, ours, _on_printed(claim.rule)))
    return judged


@functools.cache
def _on_printed(rule: Rule) -> Judged | None:
    return rule(Numbers())


@functools.cache
def pooled(run: Run) -> Run:
    """Return a kept run with the draws on which another kept run repeats its networks, or the run."""
    if run.name not in REPEATED_IN or "rows_sha256" not in run.provenance:
        return run
    rows = read_reference(REPEATED_IN[run.name]).frame
    rows = rows[rows[["arm", "epoch", "layer", "objective_b"]].isna().all(axis=1)]
    if {*rows["objective"].dropna()} != {each.spec for each in run.objectives()}:
        return run
    return replace(run, frame=pd.concat([run.frame, rows], ignore_index=True))


def _pooled_words(run: Run, of: Run) -> str:
    own, every = (each.frame["seed"].nunique() for each in (run, of))
    repeated = REPEATED_IN[run.name]
    return f"Pooled: {own} draws of this run and {every - own} of `{repeated}`, which has the same networks."


def verdict_table(name: str, title: str, judged: Iterable[JudgedClaim]) -> Table | None:
    """Return the table of claims with their verdicts, this study's evidence and the reasons."""
    columns = Column("verdict", "Verdict"), Column("ours", "This study's evidence"), Column("reason", "Why")
    rows = [(one.claim.says, [one.ours.verdict, one.ours.numbers, one.ours.reason]) for one in judged]
    return table_of_rows(name, title, columns, rows, corner=CLAIM)
