"""Images outside a source, told from it by networks of your own: named like data, of any classes or none."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from tests.conftest import rows_in
from tests.evaluation.pictures import class_folders, fill, split_folders
from tests.inprocess import InProcess

from penultimate.cli import main
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.evaluation.naming import outside_named
from penultimate.evaluation.request import Request
from penultimate.measures.outside import OF_FEATURES, SCORES
from penultimate.report import exhibit, refresh_page
from penultimate.study.unfold import unfold

NETWORKS = {
    "with classes": "timm:test_resnet(pretrained=False, seed=1, num_classes=2)",
    "without": "timm:test_vit(pretrained=False, seed=2)",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("folders")
    shapes = split_folders(root / "shapes", ("disc", "square"), 8, 6)
    few = class_folders(root / "few", ("a", "b"), 6)
    fill(root / "flat", 7, 1, seed=9)
    shutil.copy(sorted((shapes / "test" / "disc").iterdir())[0], root / "flat" / "copy.png")
    return {"shapes": shapes, "few": few, "flat": root / "flat"}


@pytest.fixture(scope="module")
def evaluated(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with what is new of an evaluation, and its ranking."""
    request = Request(
        NETWORKS,
        {name: folders[name] for name in ("shapes", "few")},
        source="shapes",
        classifies=["with classes"],
        outside={name: folders[name] for name in ("few", "flat")},
        calibrate=True,
        baselines=False,
    )
    study, own = request.study(), ("probed", "selective", "brier", "outside", "probe_calibration")
    assert {*own} < {*study.measure}
    out = tmp_path_factory.mktemp("evaluated") / "runs"
    assert run(dataclasses.replace(study, measure=own), out, engine=InProcess()).complete
    return out


@pytest.mark.long
def test_every_network_is_measured_by_the_scores_that_it_has(evaluated: Path) -> None:
    table = rows_in(evaluated)
    for network, scores in (("with classes", SCORES), ("without", OF_FEATURES)):
        for target in ("few", "flat"):
            rows = table.where(metric="outside_auroc", objective=network, target=target)
            assert {row.settings["score"] for row in rows} == {*scores}
            (copies,) = table.where(metric="outside_copies", objective=network, target=target).values()
            assert copies == (target == "flat")
        assert len(table.where(metric="probe_brier", objective=network)) == 1
        assert bool(table.where(metric="aurc", objective=network)) == (scores is SCORES)
        assert bool(table.where(metric="brier", objective=network)) == (scores is SCORES)


def test_the_page_shows_intervals_and_names_what_was_left_out(evaluated: Path) -> None:
    built = exhibit("outside", evaluated)
    assert [table.name for table in built.tables] == ["outside", "outside--few", "outside--flat"]
    assert "(" in built.tables[1].rows[0].cells[0].text
    assert any("Left out, for shapes holds the same images: 1 of flat." in note for note in built.notes)
    page = refresh_page(evaluated, "evaluation").read_text()
    for words in ("Images of other data", "How sure they are", "no final layer for the source", "copy.png"):
        assert words in page
    assert "--outside FOLDER" not in page
    assert exhibit("brier", evaluated).is_measured


def test_maps_and_curves_draw_the_numbers_that_were_measured(evaluated: Path) -> None:
    table = rows_in(evaluated)
    (figure,) = exhibit("outside", evaluated).figures
    assert [panel.name for panel in figure.panels] == [f"outside--{name}" for name in SCORES]
    for name, panel in zip(SCORES, figure.panels, strict=True):
        assert panel.raster is not None
        for target, values in zip(("few", "flat"), panel.raster.values, strict=True):
            rows = table.where(metric="outside_auroc", target=target, setting=f"score={name}")
            measured = {row.objective: row.value for row in rows}
            assert list(values) == [measured.get(network) for network in panel.raster.columns]
    (curves,) = exhibit("selective", evaluated).figures
    assert [panel.name for panel in curves.panels] == [
        "selective-msp",
        "selective-max_logit",
        "selective-energy",
    ]
    (errors,) = {round(panel.curves[0].points[-1][1], 4) for panel in curves.panels}
    assert 0 <= errors <= 100
    for panel in curves.panels:
        (curve,) = panel.curves
        assert curve.points[-1][0] == 100


def test_without_a_source_the_first_task_is_inside_and_other_steps_stay_as_they_are(
    folders: dict[str, Path],
) -> None:
    data = {name: str(folders[name]) for name in ("few", "shapes")}
    before = unfold(Request(NETWORKS, data).study())
    after = unfold(Request(NETWORKS, data, outside={"flat": str(folders["flat"])}).study())
    assert {*before.steps} < {*after.steps}
    new = [after.steps[step] for step in {*after.steps} - {*before.steps}]
    assert {step.name for step in new} == {"data", "extract", "outside_scores", "outside"}
    assert {step.columns["source"] for step in new if step.name == "outside"} == {"few"}


def test_data_outside_are_named_like_tasks_and_may_be_tasks(folders: dict[str, Path], tmp_path: Path) -> None:
    data = {"pets": "/data/pets"}
    assert outside_named(["pets", f"other={folders['flat']}", "digits"], data) == {
        "pets": "/data/pets",
        "other": str(folders["flat"]),
        "digits": "",
    }
    for texts, told in (
        (["a=/x", "a=/y"], "two data sets outside are called 'a'"),
        (["nowhere"], "There is no folder 'nowhere'"),
    ):
        with pytest.raises(RequestError, match=told):
            outside_named(texts, data)
    with pytest.raises(RequestError, match="a task and data outside, at two places"):
        Request(NETWORKS, {"few": "a"}, outside={"few": "b"}).study()
    with pytest.raises(RequestError, match="outside are"):
        Request(NETWORKS, {"few": "a"}, outside=["few"])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["empty", "hidden", "missing"])
def test_a_folder_without_images_is_refused_before_anything_is_computed(
    folders: dict[str, Path], tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / kind
    if kind != "missing":
        where.mkdir()
    if kind == "hidden":
        shutil.copy(folders["flat"] / "copy.png", where / ".copy.png")
    model = ["--model", "timm:test_vit(pretrained=False)", "--data", str(folders["few"])]
    out = tmp_path / "runs"
    assert main(["evaluate", *model, "--outside", f"{kind}={where}", "--out", str(out)]) == 2
    told = {"empty": "holds no images", "hidden": "holds no images", "missing": "does not exist"}[kind]
    assert told in capsys.readouterr().err
    assert not (out / "steps").exists()
