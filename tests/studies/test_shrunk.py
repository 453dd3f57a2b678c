"""Studies of the paper's own size, shrunk, run to their ends on generated data in the true layouts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.data.published import CHOSEN, MAKERS, WNIDS, put_image

from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.records.reading import study_folder
from penultimate.report import read_study, write_report
from penultimate.store import Store
from penultimate.studies.imagenet_transfer import PROBES
from penultimate.study import Study, load_study
from penultimate.study.selection import override, restrict
from penultimate.study.shrinking import shrink


def shrunk(study: Study, root: Path, size: int) -> Study:
    """A study on tiny copies of the data that it needs, made where they are published."""
    for name in study.nowhere:
        MAKERS[name](root)
    for number, label in enumerate(CHOSEN * 2, 9):  # of each class of ImageNet's four images are tested on
        put_image(root / f"val/{WNIDS[label]}/ILSVRC2012_val_{number:08}.JPEG", label, number)
    return shrink(study, dict.fromkeys(study.nowhere, str(root)), size=size)


def rows(out: Path, study: Study) -> dict[str, bytes]:
    store = Store(out)
    return {
        path.parent.name: path.read_bytes()
        for path in sorted(store.root.glob("steps/*/rows.jsonl"))
        if path.parent.name in study_folder(out, study.name).description["steps"]
    }


def test_a_study_whose_data_lie_nowhere_is_planned_and_not_run(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"where the data .* CIFAR-10 \(--data cifar10=FOLDER\)"):
        run("cifar10_allcnnc", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_cifar10_runs_to_its_end_and_twice_to_the_same_rows(tmp_path: Path) -> None:
    study = shrunk(restrict(load_study("cifar10_allcnnc"), (), (0, 1)), tmp_path / "data", 32)
    summary = run(study, tmp_path / "a", 1)
    assert (summary.failed, summary.skipped, summary.computed) == ({}, [], 1 + 18 + 36 + 36)
    table = study_folder(tmp_path / "a", study.name).table()
    assert len(table.where(metric="top1", split="test")) == 18
    assert len(table.where(metric="class_separation", split="train")) == 18
    write_report(read_study(tmp_path / "a", study.name), tmp_path / "page.html")
    few = restrict(study, ("softmax",), (0,))
    run(few, tmp_path / "b", 1)
    again = rows(tmp_path / "b", few)
    assert len(again) == 6
    assert {name: content for name, content in rows(tmp_path / "a", study).items() if name in again} == again


@pytest.mark.long
def test_transfer_runs_to_its_end_on_classes_and_on_several_labels(tmp_path: Path) -> None:
    """Probes, overlap and fine-tuning of images on disk; of the grid's 72 cells the first two."""
    study = override(load_study("imagenet_transfer"), ("targets=pets,chexpert",))
    study = restrict(study, ("softmax",), (0,))
    study = shrunk(study, tmp_path / "data", 32)
    measure = (*PROBES, "fine_tuning(head='fresh', learning_rate=(0.001, 0.01), decay=0.0, steps=2)")
    study = dataclasses.replace(study, networks=(dataclasses.replace(study.main, measure=measure),))
    summary = run(study, tmp_path / "out", 1)
    assert (summary.failed, summary.diverged) == ({}, {})
    table = study_folder(tmp_path / "out", study.name).table()
    found = {(row.target, row.metric) for row in table}
    for metric in ("linear_mean_per_class", "knn_mean_per_class", "assignment_accuracy"):
        assert ("pets", metric) in found
    assert ("pets", "fine_tuned_mean_per_class") in found
    assert ("chexpert", "multilabel_auc") in found


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "only", "changes"),
    [
        ("imagenet_resnet50", "softmax,squared_error", ()),
        ("imagenet_relearning", "softmax", ()),
        ("imagenet_calibration", "cosine_softmax", ()),
        ("imagenet_temperature", "", ("targets=pets",)),
    ],
)
def test_imagenet_runs_to_its_end(name: str, only: str, changes: tuple[str, ...], tmp_path: Path) -> None:
    study = restrict(override(load_study(name), changes), only.split(",") if only else (), (0,))
    study = shrunk(study, tmp_path / "data", 32)
    summary = run(study, tmp_path / "out", 1)
    assert (summary.failed, summary.complete) == ({}, True)
    diverged = {step.split(".")[1] for step in summary.diverged}
    assert diverged <= {"squared_error-s0"}
    read = study_folder(tmp_path / "out", study.name)
    assert {row.status for row in read.table()} <= {"limited", "diverged"}
    write_report(read_study(tmp_path / "out", study.name), tmp_path / "page.html")
