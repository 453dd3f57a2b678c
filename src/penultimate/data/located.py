"""Data sets of one's own, in a folder: which images there are, of which classes, in which splits.

ROOT/SPLIT/CLASS/*   with folders of splits: train, test, perhaps a holdout (also val, training ...)
ROOT/CLASS/*         without them: a fifth of each class, by a hash of the files' names, is the test set

Only names are read here; `decoded` reads the images. Nothing of it needs a tensor library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.data.catalog import DatasetCard
from penultimate.errors import RequestError
from penultimate.files import canonical_json, digest_bytes

if TYPE_CHECKING:
    from penultimate.data.images import ImageSet

ENDINGS = frozenset((".jpeg", ".jpg", ".png", ".bmp", ".webp"))
SPLITS = {
    **dict.fromkeys(("train", "training", "trainval"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "holdout", "dev"), "holdout"),
    **dict.fromkeys(("test", "testing", "eval"), "test"),
}
"""What folders of splits are called, and what their split is called here."""
TESTED = 5
"""One in so many images of a class is a test image, where a folder has no splits."""
RESIZE, CROP = 256, 224
"""The shorter side of a decoded image, and the side of the middle square that is kept of it."""


@dataclass(frozen=True)
class Located:
    """The images of a folder: of each split the files, by their paths below `root`, with their labels.

    `class_names` are those of all splits together, sorted, numbers by their values; `told` says how the
    splits came about, and which classes are not in all of them.
    """

    name: str
    root: Path
    splits: Mapping[str, tuple[tuple[str, int], ...]]
    class_names: tuple[str, ...]
    told: str

    @cached_property
    def card(self) -> DatasetCard:
        """What studies and pages know of it."""
        sizes = {split: len(files) for split, files in self.splits.items()}
        relation = f"images of one's own: {self.told}"
        return DatasetCard(
            self.name, self.name, len(self.class_names), sizes, "top1", relation, "unknown", "", self.told
        )

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the files' paths, sizes and times, and of what they are labelled: changes as they do."""
        files = {
            split: [(path, label, *_state(self.root / path)) for path, label in files]
            for split, files in self.splits.items()
        }
        return digest_bytes(canonical_json([files, list(self.class_names)]).encode(errors="replace"))

    def decoded(self) -> Iterator[tuple[str, ImageSet]]:
        """Each split's images, the middle `CROP` pixels of what is resized to `RESIZE`.

        Raises DamagedFileError or RequestError naming the first file that is not an image that can be read.
        """
        import numpy as np

        from penultimate.data.decoding import middle_square, read_colours
        from penultimate.data.images import ImageSet

        first = 0
        for split, files in self.splits.items():
            pixels = np.empty((len(files), CROP, CROP, 3), np.uint8)
            for place, (path, _) in enumerate(files):
                file = self.root / path
                pixels[place] = middle_square(file, read_colours(file, upright=True)[0], RESIZE, CROP)
            labels = np.array([label for _, label in files], np.int64)
            yield split, ImageSet(pixels, labels, np.arange(first, first + len(files)), self.class_names)
            first += len(files)


def located(name: str, where: str) -> Located:
    """The data set in a folder; raises RequestError, saying what is expected, where there is none."""
    root = Path(where).expanduser()
    if not root.is_dir():
        state = "is a file" if root.exists() else "is not there"
        raise RequestError(
            f"data '{name}': the folder '{where}' {state}; a folder for each class is expected"
        )
    folders = _folders(root)
    named = {folder: SPLITS.get(folder.name.lower()) for folder in folders}
    if folders and all(named.values()) and "train" in named.values() and len({*named.values()}) > 1:
        return _with_splits(name, root, {folder: str(split) for folder, split in named.items()})
    return _without_splits(name, root, folders)


def _with_splits(name: str, root: Path, named: Mapping[Path, str]) -> Located:
    if "test" not in named.values():  # as ImageNet has it: what is called val is what is tested on
        named = {folder: "test" if split == "holdout" else split for folder, split in named.items()}
    found: dict[str, dict[str, list[str]]] = {}
    for folder, split in named.items():
        if split in found:
            both = " and ".join(sorted(path.name for path in named if named[path] == split))
            raise RequestError(f"data '{name}': '{root}' has two folders of one split: {both}; rename one")
        found[split] = {each.name: _images(root, each) for each in _folders(folder)}
    names = _in_order({each for classes in found.values() for each, files in classes.items() if files})
    splits: dict[str, tuple[tuple[str, int], ...]] = {
        split: tuple((path, label) for label, each in enumerate(names) for path in found[split].get(each, ()))
        for split in ("train", "holdout", "test")
        if split in found
    }
    lacking = [
        f"'{each}' has no image in {split}"
        for split, classes in found.items()
        for each in names
        if not classes.get(each)
    ]
    more = f" and {len(lacking) - 3} more of the kind" if len(lacking) > 3 else ""
    told = "splits as the folders have them" + "".join(f"; {one}" for one in lacking[:3]) + more
    return _checked(name, root, splits, names, told)


def _without_splits(name: str, root: Path, folders: list[Path]) -> Located:
    found = {folder.name: _images(root, folder) for folder in folders}
    names = _in_order({each for each, files in found.items() if files})
    splits: dict[str, list[tuple[str, int]]] = {"train": [], "test": []}
    for label, each in enumerate(names):
        drawn = sorted(found[each], key=lambda path: digest_bytes(path.encode(errors="replace")))
        tested = {*drawn[: max(1, len(drawn) // TESTED)]} if len(drawn) > 1 else set()
        for path in found[each]:
            splits["test" if path in tested else "train"].append((path, label))
    told = (
        f"no folders of splits: one image in {TESTED} of each class, by a hash of its name, is for the test"
    )
    return _checked(name, root, {split: tuple(files) for split, files in splits.items()}, names, told)


def _checked(
    name: str, root: Path, splits: Mapping[str, tuple[tuple[str, int], ...]], names: list[str], told: str
) -> Located:
    for split, files in splits.items():
        if not files:
            count = sum(map(len, splits.values()))
            expected = "ROOT/CLASS/image.jpg or ROOT/train/CLASS/image.jpg"
            raise RequestError(
                f"data '{name}': '{root}' has no image for the split '{split}' ({count} images in all, with"
                f" the endings {', '.join(sorted(ENDINGS))}); expected is {expected}"
            )
    return Located(name, root, splits, tuple(names), told)


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def _images(root: Path, folder: Path) -> list[str]:
    """The images below a folder, by their paths in `root`."""
    return sorted(
        path.relative_to(root).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() in ENDINGS and not path.name.startswith(".") and path.is_file()
    )


def _in_order(names: set[str]) -> list[str]:
    """Class names sorted; all of them numbers: by their values.

    >>> _in_order({"10", "9"}), _in_order({"b", "10", "9"})
    (['9', '10'], ['10', '9', 'b'])
    """
    if all(each.isdecimal() for each in names):
        return sorted(names, key=lambda each: (int(each), each))
    return sorted(names)


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
