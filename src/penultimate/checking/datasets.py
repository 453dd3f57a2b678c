"""The checks of a data set: it has a card, makes what the card says, and makes the same when called again."""

from __future__ import annotations

from typing import get_args

from penultimate.checking.examination import Check, Examined, signature_of
from penultimate.checking.report import require
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS, Accuracy, DatasetCard, card
from penultimate.data.world.generation import splits_of

USES = {"trained on": PRETRAINING_SPLITS[:3], "transferred to": TRANSFER_SPLITS}


def ask_card(examined: Examined) -> str:
    described: DatasetCard = card(examined.name)
    require(
        described.name == examined.name,
        f"the card of {examined.name} is that of '{described.name}'; name it '{examined.name}'.",
    )
    uses = [use for use, splits in USES.items() if all(split in described.sizes for split in splits)]
    has = "; one that is ".join(f"{use} has {', '.join(splits)}" for use, splits in USES.items())
    require(
        uses,
        f"the card of {examined.name} has the splits {', '.join(described.sizes)}; a data set that is {has}.",
    )
    known = get_args(Accuracy)
    require(
        described.accuracy in known,
        f"the accuracy of {examined.name} is '{described.accuracy}'; it is one of {', '.join(known)}.",
    )
    return f"{described.classes} classes, scored by {described.accuracy}; can be {' and '.join(uses)}"


def ask_splits(examined: Examined) -> str:
    """Check the requirements of a study on the splits: `penultimate.data.world.generation.splits_of`."""
    made = dict(splits_of(examined.name, 0))
    examined.notes.update({split: images.digest for split, images in made.items()})
    listed = ", ".join(f"{len(images)} {split}" for split, images in made.items())
    return f"makes {listed} images, as its card says, and none in two splits"


def ask_draw(examined: Examined) -> str:
    for split, images in splits_of(examined.name, 0):
        require(
            examined.notes[split] == images.digest,
            f"{examined.name} makes a different '{split}' when it is called again with the same draw; seed"
            " every generator from the draw alone.",
        )
    return "the same images for the same draw"


DATASET_CHECKS = (
    signature_of(("draw",)),
    Check("card", ask_card, essential=True),
    Check("splits", ask_splits, essential=True),
    Check("draw", ask_draw),
)
