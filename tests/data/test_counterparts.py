"""Which classes of eight data sets are ImageNet's: the paper's Table F.1, and timm's list of synsets."""

from __future__ import annotations

import csv
from collections import Counter
from importlib import resources

import pytest
from tests.data.published import WNIDS

from penultimate.data.readers.counterparts import imagenet_counterparts
from penultimate.data.readers.published import imagenet_words
from penultimate.errors import RequestError
from penultimate.measures.overlap import as_they_are_there
from penultimate.metrics.source_classes import semantic_overlap
from penultimate.study import load_study
from penultimate.study.settings import override

ROWS = list(
    csv.DictReader(
        (resources.files("penultimate.data.readers") / "counterparts.csv").read_text("utf-8").splitlines()
    )
)
IMAGENET = [f"{wnid} {imagenet_words()[wnid].partition(',')[0]}" for wnid in WNIDS]
"""The classes as the reader names them."""


def printed() -> dict[str, tuple[int, int]]:
    """The paper's Table F.1: {data set: (classes, those that overlap)}."""
    text = (resources.files("penultimate.paper.published") / "neurips_tableF1_class_overlap.csv").read_text()
    ours = {"food": "food101", "flowers": "flowers102"}
    return {
        ours.get(row["dataset"], row["dataset"]): (
            int(row["classes"]),
            int(row["semantic_class_overlap_classes"]),
        )
        for row in csv.DictReader(text.splitlines())
    }


def test_the_classes_that_overlap_are_counted_beside_the_papers() -> None:
    """Five of the eight numbers are the paper's; three are larger by one rule for all, and are said so."""
    ours = {name: sum(map(bool, imagenet_counterparts(name).values())) for name in printed()}
    assert ours == {name: overlap for name, (_, overlap) in printed().items()} | {
        "cifar100": 72,
        "birdsnap": 16,
        "sun397": 53,
    }
    notes = (resources.files("penultimate.paper.published") / "NOTES.md").read_text()
    assert "72 for CIFAR-100 (61 printed), 16 for Birdsnap (11), 53 for SUN397\n(39)" in notes


def test_every_row_names_synsets_of_imagenet_and_one_relation() -> None:
    assert {row["relation"] for row in ROWS} == {"same", "other name", "superclass", "kind of", "none"}
    for row in ROWS:
        ids = row["synsets"].split()
        assert len(set(ids)) == len(ids)
        assert set(ids) <= set(WNIDS), row
        assert (row["relation"] == "none") == (not ids)
        assert row["relation"] == "superclass" or len(ids) <= 1, row
    assert not [
        place for place, count in Counter((row["dataset"], row["class"]) for row in ROWS).items() if count > 1
    ]


def test_a_copy_with_other_hyphens_or_fewer_classes_is_counted_and_a_slip_is_named() -> None:
    told = imagenet_counterparts("birdsnap")
    names = ["Red breasted Merganser", "greater prairie chicken", "Anhinga"]
    assert semantic_overlap(names, IMAGENET, as_they_are_there(told, names, told)) == 2
    with pytest.raises(RequestError, match="unknown class of the task 'Anhinge'"):
        semantic_overlap(names, IMAGENET, as_they_are_there({"Anhinge": ["n01440764"]}, names, told))
    with pytest.raises(RequestError, match="unknown class of the source 'n09999999'"):
        semantic_overlap(names, IMAGENET, {"Anhinga": ["n09999999"]})


def test_what_is_said_of_a_target_goes_with_it() -> None:
    few = override(load_study("imagenet_transfer"), ["targets=pets,chexpert"])
    assert list(few.counterparts) == ["pets"]
