"""Evaluations of images in groups, of several labels, and of copies: what is tested and said of them."""

from __future__ import annotations

import html
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.evaluation.pictures import SHAPES, picture, split_folders
from tests.inprocess import InProcess

import penultimate as pu
from penultimate.cli import main
from penultimate.evaluation.request import Request
from penultimate.evaluation.standings import board, boards
from penultimate.evaluation.warnings import warnings
from penultimate.results.exhibit import show
from penultimate.results.page import render_page
from penultimate.results.rows import Run, read_run

NETWORKS = {f"net{seed}": f"timm:test_resnet(pretrained=False, seed={seed}, crop=32)" for seed in (1, 2)}


def table(root: Path, head: str, more: dict[str, str] | None = None) -> Path:
    """Six images for each of ten patients, whose colour they share; the class is the shape."""
    random, lines = np.random.default_rng(0), [f"path,label,patient{head}"]
    for patient in range(10):
        colour = tuple(int(level) for level in random.integers(20, 235, 3))
        for number in range(6):
            kind = number % 2
            name = f"{patient}_{number}.png"
            picture(SHAPES[kind], colour, random).save(root / name)  # type: ignore[arg-type]
            part = (more or {}).get(f"{number}", "train")
            lines.append(f"{name},{SHAPES[kind]},p{patient}{',' + part if head else ''}")
    (root / "t.csv").write_text("\n".join(lines) + "\n")
    return root / "t.csv"


def measured(request: Request, out: Path) -> Run:
    study = request.study()
    kept = tuple(name for name in study.measure if name in ("probed", "groups"))
    assert pu.run(replace(study, measure=kept), out, engine=InProcess()).complete
    return read_run(out, study.name)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("patients")
    asked = Request(NETWORKS, {"scans": str(table(root, ""))}, group="patient")
    return measured(asked, root / "runs")


def test_a_drawn_split_parts_no_group_and_tests_are_of_groups(drawn: Run) -> None:
    (found,) = boards(drawn)
    (answers,) = found.answers
    assert answers.groups is not None
    assert np.bincount(answers.groups).tolist() == [6, 6]
    names = list(found.standings.index)
    alone = board("scans", {"scans": (names, replace(answers, groups=None))})
    assert alone is not None
    widths = [of.standings["high"] - of.standings["low"] for of in (found, alone)]
    assert (widths[0] > widths[1]).all()
    assert warnings(drawn) == []
    page = html.unescape(render_page(drawn)[""].decode())
    assert "Images come in groups: scans in two groups of test images." in page
    assert "2 of 10 groups by ‘patient’, which are not split, 12 of 60 images" in page
    assert "Of scans whole groups of images are drawn." in show("ranks", drawn).notes


def test_a_split_that_parts_groups_is_said_first(tmp_path: Path) -> None:
    file = table(tmp_path, ",split", {"4": "test", "5": "test"})
    found = measured(Request(NETWORKS, {"scans": f"{file}(group='patient')"}), tmp_path / "runs")
    (said,) = warnings(found)
    assert said == (
        "The split of scans parts groups: 10 of ten groups of test images are in training too, with 20 test"
        " images; accuracies may be too high for images of new groups."
    )
    assert f"Caution: {said}" in render_page(found)[""].decode()


def test_the_command_refuses_a_column_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = table(tmp_path, "")
    asked = ["evaluate", "--model", NETWORKS["net1"], "--data", str(file), "--out", str(tmp_path / "runs")]
    assert main([*asked, "--group", "patent", "--plan"]) == 2
    assert "Did you mean 'patient'?" in capsys.readouterr().err
    assert main([*asked, "--group", "1", "--plan"]) == 2
    assert "less than 1 folder below the table's folder" in capsys.readouterr().err


def test_each_of_several_labels_is_scored_and_networks_are_compared(tmp_path: Path) -> None:
    random, lines = np.random.default_rng(0), ["path,round,red,part"]
    for number in range(48):
        is_round, is_red = number % 2, number // 2 % 2
        colour = (220, 40, 40) if is_red else (40, 60, 210)
        picture(SHAPES[1 - is_round], colour, random).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png,{is_round},{is_red},{'test' if number % 3 == 2 else 'train'}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    asked = Request(NETWORKS, {"shapes": f"{tmp_path}/t.csv(labels=('round', 'red'))"}).study()
    assert "multilabel(scores=True)" in asked.measure
    scored = replace(asked, measure=("multilabel(scores=True)",))
    assert pu.run(scored, tmp_path / "runs", engine=InProcess()).complete
    run = read_run(tmp_path / "runs")
    areas, compared = show("labels", run).tables
    assert (areas.labels, compared.labels) == (["net1", "net2"], ["net1 – net2"])
    assert [column.label for column in areas.columns] == ["Mean of the labels", "round", "red"]
    rows = run.rows("multilabel_scores", target="shapes")
    assert run.arrays is not None
    held = run.arrays(str(rows[rows["objective"] == "net1"]["step"].iloc[0]), "multilabel_scores")
    by_hand = [100 * roc_auc_score(held["labels"][:, at], held["scores"][:, at]) for at in range(2)]
    shown = areas.to_pandas().iloc[0].tolist()[1:4]
    assert shown == pytest.approx([np.mean(by_hand), *by_hand])
    assert "scored by the area under its ROC curve" in render_page(run)[""].decode()


def test_copies_are_said_and_left_out_and_every_table_counts_the_same_images(tmp_path: Path) -> None:
    root, counts = split_folders(tmp_path / "copied", ("disc", "square"), 12, 12), {}
    shutil.copy(root / "test/disc/000.jpg", root / "train/disc/copy.jpg")
    shutil.copy(root / "test/disc/000.jpg", root / "test/disc/copy.jpg")
    (root / "test/square/000.jpg").write_bytes(b"no image")
    for copies in ("keep", "drop"):
        run = measured(Request(NETWORKS, {"task": str(root)}, copies=copies), tmp_path / copies)
        shown = show("basis", run)
        told = " ".join(shown.notes)
        assert "1 test image is there more than once" in told
        assert ("of these copies 2 are left out" in told) == (copies == "drop")
        counts[copies] = shown.tables[0].to_pandas()[["train", "test"]].iloc[0].tolist()
        assert [str(boards(run)[0].images)] == counts[copies][1:]
    assert counts == {"keep": ["25", "24"], "drop": ["24", "23"]}
