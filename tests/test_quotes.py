"""What README and docs say of results is what the reference run measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import pytest

from penultimate.report import exhibit, read_reference
from penultimate.report.base import StudyResults
from penultimate.report.measurements import Measurements, admit
from penultimate.report.quantity import percent
from penultimate.statistics import spearman

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def reference() -> StudyResults:
    return read_reference("glyphs")


@pytest.fixture(scope="module")
def measured(reference: StudyResults) -> Measurements:
    return admit(reference)


def means(measured: Measurements, runs: Mapping[str, Mapping[int | None, float]]) -> list[float]:
    """An objective's mean over its seeds, for those that are compared."""
    return [fmean(runs[one.spec].values()) for one in measured.objectives]


def quantities(measured: Measurements) -> dict[str, list[float]]:
    runs = {
        "test": measured.runs("top1"),
        "separation": measured.runs("class_separation", split="train"),
        "linear": measured.values(percent("linear_{accuracy}", target="targets")),
        "knn": measured.values(percent("knn_{accuracy}", target="targets")),
    }
    return {name: means(measured, values) for name, values in runs.items()}


def text(name: str) -> str:
    """A page with its line breaks as spaces."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


def test_the_readmes_table_is_the_reference_run(measured: Measurements) -> None:
    found = quantities(measured)
    lines = [
        f"| {one.label} | {100 * test:.1f} | {separation:.3f} | {100 * linear:.1f} | {100 * knn:.1f} |"
        for one, test, separation, linear, knn in zip(measured.objectives, *found.values(), strict=True)
    ]
    assert len(lines) == 9
    for line in lines:
        assert line in text("README.md")


def test_the_readmes_rank_correlations_are_the_reference_runs(measured: Measurements) -> None:
    found = quantities(measured)
    for name in ("linear", "knn"):
        one = spearman(found["separation"], found[name])
        assert f"{one.rho:+.2f} (p = {one.p:.2g})".replace("-", "−") in text("README.md")


def test_the_verdicts_that_the_readme_counts(reference: StudyResults) -> None:
    verdicts = [
        cell.text
        for table in exhibit("claims", reference).tables
        for row in table.rows
        for cell in row.cells
        if cell.text in ("holds", "does not hold", "undecided")
    ]
    counts = [verdicts.count(verdict) for verdict in ("holds", "does not hold", "undecided")]
    assert sum(counts) == len(verdicts) == 17
    assert "{} hold, {} does not, {} are undecided".format(*counts) in text("README.md")


def test_the_worlds_regime_is_that_of_the_reference_runs_softmax(measured: Measurements) -> None:
    softmax = next(one.spec for one in measured.objectives if one.slug == "softmax")
    page = text("docs/world.md")
    for name, split, decimals, factor in (
        ("top1", "train", 2, 100),
        ("top1", "test", 2, 100),
        ("class_separation", "train", 3, 1),
    ):
        values = measured.runs(name, split=split)[softmax].values()
        assert f"| {factor * fmean(values):.{decimals}f} |" in page
