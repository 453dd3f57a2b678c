"""Data sets of Hugging Face's `datasets`: what `save_to_disk` wrote, or one that is loaded by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.data.listing import Listing
from penultimate.data.readers.found import Found, listings
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
    """Return whether `save_to_disk` wrote a folder, or a place names a data set of Hugging Face's."""
    listed = (path / name for name in ("dataset_dict.json", "state.json"))
    return str(path).startswith(BY_NAME) or any(file.is_file() for file in listed)


def saved(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read what lies at a place, or is loaded by its name."""
    text = str(place.path)
    try:
        import datasets

        by_name = text.startswith(BY_NAME)
        held = datasets.load_dataset(text[len(BY_NAME) :]) if by_name else datasets.load_from_disk(text)
    except ImportError:
        raise RequestError(f"'{text}' is read by: pip install 'penultimate[datasets]'") from None
    except Exception as error:  # pyarrow's, the hub's and the reader's own
        unreached = isinstance(error, ConnectionError) and not datasets.config.HF_HUB_OFFLINE
        hint = "; HF_HUB_OFFLINE=1 reads what was downloaded before" if unreached else ""
        raise DamagedFileError(f"'{text}' cannot be read by Hugging Face's datasets: {error}{hint}") from None
    return from_datasets(place, held)


def from_datasets(place: Place, held: Any) -> tuple[dict[str, Listing], list[str]]:
    """Read a `DatasetDict` of splits or a `Dataset`, with the format that it was given taken off."""
    from datasets import Image

    place.expect_only("a Hugging Face data set", "image", "label", "group")
    named = dict(held) if isinstance(held, dict) else {"": held}
    parts = {name: part_of(name) for name in named if not name or part_of(name)}
    if not parts:
        raise unknown(f"split of '{place.path}'", ", ".join(named), SPLITS)
    others = [name for name in named if name not in parts]
    notes = [f"left out: {some(others, 'split', 'splits')}"] if others else []
    found: dict[str, Found] = {}
    class_names: set[tuple[str, ...]] = set()
    for name, part in parts.items():
        table = named[name].with_format(None)
        kinds = {str(each): type(feature).__name__ for each, feature in table.features.items()}
        image = _column(place, "image", place.image, kinds, "Image")
        label = _column(place, "label", "".join(place.label), kinds, "ClassLabel")
        class_names.add(tuple(getattr(table.features[label], "names", None) or ()))
        group = _column(place, "group", str(place.group), kinds, "") if place.group else ""
        pictures = table.select_columns(image).cast_column(image, Image(decode=False))
        groups = [*map(str, table[group])] if group else None
        found[part] = Found(Rows(pictures, name or place.path.name), list(table[label]), groups)
    if len(class_names) > 1:
        raise RequestError(f"'{place.path}': its splits name their classes differently")
    made, further = listings(place.path, found, class_names.pop())
    return made, [*notes, *further]


def _column(place: Place, what: str, said: str, kinds: dict[str, str], kind: str) -> str:
    """Return the column that is said, "label", or the only one of a kind."""
    if said and said not in kinds:
        raise unknown(f"column of '{place.path}'", said, kinds)
    likely = [name for name, its in kinds.items() if its == kind]
    likely = ["label"] if what == "label" and "label" in kinds else likely
    if not said and len(likely) != 1:
        hint = f"; cast_column(COLUMN, datasets.{kind}()) makes it one" if not likely else ""
        raise RequestError(
            f"'{place.path}': which column holds the {what}s is not clear; it may be"
            f" {' or '.join(map(repr, likely or kinds))}{hint}. Say it:"
            f" {place.with_setting(what, [*likely, *kinds][0])}"
        )
    return said or likely[0]
