"""Published ImageNet test sets, read from the folders they come in: -C, -V2, -A, -R, -Sketch.

    ImageNet-C           NAME/SEVERITY/WNID/*.JPEG      (NAME may lie one folder deeper: blur/glass_blur)
    -A, -R, -Sketch      WNID/*                         (a class subset: the folders present)
    -V2                  0/* ... 999/*                  (class numbers in the order of sorted wnids)

Only names are read until batches are requested; a batch holds decoded images, the rest stays on disk.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from penultimate.data.corruptions.catalogue import check_corruption
from penultimate.data.decoding import middle_square, read_colours
from penultimate.data.images import ImageSet
from penultimate.errors import RequestError, nearest

ENDINGS = frozenset((".jpeg", ".jpg", ".png", ".bmp", ".webp"))
RESIZE, CROP = 256, 224
"""The shorter side after resizing and the side of the middle square cut from it, as usual for ImageNet."""
WNID = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class ImageFolders:
    """Image files with their labels, in path order; `class_names` covers all labels, present or not.

    Made by `image_folders` and `corrupted_folders`. An image is resized so that its shorter side is `resize`,
    and its middle square of `crop` pixels is cut out, pixel for pixel as by torchvision's ImageFolder, Resize
    and CenterCrop, which published numbers rest on. They ignore rotations in EXIF data; `upright` does not.
    """

    root: Path
    files: tuple[Path, ...]
    labels: Int64[np.ndarray, " n"]
    class_names: tuple[str, ...]
    resize: int = RESIZE
    crop: int = CROP
    upright: bool = False

    def __len__(self) -> int:
        return len(self.files)

    @property
    def classes(self) -> Int64[np.ndarray, " k"]:
        """The labels that occur: the subset to which -A and -R restrict predictions (`subset_accuracy`)."""
        return np.unique(self.labels)

    def batches(self, batch_size: int = 64) -> Iterator[ImageSet]:
        """The images in order, decoded batch by batch; ids are their positions.

        After the last batch, a UserWarning counts the images whose EXIF rotation, alpha channel or further
        frames were ignored. Raises RequestError for a batch size below 1, and for a file that is too large or
        whose range of levels is unknown; DamagedFileError naming a file that is damaged.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise RequestError(f"a batch holds at least one image, not {batch_size!r}")
        remarked: dict[str, list[Path]] = {}
        for start in range(0, len(self), batch_size):
            place = slice(start, start + batch_size)
            squares = []
            for path in self.files[place]:
                image, remarks = read_colours(path, self.upright)
                squares.append(middle_square(path, image, self.resize, self.crop))
                for remark in remarks:
                    remarked.setdefault(remark, []).append(path)
            images = np.stack(squares)
            ids = np.arange(start, start + len(images))
            yield ImageSet(images, self.labels[place], ids, self.class_names)
        for remark, paths in remarked.items():
            message = f"{len(paths)} of {len(self)} images {remark}; the first is '{paths[0]}'"
            warnings.warn(message, UserWarning, stacklevel=2)


def image_folders(
    root: Path | str,
    wnids: Sequence[str],
    resize: int = RESIZE,
    crop: int = CROP,
    upright: bool = False,
) -> ImageFolders:
    """A test set with one folder per class, all named by wnid or all by number (-V2).

    `wnids` are the names of all classes in the order of the network's outputs (for torchvision's models the
    1000 sorted wnids). The folders present are the class subset: 200 for -A and -R. Number i is the i-th of
    the sorted wnids, whatever the network's order; names that are not wnids are numbered in the given order.

    Raises RequestError for a folder that does not exist or holds no class folders, a class that is not in
    `wnids` (with the nearest), a class folder without images, a broken link, classes named twice.

    >>> import tempfile
    >>> from PIL import Image
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "n02").mkdir()
    >>> Image.new("RGB", (300, 260)).save(root / "n02" / "one.JPEG")
    >>> folders = image_folders(root, ["n01", "n02", "n03"])
    >>> next(folders.batches()).images.shape, folders.classes
    ((1, 224, 224, 3), array([1]))
    """
    root, names = Path(root), tuple(wnids)
    if len(set(names)) != len(names) or not names:
        raise RequestError(
            f"wnids name each class once; {len(names)} names, {len(set(names))} different ones"
        )
    whole = all(isinstance(side, int) and not isinstance(side, bool) for side in (resize, crop))
    if not whole or crop < 1 or resize < crop:
        raise RequestError(
            "crop and resize are whole numbers, crop at least 1 and resize at least crop;"
            f" got resize={resize!r}, crop={crop!r}"
        )
    folders = _subfolders(root, "a folder for each class")
    numbered = all(folder.name.isdecimal() for folder in folders)
    place = {name: label for label, name in enumerate(names)}
    if numbered:
        counted = sorted(names) if all(map(WNID.fullmatch, names)) else names
        place = {str(number): place[name] for number, name in enumerate(counted)} | place
    files: list[Path] = []
    labels: list[int] = []
    for folder in folders:
        if folder.name not in place:
            raise RequestError(
                f"'{folder}': '{folder.name}' is not one of the {len(names)} classes."
                f"{nearest(folder.name, names)}"
                + (" Numbers run from 0, in the order of the sorted wnids." if numbered else "")
            )
        images = sorted(path for path in folder.iterdir() if _is_image(path))
        if not images:
            raise RequestError(f"'{folder}' holds no image ({', '.join(sorted(ENDINGS))})")
        files += images
        labels += [place[folder.name]] * len(images)
    return ImageFolders(root, tuple(files), np.array(labels, np.int64), names, resize, crop, upright)


def corrupted_folders(
    root: Path | str, name: str, severity: int, wnids: Sequence[str], crop: int = CROP
) -> ImageFolders:
    """ImageNet-C's published images of one corruption at one severity, already `crop` pixels wide.

    As `image_folders`. Also raises RequestError for an unknown corruption (with the nearest), one that is not
    in the folder, and a missing severity (with those present).
    """
    check_corruption(name, severity)
    root = Path(root)
    folders = _subfolders(root, "a folder for each corruption")
    deeper = [inner for folder in folders for inner in folder.iterdir() if inner.is_dir()]
    corruption = next((folder for folder in (*folders, *deeper) if folder.name == name), None)
    if corruption is None:
        raise RequestError(
            f"'{root}' holds no folder '{name}'; it holds {', '.join(folder.name for folder in folders[:20])}"
        )
    severities = _subfolders(corruption, "a folder for each severity")
    chosen = next((folder for folder in severities if folder.name == str(severity)), None)
    if chosen is None:
        listed = ", ".join(folder.name for folder in severities)
        raise RequestError(
            f"'{corruption}' lacks severity {severity}; it holds {listed}. Is the archive complete?"
        )
    return image_folders(chosen, wnids, crop, crop)


def _is_image(path: Path) -> bool:
    """By its name; "._x.JPEG" is macOS's metadata for x.JPEG."""
    return path.suffix.lower() in ENDINGS and not path.name.startswith(".")


def _subfolders(root: Path, expected: str) -> list[Path]:
    if not root.is_dir():
        state = "is a file" if root.exists() else "does not exist"
        raise RequestError(f"'{root}' {state}; {expected} is expected in it")
    entries = sorted(path for path in root.iterdir() if not path.name.startswith("."))
    broken = next((path for path in entries if path.is_symlink() and not path.exists()), None)
    if broken is not None:
        raise RequestError(f"'{broken}' is a link to '{broken.readlink()}', which is not there")
    folders = [path for path in entries if path.is_dir()]
    if not folders:
        raise RequestError(f"'{root}' holds no folders; {expected} is expected in it")
    return folders
