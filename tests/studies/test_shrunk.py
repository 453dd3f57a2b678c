"""Studies of the paper's own size, shrunk, run to their ends on generated data in the true layouts.

All ImageNet studies of the paper share one store and one page, which has every exhibit of the paper.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.data.published import CHOSEN, MAKERS, WNIDS, put_image
from tests.shrinking import shrink

from penultimate import registry
from penultimate.cli import main
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.paper.studies.imagenet import OF_FEATURES
from penultimate.records.reading import study_folder
from penultimate.results import Shown, read_run, show
from penultimate.results.table import MISSING
from penultimate.study import Study, load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override

OF_NEURIPS = re.compile(r"(table|figure)[A-F]?\d+")
EXHIBITS = tuple(name for name in registry.names("exhibit") if OF_NEURIPS.fullmatch(name))
"""The eighteen tables and twenty-one figures of the NeurIPS version."""


class Part(NamedTuple):
    """What of a study is run: some objectives and seeds, what is changed (as by --set), and how small.

    So small a batch may let a network diverge at the learning rate of a large one.
    """

    only: tuple[str, ...] = ("softmax", "sigmoid")
    seeds: tuple[int, ...] = (0, 1)
    changes: tuple[str, ...] = ()
    size: int = 32
    epochs: int = 2
    batch_size: int = 8


TEMPERATURES = tuple(f"cosine_softmax(scale={value}, temperature={value})" for value in (0.02, 0.05, 0.08))
PARTS = {
    "imagenet_resnet50": Part(),
    "imagenet_transfer": Part(changes=("targets=pets,chexpert",)),
    "imagenet_temperature": Part(TEMPERATURES, (0,), ("targets=pets",)),
    "imagenet_robustness": Part(),
    "imagenet_relearning": Part(),
    "imagenet_curves": Part(seeds=(0,)),
    "imagenet_dynamics": Part(seeds=(0,), changes=("targets=pets",)),
    "imagenet_augmentation": Part(seeds=(0,)),
    "imagenet_long": Part(("sigmoid",), (0,)),
    "imagenet_calibration": Part(seeds=(0,)),
    "imagenet_combinations": Part(("softmax", "dropout", "sigmoid", "dropout + sigmoid"), (0,)),
    "imagenet_inception_v3": Part(("softmax",), (0, 1), ("targets=pets",), 75, 12, 4),
}
"""The studies in the order in which the page names them."""
ALONE = {
    "imagenet64": (Part(changes=("targets=pets,flowers102",)), "table1 table3 tableE2 figure4 figureD1"),
    "imagenet_temperature_unscaled": (Part((), (0,), ("targets=cars",)), "table4"),
    "cifar10_allcnnc": (Part(("softmax",), (0,)), "iclr_table1 table3 tableC1 tableE1 figureC3"),
    "cifar100_wrn16_8": (Part(("softmax",), (0,)), "iclr_table1 table3 tableC1 tableE1 figureC3"),
}
"""Further studies, and exhibits that they measure whole."""
UNFILLED = {"tableA1"}
"""Its search (penultimate tune) is no part of any study's run."""


def shrunk(study: Study, root: Path, size: int, **settings: int) -> Study:
    """A study on tiny copies of the data that it needs, made where they are published (once)."""
    if not root.exists():
        for name in study.nowhere:
            MAKERS[name](root)
        for number, label in enumerate(CHOSEN * 2, 9):  # of each of ImageNet's classes four are tested on
            put_image(root / f"val/{WNIDS[label]}/ILSVRC2012_val_{number:08}.JPEG", label, number)
    return shrink(study, dict.fromkeys(study.nowhere, str(root)), size=size, **settings)


def part_of(name: str, part: Part, root: Path) -> Study:
    changes = ("recipe.learning_rate=0.1", *part.changes)
    study = restrict(override(load_study(name), changes), part.only, part.seeds)
    if name == "imagenet_transfer":  # of the grid's 72 cells the first two
        measure = (*OF_FEATURES, "fine_tuning(head='fresh', learning_rate=(0.001, 0.01), decay=0.0, steps=2)")
        study = dataclasses.replace(study, networks=(dataclasses.replace(study.main, measure=measure),))
    return shrunk(study, root, part.size, epochs=part.epochs, batch_size=part.batch_size)


def columns_without_number(shown: Shown) -> list[str]:
    """The columns of our tables in which every row has a dash, and our panels in which nothing is drawn."""
    found = []
    for table in (table for table in shown.tables if table.source == "ours"):
        for column, cells in zip(table.columns, zip(*table.shown(), strict=True), strict=True):
            if all(text in ("", MISSING) for text in cells):
                found.append(f"{table.title}: {column.group} {column.label}")
    panels = [panel for figure in shown.figures for panel in figure.panels if panel.source == "ours"]
    return found + [panel.title for panel in panels if not list(panel.records())]


def test_a_study_whose_data_lie_nowhere_is_planned_and_not_run(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"the location of data .* CIFAR-10 \(--data cifar10=FOLDER\)"):
        run("cifar10_allcnnc", tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_study_of_the_papers_size_is_run_by_these_tests() -> None:
    assert len(EXHIBITS) == 39
    studies = {name for name in registry.names("study") if name.startswith(("imagenet", "cifar"))}
    assert {name for name in studies if not name.endswith("search")} == {*PARTS, *ALONE}


@pytest.mark.long
@pytest.mark.parametrize("name", ALONE)
def test_a_study_runs_to_its_end_and_draws_what_it_measures(name: str, tmp_path: Path) -> None:
    part, exhibits = ALONE[name]
    study = part_of(name, part, tmp_path / "data")
    summary = run(study, tmp_path / "out", 1)
    assert (summary.failed, summary.skipped, summary.diverged, summary.complete) == ({}, [], {}, True)
    assert {row.status for row in study_folder(tmp_path / "out", study.name).table()} == {"limited"}
    for each in exhibits.split():
        shown = show(each, read_run(tmp_path / "out", study.name), allow_limited=True)
        assert shown.is_measured, each
        assert columns_without_number(shown) == [], each


@pytest.mark.long
def test_one_page_of_all_imagenet_studies_has_every_exhibit_of_the_paper(tmp_path: Path) -> None:
    out, names = tmp_path / "runs", []
    of_transfer = override(load_study("imagenet_transfer"), PARTS["imagenet_transfer"].changes)
    shrunk(of_transfer, tmp_path / "data", 32)
    for name in load_study("imagenet_robustness").nowhere:
        if name != "imagenet":
            MAKERS[name](tmp_path / "data")
    for name, part in PARTS.items():
        study = part_of(name, part, tmp_path / "data")
        summary = run(study, out, 1)
        assert (summary.failed, summary.skipped, summary.diverged) == ({}, [], {}), name
        names.append(study.name)
    results, lacking = read_run(out, ",".join(names)), set()
    for name in EXHIBITS:
        shown = show(name, results, allow_limited=True)
        if not shown.is_measured or columns_without_number(shown):
            lacking.add(name)
        else:
            assert any("The numbers are those of `imagenet_" in note for note in shown.notes), name
    assert lacking == UNFILLED
    assert main(["report", *names, "--out", str(out), "--to", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert {name for name in EXHIBITS if f'id="{name}"' not in page} == UNFILLED
