"""What is asked of a data set: that it has a card, makes what the card says, and makes it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from penultimate.checking.answers import WrongError, kind_of
from penultimate.checking.examination import Check, Subject, signature_of
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS, DatasetCard, card
from penultimate.data.images import ImageSet
from penultimate.store import digest_arrays

NEEDED = {"pretraining": PRETRAINING_SPLITS, "transfer": TRANSFER_SPLITS}


def _splits(subject: Subject, draw: int) -> Iterator[tuple[str, ImageSet]]:
    made: Any = subject.call(subject.function, draw, given=f"the draw {draw}")
    pairs = made.items() if isinstance(made, Mapping) else made
    if not isinstance(pairs, Iterable):
        raise WrongError(
            f"{subject.name} returns {kind_of(made)}; return {{split: ImageSet}}, or yield (split,"
            " ImageSet) pairs."
        )
    for pair in pairs:
        match pair:
            case (str() as split, ImageSet() as images):
                yield split, images
            case _:
                raise WrongError(
                    f"{subject.name} makes {_form(pair)}; make pairs of a split's name and an ImageSet(images"
                    " uint8 [n h w c], labels int64 [n], ids int64 [n], class_names)."
                )


def _form(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(type(part).__name__ for part in value)})"
    return kind_of(value)


def ask_card(subject: Subject) -> str:
    found: DatasetCard = card(subject.name)
    if found.name != subject.name:
        raise WrongError(
            f"the card of {subject.name} is that of '{found.name}'; give it the name '{subject.name}'."
        )
    if found.role not in NEEDED:
        raise WrongError(f"the role of {subject.name} is '{found.role}'; it is 'pretraining' or 'transfer'.")
    missing = [split for split in NEEDED[found.role] if split not in found.sizes]
    if missing:
        raise WrongError(
            f"the card of {subject.name} names no split {', '.join(missing)}; a {found.role} data set has"
            f" {', '.join(NEEDED[found.role])}."
        )
    if found.accuracy not in ("top1", "mean_per_class"):
        raise WrongError(
            f"the accuracy of {subject.name} is '{found.accuracy}'; it is 'top1' or 'mean_per_class'."
        )
    return f"a {found.role} data set of {found.classes} classes, scored by {found.accuracy}"


def ask_splits(subject: Subject) -> str:
    """Every split is what the card says, with each class in it, and no id stands twice in the data set."""
    described = card(subject.name)
    seen: dict[str, int] = {}
    ids: list[np.ndarray] = []
    names: tuple[str, ...] | None = None
    for split, images in _splits(subject, 0):
        promised = described.sizes.get(split)
        if promised is None:
            raise WrongError(f"{subject.name} makes a split '{split}', which its card does not name.")
        if (len(images), images.num_classes) != (promised, described.classes):
            raise WrongError(
                f"{subject.name}, split '{split}': its card says {promised} images of {described.classes}"
                f" classes; {len(images)} of {images.num_classes} were made."
            )
        if names not in (None, images.class_names):
            raise WrongError(
                f"{subject.name}: the split '{split}' names its classes otherwise than the others do."
            )
        names = images.class_names
        absent = sorted(set(range(described.classes)) - set(images.labels.tolist()))
        if absent:
            raise WrongError(f"{subject.name}, split '{split}': no image of the class '{names[absent[0]]}'.")
        seen[split] = len(images)
        ids.append(images.ids)
        subject.notes[split] = _digest(images)
    missing = [split for split in described.sizes if split not in seen]
    if missing:
        raise WrongError(f"{subject.name} makes no {', '.join(missing)}, which its card promises.")
    every = np.concatenate(ids)
    values, counts = np.unique(every, return_counts=True)
    if len(values) != len(every):
        raise WrongError(
            f"{subject.name}: the id {values[counts > 1][0]} stands in more than one place; ids are unique"
            " across the splits, and show that no test image is trained on."
        )
    return (
        "makes "
        + ", ".join(f"{count} {split}" for split, count in seen.items())
        + " images, as its card says"
    )


def ask_draw(subject: Subject) -> str:
    for split, images in _splits(subject, 0):
        if subject.notes.get(split) != _digest(images):
            raise WrongError(
                f"{subject.name} makes another '{split}' when it is called again with the same draw; seed"
                " every generator from the draw alone."
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
