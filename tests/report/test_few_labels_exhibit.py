"""Few labels: means, intervals and crossings against literal numbers; claims of opposite sign."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from penultimate.paper.claims.few_labels import (
    FEW_LABELS_CLAIMS,
    FEW_LABELS_RULES,
    few_labels_spoken,
)
from penultimate.paper.claims.filed import EVERY_CLAIM
from scipy import stats

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.verdicts import judge
from penultimate.records.table import Row
from penultimate.report import StudyResults, exhibit
from penultimate.report.measurements import admit
from penultimate.report.shapes.episodes import curves_of
from tests.report.planted import NINE, planted
from tests.report.reading import cell, panels, table_of, with_rows

TASKS = {"syllabics": "top1", "newfaces": "mean_per_class"}
SIZES = ("shots=1", "shots=5", "percent=100")
ACCURACIES = {"softmax": (0.3, 0.6, 0.9), "sigmoid": (0.5, 0.6, 0.7)}
EPISODES, IMAGES = 5, 400


def made(
    accuracies: Mapping[str, tuple[float, ...]] = ACCURACIES,
    seeds: tuple[int, ...] = (0, 1),
    separation: Mapping[str, float] | None = None,
    draws: bool = False,
) -> StudyResults:
    """A planted study in which every objective is right this often at each size, on both tasks."""
    truth = {name: {"separation": (separation or {}).get(name, 0.5)} for name in accuracies}
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    rows = []
    labels = np.arange(IMAGES) % 4
    for (place, name), seed, task in itertools.product(enumerate(accuracies), seeds, TASKS):
        random = np.random.default_rng([place, seed, len(task)])
        step = f"few_labels.{name}.{seed}.{task}"
        arrays: dict[str, Any] = {
            "sizes": np.array(SIZES),
            "images": np.array([26, 130, 1000]),
            "labels": labels,
            "digest": np.array([f"{task}{seed if draws else ''}"]),
        }
        for probe in ("ridge", "centroid"):
            right = random.random((3, EPISODES, IMAGES)) < np.array(accuracies[name])[:, None, None]
            of_episodes = right.mean(2)
            of_episodes[2, 1:] = np.nan
            right[2] = right[2, :1]
            arrays[probe] = of_episodes.astype(np.float32)
            arrays[f"{probe}_hits"] = right.mean(1).astype(np.float32)
            for size, accuracy in zip(SIZES, right.mean((1, 2)), strict=True):
                metric = f"few_{probe}_{TASKS[task]}"
                rows.append(_row(name, seed, task, metric, float(accuracy), size, step))
        kept[step, "few_labels_curve"] = arrays
        rows.append(_row(name, seed, task, "few_labels_curve", 3.0, None, step))
    results = with_rows(planted(truth, seeds, noise=0.0), rows)
    description = {**results.description, "targets": [*TASKS]}
    return dataclasses.replace(
        results, description=description, arrays=lambda step, metric: kept[step, metric]
    )


def _row(name: str, seed: int, task: str, metric: str, value: float, setting: str | None, step: str) -> Row:
    return Row(
        objective=resolve(name).canonical,
        backbone="glyphnet",
        source="glyphs",
        target=task,
        seed=seed,
        draw=seed,
        split="test",
        setting=setting,
        metric=metric,
        value=value,
        unit="fraction",
        status="done",
        step=step,
    )


def test_intervals_are_those_of_the_mean_over_networks() -> None:
    results = made()
    curve = curves_of(admit(results), "syllabics", "ridge")["softmax"]
    both = [results.arrays(f"few_labels.softmax.{seed}.syllabics", "few_labels_curve") for seed in (0, 1)]  # type: ignore[misc]
    episodes = np.mean([one["ridge"][0] for one in both], axis=0)
    images = np.mean([one["ridge_hits"][0] for one in both], axis=0)
    welch = stats.ttest_ind(episodes, images + 1, equal_var=False)
    error = abs((episodes.mean() - images.mean() - 1) / welch.statistic)
    reach = stats.t.ppf(0.975, welch.df) * error
    found = curve["shots=1"].mean
    assert found.interval() == pytest.approx((episodes.mean() - reach, episodes.mean() + reach), rel=1e-5)
    shown = cell(
        table_of(exhibit("few_labels", results), "few_labels-syllabics-ridge"), "softmax", "shots_1_percent"
    )
    assert shown[0] == pytest.approx(100 * episodes.mean(), rel=1e-5)


def test_other_draws_are_independent_samples() -> None:
    one, several = (
        curves_of(admit(made(draws=draws)), "syllabics", "ridge")["softmax"]["shots=5"]
        for draws in (False, True)
    )
    assert (len(one.draws), len(several.draws)) == (1, 2)
    assert several.mean.value == pytest.approx(one.mean.value)
    errors = [draw.mean.error for draw in several.draws.values()]
    assert several.mean.error == pytest.approx(np.hypot(*errors) / 2)


def test_curves_that_cross_are_told_with_their_sizes() -> None:
    built = exhibit("few_labels", made())
    rows = table_of(built, "few_labels_crossed").rows
    assert len(rows) == 4  # two tasks, two probes
    for row in rows:
        pair, between, first, last = row.cells
        assert pair.text == "Sigmoid – Softmax"
        assert "100 % of the images" in between.text or "5 images a class" in between.text
        assert first.value is not None
        assert last.value is not None
        assert first.value > 10 > -10 > last.value
    assert any("four cross, four of them beyond chance" in note for note in built.notes)
    assert built.finding.startswith("Ours: from 1 image a class Sigmoid transfers best (")
    assert "from 100 % of the images Softmax transfers best (" in built.finding


def test_alike_curves_do_not_cross_beyond_chance() -> None:
    built = exhibit("few_labels", made({"softmax": (0.3, 0.6, 0.9), "sigmoid": (0.3, 0.6, 0.9)}))
    assert not any(table.name == "few_labels_crossed" for table in built.tables)
    assert any("none of them beyond chance" in note for note in built.notes)


def test_panels_have_logarithmic_axes_and_a_line_for_each() -> None:
    built = exhibit("few_labels", made())
    panel = panels(built)["few_labels-syllabics"]
    assert panel.x_log
    assert [len(curve.points) for curve in panel.curves] == [3, 3]
    assert [point.faint for point in panel.points] == [True, True, False] * 2


def test_class_separation_is_ranked_beside_every_size() -> None:
    separation = {name: 0.1 * place for place, name in enumerate(NINE)}
    rising = {name: (0.2 + 0.05 * place, 0.5, 0.9 - 0.05 * place) for place, name in enumerate(NINE)}
    built = exhibit("few_labels", made(rising, separation=separation))
    ranks = table_of(built, "few_labels_ranks")
    for row in ranks.rows:
        values = [one.value for one in row.cells]
        assert values[0] == pytest.approx(1, abs=0.05)
        assert values[2] == pytest.approx(-1, abs=0.05)


def test_the_rules_are_dated_and_of_opposite_sign() -> None:
    assert FEW_LABELS_RULES[:10] == "2026-11-26"
    assert f"of {FEW_LABELS_RULES[:10]}," in few_labels_spoken()[0]
    assert not {claim.key for claim in FEW_LABELS_CLAIMS} & {claim.key for claim in EVERY_CLAIM}


@pytest.mark.parametrize("sign", [1, -1])
def test_one_holds_where_the_other_does_not(sign: int) -> None:
    separation = {name: 0.1 + 0.08 * place for place, name in enumerate(NINE)}
    ranked = {name: (0.2, 0.5 + sign * 0.05 * (place - 4), 0.9) for place, name in enumerate(NINE)}
    results = made(ranked, seeds=(0, 1, 2), separation=separation)
    verdicts = {one.claim.key: one.ours.verdict for one in judge(gather(admit(results)), FEW_LABELS_CLAIMS)}
    expected = ("holds", "does not hold") if sign > 0 else ("does not hold", "holds")
    assert (verdicts["few_labels_helped"], verdicts["few_labels_harmed"]) == expected
    rows = {row.label for row in exhibit("claims", results).tables[0].rows}
    assert {claim.says for claim in FEW_LABELS_CLAIMS} <= rows


def test_a_study_without_them_is_told_what_to_run() -> None:
    plain = planted({name: {"separation": 0.5, "linear_syllabics": 1.0} for name in NINE})
    (one, _) = judge(gather(admit(plain)), FEW_LABELS_CLAIMS)
    assert one.ours.missing is not None
    assert one.ours.missing.command == "penultimate run few_labels"
    assert not exhibit("few_labels", plain).wanted
