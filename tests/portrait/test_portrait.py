"""The portrait of an objective: what it asks for, what stands beside it, what it says, and its page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.plugged import plugged
from tests.portrait import synthetic

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.portrait import STRENGTHS
from penultimate.portrait.page import answer
from penultimate.portrait.request import OF_STRENGTHS, PortraitRequest, plan_words
from penultimate.portrait.traits import likeness, subject_of, traits, values, within_seeds
from penultimate.records.archive import KeptStudy, keep, read_kept
from penultimate.records.reading import study_folder
from penultimate.records.table import Table
from penultimate.results.beside import DRAWING, beside, beside_reference, reason_apart, why_apart
from penultimate.results.exhibit import show
from penultimate.results.page import render_page
from penultimate.results.rows import Run, read_run, seeds
from penultimate.study import load_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold

SPEC = "focal(gamma=2)"
SEEDS = (0, 1, 2)
PORTRAITS = Path(__file__).parents[2] / "docs" / "portraits"
EXHIBITS = tuple(f"portrait_{name}" for name in ("place", "strengths", "inside", "search"))


@pytest.fixture(scope="module", autouse=True)
def focal() -> Iterator[None]:
    with plugged("focal"):
        yield


@pytest.fixture(scope="module")
def kept() -> KeptStudy:
    """Five seeds of nine objectives, as a run that was kept."""
    run = synthetic.study((0, 1, 2, 3, 4))
    rows = (dataclasses.replace(row, step=f"{kind(row.metric)}.kept") for row in Table.of_frame(run.frame))
    return KeptStudy(run.description | {"name": "whole"}, dict(run.provenance), Table(rows), "0" * 64)


def kind(metric: str) -> str:
    return next((name for name in ("linear", "knn", "class_separation") if name in metric), "accuracy")


def own(seeds: tuple[int, ...] = SEEDS, objective: str = SPEC, **description: Any) -> Run:
    """A study of the focal loss alone."""
    run = synthetic.study(seeds, objectives=[objective])
    rows = Table(
        dataclasses.replace(row, step=f"{kind(row.metric)}.own") for row in Table.of_frame(run.frame)
    )
    told = {"name": "portrait-focal", "page": "portrait", "beside": "whole", "steps": ["linear.own"]}
    return Run(rows.frame(), run.description | told | description, dict(run.provenance))


def those_of(run: Run, is_own: bool) -> list[float]:
    return sorted(run.frame["value"][(run.frame["objective"] == SPEC) == is_own])


def test_a_kept_runs_networks_of_the_same_seeds_stand_beside_a_study(kept: KeptStudy) -> None:
    joined = beside(own(), kept)
    assert why_apart(joined) == ""
    assert {*joined.frame["seed"]} == {*SEEDS}
    assert len(joined.objectives()) == 10
    subject = subject_of(joined)
    assert subject is not None
    assert subject.spec == SPEC
    assert those_of(joined, False) == sorted(row.value for row in kept.table if row.seed in SEEDS)
    assert those_of(joined, True) == those_of(own(), True)
    assert len(show("table1", joined).tables[0].labels) == 10


def test_an_objective_that_the_run_has_too_keeps_its_own_numbers(kept: KeptStudy) -> None:
    mine = own(objective="sigmoid")
    mine = dataclasses.replace(mine, frame=mine.frame.assign(value=mine.frame["value"] / 2))
    joined = beside(mine, kept)
    there = joined.frame["value"][joined.frame["objective"] == "sigmoid"]
    assert there.tolist() == mine.frame["value"].tolist()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"source": "digits"}, "its networks were trained on digits"),
        ({"recipe": {"epochs": 19}}, "trained with epochs = 19, those of whole with 20"),
        ({"seeds": [7, 8]}, "none of its seeds"),
        ({"draws": 5}, "none of its seeds"),
        ({"backbones": ["glyphplain"]}, "no networks of the architecture glyphplain"),
        ({"data": {"glyphs (draw 0)": "ff" * 32}}, "images of glyphs (draw 0) are not those of whole: other"),
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
    assert joined.frame is changed.frame
    assert why in why_apart(joined)


def test_images_that_another_processor_rounded_otherwise_are_comparable_and_it_is_said(
    kept: KeptStudy,
) -> None:
    packages = dict.fromkeys(DRAWING, "1.0")
    run = {"packages": packages, "processor": "AMD EPYC (2 cores)", "data": {"glyphs (draw 0)": "aa"}}
    theirs = dataclasses.replace(kept, provenance={**kept.provenance, **run})

    def drawn(**change: Any) -> Run:
        mine = own()
        here = {"processor": "Intel Xeon (4 cores)", "data": {"glyphs (draw 0)": "bb"}}
        return dataclasses.replace(mine, provenance={**mine.provenance, **run, **here, **change})

    joined = beside(drawn(), theirs)
    assert len(joined.objectives()) == 10
    said = "drawn on another kind of processor (AMD EPYC (2 cores)), where rounding"
    assert said in joined.provenance["beside"]["whole"]["rounding"]
    assert said in render_page(joined)[""].decode()
    assert beside(drawn(data=run["data"]), theirs).provenance["beside"]["whole"]["rounding"] == ""
    assert "are not those of whole" in reason_apart(drawn(packages={**packages, "torch": "2.0"}), theirs)
    assert "are not those of whole" in reason_apart(drawn(processor="AMD EPYC (8 cores)"), theirs)


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
        (PortraitRequest(SPEC, seeds=(0, 9)), "has no seeds 9; it has 0, 1, 2, 3, 4, 5, 6, 7, 8"),
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


def test_the_cost_is_told_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["portrait", SPEC, "--plan"]) == 0
    told = capsys.readouterr().out
    assert "gamma from 0.5, 1, 2, 4, 8; 5 trainings (1 seed)." in " ".join(told.split())
    assert "left: 5 trainings of" in told
    assert "left: 7 trainings of" in told
    assert not (tmp_path / "runs").exists()


def test_a_difference_within_seeds_is_students_paired_test() -> None:
    one, other = pd.Series({0: 71.1, 1: 75.9, 2: 81.0}), pd.Series({0: 70.0, 1: 75.0, 2: 80.0})
    found = within_seeds(one, other)
    tested = stats.ttest_rel(one, other)
    interval = tested.confidence_interval(0.95)
    assert found is not None
    assert found[1:] == pytest.approx((interval.low, interval.high, tested.pvalue))
    assert within_seeds(one[:2], other[:2]) is None
    assert within_seeds(one, one - 0.5) is None


def test_traits_are_counted_in_the_others_standard_deviations(kept: KeptStudy) -> None:
    joined = beside(own(), kept)
    subject = subject_of(joined)
    assert subject is not None
    found = traits(joined, subject)
    (r2,) = [one for one in found if one.runs.equals(seeds(joined, "class_separation", "train"))]
    means = seeds(joined, "class_separation", "train").mean()
    others = means.drop(subject.slug)
    assert r2.steps[subject.slug] == pytest.approx((means[subject.slug] - others.mean()) / others.std())
    distance = likeness(found)
    rows = [one.steps[subject.slug] - one.steps["sigmoid"] for one in found]
    assert distance["sigmoid"] == pytest.approx(np.sqrt(np.mean(np.square(rows))))
    assert min(distance, key=lambda one: distance[one]) != "squared_error"
    same = Table(dataclasses.replace(row, value=0.5) for row in kept.table)
    assert traits(beside(own(), dataclasses.replace(kept, table=same)), subject) == []


def test_a_finished_portrait_shows_what_it_showed_when_it_was_kept() -> None:
    run = kept_portrait("focal")
    said = answer(run)
    assert said.sentence == (
        "Compared with softmax, Focal (gamma = 0.2) is 0.4 points less accurate where it was trained (beyond"
        " chance) and transfers 0.1 points worse (not beyond chance)."
    )
    assert said.points[0].startswith("It lies beyond all others in 4 of 40 traits, farthest in spread within")
    assert "It resembles most, by their distance, dropout (0.15) and more final layer" in said.points[0]
    shown = {name: pu.exhibit(name, run).to_pandas() for name in EXHIBITS}
    place = shown["portrait_place"]["portrait_place"].set_index("Quantity")
    top1 = values(run, "top1", scale=100)
    gap = (top1["focal"] - top1["softmax"]).mean()
    assert place.at["Test accuracy where trained, %", "difference"] == pytest.approx(gap)
    assert place["rank"].tolist()[:2] == ["8 of 10", "4 of 10"]
    assert shown["portrait_search"]["portrait_search"]["chosen"].tolist() == ["yes", "", "", "", ""]
    assert len(shown["portrait_inside"]["portrait_inside"]) == 12
    assert shown["portrait_inside"]["portrait_alike"]["Objective"][0] == "Dropout"
    files = render_page(run)
    html = files[""].decode()
    assert 0 < html.index('id="portrait_place"') < html.index('id="table1"')
    assert {"portrait_place.csv", "portrait_search.csv", "portrait-accuracy.svg", "table1_linear.csv"} < {
        *files
    }


def kept_portrait(name: str) -> Run:
    run = read_kept(PORTRAITS / name)
    return beside_reference(Run(run.table.frame(), run.description, run.provenance, run.arrays))


def test_the_networks_at_each_strength_are_a_curve_beside_the_others_of_that_seed(kept: KeptStudy) -> None:
    mine, specs = own(), [f"focal(gamma={gamma})" for gamma in (0.5, 2, 8)]
    run = synthetic.study((0,), objectives=specs)
    frame = Table(dataclasses.replace(row, arm=STRENGTHS) for row in Table.of_frame(run.frame)).frame()
    (block,) = run.description["networks"]
    grid = {**block, "arm": STRENGTHS, "seeds": [0], "swept": "focal.gamma"}
    named = [{**each, "slug": each["spec"]} for each in run.description["objectives"]]
    told = mine.description | {
        "networks": [*mine.description["networks"], grid],
        "objectives": [*mine.description["objectives"], *named[::2]],
    }
    frames = pd.concat([mine.frame, frame], ignore_index=True)
    joined = beside(dataclasses.replace(mine, description=told, frame=frames), kept)
    shown = show("portrait_strengths", joined)
    (table,), ((panel,),) = shown.tables, (figure.panels for figure in shown.figures)
    assert table.labels == ["gamma = 0.5", "gamma = 2", "gamma = 8"]
    linear = frame[frame["metric"].astype(str).str.startswith("linear")]
    expected = [100 * linear["value"][linear["objective"] == spec].mean() for spec in specs]
    assert table.to_pandas()["transfer"].tolist() == pytest.approx(expected)
    assert [*panel.curves[0].points] == [(point.x, point.y) for point in panel.points if not point.faint]
    assert sum(point.faint for point in panel.points) == 9
    assert table.notes == ("All on seed 0.",)
    assert not show("portrait_strengths", beside(mine, kept)).is_measured


def test_an_objective_that_stands_alone_has_its_own_numbers_and_the_reason(kept: KeptStudy) -> None:
    joined = beside(own(source="digits"), kept)
    (table,) = [table for table in show("portrait_place", joined).tables if table.source == "ours"]
    assert [column.label for column in table.columns] == ["Its value"]
    assert answer(joined).sentence.endswith("No other objective stands beside it.")
    assert "its networks were trained on digits" in render_page(joined)[""].decode()


def diverged() -> Run:
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
    rows = [dataclasses.replace(row, unit="loss", metric="loss") for row in Table.of_frame(lost.frame)]
    network = {"objective": SPEC, "backbone": "glyphnet", "arm": ""}
    told = {
        "diverged": {"train.focal": "the loss was no number"},
        "diverged_networks": {"train.focal": [{**network, "seed": seed, "draw": seed} for seed in SEEDS]},
    }
    frame = Table([*Table.of_frame(lost.frame), *rows]).frame()
    return dataclasses.replace(mine, frame=frame, provenance={**mine.provenance, **told})


def test_an_objective_that_diverges_under_every_value_has_a_portrait_that_says_so(kept: KeptStudy) -> None:
    joined = beside(diverged(), kept)
    said = answer(joined).sentence
    assert "diverged under each of three values that the search tried, as its curves show" in said
    search = show("portrait_search", joined)
    assert search.tables[0].to_pandas()["told"].tolist() == ["diverged (the loss was no number)"] * 3
    (panel,) = search.figures[0].panels
    assert [len(curve.points) for curve in panel.curves] == [3]
    assert not show("portrait_place", joined).tables
    assert "Diverged, and left out of every mean" in render_page(joined)[""].decode()


@pytest.mark.long
def test_a_portrait_is_drawn_on_a_tiny_world(smoke: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penultimate.portrait.run import draw

    monkeypatch.chdir(smoke)
    keep(study_folder("runs", "smoke"), "kept")
    run = read_kept("kept")
    request = PortraitRequest(SPEC, seeds=(0,), run=run, base=load_study("smoke"))
    done = draw(request, "runs", 1)
    assert (done.summary.complete, done.errors) == (True, ())
    joined = beside(read_run("runs", done.study), run)
    assert why_apart(joined) == ""
    assert len(joined.objectives()) == 4
    assert draw(request, "runs", 1).summary.computed == 0
