"""Step folders: whole or not there, verified, locked."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penultimate.errors import DamagedFileError, RequestError
from penultimate.store import BusyError, Store, atomic_write, canonical_json, digest_arrays, digest_file, lock


def finished(store: Store, step_id: str = "train.a.0") -> Path:
    store.prepare()
    folder = store.begin(step_id)
    (folder / "weights.bin").write_bytes(bytes(range(256)) * 40)
    (folder / "checkpoint-3").write_bytes(b"scratch")
    store.finish(step_id, {"step": "train", "status": "done"}, ("checkpoint*",))
    return store.folder(step_id)


def test_a_finished_step_is_whole_and_its_scratch_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = finished(store)
    assert store.is_whole("train.a.0")
    assert sorted(path.name for path in folder.iterdir()) == ["meta.json", "weights.bin"]
    assert store.verify("train.a.0") == folder
    assert not store.partial("train.a.0").exists()


def test_an_unfinished_step_is_not_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    store.begin("train.a.0")
    assert not store.is_whole("train.a.0")
    with pytest.raises(DamagedFileError):
        store.verify("train.a.0")


@pytest.mark.parametrize("position", [0, 5000, 10239])
def test_one_flipped_bit_is_found(tmp_path: Path, position: int) -> None:
    path = finished(Store(tmp_path)) / "weights.bin"
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"weights\.bin"):
        Store(tmp_path).verify("train.a.0")


@pytest.mark.parametrize("damage", ["shorter", "missing", "meta", "meta is no JSON", "meta of another"])
def test_damage_is_seen_and_set_aside(tmp_path: Path, damage: str) -> None:
    folder = finished(Store(tmp_path))
    if damage == "shorter":
        (folder / "weights.bin").write_bytes(b"12")
    elif damage == "missing":
        (folder / "weights.bin").unlink()
    elif damage == "meta":
        (folder / "meta.json").unlink()
    elif damage == "meta is no JSON":
        (folder / "meta.json").write_text("{")
    else:
        (folder / "meta.json").write_text(
            (folder / "meta.json").read_text().replace("train.a.0", "train.b.0")
        )
    store = Store(tmp_path)
    assert not store.is_whole("train.a.0")
    with pytest.raises(DamagedFileError):
        store.verify("train.a.0")
    store.set_aside("train.a.0")
    assert not folder.exists()
    assert list((tmp_path / "damaged").iterdir())


def test_the_same_bytes_changed_after_the_end_are_looked_at_again(tmp_path: Path) -> None:
    path = finished(Store(tmp_path)) / "weights.bin"
    content = bytearray(path.read_bytes())
    content[7] ^= 4
    path.write_bytes(content)
    later = path.stat().st_mtime + 10
    os.utime(path, (later, later))
    assert not Store(tmp_path).is_whole("train.a.0")


def test_stale_temporary_files_are_swept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    folder = store.begin("a")
    (folder / ".weights.abc.tmp").write_bytes(b"half")
    (folder / "checkpoint").write_bytes(b"kept")
    assert [path.name for path in store.begin("a").iterdir()] == ["checkpoint"]


def test_a_place_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RequestError, match="is, or lies below, a file"):
        Store(file).prepare()
    with pytest.raises(RequestError, match="is, or lies below, a file"):
        Store(file / "below").prepare()


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (errno.EACCES, "read-only for this user"),
        (errno.EROFS, "Read-only file system; give --out"),
        (errno.ENOSPC, "No space left on device; free some space"),
    ],
)
def test_a_place_without_rights_or_room_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, answer: str
) -> None:
    def refuse(handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RequestError, match=answer):
        Store(tmp_path).prepare()
    assert not list((tmp_path / "partial").iterdir())


def test_a_file_is_old_or_new_never_half(tmp_path: Path) -> None:
    path = tmp_path / "x"
    atomic_write(path, b"old")
    with pytest.raises(TypeError):
        atomic_write(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_keeps_a_second_process_out_and_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys, time; from pathlib import Path; from penultimate.store import lock\n"
        f"with lock(Path({str(path)!r})):\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=str(other.pid)), lock(path):
            pass
        other.kill()
        other.wait()
        with lock(path) as file:
            assert file.name == str(path)


def test_digests_depend_on_type_shape_and_content() -> None:
    one = np.arange(6, dtype=np.float32)
    different = [one, one.reshape(2, 3), one.astype(np.float64), one + 1]
    assert len({digest_arrays(array) for array in different}) == 4
    assert digest_arrays(one.reshape(2, 3).T.copy()) == digest_arrays(one.reshape(2, 3).T)


def test_canonical_json_has_one_form(tmp_path: Path) -> None:
    assert canonical_json({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    assert digest_file(path).startswith("ba7816bf")
