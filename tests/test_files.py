"""Files: what a user's name becomes, and how they are written and sealed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import (
    LONGEST_FILE_NAME,
    OtherVersionError,
    atomic_write,
    canonical_json,
    digest_arrays,
    digest_bytes,
    digest_file,
    file_name,
    nearest_beside,
    read_sealed,
    with_digest,
    without_digest,
    write_given,
    write_sealed,
)

HOSTILE = (
    *("..", ".", "...", ".lock", "/", "a/b", "../x", "/etc/x", "a\0b", "\n", " ", "a ", "a.", "-x", "~", "*"),
    *(
        "a%2Fb",
        "%2E%2E",
        "%",
        "é" * 150,
        "e\u0301",
        "é",
        "x" * 300,
        "x" * 299,
        "图" * 100,
        "\udcff",
        "\ud800",
    ),
    *("a\\b", "C:", "rows.jsonl", "\u202ex", "CON", "A", "a"),
)


def test_every_name_is_one_file_of_its_own_within_its_folder(tmp_path: Path) -> None:
    names = [file_name(name) for name in HOSTILE]
    assert len({*names}) == len(HOSTILE)
    for name in names:
        assert 0 < len(os.fsencode(name)) <= LONGEST_FILE_NAME
        assert "/" not in name
        assert name[0] != "."
        assert name[-1] not in ". "
        (tmp_path / name).mkdir()
    assert {path.name for path in tmp_path.iterdir()} == {*names}


def test_usual_names_stay_as_they_are() -> None:
    for name in ("softmax", "resnet50 (seed=1)", "vit-b_16.augreg", "a,b", "x@y+z:w", "-x"):
        assert file_name(name) == name
    with pytest.raises(RequestError, match="a name is text of one character or more"):
        file_name("")


def test_a_file_is_old_or_new_never_half(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"ne"
        assert path.read_bytes() == b"old"
        yield b"w"
        if fails:
            raise KeyboardInterrupt

    path, fails = tmp_path / "x", True
    atomic_write(path, b"old")
    with pytest.raises(KeyboardInterrupt):
        atomic_write(path, pieces())
    assert path.read_bytes() == b"old"
    fails = False
    atomic_write(path, pieces(), durable=False)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_keeps_the_old_file_and_is_said_of_the_file_that_the_user_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "x"
    atomic_write(path, b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as error:
        write_given(path, b"new", "a table")
    assert error.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_where_nothing_can_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"a table cannot be written to '.*none/x' \(No such file"):
        write_given(tmp_path / "none/x", b"", "a table")
    with pytest.raises(RequestError, match=f"'{tmp_path}' is no file; name a file"):
        write_given(tmp_path, b"", "a table")
    with pytest.raises(RequestError, match="a table is empty; give a path"):
        write_given("", b"", "a table")


@pytest.mark.parametrize("umask", [0o077, 0o002])
def test_a_file_is_open_to_whom_the_umask_leaves_it(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        atomic_write(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~umask


def test_the_nearest_name_beside_a_missing_path_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "birds.npz").touch()
    monkeypatch.chdir(tmp_path)
    assert nearest_beside("bird.npz") == " Did you mean 'birds.npz'?"
    assert nearest_beside(tmp_path / "bird.npz") == f" Did you mean '{tmp_path}/birds.npz'?"
    assert nearest_beside("quite other") == nearest_beside("none/birds.npz") == ""


# -- digests and seals ---------------------------------------------------------------------------------------


def test_digests_depend_on_type_shape_and_content(tmp_path: Path) -> None:
    one = np.arange(6, dtype=np.float32)
    different = [one, one.reshape(2, 3), one.astype(np.float64), one + 1]
    assert len({digest_arrays(array) for array in different}) == 4
    assert digest_arrays(one.reshape(2, 3).T.copy()) == digest_arrays(one.reshape(2, 3).T)
    (tmp_path / "x").write_bytes(b"abc")
    assert digest_file(tmp_path / "x") == digest_bytes(b"abc")
    assert digest_bytes(b"abc").startswith("ba7816bf")
    assert canonical_json({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'


def test_what_bears_its_digest_is_read_back_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-1"
    path.write_bytes(with_digest(b"weights"))
    assert without_digest(path) == b"weights"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedFileError, match="checkpoint-1 is not what was written"):
        without_digest(path)


def test_what_is_sealed_reads_back(tmp_path: Path) -> None:
    note = {"text": '\n "sha256": "', "a": {"sha256": "0" * 64}, "z": [{"sha256": ""}]}
    content = {"pair": (1, 2.5), "none": None, "text": "ä", "by number": {3: "x"}, "note": note}
    write_sealed(tmp_path / "x", content, 7)
    assert read_sealed(tmp_path / "x", 7) == {**content, "pair": [1, 2.5], "by number": {"3": "x"}}
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "y", 7)
    with pytest.raises(DamagedFileError, match=r"cannot be read \(Is a directory\)"):
        read_sealed(tmp_path, 7)
    with pytest.raises(OtherVersionError, match=r"another version .*\(schema 7; this one reads 8\); .*--out"):
        read_sealed(tmp_path / "x", 8)


def test_any_bit_of_a_sealed_file_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "meta.json"
    write_sealed(path, {"id": "a.b", "files": {"rows.jsonl": {"bytes": 3}}, "text": "ä"}, 2)
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in (1, 128):
            changed = bytearray(whole)
            changed[position] ^= bit
            path.write_bytes(changed)
            with pytest.raises(DamagedFileError, match=r"meta\.json' is not what was written"):
                read_sealed(path, 2)


def test_a_file_under_the_digest_of_the_first_stores_is_read(tmp_path: Path) -> None:
    content = {"id": "a.b", "schema": 2}
    first = {**content, "sha256": digest_bytes(canonical_json(content).encode())}
    (tmp_path / "x").write_text(json.dumps(first, indent=1))
    assert read_sealed(tmp_path / "x", 2) == {"id": "a.b"}
    (tmp_path / "x").write_text(json.dumps({**first, "id": "a.c"}, indent=1))
    with pytest.raises(DamagedFileError, match="its sha256 differs"):
        read_sealed(tmp_path / "x", 2)
