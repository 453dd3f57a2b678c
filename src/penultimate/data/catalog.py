"""The cards of the data sets: what each one is, its size, its licence and how it is scored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from penultimate import registry
from penultimate.errors import RequestError, expect_apart, shortened

Accuracy = Literal["top1", "mean_per_class", "auc"]
SPLIT = re.compile(r"(?!\.)[^/\x00-\x1f]{1,50}(/(?!\.)[^/\x00-\x1f]{1,50})?")
"""How a split may be called; ImageNet-C's are called "fog/3"."""


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
        for split in self.sizes:
            if not isinstance(split, str) or not SPLIT.fullmatch(split):
                raise RequestError(
                    f"data set '{self.name}': files are called by the name of a split, so that it has at most"
                    f" 50 printable characters and begins with no dot; it is {shortened(repr(split), 80)}"
                )
        expect_apart(f"splits of data set '{self.name}'", self.sizes)

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

_DEJAVU = "images drawn with the DejaVu fonts (Bitstream Vera licence, changes in the public domain)"
_STIX = "images drawn with the STIX fonts (SIL Open Font License 1.1)"
_BOTH = f"{_DEJAVU} and the STIX fonts (SIL Open Font License 1.1)"
_DIGITS = "CC BY 4.0 (UCI Machine Learning Repository)"
_NEW_SCRIPT = "new fine-grained classes: a script never seen"
_FONTS = "DejaVu fonts 2.37 and STIX fonts 1.0, as matplotlib carries them"
_HANDWRITING = (
    "E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,"
    " 1998; the 1,797 test images that scikit-learn carries"
)


def _pretraining(name: str, title: str, classes: int, per_class: tuple[int, ...], note: str) -> DatasetCard:
    sizes = {split: classes * count for split, count in zip(PRETRAINING_SPLITS, per_class, strict=False)}
    relation = "the pretraining classes"
    return DatasetCard(name, title, classes, sizes, "top1", relation, _DEJAVU, _FONTS, note)


def _transfer(
    name: str,
    title: str,
    classes: int,
    per_class: int,
    relation: str,
    licence: str = _DEJAVU,
    accuracy: Accuracy = "top1",
    note: str = "",
) -> DatasetCard:
    sizes = dict.fromkeys(TRANSFER_SPLITS, classes * per_class)
    return DatasetCard(name, title, classes, sizes, accuracy, relation, licence, _FONTS, note)


def _shared(name: str, share: float) -> DatasetCard:
    classes = 16
    count = {0.0: "none", 1.0: "all"}.get(share, f"{share * classes:.0f}")
    return _transfer(
        name,
        f"Shared classes ({share:.0%})",
        classes,
        40,
        f"{count} of {classes} classes are pretraining classes; all drawn in faces never seen",
        _STIX,
        note="In the place of pretraining classes there are Greek and Cyrillic letters never seen, four to a"
        " class. A class has the same images in each of the five tasks that has it.",
    )


def _digits(name: str, title: str, train: int, test: int, note: str) -> DatasetCard:
    sizes = {"train": train, "test": test}
    relation = "new classes, and real handwriting: another kind of image"
    return DatasetCard(name, title, 10, sizes, "top1", relation, _DIGITS, _HANDWRITING, note)


def _findings(name: str, title: str, train: int, test: int, validation: int, note: str) -> DatasetCard:
    sizes = {"train": train, "test": test, "validation": validation}
    return DatasetCard(
        name, title, 5, sizes, "auc", f"{_NEW_SCRIPT}; several in an image", _DEJAVU, _FONTS, note
    )


def _shifted(source: str, title: str, classes: int, per_class: int) -> list[DatasetCard]:
    return [
        DatasetCard(
            f"{source}_{shift}",
            f"{title}-{name}",
            classes,
            {"test": classes * per_class},
            "top1",
            f"the pretraining classes, {relation}",
            _DEJAVU,
            _FONTS,
            note,
            source,
        )
        for shift, (name, relation, note) in SHIFTS.items()
    ]


_MULTIMODAL = "A class is four visually different characters, as a synset gathers different things."

CARDS: Mapping[str, DatasetCard] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            _pretraining("glyphs", "Glyphs", 128, (88, 40, 60, 40, 340), _MULTIMODAL),
            _pretraining(
                "glyphs_tuning",
                "Glyphs (for tuning)",
                128,
                (88, 400, 4, 4),
                f"{_MULTIMODAL} A holdout so large that hyperparameters can be told apart on it.",
            ),
            _pretraining(
                "glyphs_512",
                "Glyphs (512)",
                512,
                (88, 20, 20, 40, 80),
                "The characters of glyphs, each a class of its own; about 15 pairs look alike.",
            ),
            _transfer("syllabics", "Canadian syllabics", 40, 40, _NEW_SCRIPT),
            _transfer("georgian", "Georgian letters", 33, 40, _NEW_SCRIPT),
            _transfer("armenian", "Armenian letters", 33, 40, _NEW_SCRIPT),
            _transfer("cyrillic", "Cyrillic letters", 26, 40, _NEW_SCRIPT, _BOTH),
            _transfer("maths", "Mathematical operators", 36, 40, "new fine-grained classes: signs", _BOTH),
            _transfer(
                "typeface",
                "Typefaces",
                16,
                60,
                "which face drew the letter: a factor orthogonal to the pretraining classes",
                _BOTH,
                note="Greek letters, which pretraining never shows; four of the sixteen faces are new too.",
            ),
            _digits(
                "digits",
                "Handwritten digits",
                100,
                1697,
                "Ten training images a class, drawn again for each draw; all other images are the test set.",
            ),
            _transfer(
                "newfaces",
                "New faces",
                40,
                40,
                "pretraining classes drawn in faces never seen: the nearest task, as Pets is to ImageNet",
                _STIX,
                "mean_per_class",
            ),
            *(_shared(name, share) for name, share in SHARES.items()),
            _pretraining(
                "glyphs_smoke", "Glyphs (smoke)", 16, (24, 8, 12, 8), "The first 16 classes of glyphs."
            ),
            _transfer(
                "syllabics_smoke", "Syllabics (smoke)", 8, 12, _NEW_SCRIPT, note="The first 8 of syllabics."
            ),
            _digits(
                "digits_smoke", "Digits (smoke)", 50, 150, "Five training and fifteen test images a class."
            ),
            _findings(
                "findings",
                "Findings",
                1200,
                1200,
                400,
                "Up to four letters an image, some faint. A label that a faint one may be is uncertain,"
                " but of validation images it is known.",
            ),
            _findings("findings_smoke", "Findings (smoke)", 120, 80, 40, "The same as findings, and less."),
            *_shifted("glyphs", "Glyphs", 128, 10),
            *_shifted("glyphs_smoke", "Glyphs (smoke)", 16, 5),
        )
    }
)


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
