"""The checks of a data set: it has a card, makes what the card says, and makes the same again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from penultimate.answers import WrongError, kind_of
from penultimate.checking.examination import Check, Examined, signature_of
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS, DatasetCard, card
from penultimate.data.images import ImageSet
from penultimate.files import digest_arrays


def _splits(examined: Examined, draw: int) -> Iterator[tuple[str, ImageSet]]:
    made: Any = examined.call(examined.function, draw, given=f"the draw {draw}")
    pairs = made.items() if isinstance(made, Mapping) else made
    if not isinstance(pairs, Iterable):
        raise WrongError(
            f"{examined.name} returns {kind_of(made)}; return {{split: ImageSet}}, or yield (split,"
            " ImageSet) pairs."
        )
    for pair in pairs:
        match pair:
            case (str() as split, ImageSet() as images):
                yield split, images
            case _:
                raise WrongError(
                    f"{examined.name} makes {_form(pair)}; make pairs of a split's name and an"
                    " ImageSet(images uint8 [n h w c], labels int64 [n], ids int64 [n], class_names)."
                )


def _form(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(type(part).__name__ for part in value)})"
    return kind_of(value)


def ask_card(examined: Examined) -> str:
    described: DatasetCard = card(examined.name)
    if described.name != examined.name:
        raise WrongError(
            f"the card of {examined.name} is that of '{described.name}'; name it '{examined.name}'."
        )
    uses = [
        use
        for use, splits in (("trained on", PRETRAINING_SPLITS[:3]), ("transferred to", TRANSFER_SPLITS))
        if all(split in described.sizes for split in splits)
    ]
    if not uses:
        raise WrongError(
            f"the card of {examined.name} names the splits {', '.join(described.sizes)}; a data set that is"
            f" trained on has {', '.join(PRETRAINING_SPLITS[:3])}, one that is transferred to has"
            f" {', '.join(TRANSFER_SPLITS)}."
        )
    if described.accuracy not in ("top1", "mean_per_class"):
        raise WrongError(
            f"the accuracy of {examined.name} is '{described.accuracy}'; it is 'top1' or 'mean_per_class'."
        )
    return f"{described.classes} classes, scored by {described.accuracy}; can be {' and '.join(uses)}"


def ask_splits(examined: Examined) -> str:
    """Every split is as the card says and holds each class, and no id occurs twice in the data set."""
    described = card(examined.name)
    seen: dict[str, int] = {}
    ids: list[np.ndarray] = []
    names: tuple[str, ...] | None = None
    for split, images in _splits(examined, 0):
        promised = described.sizes.get(split)
        if promised is None:
            raise WrongError(f"{examined.name} makes a split '{split}', which its card does not name.")
        if (len(images), images.num_classes) != (promised, described.classes):
            raise WrongError(
                f"{examined.name}, split '{split}': its card says {promised} images of {described.classes}"
                f" classes; {len(images)} of {images.num_classes} were made."
            )
        if names not in (None, images.class_names):
            raise WrongError(
                f"{examined.name}: the split '{split}' names its classes differently from the others."
            )
        names = images.class_names
        absent = sorted(set(range(described.classes)) - set(images.labels.tolist()))
        if absent:
            raise WrongError(f"{examined.name}, split '{split}': no image of the class '{names[absent[0]]}'.")
        seen[split] = len(images)
        ids.append(images.ids)
        examined.notes[split] = _digest(images)
    missing = [split for split in described.sizes if split not in seen]
    if missing:
        raise WrongError(f"{examined.name} makes no {', '.join(missing)}, which its card promises.")
    all_ids = np.concatenate(ids)
    values, counts = np.unique(all_ids, return_counts=True)
    if len(values) != len(all_ids):
        raise WrongError(
            f"{examined.name}: the id {values[counts > 1][0]} stands in more than one place; ids are unique"
            " across the splits, and show that no test image is trained on."
        )
    return (
        "makes "
        + ", ".join(f"{count} {split}" for split, count in seen.items())
        + " images, as its card says"
    )


def ask_draw(examined: Examined) -> str:
    for split, images in _splits(examined, 0):
        if examined.notes.get(split) != _digest(images):
            raise WrongError(
                f"{examined.name} makes a different '{split}' when it is called again with the same draw;"
                " seed every generator from the draw alone."
            )
    return "the same images for the same draw"


def _digest(images: ImageSet) -> str:
    return digest_arrays(images.images, images.labels, images.ids)


DATASET_CHECKS = (
    signature_of(("draw",), keyword_only=True),
    Check("card", ask_card, essential=True),
    Check("splits", ask_splits, essential=True),
    Check("draw", ask_draw),
)
