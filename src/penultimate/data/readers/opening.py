"""Opening a data set, published or a user's own, by name, by path or from memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penultimate.data.catalog import Accuracy
from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES, PublishedSet
from penultimate.data.readers.own import read_own
from penultimate.data.readers.places import Place, place_of, read_place
from penultimate.data.readers.saved import BY_NAME, from_datasets
from penultimate.data.readers.splitting import TEST_SHARE, train_and_test
from penultimate.errors import RequestError, nearest
from penultimate.files import nearest_beside
from penultimate.registry import names


class _Lazily(Mapping[str, Listing]):
    """Splits that are listed when they are first asked for: ImageNet-C has 95."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], Listing]) -> None:
        self.read = read
        self.known: dict[str, Listing | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Listing:
        listing = self.known[name] or self.read(name)
        self.known[name] = listing
        return listing

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


@dataclass(frozen=True)
class OpenedDataset:
    """A data set on disk: nothing is decoded.

    splits     the `Listing` of "train" and "test"; of test sets with ImageNet's classes of "test" only, of
               ImageNet-C of "fog/3" and the like. Each is read when it is asked for.
    accuracy   the official score
    notes      what a reader of results must know of it: how test images were drawn, what was left out
    entry      what is known of a published one; None for a user's own
    """

    name: str
    title: str
    accuracy: Accuracy
    splits: Mapping[str, Listing]
    notes: tuple[str, ...] = ()
    entry: PublishedSet | None = None

    def shortfall(self, split: str) -> str:
        """Return what a split lacks of what it should hold, in a sentence; empty if nothing."""
        listing = self.splits[split]
        there, expected = len(listing), len(listing) + len(listing.missing)
        if self.entry is not None:
            expected = self.entry.card.sizes[split]
        if there == expected:
            return ""
        named = f", '{listing.missing[0]}' among them" if listing.missing else ""
        lacking = (
            f"{expected - there:,} are missing{named}" if there < expected else "more than were published"
        )
        return f"{self.title}, {split}: {there:,} of {expected:,} images are there; {lacking}"


def labelled(
    place: Any,
    *,
    image: str = "",
    label: str | Sequence[str] = "",
    labels: Sequence[str] = (),
    split: str | None = "",
    test: str | int | Sequence[str] = (),
    group: str | int = "",
    seed: int = 0,
) -> OpenedDataset:
    """Return labelled images: `labelled("birds/").splits["train"]`, and "test", with `names`, `labels` and
    `class_names`; `[i]` is image i, decoded when it is asked for, upright and in RGB.

    `place` is a folder of class folders (below train and test, or not), a table of paths and labels, arrays
    (.npz, or a folder of .npy), what Hugging Face's `save_to_disk` wrote, the name of one of its data sets
    ("datasets:uoft-cs/cifar10"), or a data set of theirs that is loaded. What is not clear is said:

    image    the column of images
    label    the column of labels, or several columns of 0 and 1, one for each class
    labels   the columns of 1, 0 and -1 (uncertain) of images that have several labels each
    split    the column that says the split; None: nothing says it, and folders called train are classes
    test     the cells of that column, or the folders, that are tested on
    group    the column, or the level of folders, of images that stay on one side, such as a patient's

    Where nothing says what is tested on, a fifth of each class is drawn by `seed`. Raises RequestError for
    what is laid out otherwise, with what was found and what to say.
    """
    said = {"image": image, "label": label, "labels": labels, "split": split, "test": test, "group": group}
    settings = {name: value for name, value in said.items() if value is None or value not in ("", (), [])}
    if isinstance(place, str | Path):
        read = read_place(place)
        told = place_of(read.path, **settings)
        return _own(replace(read, **{name: getattr(told, name) for name in settings}), "", seed)
    held = place_of("in memory", **settings)
    splits, notes = from_datasets(held, place)
    splits, further = train_and_test(held, splits, seed, TEST_SHARE)
    return OpenedDataset("in memory", "in memory", "top1", splits, (*notes, *further))


def open_dataset(name: str, root: Path | str | None = None) -> OpenedDataset:
    """Return a published data set in the folder `root`, or, under any other name, what a user has at `root`.

    Without `root`, `name` is a path, behind which settings may stand, "t.csv(label='species')" (see
    `labelled`). Raises RequestError for what is not there or is not laid out as expected, DamagedFileError.
    """
    entry = ENTRIES.get(name)
    place = read_place(name if root is None else root)
    if entry is None:
        if root is None and not place.path.exists() and not str(place.path).startswith(BY_NAME):
            raise _nowhere(name, place)
        return _own(place, "" if root is None else name, 0)
    title, folder = entry.card.title, place.path
    if place.group:
        raise RequestError(f"group=... is of images of your own: {title} is split as it was published")
    if root is None:
        raise RequestError(f"where {title} lies is not said: give a folder to '{name}', or --root")

    def read(split: str) -> Listing:
        from penultimate.data.readers.published import read_published

        return read_published(entry, folder, split)

    return OpenedDataset(name, title, entry.card.accuracy, _Lazily(entry.card.splits, read), (), entry)


def _nowhere(name: str, place: Place) -> RequestError:
    if name in names("dataset"):
        return RequestError(
            f"'{name}' is drawn by this package: penultimate.data.generate('{name}', 0, 'FOLDER') draws it,"
            " and evaluate takes its name"
        )
    return RequestError(
        f"'{name}' is neither a published data set (penultimate list datasets) nor a file or folder."
        f"{nearest(name, ENTRIES) or nearest_beside(place.path)}"
    )


def _own(place: Place, title: str, seed: int) -> OpenedDataset:
    try:
        splits, notes = read_own(place, seed)
    except OSError as error:  # a folder in it belongs to another user, say
        where, why = error.filename or place.path, error.strerror or error
        raise RequestError(f"'{where}' cannot be read ({why}); check the permissions") from None
    title = title or place.path.resolve().name
    return OpenedDataset(title, title, "top1", splits, tuple(notes))
