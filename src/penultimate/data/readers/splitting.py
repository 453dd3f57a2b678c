"""The splits "train" and "test" of a user's own images: those that the data say, or drawn ones.

Validation images are trained on, or tested on where there are no others: whatever is tuned holds out images
of its own.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from penultimate.data.listing import Chain, Listing
from penultimate.data.readers.places import Place
from penultimate.data.readers.walking import some
from penultimate.errors import RequestError, counted

TEST_SHARE = 0.2
Splits = dict[str, Listing]


def train_and_test(place: Place, parts: Splits, seed: int, share: float) -> tuple[Splits, list[str]]:
    """Return "train" and "test" of the parts that were read ("": of no split), and what must be known."""
    path, notes = place.path, list[str]()
    if {*parts} == {"train"}:
        parts = {"": parts["train"]}
    if "" in parts:
        whole = parts[""]
        tested = _drawn(place, whole, seed, share)
        drawn = f"{share:.0%} of each class"
        if whole.groups is not None:
            every, of_test = (len(np.unique(of)) for of in (whole.groups, whole.groups[tested]))
            drawn = f"{of_test:,} of {every:,} groups by {place.groups_called}, which are not split"
        notes.append(
            f"nothing says which images are tested on: {drawn}, {tested.sum():,} of {len(whole):,} images,"
            f" were drawn with seed {seed}"
        )
        parts = {"train": replace(whole.subset(~tested), missing=whole.missing), "test": whole.subset(tested)}
    elif {"train", "validation"} <= parts.keys():
        validation = parts.pop("validation")
        if "test" in parts:
            parts["train"] = _joined(parts["train"], validation)
            notes.append(f"the {len(validation):,} validation images are trained on, as in the paper")
        else:
            parts["test"] = validation
            notes.append("there are no test images: the validation images are tested on")
    if {*parts} != {"train", "test"}:
        raise RequestError(
            f"'{path}' holds {' and '.join(sorted(parts))} images only; images to train on and to test on are"
            " expected (train, test), or classes without a split"
        )
    for split, listing in parts.items():
        if not len(listing):
            raise RequestError(f"'{path}': no image of the {split} split is there{_listed(listing)}")
    train, test = parts["train"], parts["test"]
    if train.groups is not None and test.groups is not None:
        notes += filter(None, [crossing(train.groups, test.groups, place.groups_called)])
    notes += _unshown(parts) if train.labels.ndim == 2 else _absent(place, train, test)
    return {"train": train, "test": test}, notes


def _listed(listing: Listing) -> str:
    return f": '{listing.missing[0]}' and others that it lists are missing" if listing.missing else ""


def _drawn(place: Place, whole: Listing, seed: int, share: float) -> npt.NDArray[np.bool_]:
    if whole.groups is not None:
        try:
            by = place.groups_called
            return drawn_by_group(whole.groups, whole.labels, whole.names, by=by, seed=seed, share=share)
        except RequestError as error:
            raise RequestError(f"'{place.path}': {error}") from None
    tested = stratified(whole.names, whole.labels, seed, share)
    if not tested.any():
        raise RequestError(
            f"'{place.path}' holds {counted(len(whole), 'image')}, and no class has two images, one to train"
            f" on and one to test on{_listed(whole)}"
        )
    return tested


def stratified(names: Sequence[str], labels: np.ndarray, seed: int, share: float) -> npt.NDArray[np.bool_]:
    """Return which images are tested on: of each class the share whose sha256 of (seed, name) is smallest.

    A class keeps an image to be trained on, and gives one to the test if it has two. An image that is added
    or removed moves at most one other of its class.

    >>> stratified(["a", "b", "c", "d", "e", "f"], np.array([0, 0, 0, 0, 0, 1]), 0, 0.4).sum()
    np.int64(2)
    """
    texts = (f"{seed}\0{name}".encode(errors="surrogateescape") for name in names)
    order = np.array([hashlib.sha256(text).hexdigest() for text in texts])
    tested = np.zeros(len(names), bool)
    labels = labels if labels.ndim == 1 else _rarest(labels)
    for label in np.unique(labels):
        its = np.flatnonzero(labels == label)
        count = min(max(round(share * its.size), 1), its.size - 1)
        tested[its[np.argsort(order[its], kind="stable")][:count]] = True
    return tested


def _rarest(labels: np.ndarray) -> np.ndarray:
    """Return of images with several labels [n l] the rarest label that each shows, and -1 for none.

    >>> _rarest(np.array([[1, 0], [1, 1], [1, 0], [0, 0]])).tolist()
    [0, 1, 0, -1]
    """
    present = labels == 1
    order = np.argsort(present.sum(0), kind="stable")
    return np.where(present.any(1), order[present[:, order].argmax(1)], -1)


def drawn_by_group(
    groups: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str] = (),
    *,
    by: str,
    seed: int = 0,
    share: float = TEST_SHARE,
) -> npt.NDArray[np.bool_]:
    """Return which images are tested on: whole groups, with about this share of the images of each class.

    It is a fold of scikit-learn's StratifiedGroupKFold over the images sorted by their names, if they have
    names, so that their order plays no part: one with every class on both sides, if there is one, and the
    nearest to the share. Raises RequestError for a single group, and where each image is a group of its own.

    >>> groups = np.array(["p1", "p2", "p3", "p4", "p5"]).repeat(4)
    >>> int(drawn_by_group(groups, np.arange(20) % 2, by="'patient'").sum())
    4
    """
    from sklearn.model_selection import StratifiedGroupKFold

    count = len(np.unique(groups))
    if count < 2 or count == len(groups):
        why = "everything is of one group" if count < 2 else f"each of {count:,} is a group of its own"
        raise RequestError(f"{why} by {by}; name a column or level whose values recur, or no group")
    order = np.array(sorted(range(len(groups)), key=names.__getitem__ if names else None))
    classes = (labels if labels.ndim == 1 else _rarest(labels))[order]
    most = int(np.unique(classes, return_counts=True)[1].max())
    if most < 2:
        raise RequestError("no class has two images, one to train on and one to test on; add images")
    folds = min(max(2, round(1 / share)), count, most)
    with warnings.catch_warnings():  # of classes with fewer images than folds
        warnings.simplefilter("ignore", UserWarning)
        drawing = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
        splits = list(drawing.split(classes, classes, groups[order]))

    def fault(split: tuple[np.ndarray, np.ndarray]) -> tuple[int, int, float]:
        trained, tested = (classes[rows] for rows in split)
        untrained, one_sided = np.setdiff1d(tested, trained), np.setxor1d(trained, tested)
        return len(untrained), len(one_sided), abs(len(tested) - share * len(groups))

    tested = np.zeros(len(groups), bool)
    tested[order[min(splits, key=fault)[1]]] = True
    return tested


def crossing(train: npt.NDArray[np.str_], test: npt.NDArray[np.str_], by: str, of: str = "image") -> str:
    """Return a sentence on the groups of test examples that are in training too, or "".

    >>> crossing(np.array(["p1", "p2"]), np.array(["p2", "p3"]), "'patient'")[:48]
    "1 of 2 groups of test images by 'patient' is in "
    """
    shared = np.intersect1d(train, test)
    if not shared.size:
        return ""
    images = [int(np.isin(each, shared).sum()) for each in (test, train)]
    named = ", ".join(map(repr, map(str, shared[:3]))) + (", ..." if len(shared) > 3 else "")
    return (
        f"{len(shared):,} of {counted(len(np.unique(test)), 'group')} of test {of}s by {by}"
        f" {'is' if len(shared) == 1 else 'are'} in training too ({named}): {images[0]:,} of {len(test):,}"
        f" test {of}s and {images[1]:,} of {len(train):,} training {of}s, so that accuracies may be too high"
    )


def _absent(place: Place, train: Listing, test: Listing) -> Iterator[str]:
    """Yield notes on classes without images; raises RequestError for one that is only tested on."""
    trained, tested = {*train.labels.tolist()}, {*test.labels.tolist()}
    empty = {*range(len(train.class_names))} - trained - tested
    for what, labels in (
        ("tested on, but not trained on", tested - trained),
        ("no test image", trained - tested),
        ("no image at all", empty),
    ):
        names = [train.class_names[label] for label in sorted(labels)]
        told = f"{what}: {some(names, 'class', 'classes')}"
        if labels and what.startswith("tested on"):
            raise RequestError(f"'{place.path}': {told}")
        if labels:
            yield told
    if len(trained) < 2:
        yield "all images are of one class: there is nothing to tell apart"


def _unshown(parts: Splits) -> Iterator[str]:
    """Yield a note on the labels that a split does not hold both present and absent."""
    for split in ("train", "test"):
        of = parts[split]
        both = (of.labels == 1).any(0) & (of.labels == 0).any(0)
        if lacking := [name for name, known in zip(of.class_names, both, strict=True) if not known]:
            yield (
                f"of the {split} images all or none show {some(lacking, 'label', 'labels')}, for which"
                " there is no area under the ROC curve"
            )


def _joined(first: Listing, second: Listing) -> Listing:
    return replace(
        first,
        source=Chain(first.source, second.source),
        places=np.concatenate([first.places, second.places + len(first.source)]),
        labels=np.concatenate([first.labels, second.labels]),
        ids=np.concatenate([first.ids, second.ids]),
        missing=first.missing + second.missing,
        groups=None if first.groups is None else np.concatenate([first.groups, second.groups]),
    )
