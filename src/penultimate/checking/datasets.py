"""The checks of a data set: it makes what its card says, and the same when it is called again."""

from __future__ import annotations

from penultimate.checking.examination import Check, Examined, WrongError, signature
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS, card
from penultimate.data.world.generation import splits_of

USES = {"trained on": PRETRAINING_SPLITS[:3], "transferred to": TRANSFER_SPLITS}


def splits(examined: Examined) -> str:
    """Check that a study can use the splits, and the requirements of `splits_of` on them."""
    described = card(examined.name)
    if described.name != examined.name:
        raise WrongError(f"has the card of '{described.name}'; name it '{examined.name}'")
    uses = [use for use, splits in USES.items() if all(split in described.sizes for split in splits)]
    if not uses:
        has = "; one that is ".join(f"{use} has {', '.join(splits)}" for use, splits in USES.items())
        raise WrongError(f"has the splits {', '.join(described.sizes)} on its card; a data set that is {has}")
    made = ", ".join(f"{len(images)} {split}" for split, images in splits_of(examined.name, 0))
    return f"It makes {made} images, and can be {' and '.join(uses)}"


def draw(examined: Examined) -> None:
    """It makes the same images for the same draw."""
    first, second = ([images.digest for _, images in splits_of(examined.name, 0)] for _ in range(2))
    if first != second:
        raise WrongError("makes different images for the same draw; seed every generator from the draw alone")


CHECKS: dict[str, tuple[tuple[Check, ...], tuple[Check, ...]]] = {"dataset": ((signature, splits), (draw,))}
