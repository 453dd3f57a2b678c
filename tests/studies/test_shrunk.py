"""Studies of the paper's own size, shrunk, run to their ends on generated data in the true layouts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.data.published import CHOSEN, MAKERS, WNIDS, put_image
from tests.shrinking import shrink

from penultimate import registry
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.paper.studies.imagenet import OF_FEATURES
from penultimate.records.reading import study_folder
from penultimate.results import Shown, read_run, show, write_page
from penultimate.results.table import MISSING
from penultimate.store import Store
from penultimate.study import Study, load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override

NAMES = tuple(
    name
    for name in registry.names("study")
    if name.startswith(("imagenet", "cifar")) and not name.endswith("search")
)


class Part(NamedTuple):
    """What of a study is run: some objectives and seeds, how small, and what is changed (as by --set).

    So small a batch may let a network diverge at the learning rate of a large one.
    """

    only: tuple[str, ...] = ("softmax",)
    seeds: tuple[int, ...] = (0,)
    size: int = 32
    epochs: int = 2
    batch_size: int = 8
    changes: tuple[str, ...] = ()


PARTS = {
    "imagenet64": Part(("softmax", "sigmoid"), changes=("targets=pets,flowers102",)),
    "imagenet_resnet50": Part(("softmax", "label_smoothing"), (0, 1)),
    "imagenet_inception_v3": Part(
        ("softmax",), (0, 1), 75, 12, 4, ("targets=pets", "recipe.learning_rate=0.1")
    ),
    "imagenet_relearning": Part(("softmax", "sigmoid")),
    "imagenet_temperature": Part((), changes=("targets=cars",)),
    "imagenet_temperature_unscaled": Part((), changes=("targets=cars",)),
    "imagenet_combinations": Part(("softmax", "dropout", "sigmoid", "dropout + sigmoid")),
    "imagenet_long": Part(("sigmoid",)),
    "imagenet_dynamics": Part(changes=("targets=pets",)),
}
"""Where less than softmax alone would leave an exhibit without what it compares."""
FEW = "objectives are needed"
"""What a rank correlation of so few objectives says in place of a number."""
EXHIBITS = {
    "cifar100_wrn16_8": "iclr_table1 table3 tableC1 tableE1 figureC2 figureC3",
    "cifar10_allcnnc": "iclr_table1 table3 tableC1 tableE1 figureC2 figureC3",
    "imagenet64": "table1 table3 tableC1 tableE1 tableE2 figure3 figure4 figureC2 figureC3 figureD1",
    "imagenet_augmentation": "tableC5 tableE3 table3 tableC1 tableE1",
    "imagenet_calibration": "tableC3",
    "imagenet_combinations": "tableC4 figureC1 figureC2",
    "imagenet_curves": "figureC1 figureC2 figureC3",
    "imagenet_dynamics": "figureD2 figureE4",
    "imagenet_inception_v3": "tableB1 figureB1 table3 tableC1 tableE1 figureC2 figureC3",
    "imagenet_long": "tableC6",
    "imagenet_relearning": "figure6 table3 tableC1 tableE1",
    "imagenet_resnet50": "table3 tableC1 tableE1 tableE2 figure2 figure3 figure4 figureC2 figureC3 figureC4"
    " figureC5 figureC6 figureC7 figureE1 figureE2 figureE3",
    "imagenet_robustness": "tableC2 tableC1 figureC2 figureC3",
    "imagenet_temperature": "table4",
    "imagenet_temperature_unscaled": "table4",
    "imagenet_transfer": "table1 table2 tableD1 tableF1 figure1 figureD1 figureD3",
}
"""What each study measures whole."""


def shrunk(study: Study, root: Path, size: int, **settings: int) -> Study:
    """A study on tiny copies of the data that it needs, made where they are published (once)."""
    if not root.exists():
        for name in study.nowhere:
            MAKERS[name](root)
        for number, label in enumerate(CHOSEN * 2, 9):  # of each of ImageNet's classes four are tested on
            put_image(root / f"val/{WNIDS[label]}/ILSVRC2012_val_{number:08}.JPEG", label, number)
    return shrink(study, dict.fromkeys(study.nowhere, str(root)), size=size, **settings)


def part_of(name: str, root: Path) -> Study:
    part = PARTS.get(name, Part())
    study = restrict(override(load_study(name), part.changes), part.only, part.seeds)
    if name == "imagenet_transfer":  # of the grid's 72 cells the first two
        measure = (*OF_FEATURES, "fine_tuning(head='fresh', learning_rate=(0.001, 0.01), decay=0.0, steps=2)")
        study = dataclasses.replace(study, networks=(dataclasses.replace(study.main, measure=measure),))
    return shrunk(study, root, part.size, epochs=part.epochs, batch_size=part.batch_size)


def rows(out: Path, study: Study) -> dict[str, bytes]:
    store = Store(out)
    return {
        path.parent.name: path.read_bytes()
        for path in sorted(store.root.glob("steps/*/rows.jsonl"))
        if path.parent.name in study_folder(out, study.name).description["steps"]
    }


def columns_without_number(shown: Shown) -> list[str]:
    """The columns of our tables in which every row has a dash, and our panels in which nothing is drawn."""
    found = []
    for table in (table for table in shown.tables if table.source == "ours"):
        for column, cells in zip(table.columns, zip(*table.shown(), strict=True), strict=True):
            if all(text in ("", MISSING) for text in cells):
                found.append(f"{table.title}: {column.group} {column.label}")
    panels = [panel for figure in shown.figures for panel in figure.panels if panel.source == "ours"]
    drawn = [panel for panel in panels if list(panel.records())]
    return found + [panel.title for panel in panels if panel not in drawn]


def test_a_study_whose_data_lie_nowhere_is_planned_and_not_run(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"the location of data .* CIFAR-10 \(--data cifar10=FOLDER\)"):
        run("cifar10_allcnnc", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_study_runs_to_its_end_and_draws_what_it_measures(name: str, tmp_path: Path) -> None:
    study = part_of(name, tmp_path / "data")
    summary = run(study, tmp_path / "out", 1)
    assert (summary.failed, summary.skipped, summary.diverged, summary.complete) == ({}, [], {}, True)
    left = rows(tmp_path / "out", study)
    empty = {step.partition(".")[0] for step, content in left.items() if not content}
    assert empty <= {"data", "sheet", "extract", "fine_tune_cell", "fine_tune_choice", "probed"}
    assert {row.status for row in study_folder(tmp_path / "out", study.name).table()} == {"limited"}
    run_of = read_run(tmp_path / "out", study.name)
    for each in EXHIBITS[name].split():
        shown = show(each, run_of, allow_limited=True)
        assert shown.is_measured, each
        assert columns_without_number(shown) == [], each
    write_page(run_of, tmp_path / "page.html")
    assert study.title in (tmp_path / "page.html").read_text()


@pytest.mark.long
def test_cifar10_runs_twice_to_the_same_rows(tmp_path: Path) -> None:
    study = shrunk(
        restrict(load_study("cifar10_allcnnc"), ("softmax", "sigmoid"), (0, 1)), tmp_path / "data", 32
    )
    run(study, tmp_path / "a", 1)
    few = restrict(study, ("softmax",), (0,))
    run(few, tmp_path / "b", 1)
    again = rows(tmp_path / "b", few)
    assert len(again) == 6
    assert {name: content for name, content in rows(tmp_path / "a", study).items() if name in again} == again
