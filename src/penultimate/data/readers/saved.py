"""Data sets of Hugging Face's `datasets`: what `save_to_disk` wrote, or one that is loaded by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import ImageSource, Listing
from penultimate.data.readers.arrays import listings
from penultimate.data.readers.labels import number_labels
from penultimate.data.readers.places import Place
from penultimate.data.readers.split_names import SPLITS, part_of
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError, unknown

BY_NAME = "datasets:"
"""What stands before a name that `datasets.load_dataset` loads, or a folder of Parquet files."""


@dataclass(frozen=True)
class Rows:
    """A `ImageSource`: the image column of a `datasets.Dataset`, not decoded."""

    table: Any
    called: str

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, place: int) -> bytes | Path:
        (image,) = self.table[place].values()
        if image is None or (image["bytes"] is None and not image["path"]):
            raise DamagedFileError(f"'{self.name(place)}' is empty")
        return Path(image["path"]) if image["bytes"] is None else bytes(image["bytes"])

    def name(self, place: int) -> str:
        return f"{self.called}[{place}]"

    @property
    def files(self) -> Sequence[Path]:
        return sorted(Path(file["filename"]) for file in self.table.cache_files)


def is_saved(path: Path) -> bool:
    """Return whether `save_to_disk` wrote a folder."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def saved(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read a `DatasetDict` of splits, or one `Dataset`, with the format that it was given taken off."""
    text = str(place.path)
    try:
        import datasets

        by_name = text.startswith(BY_NAME)
        held = datasets.load_dataset(text[len(BY_NAME) :]) if by_name else datasets.load_from_disk(text)
    except ImportError:
        raise RequestError(
            f"'{text}' is a Hugging Face data set; to read it: pip install 'penultimate[datasets]'"
        ) from None
    except Exception as error:  # pyarrow's, the hub's and the reader's own
        raise DamagedFileError(f"'{text}' cannot be read by Hugging Face's datasets: {error}") from None
    return from_datasets(place, held)


def from_datasets(place: Place, held: Any) -> tuple[dict[str, Listing], list[str]]:
    """Read a `DatasetDict` or a `Dataset` that is loaded already."""
    place.expect_only("a Hugging Face data set", "image", "label", "group")
    named = dict(held) if isinstance(held, dict) else {"": held}
    parts = {name: part_of(name) for name in named if not name or part_of(name)}
    if not parts:
        raise unknown(f"split of '{place.path}'", ", ".join(named), SPLITS)
    left = [name for name in named if name not in parts]
    notes = [f"left out: {some(left, 'split', 'splits')}"] if left else []
    columns, sources = dict[str, list[Any]](), dict[str, ImageSource]()
    groups: dict[str, np.ndarray] = {}
    class_names: set[tuple[str, ...]] = set()
    for name, part in parts.items():
        table = named[name].with_format(None)
        image, label = _image_column(table, place), _label_column(table, place)
        class_names.add(tuple(getattr(table.features[label], "names", None) or ()))
        columns[part] = list(table[label])
        if place.group != "":
            if place.group not in table.column_names:
                raise unknown(f"column of '{place.path}'", str(place.group), table.column_names)
            groups[part] = np.array([*map(str, table[place.group])])
        sources[part] = Rows(_undecoded(table, image), name or place.path.name)
    if len(class_names) > 1:
        raise RequestError(f"'{place.path}': its splits name their classes differently")
    numbered = number_labels(place.path, columns, class_names.pop())
    made = listings(sources, numbered)
    if groups:
        made = {part: replace(of, groups=groups[part][of.places]) for part, of in made.items()}
    return made, [*notes, *numbered.notes]


def _undecoded(table: Any, column: str) -> Any:
    from datasets import Image

    return table.select_columns(column).cast_column(column, Image(decode=False))


def _of_kind(table: Any, kind: str) -> list[str]:
    return [str(name) for name, feature in table.features.items() if type(feature).__name__ == kind]


def _image_column(table: Any, place: Place) -> str:
    columns = _of_kind(table, "Image")
    if not columns:
        raise RequestError(
            f"'{place.path}' has the columns {', '.join(table.features)}, and none of them holds images; in"
            " Hugging Face's datasets: cast_column(COLUMN, datasets.Image())"
        )
    return _said(place, "image", place.image, columns, columns)


def _label_column(table: Any, place: Place) -> str:
    columns: Mapping[str, Any] = table.features
    classes = ["label"] if "label" in columns else _of_kind(table, "ClassLabel")
    return _said(place, "label", "".join(place.label), columns, classes)


def _said(place: Place, what: str, said: str, known: Any, likely: list[str]) -> str:
    """Return the column that is said, or the only likely one; raises RequestError for anything else."""
    if said and said not in known:
        raise unknown(f"column of '{place.path}'", said, known)
    if not said and len(likely) != 1:
        may_be = likely or [*known]
        raise RequestError(
            f"'{place.path}': which column holds the {what}s is not clear; it may be"
            f" {' or '.join(map(repr, may_be))}. Say it: {place.with_setting(what, may_be[0])}"
        )
    return said or likely[0]
