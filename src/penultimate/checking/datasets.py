"""The checks of a data set: it has a card, makes what the card says, and makes the same when called again."""

from __future__ import annotations

from typing import get_args

from penultimate.checking.examination import Check, Examined, signature_of
from penultimate.checking.report import WrongError
from penultimate.data.catalog import PRETRAINING_SPLITS, TRANSFER_SPLITS, Accuracy, DatasetCard, card
from penultimate.data.world.generation import splits_of


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
    if described.accuracy not in get_args(Accuracy):
        raise WrongError(
            f"the accuracy of {examined.name} is '{described.accuracy}'; it is 'top1' or 'mean_per_class', or"
            " 'auc' where an image has several labels."
        )
    if described.has_several_labels:
        return f"{described.classes} labels, each scored by its auc; can be transferred to"
    return f"{described.classes} classes, scored by {described.accuracy}; can be {' and '.join(uses)}"


def ask_splits(examined: Examined) -> str:
    """Check the requirements of a study on the splits: `penultimate.data.world.generation.splits_of`."""
    seen = []
    for split, images in splits_of(examined.name, 0):
        examined.notes[split] = images.digest
        seen.append(f"{len(images)} {split}")
    return f"makes {', '.join(seen)} images, as its card says, and none in two splits"


def ask_draw(examined: Examined) -> str:
    for split, images in splits_of(examined.name, 0):
        if examined.notes[split] != images.digest:
            raise WrongError(
                f"{examined.name} makes a different '{split}' when it is called again with the same draw;"
                " seed every generator from the draw alone."
            )
    return "the same images for the same draw"


DATASET_CHECKS = (
    signature_of(("draw",), keyword_only=True),
    Check("card", ask_card, essential=True),
    Check("splits", ask_splits, essential=True),
    Check("draw", ask_draw),
)
