"""`penultimate data check` and `get`: what of a data set is there, whole and readable; and getting it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.data.listing import Listing
from penultimate.data.readers.copies import exact_copies
from penultimate.data.readers.entries import ENTRIES, entry
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.data.readers.places import read_place
from penultimate.data.readers.published import what_goes_where
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import given_path, make_folder

SCORES = {
    "top1": "top-1 accuracy",
    "mean_per_class": "mean per-class accuracy",
    "auc": "area under the ROC curve of each label",
}
Say = Callable[[str], None]
_SMALL = Preparation(8, 8, "nearest", ChannelStatistics((0.0,) * 3, (1.0,) * 3))


def check(
    name: str, root: Path | str | None, say: Say, progress: Callable[[int], None] | None = None
) -> bool:
    """Say what a data set is, what of it is there and what is not; whether all of it is there and whole.

    Every image is decoded. Raises RequestError for an unknown name, and for own data that cannot be used.
    """
    if root is not None and name not in ENTRIES:
        own = next((place for place in (name, str(root)) if read_place(place).path.exists()), "")
        hint = f" Data of your own are read without --root: penultimate data check {own}" if own else ""
        raise RequestError(f"{unknown('published data set', name, ENTRIES)}{hint}")
    opened = open_dataset(name, root)
    known = opened.entry
    if known is not None:
        card = known.card
        say(f"{card.title}: {card.relation}")
        say(f"  official score: {SCORES[card.accuracy]}")
        say(f"  licence: {card.licence}")
        say(f"  citation: {card.citation}")
        if card.note:
            say(f"  {card.note}")
    for note in opened.notes:
        say(f"note: {note}")
    absent: dict[str, str] = {}
    listings: dict[str, Listing] = {}
    sound = True
    for split in opened.splits:
        try:
            listings[split] = opened.splits[split]
        except (RequestError, DamagedFileError) as error:
            absent[split] = str(error)
            continue
        sound &= _check_split(opened, split, listings[split], say, progress)
    copies = exact_copies(listings)
    for told in (notes := copies.notes()):
        say(f"copies: {told}")
    if notes:
        say(
            "copies: penultimate evaluate --copies drop leaves out all but one of each, and keeps none"
            f" {copies.differing}"
        )
    if absent:
        listed = ", ".join(list(absent)[:3]) + (", ..." if len(absent) > 3 else "")
        say(f"cannot be read: {len(absent)} of {len(opened.splits)} splits ({listed})")
        for reason in list(dict.fromkeys(absent.values()))[:3]:
            say(f"  {reason.removesuffix(what_goes_where(name))}")
    if absent and known is not None:
        say(f"What goes where, in {Path(root or '.') / known.folder}: {known.layout}")
        by_torchvision = f"penultimate data get {name} --root {root} (from {known.obtain})"
        say(f"To get it: {by_torchvision if known.torchvision else known.obtain}")
    return sound and not absent


def _check_split(
    opened: OpenedDataset, split: str, listing: Listing, say: Say, progress: Callable[[int], None] | None
) -> bool:
    count = np.unique(listing.labels).size
    classes = f"{count:,} {'class' if count == 1 else 'classes'}"
    expected = len(listing) + len(listing.missing)
    if opened.entry is not None:
        expected = opened.entry.card.sizes[split]
        classes += f" of {opened.entry.card.classes:,}"
    if listing.labels.ndim > 1:
        classes = ", ".join(listing.class_names)
    reasons: list[str] = []
    remarked: dict[str, list[int]] = {}
    for batch in decoded(listing, [_SMALL]):
        reasons += [why for _, why in batch.left_out]
        for row, remark in batch.remarks:
            remarked.setdefault(remark, []).append(row)
        if progress is not None:
            progress(batch.stop)
    say(f"{split}: {len(listing):,} of {expected:,} images, {classes}; {len(reasons):,} cannot be read")
    if listing.missing:
        say(f"  missing: {len(listing.missing):,}, which its lists name")
    for line in (*(f"  {path}" for path in listing.missing), *reasons):
        say(f"  {line}")
    for remark, rows in remarked.items():
        say(f"  {len(rows):,} of {len(listing):,} images {remark}; the first is {listing.name(rows[0])}")
    is_one_class = opened.entry is None and listing.labels.ndim == 1 and count == 1 and split == "train"
    return len(listing) == expected and not reasons and not is_one_class


def get(name: str, root: Path | str, say: Say) -> None:
    """Have torchvision download a data set, or unpack ImageNet's archives.

    Raises RequestError, saying what to do by hand, where it cannot.
    """
    known, folder = entry(name), given_path(root, "--root", home=True)
    if not known.downloads and known.torchvision != "ImageNet":
        raise RequestError(f"{known.card.title} is to be got by hand: {known.obtain}")
    try:
        import torchvision.datasets
    except ImportError:
        raise RequestError(
            f"torchvision gets {known.card.title}: pip install 'penultimate[models]'"
        ) from None
    make_folder(folder, "--root")
    kind = getattr(torchvision.datasets, known.torchvision)
    try:
        if known.downloads:
            kind(folder, download=True)
        for split in () if known.downloads else ("train", "val"):
            kind(folder / known.folder if (folder / known.folder).is_dir() else folder, split)
    except (OSError, RuntimeError) as error:
        raise RequestError(
            f"{known.card.title} cannot be got by torchvision ({error}). By hand: {known.obtain}"
        ) from None
    for split, listing in open_dataset(name, folder).splits.items():
        say(f"{split}: {len(listing):,} of {known.card.sizes[split]:,} images")
    say(f"Whether every image can be read: penultimate data check {name} --root {root}")
