"""MATLAB's files: what is read, and that no damage ends the process that asks."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from penultimate.data.readers.matlab import elements
from penultimate.errors import DamagedFileError

LABELLED = [{"class": 1, "fname": "00001.jpg"}, {"class": 2, "fname": "00002.jpg"}]


def saved(**variables: Any) -> bytes:
    file = io.BytesIO()
    savemat(file, variables)
    return file.getvalue()


def structs(*rows: dict[str, Any]) -> np.ndarray:
    array = np.empty((1, len(rows)), dtype=[(name, object) for name in rows[0]])
    array[0] = [tuple(row.values()) for row in rows]
    return array


def read(content: bytes, variable: str = "x") -> list[Any]:
    return elements(content, "'x.mat'", variable, lambda element: element)


@pytest.mark.long
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([[3, 1, 2]], np.uint8), [3, 1, 2]),
        (7.0, [7]),
        ("a café", ["a café"]),
        (np.array([["one", "zwölf"]], object), ["one", "zwölf"]),
        (structs(*LABELLED), LABELLED),
        (structs({"class": 1, "children": np.array([4, 5])}), [{"class": 1, "children": [4, 5]}]),
        (structs({"inner": structs(LABELLED[0])}), [{"inner": LABELLED[:1]}]),
        (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        (np.array([]), []),
    ],
)
def test_every_kind_of_variable_is_a_list(value: Any, expected: list[Any]) -> None:
    assert read(saved(other="no", x=value)) == expected


SEGFAULTS = [(268, 1), (296, 0), (328, 6), (396, 1), (400, 3), (456, 7)]
"""The byte and the bit: of 15 in 1,000 flips scipy 1.17.1 dies."""
UNFORESEEN = [(144, 6), (335, 7), (424, 4), (471, 0)]


@pytest.mark.long
@pytest.mark.parametrize(("byte", "bit"), [*SEGFAULTS, *UNFORESEEN, (163, 0)])
def test_no_flip_ends_the_process(byte: int, bit: int) -> None:
    content = bytearray(saved(annotations=structs(*LABELLED)))
    content[byte] ^= 1 << bit
    try:
        found = read(bytes(content), "annotations")
    except DamagedFileError:
        return
    assert found == LABELLED


def test_a_reader_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\necho '[1]'\nkill -SEGV $$\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with pytest.raises(
        DamagedFileError, match=r"'x\.mat' is not .*: reading it ends in 'Segmentation fault'"
    ):
        read(b"x")


def test_what_is_the_matter_is_said() -> None:
    with pytest.raises(DamagedFileError, match=r"with 'x' as published: it holds no 'x'$"):
        read(saved(y=1))
    with pytest.raises(DamagedFileError, match=r"it holds a complex$"):
        read(saved(x=1j))
    labelled = saved(x=structs(*LABELLED))
    with pytest.raises(DamagedFileError, match=r"there is no 'words'$"):
        elements(labelled, "'x.mat'", "x", lambda row: row["words"])
    for element in (int, lambda row: int(row["fname"]), lambda row: int(row["class"] * float("inf"))):
        with pytest.raises(DamagedFileError, match=r"is not a whole MATLAB file with 'x' as published: .+"):
            elements(labelled, "'x.mat'", "x", element)


def test_a_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    content = saved(x=np.arange(5))
    first = read(content)
    monkeypatch.setattr(subprocess, "run", None)
    assert read(bytes(bytearray(content))) == first
