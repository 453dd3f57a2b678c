"""Which classes of eight data sets are ImageNet's: the paper's Table F.1, and timm's list of synsets."""

from __future__ import annotations

import csv
from collections import Counter
from importlib import resources

import pytest
from tests.data.published import WNIDS

from penultimate.data.readers.counterparts import RELATIONS, imagenet_counterparts
from penultimate.data.readers.imagenet import _timm_words
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
IMAGENET = [f"{wnid} {_timm_words()[wnid].partition(',')[0]}" for wnid in WNIDS]
"""The classes as the reader names them."""
NAMES = {
    "cifar10": """
airplane automobile bird cat deer dog frog horse ship truck
""",
    "cifar100": """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
""",
    "pets": """
Abyssinian, american bulldog, american pit bull terrier, basset hound, beagle, Bengal, Birman, Bombay,
boxer, British Shorthair, chihuahua, Egyptian Mau, english cocker spaniel, english setter, german
shorthaired, great pyrenees, havanese, japanese chin, keeshond, leonberger, Maine Coon, miniature pinscher,
newfoundland, Persian, pomeranian, pug, Ragdoll, Russian Blue, saint bernard, samoyed, scottish terrier,
shiba inu, Siamese, Sphynx, staffordshire bull terrier, wheaten terrier, yorkshire terrier
""",
}
"""The classes of three of the data sets as their readers name them."""


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold().replace("gray", "grey")))


def words(wnid: str) -> set[str]:
    return {letters(word) for word in _timm_words()[wnid].split(",")}


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
    assert {row["relation"] for row in ROWS} == set(RELATIONS)
    for row in ROWS:
        ids = row["synsets"].split()
        assert len(set(ids)) == len(ids)
        assert set(ids) <= set(WNIDS), row
        assert (row["relation"] == "none") == (not ids)
        assert row["relation"] == "superclass" or len(ids) <= 1, row
    assert not [
        place for place, count in Counter((row["dataset"], row["class"]) for row in ROWS).items() if count > 1
    ]


def test_what_is_the_same_has_a_word_of_its_synset_and_a_kind_of_it_ends_with_one() -> None:
    for row in ROWS:
        name = row["class"]
        said = {letters(name), letters(name.partition("/")[0]), letters(name.partition("/")[2])}
        if row["relation"] == "same":
            assert said & words(row["synsets"]), row
        if row["relation"] == "kind of":
            assert any(letters(name).endswith(word) for word in words(row["synsets"])), row
            assert not said & words(row["synsets"]), row


def test_a_kind_of_a_synset_is_the_only_class_that_ends_with_its_word() -> None:
    """Nine hummingbirds and two juncos of Birdsnap therefore stand for none of ImageNet's classes."""
    kinds = [row for row in ROWS if row["relation"] == "kind of"]
    assert len(kinds) == 5
    for row in kinds:
        others = [other for other in ROWS if other["dataset"] == row["dataset"] and other is not row]
        endings = tuple(words(row["synsets"]))
        assert not [other["class"] for other in others if letters(other["class"]).endswith(endings)]


@pytest.mark.parametrize(
    ("target", "between", "overlap"), [("cifar10", None, 9), ("cifar100", None, 72), ("pets", ", ", 25)]
)
def test_names_as_their_readers_give_them_are_counted(target: str, between: str | None, overlap: int) -> None:
    """Classes whose names carry WordNet ids, which were compared whole, so that none overlapped."""
    names = " ".join(NAMES[target].split()).split(between)
    assert len(names) == len(set(names)) == printed()[target][0]
    told = load_study("imagenet_transfer").counterparts[target]
    assert set(told) <= set(names)
    assert semantic_overlap(names, IMAGENET, as_they_are_there(told, names, told)) == overlap
    by_name = semantic_overlap(names, IMAGENET, {"mouse": ()} if "mouse" in names else {})
    assert 0 < by_name < overlap or target == "cifar10"
    unexplained = [name for name in names if name not in told and semantic_overlap([name], IMAGENET)]
    assert unexplained == []


def test_flowers_are_named_by_torchvision() -> None:
    flowers = pytest.importorskip("torchvision.datasets").Flowers102.classes
    told = imagenet_counterparts("flowers102")
    assert semantic_overlap(flowers, IMAGENET, as_they_are_there(told, flowers, told)) == 1
    numbered = [f"class {number}" for number in range(1, 103)]  # without torchvision
    assert semantic_overlap(numbered, IMAGENET, as_they_are_there(told, numbered, told)) == 0


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
