"""The checks of a data set: it has a card, makes what the card says, and makes the same when called again."""

from __future__ import annotations

from typing import get_args

from penultimate.checking.examination import Check, Examined, WrongError, signature
from penultimate.data import catalog
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS, Accuracy
from penultimate.data.world.generation import splits_of

USES = {"trained on": PRETRAINING_SPLITS[:3], "transferred to": TRANSFER_SPLITS}


def card(examined: Examined) -> str:
    """Check that the card is that of this data set, and that a study can use its splits."""
    described, name, known = catalog.card(examined.name), examined.name, get_args(Accuracy)
    if described.name != name:
        raise WrongError(f"has the card of '{described.name}'; name it '{name}'")
    uses = [use for use, splits in USES.items() if all(split in described.sizes for split in splits)]
    if not uses:
        has = "; one that is ".join(f"{use} has {', '.join(splits)}" for use, splits in USES.items())
        raise WrongError(f"has the splits {', '.join(described.sizes)} on its card; a data set that is {has}")
    if described.accuracy not in known:
        raise WrongError(
            f"has the accuracy '{described.accuracy}' on its card; it is one of {', '.join(known)}"
        )
    return (
        f"It has {described.classes} classes, scored by {described.accuracy}; it can be {' and '.join(uses)}"
    )


def splits(examined: Examined) -> str:
    """Check the requirements of a study on the splits: `penultimate.data.world.generation.splits_of`."""
    made = ", ".join(f"{len(images)} {split}" for split, images in splits_of(examined.name, 0))
    return f"It makes {made} images, as its card says, and none in two splits"


def draw(examined: Examined) -> None:
    """It makes the same images for the same draw."""
    first, second = ([images.digest for _, images in splits_of(examined.name, 0)] for _ in range(2))
    if first != second:
        raise WrongError("makes different images for the same draw; seed every generator from the draw alone")


CHECKS: dict[str, tuple[tuple[Check, ...], tuple[Check, ...]]] = {
    "dataset": ((signature, card, splits), (draw,))
}
