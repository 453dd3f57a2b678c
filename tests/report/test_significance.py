"""One rule of significance: the tiles of the page, bold in tables and the claims say the same."""

from __future__ import annotations

import pytest

from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.rules import ALTERNATIVES
from penultimate.paper.claims.verdicts import judge
from penultimate.paper.page.statements import headline
from penultimate.report import StudyResults, exhibit
from penultimate.report.measurements import Measurements, admit
from penultimate.report.page.form import Tile
from penultimate.report.quantity import Quantity
from penultimate.report.text import p_value
from penultimate.statistics import bold
from tests.report.planted import as_in_the_paper, planted
from tests.report.reading import column_of, glyphs, table_of

ACCURACY, LINEAR = Quantity("top1"), Quantity("linear_{accuracy}", target="targets")
STUDIES = {
    "kept": glyphs,
    **{
        f"noise {noise}, sign {sign}": lambda noise=noise, sign=sign: planted(
            as_in_the_paper(sign), noise=noise, draws=(0, 3, -2, 1, 4)
        )
        for noise in (0.05, 0.6, 1.2, 2.5)
        for sign in (1, -1)
    },
}


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest) -> StudyResults:
    results: StudyResults = STUDIES[request.param]()
    return results


def bold_of(study: StudyResults, key: str) -> set[str]:
    column = column_of(table_of(exhibit("table1", study), "table1_linear"), key)
    return {objective for objective, cell in column.items() if cell.best}


def slug(measurements: Measurements, spec: str) -> str:
    return measurements.objective(spec).slug


@pytest.mark.long
def test_softmax_is_bold_where_no_claim_finds_an_alternative_better(study: StudyResults) -> None:
    measurements = admit(study)
    judged = {one.claim.key: one.ours for one in judge(gather(measurements))}
    found = bold(measurements.values(ACCURACY))
    softmax = next(spec for spec in found.p_values if slug(measurements, spec) == "softmax")
    p_values = {slug(measurements, spec): p for spec, p in found.p_values[softmax].items()}
    for name in ALTERNATIVES:
        ours = judged[f"accuracy_{name}"]
        assert ours.reason.startswith(("Beyond chance", "It may")) or p_values[name] > 0.05
        assert ours.reason.startswith("Beyond chance") == (p_values[name] <= 0.05)
        if ours.verdict != "does not hold" and "By itself" not in ours.reason:
            assert f"({p_value(p_values[name])}, corrected for eight" in ours.reason
    any_better = min(p_values.values()) <= 0.05
    assert ("softmax" in bold_of(study, "top1_percent")) == (not any_better) or len(found.entries) == 1
    mean = bold_of(study, "mean_percent")
    if judged["softmax_best"].verdict == "holds":
        assert mean == {"softmax"}
    if judged["softmax_unbeaten"].verdict == "does not hold":
        assert "softmax" not in mean


@pytest.mark.long
def test_a_tile_names_the_highest_mean_and_whom_it_is_not_told_from(study: StudyResults) -> None:
    measurements = admit(study)
    for key, what, quantity in (
        ("top1_percent", "on the classes trained on", ACCURACY),
        ("mean_percent", "in transfer", LINEAR),
    ):
        tile = tile_about(what, headline(measurements).facts)
        runs = measurements.values(quantity)
        means = {spec: sum(of.values()) / len(of) for spec, of in runs.items()}
        top = max(means, key=means.__getitem__)
        assert f": {measurements.objective(top).label}; " in tile.meaning
        also = bold_of(study, key) - {slug(measurements, top)}
        if not also:
            assert "beyond chance above each of the other eight" in tile.meaning
        elif len(also) <= 3:
            for spec in runs:
                if slug(measurements, spec) in also:
                    assert measurements.objective(spec).label in tile.meaning.partition("; not beyond")[2]
        else:
            assert "not beyond chance above" in tile.meaning


def tile_about(what: str, tiles: tuple[Tile, ...]) -> Tile:
    (found,) = [tile for tile in tiles if what in tile.meaning]
    return found


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_few_seeds_call_nothing_best(seeds: tuple[int, ...]) -> None:
    results = planted(as_in_the_paper(), seeds=seeds)
    tile = tile_about("on the classes trained on", headline(admit(results)).facts)
    assert "cannot tell it from the others, and nothing is called best" in tile.meaning
    assert bold_of(results, "top1_percent") == set()
    assert {one.ours.verdict for one in judge(gather(admit(results)))} == {"undecided"}
