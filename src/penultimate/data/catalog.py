"""The cards of the data sets: what each one is, its size, its licence and how it is scored."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from penultimate import registry
from penultimate.errors import RequestError

Accuracy = Literal["top1", "mean_per_class", "auc"]


@dataclass(frozen=True)
class DatasetCard:
    """A data set in words and numbers; `sizes` counts the images of each split.

    `accuracy` is the official score (as in Kornblith et al., 2021, table A.2); "auc" says that an image has
    several labels, each scored by itself, and `classes` counts these. `relation` says how the images relate
    to the embedded world's pretraining classes. A shifted test set shows the classes of another set, its
    `source`, in different images. The study decides whether a data set is trained on or transferred to; its
    splits have to allow it.

    >>> card("glyphs").images
    72704
    """

    name: str
    title: str
    classes: int
    sizes: Mapping[str, int]
    accuracy: Accuracy
    relation: str
    licence: str
    citation: str
    note: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))

    def described(self) -> dict[str, Any]:
        """Return the card as JSON; sizes are a list, which keeps the order of the splits."""
        return {**vars(self), "sizes": [list(pair) for pair in self.sizes.items()]}

    @property
    def has_several_labels(self) -> bool:
        """Whether an image has several labels, and not one class."""
        return self.accuracy == "auc"

    @property
    def summary(self) -> str:
        """What it is, in a line.

        >>> card("digits").summary.rpartition("; ")[2]
        '10 classes, train 100, test 1,697'
        """
        splits = ", ".join(f"{split} {count:,}" for split, count in self.sizes.items())
        if len(self.sizes) > 2 and "train" not in self.sizes:
            splits = f"{len(self.sizes)} test sets of {max(self.sizes.values()):,}"
        what = "labels" if self.has_several_labels else "classes"
        return f"{self.title}: {self.relation}; {self.classes} {what}, {splits}"

    @property
    def images(self) -> int:
        """The number of images of all splits together."""
        return sum(self.sizes.values())

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in rendering order."""
        return tuple(self.sizes)


PRETRAINING_SPLITS = ("train", "holdout", "test", "relearn", "further_test")
"""The last only where test images are many: of further ones accuracy alone is measured, and no features are
kept."""
TRANSFER_SPLITS = ("train", "test")

SHIFTS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "v2": ("V2", "a fresh draw of test images", "The same kind of image: what differs is chance."),
        "a": (
            "A",
            "images to choose hard ones from: a fresh draw",
            "A study keeps those that a network outside it gets wrong.",
        ),
        "r": ("R", "other renderings: striped, dotted, embossed, neon", ""),
        "sketch": ("Sketch", "outlines only, dark on paper", ""),
    }
)
"""Kinds of shift, named after the ImageNet set that each stands in for: title suffix, relation, note."""

SHARES: Mapping[str, float] = MappingProxyType(
    {f"shared_{percent}": percent / 100 for percent in (0, 25, 50, 75, 100)}
)
"""The tasks that differ in nothing but how many of their classes are pretraining classes: the share."""

_STIX = "STIX fonts (SIL Open Font License 1.1)"
_DEJAVU = "images drawn with the DejaVu fonts (Bitstream Vera licence, changes in the public domain)"
_FONTS = "DejaVu fonts 2.37 and STIX fonts 1.0, as matplotlib carries them"
_LICENCES = {
    "dejavu": _DEJAVU,
    "stix": f"images drawn with the {_STIX}",
    "both": f"{_DEJAVU} and the {_STIX}",
    "digits": "CC BY 4.0 (UCI Machine Learning Repository)",
}
_CITATIONS = {
    "digits": "E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning"
    " Repository, 1998; the 1,797 test images that scikit-learn carries"
}


def _cards() -> Iterator[DatasetCard]:
    """Yield the cards of the embedded world: those of `world/cards.toml`, and what follows from these."""
    listed = tomllib.loads((Path(__file__).parent / "world/cards.toml").read_text("utf-8"))["card"]
    for said in listed:
        licence = said.pop("licence")
        texts = {"licence": _LICENCES[licence], "citation": _CITATIONS.get(licence, _FONTS)}
        yield DatasetCard(**{"accuracy": "top1", "note": "", **texts, **said})
        if said["name"] == "newfaces":
            yield from (_shared(name, share) for name, share in SHARES.items())
    sources = (("glyphs", "Glyphs", 128, 10), ("glyphs_smoke", "Glyphs (smoke)", 16, 5))
    for source, title, classes, each in sources:
        for shift, (name, relation, note) in SHIFTS.items():
            called = (f"{source}_{shift}", f"{title}-{name}", classes, {"test": classes * each})
            told = (f"the pretraining classes, {relation}", _DEJAVU, _FONTS, note, source)
            yield DatasetCard(*called, "top1", *told)


def _shared(name: str, share: float, classes: int = 16) -> DatasetCard:
    count = {0.0: "none", 1.0: "all"}.get(share, f"{share * classes:.0f}")
    return DatasetCard(
        name,
        f"Shared classes ({share:.0%})",
        classes,
        dict.fromkeys(TRANSFER_SPLITS, classes * 40),
        "top1",
        f"{count} of {classes} classes are pretraining classes; all drawn in faces never seen",
        _LICENCES["stix"],
        _FONTS,
        "In the place of pretraining classes there are Greek and Cyrillic letters never seen, four to a"
        " class. A class has the same images in each of the five tasks that has it.",
    )


CARDS: Mapping[str, DatasetCard] = MappingProxyType({each.name: each for each in _cards()})


def shifted(source: str) -> dict[str, str]:
    """Return the shifted test sets of a pretraining set, by kind of shift; empty if it has none.

    >>> shifted("glyphs_smoke")["sketch"], shifted("imagenet")["v2"], shifted("digits")
    ('glyphs_smoke_sketch', 'imagenet_v2', {})
    """
    return {
        shift: f"{source}_{shift}" for shift in SHIFTS if source == "imagenet" or f"{source}_{shift}" in CARDS
    }


_remembered: dict[str, DatasetCard] = {}


def remember(content: Mapping[str, Any]) -> None:
    """Remember a data set's card as a study kept it (`DatasetCard.described`).

    Results can then be read where the plug-in that made the data set is not loaded.

    >>> remember({**card("digits").described(), "name": "doctest_digits"})
    >>> list(card("doctest_digits").sizes.items())
    [('train', 100), ('test', 1697)]
    """
    _remembered[content["name"]] = DatasetCard(**{**content, "sizes": dict(content["sizes"])})


def card(name: str) -> DatasetCard:
    """Return the card of a data set, built-in or plug-in; an unknown name raises with the nearest known one.

    A plug-in's card is the attribute `card` of its function.

    >>> card("newfaces").accuracy, card("digits").sizes["test"]
    ('mean_per_class', 1697)
    >>> card("glyph")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown dataset 'glyph'. Did you mean 'glyphs'? ...
    """
    known = CARDS.get(name)
    if known is not None:
        return known
    if name in _remembered and name not in registry.names("dataset"):
        return _remembered[name]
    plugin_card = getattr(registry.entry("dataset", name).resolve(), "card", None)
    if not isinstance(plugin_card, DatasetCard):
        raise RequestError(
            f"data set '{name}' has no card: set {name}.card = DatasetCard(...) beside the function that"
            " makes its images, so that its sizes, licence and official accuracy are known"
        )
    return plugin_card
