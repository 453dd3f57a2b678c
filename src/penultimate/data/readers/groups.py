"""Groups of images that must not be split between training and test, such as the images of a patient.

A column of a table names the group of each image, or a level of the folders in which the images lie.
"""

from __future__ import annotations

from collections.abc import Sequence

from penultimate.data.readers.columns import Columns, column_name, text_of_cell
from penultimate.data.readers.labels import MISSING
from penultimate.data.readers.places import Place
from penultimate.data.readers.walking import some
from penultimate.errors import RequestError, counted


def called(place: Place) -> str:
    """Return how a place's groups are called within a sentence."""
    return f"folder level {place.group}" if isinstance(place.group, int) else f"'{place.group}'"


def groups_in_column(
    place: Place, columns: Columns, paths: Sequence[str], taken: Sequence[str], lines: Sequence[int]
) -> list[str]:
    """Return the group of each row; "" for all if the place names none.

    `taken` are the columns that mean something else. Raise RequestError for a column that does not exist, one
    that is taken, and one that lacks a value.
    """
    if place.group == "":
        return [""] * len(paths)
    if isinstance(place.group, int):
        return groups_by_level(place, paths, "the table's folder")
    name = column_name(place, columns, place.group)
    expect_free(place, name, taken)
    return expect_values(place, [text_of_cell(cell) for cell in columns[name]], lines)


def expect_free(place: Place, name: str, taken: Sequence[str]) -> None:
    """Raise RequestError for a column that means something else."""
    if name in taken:
        raise RequestError(
            f"'{place.path}': the column '{name}' holds the labels, the images or the splits; groups are of"
            " another column, such as one of patients"
        )


def expect_values(place: Place, groups: list[str], lines: Sequence[int]) -> list[str]:
    """Return the groups; raise RequestError with the first line that lacks one."""
    lacking = [line for line, group in zip(lines, groups, strict=True) if group in MISSING]
    if lacking:
        raise RequestError(
            f"'{place.path}': the column '{place.group}' says no group of {counted(len(lacking), 'image')},"
            f" the first in line {lacking[0]}; fill it in, or give an image that stands alone a group of its"
            " own"
        )
    return groups


def groups_by_level(place: Place, paths: Sequence[str], above: str) -> list[str]:
    """Return the group of each path: the folders down to the level that the place names.

    Raise RequestError for a path with fewer folders, and for a place that names a column.

    >>> from pathlib import Path
    >>> groups_by_level(Place(Path("scans"), group=1), ["p1/a.png", "p1/left/b.png"], "the class")
    ['p1', 'p1']
    """
    if not isinstance(place.group, int):
        raise RequestError(
            f"'{place.path}' holds folders, and no column '{place.group}'. Of folders, a group is a level:"
            f" group=1 stands for the first folder below {above}"
        )
    folders = [path.split("/")[:-1] for path in paths]
    short = [path for path, of in zip(paths, folders, strict=True) if len(of) < place.group]
    if short:
        one = len(short) == 1
        raise RequestError(
            f"'{place.path}': {some(short, 'image', 'images')} {'lies' if one else 'lie'} less than"
            f" {counted(place.group, 'folder')} below {above}, so that group={place.group} says no group of"
            f" {'it' if one else 'them'}"
        )
    return ["/".join(of[: place.group]) for of in folders]
