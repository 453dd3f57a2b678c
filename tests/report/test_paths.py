"""The main claim on every path: against naive loops over kept files, planted studies, and bad input."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pytest
import scipy.stats

from penultimate.data.catalog import card
from penultimate.paper.claims.doses import FAMILIES as JUDGED
from penultimate.paper.claims.evidence import gather
from penultimate.paper.claims.rankings import ranked
from penultimate.paper.paths.choices import (
    ALL,
    BEST,
    CHOICES,
    DRAWS,
    FAMILIES,
    HOLDOUT,
    INDEX,
    INDEXES,
    LAST,
    LAYER,
    MAIN,
    OBJECTIVES,
    OWN_DECAY,
    PRINTED,
    PROBE,
    TRAINED,
    TRANSLATED,
    WHOLE,
)
from penultimate.paper.paths.curve import CLAIM, Specification, SpecificationCurve, specification_curve
from penultimate.paper.studies.sweep import FAMILIES as SWEEPS
from penultimate.paper.studies.sweep import PAPERS
from penultimate.paper.studies.sweep import TRANSLATED as SPECS_TRANSLATED
from penultimate.records.archive import references
from penultimate.report import StudyResults, exhibit, read_reference
from penultimate.report.base import Built, SortedEstimates, Strip
from penultimate.report.drawing.estimates import estimates_size
from penultimate.report.drawing.figures import draw_panel
from penultimate.report.drawing.palette import marks
from penultimate.report.measurements import admit
from penultimate.report.tables import points_csv, to_csv, to_latex
from penultimate.report.terminal import render_exhibit_text
from tests.report.planted import NINE, planted
from tests.report.reading import only, panels, table_of, with_rows
from tests.report.synthetic import study
from tests.report.test_dose_claims import planted_strengths, priced

Values = dict[tuple[str, str, str, str, str], dict[tuple[str, str], dict[int, float]]]
"""{(metric, split, target, layer, arm): {(objective, its name): {seed: value}}}"""
TASKS = ("syllabics", "georgian", "armenian", "cyrillic", "maths", "typeface", "digits", "newfaces")
HALVES = {"First half": {0, 1, 2, 3, 4}, "Second half": {5, 6, 7, 8}, "One of them": {0}}
METRICS = {
    "Cosine R²": "class_separation",
    "Centred R²": "class_separation_cosine_centered",
    "Euclidean R²": "class_separation_euclidean",
    "Unbiased R²": "class_separation_unbiased",
    "NC1": "nc_trace_sw_pinv_sb_over_c",
}
OUT = {
    "All": (),
    "No normalised heads": ("logit_norm", "cosine_softmax"),
    "No squared error": ("squared_error",),
}


@pytest.fixture(scope="module")
def curve() -> SpecificationCurve:
    return specification_curve(admit(read_reference("evidence")))


@pytest.fixture(scope="module")
def built() -> Built:
    return exhibit("paths", read_reference("evidence"))


@pytest.fixture(scope="module")
def rows() -> dict[str, Values]:
    """The final values of single networks in the files of the kept runs, read line by line."""
    found: dict[str, Values] = {}
    for name in ("evidence", "sweep", "head_decay"):
        of_run: Values = defaultdict(dict)
        with (references()[name] / "rows.csv").open(encoding="utf-8") as file:
            reader = csv.DictReader(file)
            networks = [name for name in reader.fieldnames or () if " | glyphnet | " in name]
            wanted = re.compile("class_separation|nc_trace|linear_|knn_")
            for row in reader:
                if not wanted.match(row["metric"]) or row["setting"] or row["epoch"] or row["objective_b"]:
                    continue
                for network in networks:
                    spec, _, *arm, seeds = network.split(" | ")
                    if row[network]:
                        key = row["metric"], row["split"], row["target"], row["layer"], "".join(arm)
                        seed = int(re.findall(r"\d+", seeds)[0])
                        of_run[key].setdefault((spec, spec.partition("(")[0]), {})[seed] = float(row[network])
        found[name] = of_run
    return found


def mean_of_tasks(of_run: Values, probe: str, arm: str, layers: Mapping[str, str] | None = None):  # type: ignore[no-untyped-def]
    """The mean over tasks of a probe's accuracy, for every objective and seed; or each in its own layer."""
    tables = []
    for task in TASKS:
        metric = f"{probe}_{'mean_per_class' if card(task).accuracy == 'mean_per_class' else 'top1'}"
        tables.append(of_run[metric, "test", task, (layers or {}).get(task, ""), arm])
    return {
        spec: {seed: float(np.mean([table[spec][seed] for table in tables])) for seed in seeds}
        for spec, seeds in tables[0].items()
    }


def best_of_tasks(of_run: Values, probe: str):  # type: ignore[no-untyped-def]
    """The mean over tasks, each in the layer that is best on validation images (the last of equal ones)."""
    validated = "linear_validation_accuracy" if probe == "linear" else "knn_leave_one_out"
    layers = ("penultimate", "bottleneck1", "block2", "block1")
    found = {}
    for spec in next(of for key, of in of_run.items() if key[0] == validated and key[3]):
        chosen = {
            task: max(layers, key=lambda layer: of_run[validated, "train", task, layer, ""][spec][0])
            for task in TASKS
        }
        found[spec] = mean_of_tasks(
            {key: {spec: of[spec]} for key, of in of_run.items() if spec in of}, probe, "", chosen
        )[spec]
    return found


def naive(path: Specification, rows: dict[str, Values], known: dict[object, object]) -> tuple[float, int]:
    """Rho by scipy over plain means, and what it is over."""
    kind, _, where = path.levels[INDEX].partition(", ")
    probe = path.levels[PROBE].lower()
    split, sign = {"training": "train", "test": "test"}[where], -1 if kind == "NC1" else 1
    trained, draws = path.levels[TRAINED], path.levels[DRAWS]
    out = OUT.get(path.levels[OBJECTIVES])

    def sides(of_run: Values, arm: str):  # type: ignore[no-untyped-def]
        place = id(of_run), arm, probe, path.levels[LAYER]
        if place not in known:
            is_best = path.levels[LAYER] == BEST
            known[place] = best_of_tasks(of_run, probe) if is_best else mean_of_tasks(of_run, probe, arm)
        return of_run[METRICS[kind], split, "glyphs", "", arm], known[place]

    def rho(specs, x, y, seeds):  # type: ignore[no-untyped-def]
        means = [
            [
                np.mean([value for seed, value in of[spec].items() if not seeds or seed in seeds])
                for spec in specs
            ]
            for of in (x, y)
        ]
        return sign * float(scipy.stats.spearmanr(*means).statistic)

    if trained == FAMILIES:
        found = []
        for sweep in SWEEPS:
            if sweep.family in JUDGED and sweep.family not in (out or ()):
                x, y = sides(rows["sweep"], sweep.family)
                found.append(rho([*x], x, y, ()))
        return float(np.mean(found)), len(found)
    if trained == TRANSLATED:
        arms = {spec: next(one.family for one in SWEEPS if spec in one.specs) for spec in SPECS_TRANSLATED}
        both = [{}, {}]  # type: ignore[var-annotated]
        for spec, arm in arms.items():
            key = spec, spec.partition("(")[0]
            for side, of in zip(both, sides(rows["sweep"], arm), strict=True):
                side[key] = of[key]
        x, y = both
    elif trained == PRINTED:
        x, y = sides(rows["sweep"], "paper strengths")
        assert {spec for spec, _ in x} == {*PAPERS}
    else:
        name = {HOLDOUT: "evidence", OWN_DECAY: "head_decay"}[trained]
        x, y = sides(rows["sweep" if draws == "Five others" else name], "")
    one = path.levels[OBJECTIVES].removeprefix("No ").replace("final layer L²", "final_layer_l2")
    names = {"logit normalization": "logit_norm", "more final_layer_l2": "final_layer_l2"}
    out = out if out is not None else (names.get(one, one.replace(" ", "_")),)
    specs = [spec for spec in x if spec[1] not in out]
    return rho(specs, x, y, HALVES.get(draws, ())), len(specs)


def test_every_path_is_what_naive_loops_over_the_kept_files_find(
    curve: SpecificationCurve, rows: dict[str, Values]
) -> None:
    assert len(curve.paths) > 450
    assert {path.levels[TRAINED] for path in curve.paths} == {
        HOLDOUT,
        TRANSLATED,
        PRINTED,
        OWN_DECAY,
        FAMILIES,
    }
    known: dict[object, object] = {}
    for path in curve.paths:
        rho, count = naive(path, rows, known)
        assert path.rho == pytest.approx(rho, abs=1e-9), path.levels
        assert path.count == count, path.levels
    levels = [tuple(path.levels.values()) for path in curve.paths]
    assert len({*levels}) == len(levels)
    assert [path.rho for path in curve.paths] == sorted(path.rho for path in curve.paths)


def test_the_claim_is_one_of_the_paths_and_is_judged_as_the_claim_is(curve: SpecificationCurve) -> None:
    (trial,) = ranked(gather(admit(read_reference("evidence"))), CLAIM).every
    assert curve.claim is not None
    assert curve.claim.effect == trial.effect
    assert curve.claim.count == trial.runs == 9
    assert curve.claim.p == pytest.approx(trial.effect.p_for * 2 if curve.claim.holds else 0.4933, abs=1e-3)


def test_a_path_over_families_has_a_t_interval_over_them(
    curve: SpecificationCurve, rows: dict[str, Values]
) -> None:
    path = next(
        one
        for one in curve.paths
        if tuple(one.levels.values()) == (FAMILIES, INDEXES[0].words, "Linear", ALL, WHOLE, LAST)
    )
    found = []
    for sweep in (one for one in SWEEPS if one.family in JUDGED):
        x = rows["sweep"]["class_separation", "train", "glyphs", "", sweep.family]
        y = mean_of_tasks(rows["sweep"], "linear", sweep.family)
        means = [[np.mean([*of[spec].values()]) for spec in x] for of in (x, y)]
        found.append(float(scipy.stats.spearmanr(*means).statistic))
    test = scipy.stats.ttest_1samp(found, 0)
    low, high = test.confidence_interval(0.95)
    assert path.span == pytest.approx((max(low, -1), min(high, 1)))
    assert path.p == pytest.approx(test.pvalue)
    assert path.holds == (high < 0)


def test_shares_and_what_decides_follow_from_the_paths(curve: SpecificationCurve, built: Built) -> None:
    """The sentence and both tables, from the rows of the table of all paths alone."""
    whole = table_of(built, "paths_all")
    keys = [column.key for column in whole.columns]
    numbers = [dict(zip(keys, (cell.value for cell in row.cells), strict=True)) for row in whole.rows]
    holds = sum(one["high"] < 0 for one in numbers) / len(numbers)
    against = sum(one["low"] > 0 for one in numbers) / len(numbers)
    sign = sum(one["rho"] < 0 for one in numbers) / len(numbers)
    assert f"borne out on {100 * holds:.0f} % of {len(numbers)} paths" in built.finding
    assert f"sign on {100 * sign:.0f} %, and is contradicted on {100 * against:.0f} %" in built.finding
    first = [*table_of(built, "paths").rows]
    assert [cell.value for cell in first[0].cells[4:]] == pytest.approx(
        [100 * holds, 100 * sign, 100 * against]
    )
    for choice in CHOICES:
        counts = [row.cells[0].value for row in first if row.label.startswith(f"{choice}: ")]
        assert sum(counts) == len(numbers)
    crossed = [
        path
        for path in curve.paths
        if path.levels[TRAINED] != PRINTED
        and (path.levels[DRAWS], path.levels[LAYER]) == (WHOLE, LAST)
        and path.levels[OBJECTIVES] in OUT
        and not path.levels[INDEX].startswith("NC1")
    ]
    assert len(crossed) == 4 * 8 * 2 * 3
    y = np.array([path.rho for path in crossed])
    shares = {}
    for choice in (TRAINED, INDEX, PROBE, OBJECTIVES):
        of = np.array([path.levels[choice] for path in crossed])
        fitted = np.array([y[of == level].mean() for level in of])
        shares[choice] = float(((fitted - y.mean()) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    deciding = table_of(built, "paths_deciding")
    for choice, share in shares.items():
        shown = next(row.cells[0].value for row in deciding.rows if row.label == choice)
        assert shown == pytest.approx(100 * share)
    assert max(shares, key=shares.__getitem__) == TRAINED
    assert f"What is trained decides: it explains {100 * shares[TRAINED]:.0f} %" in built.finding
    for part in zip(*(row.cells for row in deciding.rows), strict=True):
        assert sum(cell.value or 0 for cell in part) == pytest.approx(100)


def test_the_exhibit_says_that_it_explores_and_what_no_run_has(built: Built) -> None:
    notes = " ".join(built.notes)
    assert "after every run that it reads existed" in notes
    assert "explore, and confirm nothing" in notes
    assert "measured in none of these runs: “CDNV, training”, “Ridge, 1 a class”" in notes
    assert all(f"`{run}`" in notes for run in ("evidence", "sweep", "head_decay"))


def test_the_picture_has_a_strip_for_each_level_and_every_path_once_in_each_choice(built: Built) -> None:
    (panel,) = panels(built).values()
    estimates = panel.estimates
    assert estimates is not None
    for _, strips in itertools.groupby(estimates.strips, key=lambda strip: strip.choice):
        places = [place for strip in strips for place in strip.places]
        assert sorted(places) == [*range(len(estimates.values))]
    assert estimates.marked is not None
    assert estimates.values[estimates.marked] == pytest.approx(0.2667, abs=1e-4)
    svg = draw_panel(panel, marks(["softmax"])).styled("p", page=False)
    for strip in estimates.strips:
        assert strip.level in svg
    assert len(svg) < 100_000
    assert panel.size == estimates_size(estimates)
    lines = points_csv(built).splitlines()
    assert len(lines) == len(estimates.values) + 1
    assert lines[1].startswith(f"paths-sorted,,1,{estimates.values[0]!r}")


def test_the_terminal_has_the_choices_and_files_hold_every_path(built: Built) -> None:
    text = render_exhibit_text(built)
    assert "Index of separation: NC1, training" in text
    assert len(text.splitlines()) < 120
    assert re.search(r"Every path, by rising ρ \[measured here\]: 5\d\d rows\.", text)
    whole = table_of(built, "paths_all")
    assert len(to_csv(whole).splitlines()) == len(whole.rows) + 1
    assert to_csv(whole).startswith(
        "What is trained,index_of_separation,probe,objectives,draws,layer_probed,"
    )
    assert to_latex(whole).count(r"\\") == len(whole.rows) + 2


def test_only_the_main_kept_run_has_companions() -> None:
    results = read_reference("evidence")
    own = dataclasses.replace(results, provenance={})
    found = specification_curve(admit(own))
    assert {path.levels[TRAINED] for path in found.paths} == {HOLDOUT}
    assert [*found.runs] == ["evidence"]
    sweep = specification_curve(admit(read_reference("sweep")))
    assert {path.levels[TRAINED] for path in sweep.paths} == {HOLDOUT, TRANSLATED, PRINTED, FAMILIES}
    assert {path.levels[DRAWS] for path in sweep.paths} == {WHOLE}


SEPARATED = {name: {"separation": 0.3 + 0.05 * place} for place, name in enumerate(NINE)}
FALLING = {
    name: {**SEPARATED[name], "linear": 80.0 - 2 * place, "knn": 60.0 + place * (-1) ** place}
    for place, name in enumerate(NINE)
}


def by_words(results: StudyResults) -> dict[tuple[str, ...], Specification]:
    found = specification_curve(admit(results, allow_limited=True))
    return {tuple(path.levels.values()): path for path in found.paths}


def test_a_planted_fall_holds_on_every_linear_path_and_an_oracle_agrees_on_the_others() -> None:
    paths = by_words(planted(FALLING, seeds=(0, 1, 2, 3, 4, 5), noise=0.01))
    assert {levels[:2] for levels in paths} == {(MAIN, INDEXES[0].words)}
    assert len(paths) == 2 * 3 * 3 + 8
    for levels, path in paths.items():
        out = OUT.get(levels[3])
        if out is None:
            assert levels[2:] == ("Linear", levels[3], WHOLE, LAST)
            continue
        specs = [name for name in NINE if name not in out]
        x, y = ([FALLING[name][of] for name in specs] for of in ("separation", levels[2].lower()))
        assert path.rho == pytest.approx(float(scipy.stats.spearmanr(x, y).statistic))
        assert path.holds == (levels[2] == "Linear")
    rising = {name: {**of, "linear": 160 - of["linear"]} for name, of in FALLING.items()}
    upwards = by_words(planted(rising, noise=0.01))
    assert all(path.contradicts for levels, path in upwards.items() if levels[2] == "Linear")


def test_objectives_of_one_label_are_left_out_one_by_one() -> None:
    depths = [f"projector(depth={depth}, width=512)" for depth in (1, 2, 3)]
    specs = [*NINE[:5], *depths]
    results = planted(
        {spec: {"separation": 0.3 + 0.05 * at, "linear": 80.0 - at} for at, spec in enumerate(specs)}
    )
    paths = specification_curve(admit(results, allow_limited=True)).paths
    levels = [tuple(path.levels.values()) for path in paths]
    assert len({*levels}) == len(levels)
    assert {f"No {spec}" for spec in depths} <= {path.levels[OBJECTIVES] for path in paths}
    assert exhibit("paths", results, allow_limited=True).wanted


def test_families_count_only_where_their_order_exists() -> None:
    results = planted_strengths(priced(-2.0), "sweep_smallest", (200, 201, 202), noise=0.01)
    paths = {levels: path for levels, path in by_words(results).items() if levels[0] == FAMILIES}
    (whole,) = (path for levels, path in paths.items() if levels[2:4] == ("Linear", ALL))
    assert (whole.count, whole.rho) == (7, -1)
    assert whole.span == (-1, 1), "families that are all alike show no spread"
    assert (whole.p, whole.holds) == (1, False)
    two = only(results, lambda row: row.arm in (None, "logit_norm", "cosine_softmax"))
    assert not any(levels[0] == FAMILIES for levels in by_words(two))


@pytest.mark.parametrize(
    ("results", "count"),
    [
        pytest.param(study((0,)), 36, id="one seed"),
        pytest.param(study((0, 1), limited=True), 36, id="limited"),
        pytest.param(study((0, 1), probes=("linear",)), 18, id="one probe"),
        pytest.param(study((0, 1), objectives=NINE[:5]), 0, id="five objectives"),
    ],
)
def test_what_a_small_study_allows(results: StudyResults, count: int) -> None:
    paths = {levels: path for levels, path in by_words(results).items() if levels[3] in OUT}
    assert len(paths) == count
    for path in paths.values():
        assert -1 <= path.span[0] <= path.rho <= path.span[1] <= 1


def test_an_objective_that_is_missing_is_missing_from_every_path() -> None:
    lacking = [name for name in NINE if name != "squared_error"]
    paths = by_words(planted({name: FALLING[name] for name in lacking}))
    assert {levels[3] for levels in paths if levels[3] in OUT} == {"No normalised heads", "No squared error"}
    assert {path.count for levels, path in paths.items() if levels[3] == "No squared error"} == {8}


def test_an_index_that_does_not_vary_has_no_path_and_nan_rows_are_left_out() -> None:
    results = planted(FALLING, seeds=(0, 1, 2))
    constant = [
        dataclasses.replace(row, metric="class_separation_euclidean", value=0.4)
        for row in results.table.where(metric="class_separation")
    ]
    wrong = [
        dataclasses.replace(row, split="test", value=math.nan if row.objective == "softmax" else row.value)
        for row in results.table.where(metric="class_separation")
    ]
    paths = by_words(with_rows(results, [*constant, *wrong]))
    assert not any(levels[1].startswith("Euclidean") for levels in paths)
    whole = {levels[1]: path for levels, path in paths.items() if levels[2:4] == ("Linear", ALL)}
    assert whole["Cosine R², training"].count == 9
    assert whole["Cosine R², test"].count == 8


def test_without_transfer_the_exhibit_says_what_measures_it_and_small_studies_have_none() -> None:
    built = exhibit(
        "paths", only(planted(FALLING), lambda row: not str(row.metric).startswith(("linear", "knn")))
    )
    assert built.missing[0].what == "Class separation and transfer of six objectives or more"
    assert "penultimate run" in built.missing[0].command
    assert built.tables == ()
    assert not exhibit("paths", study((0, 1), objectives=NINE[:3])).wanted


def test_few_labels_and_layers_are_choices_where_a_study_has_them() -> None:
    results = planted(FALLING, seeds=(0, 1, 2))
    few = [
        dataclasses.replace(row, metric=str(row.metric).replace("linear", "few_ridge"), setting="shots=5")
        for row in results.table
        if str(row.metric).startswith("linear")
    ]
    paths = by_words(with_rows(results, few))
    assert {levels[2] for levels in paths} == {"Linear", "kNN", "Ridge, 5 a class"}
    layers = [
        dataclasses.replace(row, layer=layer, value=row.value + more)
        for layer, more in (("block1", 0.02), ("penultimate", 0.0))
        for row in results.table
        if str(row.metric).startswith("linear")
    ]
    chosen = [dataclasses.replace(row, metric="linear_validation_accuracy", split="train") for row in layers]
    paths = by_words(with_rows(results, [*layers, *chosen]))
    assert {levels[4:] for levels in paths} == {(WHOLE, LAST), (WHOLE, BEST)}


def test_estimates_without_strips_or_values_are_drawn() -> None:
    built = exhibit("paths", planted(FALLING))
    (panel,) = panels(built).values()
    for estimates in (
        SortedEstimates((), (), ()),
        SortedEstimates((0.5,), ((0.5, 0.5),), (Strip("Choice", "<level>", (0,)),)),
    ):
        one = dataclasses.replace(panel, estimates=estimates, size=estimates_size(estimates))
        assert draw_panel(one, marks(["softmax"])).styled("p").startswith("<svg")
