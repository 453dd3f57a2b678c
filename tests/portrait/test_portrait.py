"""The portrait of an objective: what it asks for, what stands beside it, what it says, and its page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penultimate.paper.claims.followed import predicted
from scipy import stats
from tests.plugged import plugged
from tests.report import synthetic

from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.portrait import STRENGTHS
from penultimate.portrait.exhibits.follows import followed_by
from penultimate.portrait.exhibits.inside import unusual_words
from penultimate.portrait.page import OWN_ORDER, headline
from penultimate.portrait.request import OF_STRENGTHS, PortraitRequest, plan_words
from penultimate.portrait.traits import Trait, likeness, subject_of, trait, traits, within_seeds
from penultimate.records.archive import KeptStudy, reference
from penultimate.records.keeping import keep
from penultimate.records.reading import study_folder
from penultimate.records.table import Table
from penultimate.registry import entry
from penultimate.report import read_study, render_report
from penultimate.report.base import StudyResults
from penultimate.report.beside import DRAWING, beside, reason_apart, why_apart
from penultimate.report.measurements import admit
from penultimate.report.quantity import Quantity
from penultimate.report.several import build
from penultimate.study import load_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold

SPEC = "focal(gamma=2)"
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module", autouse=True)
def focal() -> Iterator[None]:
    with plugged("focal"):
        yield


@pytest.fixture(scope="module")
def kept() -> KeptStudy:
    """Five seeds of nine objectives, as a run that was kept."""
    run = synthetic.study((0, 1, 2, 3, 4))
    rows = (dataclasses.replace(row, step=f"{kind(row.metric)}.kept") for row in run.table)
    return KeptStudy(run.description | {"name": "whole"}, dict(run.provenance), Table(rows), "0" * 64)


def kind(metric: str) -> str:
    return next((name for name in ("linear", "knn", "class_separation") if name in metric), "accuracy")


def own(seeds: tuple[int, ...] = SEEDS, **description: Any) -> StudyResults:
    """A study of the focal loss alone."""
    run = synthetic.study(seeds, objectives=[SPEC])
    rows = (dataclasses.replace(row, step=f"{kind(row.metric)}.own") for row in run.table)
    told = {"name": "portrait-focal", "page": "portrait", "beside": "whole", "steps": ["linear.own"]}
    return StudyResults(run.description | told | description, Table(rows), None, dict(run.provenance), None)


# -- beside a kept run ---------------------------------------------------------------------------------------


def test_a_kept_runs_networks_of_the_same_seeds_stand_beside_a_study(kept: KeptStudy) -> None:
    joined = beside(own(), kept)
    assert why_apart(joined) == ""
    assert {row.seed for row in joined.table} == {*SEEDS}
    measured = admit(joined)
    assert len(measured.objectives) == 10
    subject = subject_of(measured)
    assert subject is not None
    assert subject.spec == SPEC
    theirs = {row.value for row in kept.table if row.seed in SEEDS}
    assert {row.value for row in joined.table if row.objective != SPEC} == theirs
    assert {row.value for row in joined.table if row.objective == SPEC} == {row.value for row in own().table}


def test_of_a_kept_run_only_what_the_study_measured_too_is_taken(kept: KeptStudy) -> None:
    joined = beside(own(measure=["accuracy", "linear"]), kept)
    metrics = {row.metric for row in joined.table if row.objective != SPEC}
    assert metrics == {"top1", "top5", "linear_top1", "linear_mean_per_class"}
    assert {text for block in joined.description["networks"][:-1] for text in block["measure"]} == {
        "accuracy",
        "linear",
    }


def test_an_objective_that_the_run_has_too_keeps_its_own_numbers(kept: KeptStudy) -> None:
    run = synthetic.study(SEEDS, objectives=["sigmoid"])
    mine = dataclasses.replace(
        own(), description=own().description | {"networks": run.description["networks"]}
    )
    table = Table(dataclasses.replace(row, value=row.value / 2) for row in run.table)
    joined = beside(dataclasses.replace(mine, table=table), kept)
    assert [row.value for row in joined.table.where(objective="sigmoid")] == [row.value for row in table]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"source": "digits"}, "its networks were trained on digits"),
        ({"recipe": {"epochs": 19}}, "trained with epochs = 19, those of whole with 20"),
        ({"seeds": [7, 8]}, "none of its seeds"),
        ({"draws": 5}, "none of its seeds"),
        ({"backbones": ["glyphplain"]}, "no networks of the architecture glyphplain"),
        ({"data": {"glyphs (draw 0)": "ff" * 32}}, "the images of glyphs (draw 0) are not those of whole"),
    ],
)
def test_what_cannot_be_compared_stands_alone_and_says_why(
    change: dict[str, Any], why: str, kept: KeptStudy
) -> None:
    mine = own()
    (block,) = mine.description["networks"]
    block = block | {key: value for key, value in change.items() if key in block}
    if "recipe" in change:
        block["recipe"] = mine.description["networks"][0]["recipe"] | change["recipe"]
    told = mine.description | {"networks": [block], "source": change.get("source", "glyphs")}
    changed = dataclasses.replace(
        mine, description=told, provenance={**mine.provenance, "data": change.get("data", {})}
    )
    assert why in reason_apart(changed, kept)
    joined = beside(changed, kept)
    assert [*joined.table] == [*changed.table]
    assert why in why_apart(joined)


def test_images_that_another_processor_rounded_otherwise_are_comparable_and_it_is_said(
    kept: KeptStudy,
) -> None:
    packages = dict.fromkeys(DRAWING, "1.0")
    run = {"packages": packages, "processor": "AMD EPYC (2 cores)", "data": {"glyphs (draw 0)": "aa"}}
    theirs = dataclasses.replace(kept, provenance={**kept.provenance, **run})

    def drawn(**change: Any) -> StudyResults:
        mine = own()
        here = {"processor": "Intel Xeon (4 cores)", "data": {"glyphs (draw 0)": "bb"}}
        return dataclasses.replace(mine, provenance={**mine.provenance, **run, **here, **change})

    joined = beside(drawn(), theirs)
    assert len(admit(joined).objectives) == 10
    said = "drawn on another kind of processor (AMD EPYC (2 cores)), where rounding"
    assert said in joined.provenance["beside"]["whole"]["rounding"]
    assert said in render_report(joined)[""].decode()
    assert beside(drawn(data=run["data"]), theirs).provenance["beside"]["whole"]["rounding"] == ""
    assert "are not those of whole" in reason_apart(drawn(packages={**packages, "torch": "2.0"}), theirs)
    assert "are not those of whole" in reason_apart(drawn(processor="AMD EPYC (8 cores)"), theirs)


def test_a_learning_rate_of_its_own_does_not_set_an_objective_apart(kept: KeptStudy) -> None:
    mine = own()
    mine.description["networks"][0]["recipe"] |= {"learning_rate": 0.3}
    assert reason_apart(mine, kept) == ""


# -- what is asked for ---------------------------------------------------------------------------------------


def test_a_portrait_is_trained_and_measured_as_the_reference_run_was() -> None:
    request = PortraitRequest(SPEC)
    study, whole = request.study(), load_study("evidence")
    assert (study.beside, study.page, study.main.seeds) == ("evidence", "portrait", SEEDS)
    assert study.main.recipe == whole.main.recipe
    asked = {one.text for key, of in whole.measured().items() for one in of if key.objective == "softmax"}
    assert {*study.measure} < asked
    assert {"linear", "knn", "class_separation", "robustness"} < {*study.measure}
    assert not any(text.startswith(("fine_tuning", "from_scratch", "similarity")) for text in study.measure)
    theirs = unfold(load_study("evidence"))
    ours = unfold(study)
    shared = {step.name for step_id, step in ours.steps.items() if step_id in theirs.steps}
    assert {"data", "hard", "corrupted"} <= shared
    assert not any(step.name == "train" for step_id, step in ours.steps.items() if step_id in theirs.steps)


def grids_of(search: Study) -> list[tuple[float, ...]]:
    assert search.tunes is not None
    (tuned,) = search.tunes.objectives
    return [axis.grid for axis in tuned.axes]


def test_a_search_is_short_unless_it_is_to_be_as_thorough_as_the_others() -> None:
    brief, thorough = PortraitRequest(SPEC).search, PortraitRequest(SPEC, thorough=True).search
    assert brief is not None
    assert thorough is not None
    kept = load_study("matched_search")
    assert (brief.name, brief.source) == ("tune-portrait-focal", "glyphs_tuning")
    assert grids_of(brief) == [(0.5, 1, 2, 4, 8)]
    assert (len(brief.keys()), brief.main.seeds) == (5, kept.main.seeds[:1])
    assert kept.search is not None
    assert max(map(len, kept.search.grids.values())) == 7
    assert grids_of(thorough) == [(0.25, 0.5, 1, 2, 4, 8, 16)]
    assert thorough.main.seeds == kept.main.seeds
    fixed = PortraitRequest(SPEC, grids={"gamma": (1, 3), "recipe.learning_rate": (0.6, 1.2)}).search
    assert fixed is not None
    assert grids_of(fixed) == [(1, 3), (0.6, 1.2)]


def test_one_value_for_each_hyperparameter_is_trained_without_a_search() -> None:
    given = {"gamma": (3,), "recipe.learning_rate": (0.6,)}
    fixed = PortraitRequest(SPEC, grids=given)
    assert fixed.search is None
    (block,) = fixed.study().runs
    assert (block.objectives, block.recipe.learning_rate) == (("focal(gamma=3)",), 0.6)
    assert block.recipe == fixed.whole.main.recipe.changed({"learning_rate": 0.6})
    words = " ".join(plan_words(fixed))
    assert "(gamma = 3, recipe.learning_rate = 0.6), so there is no search." in words
    assert "what the strength changes" not in words
    assert PortraitRequest(SPEC, grids=given | {"gamma": (1, 3)}).search is not None


def test_the_plan_counts_from_the_value_with_which_the_search_begins() -> None:
    """That is the one of a given grid that is nearest to the objective's own, which is not trained."""
    main, further = PortraitRequest(SPEC, grids={"gamma": (1, 4)}).study().runs
    assert (main.objectives, further.objectives) == (
        ("focal(gamma=1)",),
        ("focal(gamma=1)", "focal(gamma=4)"),
    )


def test_an_objective_without_a_strength_is_not_searched_for(tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    lines = ("from penultimate import register", "@register.loss", "def plain(logits, targets):")
    body = ("    'Cross-entropy.'", "    return -(targets * logits.log_softmax(-1)).sum(-1)", "")
    file.write_text("\n".join((*lines, *body)))
    with plugged(file):
        request = PortraitRequest("plain")
        assert request.search is None
        assert request.study().objectives == ("plain",)
        rates = PortraitRequest("plain", grids={"recipe.learning_rate": (0.6, 1.2)}).search
        assert rates is not None
        assert len(rates.keys()) == 2


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (PortraitRequest("softmax"), "is one of the objectives of evidence"),
        (PortraitRequest("label_smoothing(alpha=0.2)"), "is one of the objectives of evidence"),
        (PortraitRequest("focl"), "Did you mean 'focal'?"),
        (PortraitRequest("focal(gama=2)"), "gamma"),
        (PortraitRequest(SPEC, seeds=(0, 9)), "has no seed 9; it has 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        (PortraitRequest(SPEC, grids={"gama": (1, 2)}), "gamma"),
        (PortraitRequest(SPEC, grids={"gamma": (2,), "gama": (2,)}), "Did you mean 'gamma'?"),
        (
            PortraitRequest("label_smoothing(alpha=0.3)", grids={"alpha": (0.2,)}),
            "is one of the objectives of",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(request_: PortraitRequest, why: str) -> None:
    with pytest.raises(RequestError) as error:
        asked_for(request_)
    assert why in str(error.value)


def asked_for(request: PortraitRequest) -> tuple[object, object]:
    return request.study(), request.search


def test_the_cost_is_told_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["portrait", SPEC, "--plan"]) == 0
    told = capsys.readouterr().out
    assert "gamma from 0.5, 1, 2, 4, 8; 5 trainings (1 seed)." in " ".join(told.split())
    assert [line.split()[:2] for line in told.splitlines() if line.startswith(("search", "networks"))] == [
        ["search", "5"],
        ["networks", "7"],
    ]
    assert not (tmp_path / "runs").exists()


# -- what it says --------------------------------------------------------------------------------------------


def test_a_difference_within_seeds_is_students_paired_test() -> None:
    one, other = {0: 71.1, 1: 75.9, 2: 81.0, 4: 70.0}, {0: 70.0, 1: 75.0, 2: 80.0, 3: 99.0}
    found = within_seeds(one, other)
    a, b = ([of[seed] for seed in SEEDS] for of in (one, other))
    tested = stats.ttest_rel(a, b)
    interval = tested.confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high, found.p) == pytest.approx((interval.low, interval.high, tested.pvalue))
    assert within_seeds({0: 1.0, 1: 2.0}, {0: 0.0, 1: 0.5}) is None
    assert within_seeds(dict.fromkeys(SEEDS, 1.0), dict.fromkeys(SEEDS, 0.5)) is None


def test_the_line_of_the_others_is_least_squares_with_its_prediction_interval() -> None:
    noise = np.random.default_rng(0)
    x = noise.normal(size=9)
    y = 2 - 3 * x + noise.normal(size=9)
    line = stats.linregress(x, y)
    residual = np.sqrt(np.sum((y - line.intercept - line.slope * x) ** 2) / 7)
    spread = residual * np.sqrt(1 + 1 / 9 + (0.7 - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2))
    expected, half = predicted([*x], [*y], 0.7)
    assert expected == pytest.approx(line.intercept + 0.7 * line.slope)
    assert half == pytest.approx(stats.t.ppf(0.975, 7) * spread)


def test_traits_are_counted_in_the_others_standard_deviations(kept: KeptStudy) -> None:
    measured = admit(beside(own(), kept))
    found = {one.name: one for one in traits(measured, SPEC)}
    r2 = next(one for one in found.values() if one.quantity == Quantity("class_separation", "train"))
    values = np.array([*r2.means.values()])
    assert r2.steps(r2.value) == pytest.approx((r2.value - values.mean()) / values.std(ddof=1))
    assert r2.place == 1 + int((values > r2.value).sum())
    distance = likeness([*found.values()])
    spec = "sigmoid"
    rows = [(one.value - one.means[spec]) / one.spread for one in found.values()]
    assert distance[spec] == pytest.approx(np.sqrt(np.mean(np.square(rows))))
    assert min(distance, key=lambda one: distance[one]) != "squared_error(kappa=9, scale=0.5, target=10)"


def test_a_constant_or_rare_quantity_is_no_trait(kept: KeptStudy) -> None:
    measured = admit(beside(own(), kept))
    assert trait(measured, SPEC, Quantity("nll"), "") is None
    same = Table(dataclasses.replace(row, value=0.5) for row in kept.table)
    assert traits(admit(beside(own(), dataclasses.replace(kept, table=same))), SPEC) == []


def test_its_exhibits_and_its_answer_are_of_the_same_numbers(kept: KeptStudy) -> None:
    joined = beside(own(), kept)
    measured = admit(joined)
    top1 = measured.values(Quantity("top1"))
    gap = 100 * np.mean([top1[SPEC][seed] - top1["softmax"][seed] for seed in SEEDS])
    answer = headline(measured).answer
    assert f"{abs(gap):.1f} points {'more' if gap > 0 else 'less'} accurate where it was trained" in answer
    place = build(entry("exhibit", "portrait_place").resolve(), joined)
    (table,) = place.tables
    assert len(place.figures[0].panels[0].points) >= 10
    assert table.rows[0].cells[0].value == pytest.approx(100 * np.mean([*top1[SPEC].values()]))
    asked = followed_by(measured)
    assert {one.verdict for one in asked} <= {"follows", "departs", "undecided"}
    assert len(asked) >= 6
    table1 = build(entry("exhibit", "table1").resolve(), joined)
    assert len(table1.tables[0].rows) == 10


def test_the_networks_at_each_strength_are_a_curve_beside_the_others_of_that_seed(kept: KeptStudy) -> None:
    mine, specs = own(), [f"focal(gamma={gamma})" for gamma in (0.5, 2, 8)]
    run = synthetic.study((0,), objectives=specs)
    rows = [dataclasses.replace(row, arm=STRENGTHS) for row in run.table]
    (block,) = run.description["networks"]
    grid = {**block, "arm": STRENGTHS, "seeds": [0], "swept": "focal.gamma"}
    told = mine.description | {
        "networks": [*mine.description["networks"], grid],
        "objectives": [*mine.description["objectives"], *run.description["objectives"][::2]],
    }
    joined = beside(dataclasses.replace(mine, description=told, table=Table([*mine.table, *rows])), kept)
    built = build(entry("exhibit", "portrait_strengths").resolve(), joined)
    (table,), ((panel,),) = built.tables, (figure.panels for figure in built.figures)
    assert [row.label for row in table.rows] == ["gamma = 0.5", "gamma = 2", "gamma = 8"]
    expected = [
        np.mean([row.value for row in rows if row.objective == spec and row.metric.startswith("linear")])
        for spec in (specs[0], "focal(gamma=2)", specs[2])
    ]
    assert [row.cells[2].value for row in table.rows] == pytest.approx([100 * value for value in expected])
    assert [*panel.curves[0].points] == [(point.x, point.y) for point in panel.points if not point.faint]
    others = [point for point in panel.points if point.faint]
    assert len(others) == 9
    softmax = admit(joined).values(Quantity("class_separation", "train"))["softmax"][0]
    assert softmax in {point.x for point in others}
    assert "from gamma = 0.5 to 8, class separation goes from" in built.notes[0]
    assert len(admit(joined).objectives) == 10
    assert not build(entry("exhibit", "portrait_strengths").resolve(), beside(mine, kept)).wanted


def test_the_other_strengths_are_trained_on_the_first_seed_alone() -> None:
    request = PortraitRequest(SPEC)
    main, further = request.study().runs
    assert (main.objectives, main.seeds) == ((SPEC,), SEEDS)
    assert (further.arm, further.seeds, further.swept) == (STRENGTHS, (0,), "focal.gamma")
    assert further.objectives == tuple(f"focal(gamma={gamma})" for gamma in (0.5, 1, 2, 4, 8))
    assert {text.partition("(")[0] for text in further.measure or ()} == {*OF_STRENGTHS}
    graph = unfold(request.study())
    assert sum(step.name == "train" for step in graph.steps.values()) == 7
    assert "(4 trainings) show what the strength changes" in " ".join(plan_words(request))
    assert len(PortraitRequest(SPEC, strengths=False).study().runs) == 1
    assert len(PortraitRequest(SPEC, grids={"gamma": (2,)}).study().runs) == 1


def test_an_objective_that_stands_alone_has_its_own_numbers_and_the_reason(kept: KeptStudy) -> None:
    joined = beside(dataclasses.replace(own(), description=own().description | {"source": "digits"}), kept)
    measured = admit(joined)
    (table,) = build(entry("exhibit", "portrait_place").resolve(), joined).tables
    assert [column.label for column in table.columns] == ["Its value"]
    transfer = [row.value for row in joined.table if row.metric.startswith("linear")]
    values = {row.label: row.cells[0].value for row in table.rows}
    assert values["Linear transfer, mean of the tasks, %"] == pytest.approx(100 * np.mean(transfer))
    said = headline(measured).answer
    assert said.endswith("No other objective stands beside it.")
    assert f"transfers at {100 * np.mean(transfer):.1f} %" in said
    assert "its networks were trained on digits" in render_report(joined)[""].decode()


def test_no_other_study_has_a_portrait(kept: KeptStudy) -> None:
    results = synthetic.study(SEEDS)
    for name in OWN_ORDER:
        built = build(entry("exhibit", name).resolve(), results)
        assert (built.wanted, built.is_measured) == (False, False)


def diverged() -> StudyResults:
    """A study whose every run diverged, after a search in which every value did."""
    run = {"seed": 100, "accuracy": None, "step": "train.x", "reason": "the loss was no number"}
    cells = [
        {"objective": f"focal(gamma={g})", "values": [g], "settings": [], "phase": "grid", "runs": [run]}
        for g in (1, 2, 4)
    ]
    axis = {"key": "gamma", "symbol": "γ", "start": 2, "grid": [1, 2, 4], "from_above": False, "edge": ""}
    tuned = {"slug": "focal", "label": "Focal", "start": SPEC, "axes": [axis], "cells": cells, "chosen": None}
    tuning = {
        **{"study": "portrait-focal", "source": "glyphs", "backbone": "glyphnet", "draw": "seed"},
        **{"seeds": [100], "threads": 1, "recipe": {}, "budget": 5, "expansions": 0, "limited": False},
        **{"listed": [SPEC], "objectives": [tuned], "provenance": {"seconds": 9.0}},
    }
    mine = own(tuning=[tuning])
    lost = synthetic.study((0,), objectives=[SPEC], diverged=(SPEC, 0))
    rows = [dataclasses.replace(row, unit="loss", metric="loss") for row in lost.table]
    steps = {
        "diverged": {"train.focal": "the loss was no number"},
        "diverged_networks": {
            "train.focal": [
                {"objective": SPEC, "backbone": "glyphnet", "arm": "", "seed": seed, "draw": seed}
                for seed in SEEDS
            ]
        },
    }
    table = Table([*lost.table, *rows])
    return dataclasses.replace(mine, table=table, provenance={**mine.provenance, **steps})


def test_an_objective_that_diverges_under_every_value_has_a_portrait_that_says_so(kept: KeptStudy) -> None:
    joined = beside(diverged(), kept)
    told = headline(admit(joined)).answer
    assert "diverged under each of three values that the search tried" in told
    search = build(entry("exhibit", "portrait_search").resolve(), joined)
    assert [row.cells[2].text for row in search.tables[0].rows] == ["diverged (the loss was no number)"] * 3
    (panel,) = search.figures[0].panels
    assert [len(curve.points) for curve in panel.curves] == [3]
    assert "nothing else to show but its curves until then; a lower learning rate may help" in told
    early = Table([row for row in joined.table if row.unit != "loss"])
    told = headline(admit(dataclasses.replace(joined, table=early))).answer
    assert "within the first epoch, so that there is not even a curve" in told
    assert not build(entry("exhibit", "portrait_place").resolve(), joined).tables


@pytest.mark.parametrize("is_diverged", [pytest.param(False, marks=pytest.mark.long), True])
def test_its_page_has_its_own_exhibits_first(is_diverged: bool, kept: KeptStudy) -> None:
    files = render_report(beside(diverged() if is_diverged else own(), kept))
    html = files[""].decode()
    places = [html.find(f'<article class="exhibit" id="{name}">') for name in ("portrait_search", "table1")]
    assert 0 < places[0] < places[1]
    assert ('id="portrait_inside"' in html) != is_diverged
    assert html.count("<svg") > 5


def test_the_reference_run_is_what_a_portrait_stands_beside() -> None:
    assert PortraitRequest(SPEC).kept.digest == reference().digest


@pytest.mark.long
def test_a_portrait_is_drawn_on_a_tiny_world(smoke: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penultimate.portrait.run import draw

    monkeypatch.chdir(smoke)
    keep(study_folder("runs", "smoke"), "kept")
    from penultimate.records.archive import read_kept

    run = read_kept("kept")
    request = PortraitRequest(SPEC, seeds=(0,), run=run, base=load_study("smoke"))
    done = draw(request, "runs", 1)
    assert (done.summary.complete, done.errors) == (True, ())
    joined = beside(read_study("runs", done.study), run)
    assert why_apart(joined) == ""
    assert len(admit(joined, allow_limited=True).objectives) == 4
    again = draw(request, "runs", 1)
    assert again.summary.computed == 0


def test_a_trait_that_stands_out_on_two_sets_of_images_is_named_with_them() -> None:
    def outside(where: str) -> Trait:
        others = {spec: {0: value} for spec, value in (("a", 0.7), ("b", 0.8), ("c", 0.75), ("d", 0.72))}
        return Trait(
            f"Log loss, {where}", Quantity("log_loss", "test", factor=1, decimals=2), {0: 1.4}, others
        )

    both = unusual_words([outside("test images"), outside("training images")])
    assert "Log loss (test images: 1.40, others 0.70 to 0.80)" in both
    assert "Log loss (training images: 1.40, others 0.70 to 0.80)" in both
    assert "Log loss (1.40, others 0.70 to 0.80)" in unusual_words([outside("test images")])


def test_an_objective_that_hardly_trained_is_said_to_have(kept: KeptStudy) -> None:
    joined = beside(own(), kept)
    worse = Table(
        dataclasses.replace(row, value=0.3 * row.value)
        if row.objective == SPEC and (row.metric, row.split, row.target) == ("top1", "test", row.source)
        else row
        for row in joined.table
    )
    told = headline(admit(dataclasses.replace(joined, table=worse))).details
    assert told[0].startswith("It is less than half as accurate as the least accurate of the others")
    assert not any("less than half" in detail for detail in headline(admit(joined)).details)
