"""One page for the whole paper: all its ImageNet studies, shrunk, on one store of tiny copies of the data."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.data.published import MAKERS
from tests.studies.test_shrunk import columns_without_number, shrunk

from penultimate import registry
from penultimate.cli import main
from penultimate.engine.run import run
from penultimate.paper.studies.imagenet import OF_FEATURES
from penultimate.results import read_run, show
from penultimate.study import Study, load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override

OF_NEURIPS = re.compile(r"(table|figure)[A-F]?\d+")
EXHIBITS = tuple(name for name in registry.names("exhibit") if OF_NEURIPS.fullmatch(name))
"""The eighteen tables and twenty-one figures of the NeurIPS version."""


class Shrunk(NamedTuple):
    """What of a study is run: some objectives and seeds, what is changed (as by --set), and how small."""

    only: tuple[str, ...] = ("softmax", "sigmoid")
    seeds: tuple[int, ...] = (0, 1)
    changes: tuple[str, ...] = ()
    size: int = 32
    epochs: int = 2
    batch_size: int = 8


GENTLY = "recipe.learning_rate=0.1"
"""With so small a batch a network may diverge at the learning rate of a large one."""
TEMPERATURES = tuple(f"cosine_softmax(scale={value}, temperature={value})" for value in (0.02, 0.05, 0.08))
PARTS = {
    "imagenet_resnet50": Shrunk(),
    "imagenet_transfer": Shrunk(changes=("targets=pets,chexpert",)),
    "imagenet_temperature": Shrunk(TEMPERATURES, (0,), ("targets=pets",)),
    "imagenet_robustness": Shrunk(),
    "imagenet_relearning": Shrunk(),
    "imagenet_curves": Shrunk(seeds=(0,)),
    "imagenet_dynamics": Shrunk(seeds=(0,), changes=("targets=pets",)),
    "imagenet_augmentation": Shrunk(seeds=(0,)),
    "imagenet_long": Shrunk(("sigmoid",), (0,)),
    "imagenet_calibration": Shrunk(seeds=(0,)),
    "imagenet_combinations": Shrunk(("softmax", "dropout", "sigmoid", "dropout + sigmoid"), (0,)),
    "imagenet_inception_v3": Shrunk(("softmax",), (0, 1), ("targets=pets",), 75, 12, 4),
}
"""The studies in the order in which the page names them."""
NO_PART = {"imagenet_temperature_unscaled": "the footnote's form of Table 4, which has no exhibit of its own"}
UNFILLED = {"tableA1": "its search (penultimate tune) is no part of any study's run; the rest of it is there"}
"""The exhibits of which no ImageNet study measures all, each with its reason."""


def part_of(name: str, root: Path) -> Study:
    part = PARTS[name]
    study = restrict(override(load_study(name), (GENTLY, *part.changes)), part.only, part.seeds)
    if name == "imagenet_transfer":  # of the grid's 72 cells the first two
        measure = (*OF_FEATURES, "fine_tuning(head='fresh', learning_rate=(0.001, 0.01), decay=0.0, steps=2)")
        study = dataclasses.replace(study, networks=(dataclasses.replace(study.main, measure=measure),))
    return shrunk(study, root, part.size, epochs=part.epochs, batch_size=part.batch_size)


def put_data(root: Path) -> None:
    """Make tiny copies of all data that the studies need, in one folder."""
    study = override(load_study("imagenet_transfer"), PARTS["imagenet_transfer"].changes)
    shrunk(study, root, 32)
    for name in load_study("imagenet_robustness").nowhere:
        if name != "imagenet":
            MAKERS[name](root)


def test_all_exhibits_of_the_paper_are_looked_for() -> None:
    assert len(EXHIBITS) == 39
    studies = {name for name in registry.names("study") if name.startswith("imagenet_")}
    assert {name for name in studies if not name.endswith("search")} == {*PARTS, *NO_PART}


@pytest.mark.long
def test_one_page_of_all_imagenet_studies_has_every_exhibit_of_the_paper(tmp_path: Path) -> None:
    names = []
    put_data(tmp_path / "data")
    for name in PARTS:
        study = part_of(name, tmp_path / "data")
        summary = run(study, tmp_path / "runs", 1)
        assert (summary.failed, summary.skipped, summary.diverged) == ({}, [], {}), name
        names.append(study.name)
    expect_whole_page(tmp_path / "runs", names, tmp_path / "page.html")


def expect_whole_page(out: Path, names: list[str], to: Path) -> None:
    """Expect every exhibit of the paper on one page, with a number in each column, and whose they are."""
    results = read_run(out, ",".join(names))
    lacking = {}
    for name in EXHIBITS:
        shown = show(name, results, allow_limited=True)
        gaps = columns_without_number(shown)
        assert shown.is_measured, name
        if gaps:
            lacking[name] = gaps
        else:
            assert any("The numbers are those of `imagenet_" in note for note in shown.notes), name
    assert lacking.keys() == UNFILLED.keys(), lacking
    assert main(["report", *names, "--out", str(out), "--to", str(to)]) == 0
    page = to.read_text()
    assert [name for name in EXHIBITS if f'id="{name}"' not in page] == []
