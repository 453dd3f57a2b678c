"""A user's own images: folders of classes, a table of paths and labels, arrays, Hugging Face data sets.

What says which images are tested on is used; where nothing does, a fifth of each class is drawn. Validation
images are trained on: whatever is tuned holds out images of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from penultimate.data.listing import Chain, Listing
from penultimate.data.readers.arrays import arrays, hugging_face, names_in_archive
from penultimate.data.readers.folders import folders, root_of, splits_have_classes
from penultimate.data.readers.group_split import crossing, drawn_by_group
from penultimate.data.readers.groups import called
from penultimate.data.readers.places import Place, is_table
from penultimate.data.readers.tables import metadata, metadata_in, split_tables_in, table
from penultimate.data.readers.walking import some
from penultimate.errors import RequestError, counted

TEST_SHARE = 0.2
Splits = dict[str, Listing]
Notes = list[str]


def read_own(place: Place, seed: int = 0, test_share: float = TEST_SHARE) -> tuple[Splits, Notes]:
    """Return the splits "train" and "test" of what lies at a place, and what a reader of results must know.

    Raises RequestError for what holds no images, DamagedFileError for what cannot be read.
    """
    if not 0 < test_share < 1:
        raise RequestError(f"the share of test images lies between 0 and 1; got {test_share}")
    path = place.path
    if path.is_dir():
        if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
            place.expect_only("what save_to_disk wrote", "image", "label", "group")
            parts, notes = hugging_face(place)
        elif any(entry.suffix == ".npy" and entry.name[0] != "." for entry in path.iterdir()):
            place.expect_only("arrays")
            files = sorted(each for each in path.glob("*.npy") if not each.name.startswith("._"))
            parts, notes = arrays(path, {entry.stem: entry for entry in files}, _generated_names(path))
        elif tables := metadata_in(path):
            parts, notes = metadata(place, tables)
        elif tables := _split_tables(place):
            place.expect_only("tables that are called like splits", "image", "label", "group")
            parts, notes = metadata(replace(place, path=next(iter(tables)).parent), tables)
        else:
            place.expect_only("class folders", "split", "test", "group")
            parts, notes = folders(place)
    elif path.suffix.lower() == ".npz" and path.is_file():
        place.expect_only("arrays")
        parts, notes = arrays(path, dict.fromkeys(names_in_archive(path), path))
    elif is_table(path):
        parts, notes = table(place)
    elif path.exists():
        raise RequestError(
            f"'{path}' is none of: a folder of images, a table (.csv, .tsv, .jsonl, .parquet) of paths and"
            " labels, arrays (.npz, or a folder of .npy), what Hugging Face's save_to_disk wrote; unpack an"
            " archive first"
        )
    else:
        raise RequestError(f"'{path}' does not exist")
    try:
        return _trained_and_tested(place, parts, notes, seed, test_share)
    except RequestError as error:
        raise RequestError("; ".join((str(error), *notes))) from None


def _generated_names(folder: Path) -> list[str]:
    """Return the names of the classes in a folder that `penultimate.data.generate` wrote; [] in any other."""
    try:
        found = json.loads((folder / "manifest.json").read_text("utf-8"))["class_names"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [str(name) for name in found] if isinstance(found, list) else []


def _split_tables(place: Place) -> dict[Path, str]:
    """Return the tables that assign images to splits; none if the splits are class folders."""
    root = root_of(place.path)
    if place.split is None or place.test or splits_have_classes(root):
        return {}
    return split_tables_in(place.path) or split_tables_in(root)


def stratified(names: Sequence[str], labels: np.ndarray, seed: int, share: float) -> np.ndarray:
    """Return which images are tested on: of each class the share whose sha256 of (seed, name) is smallest.

    A class keeps an image to be trained on, and gives one to the test if it has two. An image that is added
    or removed moves at most one other of its class.

    >>> stratified(["a", "b", "c", "d", "e", "f"], np.array([0, 0, 0, 0, 0, 1]), 0, 0.4).sum()
    np.int64(2)
    """
    order = np.array(
        [hashlib.sha256(f"{seed}\0{name}".encode(errors="surrogateescape")).hexdigest() for name in names]
    )
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


def _trained_and_tested(
    place: Place, parts: Splits, notes: Notes, seed: int, share: float
) -> tuple[Splits, Notes]:
    """ "train" and "test", whatever there is: validation images join one of them, and are said to."""
    path = place.path
    if set(parts) == {"train"}:
        parts = {"": parts["train"]}
    names = next(iter(parts.values())).class_names
    if "" in parts:
        whole = parts[""]
        if len(whole) < 2:
            lost = len(whole.missing)
            listed = f"; {lost:,} that it lists are not there, such as '{whole.missing[0]}'" if lost else ""
            raise RequestError(
                f"'{path}' holds {counted(len(whole), 'image')}; there is none to be tested on{listed}"
            )
        if whole.groups is None:
            tested = stratified([whole.name(i) for i in range(len(whole))], whole.labels, seed, share)
        else:
            known = (whole.groups, whole.labels, whole.class_names)
            try:
                tested = drawn_by_group(*known, by=called(place), seed=seed, share=share)
            except RequestError as error:
                raise RequestError(f"'{path}': {error}") from None
        if not tested.any():
            raise RequestError(
                f"'{path}': no class has two images, one to train on and one to test on (it holds"
                f" {counted(len(whole), 'image')}); add images, or put them into the folders train and test"
            )
        drawn = f"{share:.0%} of each class"
        if whole.groups is not None:
            every, of_test = (len(np.unique(of)) for of in (whole.groups, whole.groups[tested]))
            drawn = f"{of_test:,} of {every:,} groups by {called(place)}, which are not split"
        notes.append(
            f"nothing says which images are tested on: {drawn}, {tested.sum():,} of {len(whole):,} images,"
            f" were drawn with seed {seed}"
        )
        parts = {"train": replace(whole.subset(~tested), missing=whole.missing), "test": whole.subset(tested)}
    elif "train" in parts and "test" not in parts and "validation" in parts:
        parts = {"train": parts["train"], "test": parts["validation"]}
        notes.append("there are no test images: the validation images are tested on")
    elif "validation" in parts and "train" in parts:
        validation = parts.pop("validation")
        parts["train"] = _joined(parts["train"], validation)
        notes.append(f"the {len(validation):,} validation images are trained on, as in the paper")
    if set(parts) != {"train", "test"}:
        raise RequestError(
            f"'{path}' holds {' and '.join(sorted(parts))} images only; images to train on and to test on are"
            " expected (train, test), or classes without a split"
        )
    groups = [parts[split].groups for split in ("train", "test")]
    if groups[0] is not None and groups[1] is not None:
        notes += filter(None, [crossing(groups[0], groups[1], called(place))])
    for split, listing in parts.items():
        if not len(listing):
            gone = listing.missing
            listed = f": {len(gone):,} are listed, such as '{gone[0]}'" if gone else ""
            raise RequestError(f"'{path}': no image of the {split} split is there{listed}")
    if parts["train"].labels.ndim == 2:
        return {split: parts[split] for split in ("train", "test")}, [*notes, *_unshown(parts)]
    untrained = np.setdiff1d(parts["test"].labels, parts["train"].labels)
    if untrained.size:
        raise RequestError(
            f"'{path}': {some([names[label] for label in untrained], 'class is', 'classes are')} tested on,"
            " but not trained on"
        )
    untested = np.setdiff1d(parts["train"].labels, parts["test"].labels)
    empty = sorted(set(range(len(names))) - set(parts["train"].labels.tolist()))
    if untested.size:
        notes.append(f"no test image: {some([names[label] for label in untested], 'class', 'classes')}")
    if empty:
        notes.append(f"no image at all: {some([names[label] for label in empty], 'class', 'classes')}")
    if len(names) - len(empty) < 2:
        notes.append("all images are of one class: there is nothing to tell apart")
    return {split: parts[split] for split in ("train", "test")}, notes


def _unshown(parts: Splits) -> Iterator[str]:
    """Yield a note on the labels that a split does not hold both present and absent."""
    for split in ("train", "test"):
        of = parts[split]
        both = (of.labels == 1).any(0) & (of.labels == 0).any(0)
        lacking = [name for name, known in zip(of.class_names, both, strict=True) if not known]
        if lacking:
            yield (
                f"of the {split} images all or none show {some(lacking, 'label', 'labels')}, for which"
                " there is no area under the ROC curve"
            )


def _joined(first: Listing, second: Listing) -> Listing:
    return Listing(
        Chain(first.source, second.source),
        np.concatenate([first.places, second.places + len(first.source)]),
        np.concatenate([first.labels, second.labels]),
        np.concatenate([first.ids, second.ids]),
        first.class_names,
        first.missing + second.missing,
        groups=_both(first.groups, second.groups),
    )


def _both(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    return None if first is None or second is None else np.concatenate([first, second])
