"""The claims on label smoothing and selective classification, on made-up areas of a known truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penultimate.paper.claims.certainty import (
    AUTHORS,
    CERTAINTY_CLAIMS,
    CERTAINTY_RULES,
    certainty_spoken,
)
from penultimate.paper.claims.filed import EVERY_CLAIM
from penultimate.paper.claims.joint import judge_set
from penultimate.records.table import Row, Table
from penultimate.report import exhibit
from penultimate.report.base import StudyResults
from penultimate.report.measurements import admit
from tests.report.planted import planted
from tests.report.reading import glyphs

TWO = {"softmax": {"accuracy": 77.0}, "label_smoothing": {"accuracy": 77.5}}
AREAS = {"softmax": {"msp": 6.0, "normalised_logit": 6.1}}


def ranked(
    smoothed: dict[str, float], seeds: tuple[int, ...] = (0, 1, 2), noise: float = 0.1
) -> StudyResults:
    """A planted study with AURCs in per cent, which vary by `noise` points."""
    results = planted(TWO, seeds)
    rows: list[Row] = list(results.table)
    specs = {str(row.objective).partition("(")[0]: row for row in rows}
    for place, (name, areas) in enumerate({**AREAS, "label_smoothing": smoothed}.items()):
        like = specs[name]
        for seed in seeds:
            draw = np.random.default_rng([place, seed]).normal
            for score, value in areas.items():
                changed: dict[str, Any] = {
                    "seed": seed,
                    "metric": "aurc",
                    "value": (value + draw(scale=noise)) / 100,
                }
                where = {"setting": f"score={score}", "split": "test", "unit": "fraction", "epoch": None}
                rows.append(replace(like, **changed, **where))
    return StudyResults(results.description, Table(rows), None, results.provenance)


def verdicts(results: StudyResults) -> dict[str, str]:
    return {one.claim.key: one.ours.verdict for one in judge_set(admit(results), CERTAINTY_CLAIMS)}


def test_the_rules_are_dated_and_told() -> None:
    assert CERTAINTY_RULES[:10] == "2026-11-26"
    assert f"of {CERTAINTY_RULES[:10]}," in certainty_spoken()[0]
    assert not {claim.key for claim in CERTAINTY_CLAIMS} & {claim.key for claim in EVERY_CLAIM}


@pytest.mark.parametrize(
    ("smoothed", "degrades", "mends"),
    [
        ({"msp": 9.0, "normalised_logit": 6.0}, "holds", "holds"),
        ({"msp": 9.0, "normalised_logit": 9.1}, "holds", "does not hold"),
        ({"msp": 5.0, "normalised_logit": 5.1}, "does not hold", "does not hold"),
    ],
)
def test_verdicts_follow_the_truth(smoothed: dict[str, float], degrades: str, mends: str) -> None:
    found = verdicts(ranked(smoothed, noise=0.03))
    assert found == {"smoothing_degrades": degrades, "normalising_mends": mends}


def test_two_seeds_and_noise_decide_nothing() -> None:
    assert {*verdicts(ranked({"msp": 9.0, "normalised_logit": 6.0}, (0, 1))).values()} == {"undecided"}
    assert {*verdicts(ranked({"msp": 6.4, "normalised_logit": 6.2}, noise=1.5)).values()} == {"undecided"}


def test_a_score_that_was_not_measured_leaves_the_other_claim() -> None:
    assert verdicts(ranked({"msp": 9.0}, noise=0.03)) == {"smoothing_degrades": "holds"}
    assert judge_set(admit(glyphs()), CERTAINTY_CLAIMS) == ()


def test_the_table_of_claims_names_the_authors() -> None:
    built = exhibit("claims", ranked({"msp": 9.0, "normalised_logit": 6.0}, noise=0.03))
    rows = {row.label: [cell.text for cell in row.cells] for row in built.tables[0].rows}
    whose = [column.key for column in built.tables[0].columns].index("whose")
    assert rows[CERTAINTY_CLAIMS[0].says][whose] == AUTHORS
    assert "points of AURC" in " ".join(rows[CERTAINTY_CLAIMS[0].says])
    assert any("selective classification are of 2026-11-26" in note for note in built.notes)
