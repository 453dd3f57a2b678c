"""What a study of ImageNet lacks is measured by one of ImageNet, not by one of the embedded world."""

from __future__ import annotations

import re

import pytest

from penultimate import registry
from penultimate.paper.claims.aspects import NAMES
from penultimate.paper.page.full_size import ASPECTS, COMMANDS, STUDIES
from penultimate.records.table import Table
from penultimate.report import StudyResults, exhibit
from penultimate.report.spec import EVALUATE, all_exhibits
from penultimate.study import load_study
from tests.report.reading import described, glyphs
from tests.studies.test_shrunk import EXHIBITS

SHOWN = [
    one.name for one in all_exhibits() if one.section and one.measured_by != EVALUATE and one.name != "claims"
]


def unmeasured(study: str) -> StudyResults:
    """A study of which nothing is done."""
    return StudyResults(load_study(study).describe(), Table([]), None, {})


@pytest.mark.parametrize("name", SHOWN)
def test_the_command_for_what_is_missing_is_of_a_study_of_published_images(name: str) -> None:
    built = exhibit(name, unmeasured("imagenet_robustness"))
    for gap in built.missing:
        found = re.fullmatch(r"penultimate (?:run|tune all --study) (\w+)", gap.command)
        assert found is not None, gap
        assert found[1].startswith(("imagenet", "cifar")), gap
        assert found[1] in registry.names("study")
    elsewhere = exhibit(name, unmeasured("smoke"), allow_limited=True)
    assert not [gap for gap in elsewhere.missing if "imagenet" in gap.command]


def test_each_study_measures_what_a_command_promises_of_it() -> None:
    for study, shown in STUDIES.items():
        names = {name for name in shown if re.fullmatch(r"\w+", name)} - {"figure5", "iclr_figure5"}
        assert names <= {*EXHIBITS[study].split()}, study
    assert {command.split()[-1] for command in COMMANDS.values()} == {
        *STUDIES,
        "imagenet_search",
        "few_labels",
    }


def test_the_halves_of_figure_5_are_measured_by_two_studies() -> None:
    gaps = {
        gap.what[:23]: gap.command for gap in exhibit("figure5", unmeasured("imagenet_robustness")).missing
    }
    assert sorted(gaps.values()) == [
        "penultimate run imagenet_temperature",
        "penultimate run imagenet_transfer",
    ]


def test_what_every_aspect_of_a_claim_lacks_is_measured_at_full_size_too() -> None:
    assert sorted(aspect for aspects in ASPECTS.values() for aspect in aspects) == sorted(NAMES)
    gaps = {gap.what: gap.command for gap in exhibit("claims", unmeasured("imagenet_robustness")).missing}
    assert gaps["Linear transfer"] == "penultimate run imagenet_transfer"
    assert gaps["Class separation in the course of training"] == "penultimate run imagenet_dynamics"
    assert len(gaps) > 8
    for what, command in gaps.items():
        assert command == f"penultimate {COMMANDS.get(what, COMMANDS['claims'])}"


def test_a_search_is_asked_of_the_study_that_has_a_holdout() -> None:
    (gap,) = exhibit("tableA1", unmeasured("imagenet_resnet50")).missing
    assert gap.command == "penultimate tune all --study imagenet_search"
    (here,) = exhibit("tableA1", described(glyphs(), tuning=[], tuned_by=[])).missing
    assert here.command == "penultimate tune all --study glyphs"
