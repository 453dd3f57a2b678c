"""Evaluations of images that come in groups: what is drawn, tested and said of them."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.pictures import SHAPES, picture
from tests.inprocess import InProcess

import penultimate as pu
from penultimate.cli import main
from penultimate.errors import RequestError
from penultimate.evaluation.boards import board_of, tasks_of
from penultimate.evaluation.grouped import leaks
from penultimate.evaluation.request import Request
from penultimate.report import exhibit, read_study
from penultimate.report.measurements import Measurements, admit
from penultimate.report.page.page import render_report

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


def measured(request: Request, out: Path) -> Measurements:
    study = request.study()
    kept = tuple(name for name in study.measure if name in ("probed", "groups"))
    assert pu.run(replace(study, measure=kept), out, engine=InProcess()).complete
    return admit(read_study(out, study.name))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Measurements]:
    root = tmp_path_factory.mktemp("patients")
    return root / "runs", measured(
        Request(NETWORKS, {"scans": str(table(root, ""))}, group="patient"), root / "runs"
    )


def test_a_drawn_split_parts_no_group_and_tests_are_of_groups(drawn: tuple[Path, Measurements]) -> None:
    out, found = drawn
    (task,) = tasks_of(found)
    groups = task.answers.groups
    assert groups is not None
    assert np.bincount(groups).tolist() == [6, 6]
    board = board_of((task,))
    assert board is not None
    alone = board_of((replace(task, answers=replace(task.answers, groups=None)),))
    assert alone is not None
    for one, other in zip(board.standings, alone.standings, strict=True):
        width, of_images = (each.interval.high - each.interval.low for each in (one, other))
        assert width > of_images
    assert leaks(found) == []
    page = render_report(read_study(out, "evaluation"))[""].decode()
    page = html.unescape(page)
    assert "Images come in groups: scans in 2 groups of test images." in page
    assert "2 of 10 groups by ‘patient’, which are not split, 12 of 60 images" in page
    assert "Of scans whole groups of images are drawn." in " ".join(exhibit("ranks", out, "evaluation").notes)


def test_a_split_that_parts_groups_is_said_first(tmp_path: Path) -> None:
    file = table(tmp_path, ",split", {"4": "test", "5": "test"})
    found = measured(Request(NETWORKS, {"scans": f"{file}(group='patient')"}), tmp_path / "runs")
    (said,) = leaks(found)
    assert said == (
        "The split of scans parts groups: 10 of 10 groups of test images are in training too, with 20 test"
        " images; accuracies may be too high for images of new groups."
    )
    assert said in render_report(read_study(tmp_path / "runs", "evaluation"))[""].decode()


def test_groups_are_asked_for_in_the_place_or_for_all_tasks() -> None:
    asked = Request({"a": "timm:resnet18"}, {"x": "/d/x.csv(label='dx')", "y": "/d/y(group=2)"}, group="site")
    assert asked._grouped(["x", "y"]) == {"x": "/d/x.csv(label='dx', group='site')", "y": "/d/y(group=2)"}
    plain = Request({"a": "timm:resnet18"}, {"glyphs_smoke": ""})
    assert "groups" not in plain.study().measure
    with pytest.raises(RequestError, match="of tasks of your own"):
        replace(plain, group="site").study()


def test_the_command_refuses_a_column_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = table(tmp_path, "")
    asked = ["evaluate", "--model", NETWORKS["net1"], "--data", str(file), "--out", str(tmp_path / "runs")]
    assert main([*asked, "--group", "patent", "--plan"]) == 2
    assert "Did you mean 'patient'?" in capsys.readouterr().err
    assert main([*asked, "--group", "1", "--plan"]) == 2
    assert "less than 1 folder below the table's folder" in capsys.readouterr().err
