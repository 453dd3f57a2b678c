"""`penultimate data check` and `get`: what of a data set is there, whole and readable; and getting it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from penultimate.cores import usable_cores
from penultimate.data.decoding import read_colours
from penultimate.data.listing import Listing
from penultimate.data.readers.copies import exact_copies
from penultimate.data.readers.entries import ENTRIES, PublishedSet, entry
from penultimate.data.readers.near_copies import near_copies
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.data.readers.places import read_place
from penultimate.data.readers.prepared import read_copy
from penultimate.data.readers.reading import what_goes_where
from penultimate.data.readers.unpacking import unpack
from penultimate.errors import DamagedFileError, PenultimateError, RequestError, unknown
from penultimate.files import given_path, make_folder
from penultimate.processes import safely

SCORES = {
    "top1": "top-1 accuracy",
    "mean_per_class": "mean per-class accuracy",
    "auc": "area under the ROC curve of each label",
}
STRETCH = 64
"""Images that a process decodes before it tells of them."""

Say = Callable[[str], None]
Shown: TypeAlias = tuple[list[str], list[tuple[str, str]]]
"""Why images of a stretch cannot be read, and the remarks on others, each behind the image's name."""


@dataclass(frozen=True)
class Unreadable:
    """What decoding every image has shown.

    reasons   why some cannot be read
    remarks   how many images each remark is true of
    first     the name of the first of them
    """

    reasons: tuple[str, ...]
    remarks: Counter[str]
    first: dict[str, str]


def decode_all(listing: Listing, progress: Callable[[int], None] | None = None) -> Unreadable:
    """Decode every image, on all cores; raises PenultimateError if a process is killed over it."""
    stretches = [range(at, min(at + STRETCH, len(listing))) for at in range(0, len(listing), STRETCH)]
    reasons: list[str] = []
    remarks: Counter[str] = Counter()
    first: dict[str, str] = {}
    done = 0
    for said, remarked in _mapped(listing, stretches):
        reasons += said
        for name, remark in remarked:
            remarks[remark] += 1
            first.setdefault(remark, name)
        done = min(done + STRETCH, len(listing))
        if progress is not None:
            progress(done)
    return Unreadable(tuple(reasons), remarks, first)


def _mapped(listing: Listing, stretches: list[range]) -> Iterator[Shown]:
    processes = min(usable_cores(), len(stretches) // 4)
    if processes < 2:
        _take(listing)
        yield from map(_decode, stretches)
        return
    try:
        with ProcessPoolExecutor(processes, initializer=_take, initargs=(listing,)) as pool:
            with safely():  # all are submitted at once, and may each start a process
                told = pool.map(_decode, stretches)
            yield from told
    except BrokenProcessPool:
        raise PenultimateError("a process that decodes images was killed: mostly memory ran out") from None


_taken: list[Listing] = []


def _take(listing: Listing) -> None:
    _taken[:] = [listing]


def _decode(stretch: range) -> Shown:
    reasons: list[str] = []
    remarks: list[tuple[str, str]] = []
    for index in stretch:
        try:
            encoded, name = _taken[0].image(index), _taken[0].name(index)
            if isinstance(encoded, bytes):
                remarks += [(name, remark) for remark in read_colours(Path(name), content=encoded)[1]]
            elif isinstance(encoded, Path):
                remarks += [(name, remark) for remark in read_colours(encoded)[1]]
        except (DamagedFileError, RequestError) as error:
            reasons.append(str(error))
    return reasons, remarks


def check(
    name: str,
    root: Path | str | None,
    say: Say,
    progress: Callable[[int], None] | None = None,
    near: bool = False,
) -> bool:
    """Say what a data set is, what of it is there and what is not; whether all of it is there and whole.

    Every image is decoded; where `near` copies are looked for, a second time. Raises
    RequestError for an unknown name, and for own data that cannot be used.
    """
    if root is not None and name not in ENTRIES:
        own = next((place for place in (name, str(root)) if read_place(place).path.exists()), "")
        hint = f" Data of your own are read without --root: penultimate data check {own}" if own else ""
        raise RequestError(f"{unknown('published data set', name, ENTRIES)}{hint}")
    opened = open_dataset(name, root)
    if opened.entry is not None:
        for line in _described(opened.entry):
            say(line)
    for note in opened.notes:
        say(f"note: {note}")
    absent: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    sound = True
    listings: dict[str, Listing] = {}
    copy = read_copy(read_place(name if root is None else root).path)
    for split in opened.splits:
        try:
            if copy is not None:
                copy.expect_whole(split, thorough=True)
            listing = opened.splits[split]
        except RequestError as error:
            absent[split] = str(error)
            continue
        except DamagedFileError as error:
            unreadable[split] = str(error)
            continue
        listings[split] = listing
        sound &= _check_split(opened, split, listing, say, progress)
    copies = exact_copies(listings)
    for told in (notes := copies.notes()):
        say(f"copies: {told}")
    if notes:
        say(
            "copies: penultimate evaluate --copies drop leaves out all but one of each, and keeps none"
            f" {copies.differing}"
        )
    for told in near_copies(listings, progress) if near else ():
        say(f"near copies: {told}")
    for what, reasons in (("cannot be read", unreadable), ("not there", absent)):
        if reasons:
            listed = ", ".join(list(reasons)[:3]) + (", ..." if len(reasons) > 3 else "")
            say(f"{what}: {len(reasons)} of {len(opened.splits)} splits ({listed})")
            for reason in list(dict.fromkeys(reasons.values()))[:3]:
                say(f"  {reason.removesuffix(what_goes_where(name))}")
    if opened.entry is None and listings and not _has_classes(listings):
        say("there is nothing to tell apart: images of two classes or more are needed")
        sound = False
    if absent and opened.entry is not None:
        say(f"What goes where, in {Path(root or '.') / opened.entry.folder}:")
        for line in opened.entry.layout:
            say(f"  {line}")
        say(_how(opened.entry, root))
    return sound and not absent and not unreadable


def _has_classes(listings: Mapping[str, Listing]) -> bool:
    """Return whether there are images of two classes, or with several labels each."""
    labels = [listing.labels for listing in listings.values()]
    return any(each.ndim > 1 for each in labels) or np.unique(np.concatenate(labels)).size > 1


def _check_split(
    opened: OpenedDataset, split: str, listing: Listing, say: Say, progress: Callable[[int], None] | None
) -> bool:
    one_each, count = listing.labels.ndim == 1, np.unique(listing.labels).size
    classes = f"{count:,} {'class' if count == 1 else 'classes'}"
    if not one_each:
        classes = ", ".join(listing.class_names)
    expected = len(listing) + len(listing.missing)
    if opened.entry is not None:
        expected = opened.entry.card.sizes[split]
        classes += f" of {opened.entry.card.classes:,}" if one_each else ""
    found = decode_all(listing, progress)
    say(f"{split}: {len(listing):,} of {expected:,} images, {classes}; {len(found.reasons):,} cannot be read")
    if listing.missing:
        say(f"  missing: {len(listing.missing):,}, which its lists name")
        for path in listing.missing:
            say(f"    {path}")
    for reason in found.reasons:
        say(f"  {reason}")
    for remark, count in found.remarks.items():
        say(f"  {count:,} of {len(listing):,} images {remark}; the first is {found.first[remark]}")
    return len(listing) == expected and not found.reasons


def _described(known: PublishedSet) -> list[str]:
    card = known.card
    return [
        f"{card.title}: {card.relation}",
        f"  official score: {SCORES[card.accuracy]}",
        f"  licence: {card.licence}",
        f"  citation: {card.citation}",
        *([f"  {card.note}"] if card.note else ()),
    ]


def _how(known: PublishedSet, root: Path | str | None) -> str:
    command = f"penultimate data get {known.card.name} --root {root}"
    archives = _and(known.archives)
    unpacks = f". In '{root}', {command} unpacks {archives}" if archives else ""
    if known.torchvision:
        return f"To get it: {command} (from {known.obtain})"
    return f"To get it: {known.obtain}{unpacks}"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def get(name: str, root: Path | str, say: Say) -> None:
    """Unpack the archives of a data set that lie in `root`; else have torchvision download it.

    Raises RequestError, saying what to do by hand, where neither can be; DamagedFileError for a bad archive.
    """
    known, folder = entry(name), given_path(root, "--root", home=True)
    found = [path for path in (folder / archive for archive in known.archives) if path.is_file()]
    for path in found:
        for new in unpack(path, folder, known.folder):
            say(f"unpacked '{path.name}': {new}")
    if not found:
        _download(known, folder)
    for split, listing in open_dataset(name, folder).splits.items():
        say(f"{split}: {len(listing):,} of {known.card.sizes[split]:,} images")
    say(f"Whether every image can be read: penultimate data check {name} --root {root}")


def _download(known: PublishedSet, folder: Path) -> None:
    name, archives = known.card.name, _and(known.archives)
    by_hand = f"put {archives} into '{folder}', and call this again"
    if not known.torchvision:
        raise RequestError(
            f"{known.card.title} is to be got by hand: {known.obtain}."
            f" Then {by_hand if archives else f'see penultimate data check {name} --root {folder}'}"
        )
    try:
        import torchvision.datasets
    except ImportError:
        raise RequestError(
            f"torchvision downloads {known.card.title}: pip install 'penultimate[models]'; or {by_hand}"
        ) from None
    make_folder(folder, "--root")
    try:
        getattr(torchvision.datasets, known.torchvision)(folder, download=True)
    except (OSError, RuntimeError) as error:
        raise RequestError(
            f"{known.card.title} cannot be downloaded ({error}). By hand, from {known.obtain}: {by_hand}"
        ) from None
