"""Kept runs that somebody has forged, digests and all: the file and the place are named, no error is raw."""

from __future__ import annotations

import copy
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.records.forgeries import (
    VALUES,
    as_npy,
    card_of,
    changed,
    copied,
    declaring,
    forge,
    packed,
    places,
    unpacked,
)
from tests.records.stores import described, finished, prepared

from penultimate.errors import DamagedFileError, PenultimateError
from penultimate.memory import Memory
from penultimate.networks.key import NetworkKey
from penultimate.records import archive
from penultimate.records.archive import ARRAYS_FILE, KEPT, ROWS_FILE, read_kept
from penultimate.records.joining import join
from penultimate.records.keeping import keep
from penultimate.report import exhibit
from penultimate.report.base import StudyResults

KEY = {"objective": "softmax", "backbone": "net", "seed": 0, "draw": 0}
BLOCK = {
    **{"objectives": ["softmax"], "backbones": ["net"], "seeds": [0], "draws": 0, "arm": ""},
    **{"recipe": {"epochs": 1, "steps": None}, "measure": None},
}
TOLD = {
    "left_out": {"digits, test": ["a.png"]},
    "remarks": {"digits, test": ["1 image is grey"]},
    "copies": {"digits": ["2 copies"]},
    "images": {"digits": {"train": 4, "test": 3}},
    "noted": {"net": {"no last layer": "it has none"}},
    "prepared": {
        "net": {
            **{"resize": 256, "crop": 224, "interpolation": "bilinear", "squash": False, "from": "as usual"},
            "statistics": {"mean": [0.5], "std": [0.25]},
        }
    },
    "classes_not_validated": {"digits": ["7"]},
    "undefined": {"probed.net-digits.0": "one class"},
    "undefined_of": {"probed.net-digits.0": {"network": "net", "target": "digits"}},
    "failed": {"given.net.0": {"why": "no such file", "network": "net", "target": None}},
}
"""What the provenance of an evaluation may say besides."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kept study of one network, with a density that a row points to."""
    root = tmp_path_factory.mktemp("forged")
    store = prepared(root / "runs")
    columns = {**KEY, "source": "glyphs", "target": "glyphs"}
    rows = [
        {"metric": "top1", "value": 0.5, "split": "test"},
        {"metric": "singular_values", "value": 3.0, "unit": "points"},
    ]
    spectra = {name: np.arange(3.0) for name in ("activations", "weights", "centroids")}
    arrays = {"singular_values": spectra}
    step = finished(store, "spectra.softmax-s0-glyphs.0", columns, rows, arrays=arrays)
    given = {"given": {"net": "timm:resnet18"}, "measure": None}
    networks, listed = (
        [BLOCK, given],
        [{"slug": name, "label": name, "spec": name} for name in ("softmax", "net")],
    )
    settings = {"networks": networks, "objectives": listed, "measure": ["spectra"], "targets": ["digits"]}
    study = described(store, "forged", [step], **settings, title="", question="", data={"digits": "a folder"})
    keep(study, root / "kept")
    card = card_of(root / "kept")
    card["provenance"] |= copy.deepcopy(TOLD)
    forge(root / "kept", card)
    return root / "kept"


def used(folder: Path, to: Path) -> None:
    """What join and show read of a kept run."""
    results = StudyResults.of(read_kept(folder))
    exhibit("figureE2", results, allow_limited=True)
    for name in ("basis", "ranking"):
        exhibit(name, results)
    whole = card_of(folder)["description"]
    join([folder], whole, [NetworkKey(**KEY)], [("spectra", {**KEY, "target": "glyphs"})], to, partial=True)


def test_a_kept_run_as_it_was_written_is_used(kept: Path, tmp_path: Path) -> None:
    used(kept, tmp_path / "to")


@pytest.mark.parametrize("share", [0.1, 1.0, 4])
def test_a_kept_run_on_shares_of_gpus_is_read(kept: Path, tmp_path: Path, share: float) -> None:
    folder = copied(kept, tmp_path / "kept")
    forge(folder, changed(card_of(kept), ("description", "gpus"), share))
    assert read_kept(folder).description["gpus"] == share


@pytest.mark.long
def test_no_forged_field_ends_in_a_raw_error(kept: Path, tmp_path: Path) -> None:
    """Every field of kept.json, in turn of every wrong form, or missing."""
    folder, card = copied(kept, tmp_path / "kept"), card_of(kept)
    raw, refused = [], 0
    for path in [each for each in places(card) if each]:
        for value in (..., *VALUES):
            forge(folder, changed(card, path, value))
            try:
                used(folder, tmp_path / "to")
            except PenultimateError as error:
                refused += 1
                if not str(error):
                    raw.append((path, value, repr(error)))
            except Exception as error:
                raw.append((path, value, repr(error)))
    assert not raw, raw[:12]
    assert refused > 500


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("provenance", "steps", "spectra"), 3, r"provenance\.steps\.spectra is two whole numbers.*not 3"),
        (("provenance", "data"), [], r"provenance\.data is a table, not \[\]"),
        (("provenance", "seconds"), {"spectra": -2.0}, "a number, 0 or more, not -2.0"),
        (("description", "networks", 0, "seeds"), [-1], r"seeds\[0\] is a whole number, 0 or more, not -1"),
        (("description", "networks", 0, "recipe"), ..., r"networks\[0\]\.recipe is missing"),
        (
            ("description", "networks", 0, "recipe"),
            {"epochs": "x"},
            "recipe: epochs is a whole number.*not 'x'",
        ),
        (("description", "networks", 0, "recipe"), {"batch_size": []}, r"networks\[0\]\.recipe is no recipe"),
        (("description", "networks", 0, "recipe"), {"stray": 1}, r"networks\[0\]\.recipe is no recipe"),
        (("description", "cards"), [{}], r"description\.cards\[0\]\.name is missing"),
        (("provenance", "failed"), {"a": {"why": 3}}, r"provenance\.failed\.a\.why is a text, not 3"),
        (
            ("provenance", "left_out", "digits, test"),
            "a.png",
            r"left_out\.digits, test is a list, not 'a\.png'",
        ),
        (("provenance", "remarks", "digits, test"), [3], r"remarks\.digits, test\[0\] is a text, not 3"),
        (("provenance", "copies"), [], r"provenance\.copies is a table, not \[\]"),
        (
            ("provenance", "images", "digits"),
            {"test": "x"},
            r"images\.digits\.test is a whole number.*'x'",
        ),
        (("provenance", "noted", "net"), "odd", r"noted\.net is a table, not 'odd'"),
        (("provenance", "prepared", "net", "statistics"), {}, r"net\.statistics\.mean is missing"),
        (("provenance", "prepared", "net", "crop"), True, r"net\.crop is a whole number.*not True"),
        (("provenance", "classes_not_validated", "digits"), 7, r"validated\.digits is a list, not 7"),
        (("provenance", "undefined_of"), {"a": 3}, r"provenance\.undefined_of\.a is a table, not 3"),
        (("networks", 0, "seed"), 0.5, r"networks\[0\]\.seed is a whole number, 0 or more, not 0\.5"),
    ],
)
def test_the_file_and_the_place_are_named(
    kept: Path, tmp_path: Path, path: tuple[Any, ...], value: Any, said: str
) -> None:
    folder = copied(kept, tmp_path / "kept")
    forge(folder, changed(card_of(kept), path, value))
    with pytest.raises(DamagedFileError, match=rf"kept/kept\.json' is no file of a kept study: .*{said}"):
        read_kept(folder)


def test_deep_nesting_is_no_kept_run(kept: Path, tmp_path: Path) -> None:
    folder = copied(kept, tmp_path / "kept")
    (folder / KEPT).write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(DamagedFileError, match=r"kept\.json' is not what was written"):
        read_kept(folder)


@pytest.mark.parametrize(
    "rows",
    [
        b"\n",
        b"\x00",
        b"\xff\xfe",
        b"x" * 200_000 + b"\n",
        b"{header}spectra,top1,,,test,,,,,,,done," + b"9" * 200_000 + b"\n",
        b"{header}spectra,top1,,,test,,-3,,,,,done,0.5\n",
        b"{header}spectra,top1,,,test,,nan,,,,,done,0.5\n",
        b"{header}spectra,top1,,,test,,1,,,,,done,half\n",
        b"{header}spectra,top1,,,test,,1,,,,,done,0.5,0.6\n",
        b"{header}spectra\n",
        b"{header}spectra,top1,,fog,test,,1,,,,,done,0.5\n",
        b'{header}spectra,top1,,"a=b, c",test,,1,,,,,done,0.5\n',
        b"{header}spectra,top1,,a=b=c,test,,1,,,,,done,0.5\n",
        b"{header}" + b"spectra,top1,,,test,,1,,,,,done,0.5\n" * 2,
        b'{header}"spectra',
    ],
)
def test_forged_rows_are_named(kept: Path, tmp_path: Path, rows: bytes) -> None:
    folder = copied(kept, tmp_path / "kept")
    header = (kept / ROWS_FILE).read_bytes().partition(b"\n")[0] + b"\n"
    forge(folder, card_of(kept), rows.replace(b"{header}", header))
    with pytest.raises(DamagedFileError, match=r"kept/rows\.csv' is no file of a kept study: "):
        read_kept(folder)


def read_arrays(folder: Path) -> None:
    study = read_kept(folder)
    for row in study.table.where(unit="points"):
        assert len(study.arrays(str(row.step), row.metric)["weights"])


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


def encrypted(content: bytes) -> bytes:
    """An archive that says of its first member that it has a password."""
    central = content.index(b"PK\x01\x02")
    return content[:6] + b"\x01" + content[7 : central + 8] + b"\x01" + content[central + 9 :]


def compressed(content: bytes, how: int) -> bytes:
    """The same archive, compressed in another way, one byte of what is compressed changed."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as given, zipfile.ZipFile(file, "w", how) as archive:
        for name in given.namelist():
            archive.writestr(name, given.read(name) + b"\0" * 200)
    return flipped(file.getvalue(), file.getvalue().index(b"PK\x01\x02") - 12)


FORGED: dict[str, Callable[[bytes, str], bytes]] = {
    "no zip": lambda whole, name: b"PK no zip",
    "cut": lambda whole, name: whole[: len(whole) // 2],
    "without a beginning": lambda whole, name: whole[40:],
    "no array": lambda whole, name: packed({name: b"\x93NUMPY nothing"}),
    "text": lambda whole, name: packed({name: b"not an array at all"}),
    "pickled": lambda whole, name: packed({name: as_npy(np.array([{}], object))}),
    "of another name": lambda whole, name: packed({name.replace("weights", "others"): np.arange(3.0)}),
    "the name of nothing": lambda whole, name: packed({name: np.array("nothing")}),
    "the name of a name": lambda whole, name: packed({name: np.array(name)}),
    "flipped": lambda whole, name: flipped(whole, 60),
    "encrypted": lambda whole, name: encrypted(packed({name: np.arange(3.0)})),
    "flipped bz2": lambda whole, name: compressed(whole, zipfile.ZIP_BZIP2),
    "flipped deflate": lambda whole, name: compressed(whole, zipfile.ZIP_DEFLATED),
    "flipped lzma": lambda whole, name: compressed(whole, zipfile.ZIP_LZMA),
    "10^12 elements": lambda whole, name: packed({name: declaring("(1000000000000,)")}),
    "2^64 elements": lambda whole, name: packed({name: declaring("(4294967296, 4294967296)")}),
    "negative elements": lambda whole, name: packed({name: declaring("(-3,)")}),
    "true elements": lambda whole, name: packed({name: declaring("(True,)")}),
    "an open string": lambda whole, name: packed({name: declaring("'''")}),
    "a bracket": lambda whole, name: packed({name: declaring("(")}),
    "deep": lambda whole, name: packed({name: declaring("(" * 4000)}),
    "a comma": lambda whole, name: packed({name: declaring("(3,),,")}),
    "an unknown type": lambda whole, name: packed({name: declaring("(3,)", "<Q9")}),
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_arrays_are_named(kept: Path, tmp_path: Path, forged: str) -> None:
    folder, whole = copied(kept, tmp_path / "kept"), (kept / ARRAYS_FILE).read_bytes()
    name = next(each for each in unpacked(kept) if each.endswith("weights"))
    forge(folder, card_of(kept), arrays=FORGED[forged](whole, name))
    with pytest.raises(DamagedFileError, match=r"kept/arrays\.npz'"):
        read_arrays(folder)


def test_an_array_larger_than_memory_is_named_before_it_is_unpacked(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "memory", lambda: Memory(2**30, 2**20))
    monkeypatch.setattr(archive, "LARGE", 2**20)
    folder, name = copied(kept, tmp_path / "kept"), next(iter(unpacked(kept)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as packing:
        packing.writestr(f"{name}.npy", as_npy(np.zeros(2**19, np.float32)))
    forge(folder, card_of(kept), arrays=file.getvalue())
    with pytest.raises(DamagedFileError, match=r"unpacks to 2\.1 MB, more than memory has free"):
        read_arrays(folder)


def test_bytes_before_an_archive_change_nothing(kept: Path, tmp_path: Path) -> None:
    """A zip is read from its end, and these bytes are under the digest as all others are."""
    folder = copied(kept, tmp_path / "kept")
    forge(folder, card_of(kept), arrays=b"before" + (kept / ARRAYS_FILE).read_bytes())
    read_arrays(folder)


@pytest.mark.parametrize("file", [ROWS_FILE, ARRAYS_FILE])
def test_a_folder_in_place_of_a_file_is_named(kept: Path, tmp_path: Path, file: str) -> None:
    folder = copied(kept, tmp_path / "kept")
    (folder / file).unlink()
    (folder / file).mkdir()
    with pytest.raises(DamagedFileError, match=rf"{file}' is a folder"):
        read_kept(folder)
