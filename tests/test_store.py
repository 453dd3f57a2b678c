"""Step folders: whole or not there, verified, locked; whatever happens to a process or the disk."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from penultimate.engine.run import exclusively
from penultimate.errors import DamagedFileError, RequestError
from penultimate.locks import BusyError, is_locked, locked
from penultimate.store import Store

STEP = "train.a.0"
FILES = {
    "weights.bin": bytes(range(256)) * 400,
    "rows.jsonl": b'{"metric":"top1","value":0.75}\n' * 4000,
    "few.json": b'{"width":24}',
    "snapshots/1.bin": b"snapshot",
}


def leave(store: Store, step_id: str = STEP) -> Path:
    """Do a step; its folder comes back."""
    folder = store.begin(step_id)
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "checkpoint-3").write_bytes(b"scratch")
    store.finish(step_id, {"step": "train", "status": "done"}, ("checkpoint*",))
    return store.folder(step_id)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "runs")
    store.prepare()
    return store


def flip(path: Path) -> None:
    """Change a bit of a file; its time says nothing of that."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


def test_a_finished_step_is_whole_and_its_scratch_is_gone(store: Store) -> None:
    folder = leave(store)
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert left == {*FILES, "meta.json"}
    other = Store(store.root)
    assert other.is_whole(STEP)
    assert other.holds(STEP)
    assert other.verify(STEP) == folder
    assert other.verified(STEP, "few.json").read_bytes() == FILES["few.json"]
    assert not store.partial(STEP).exists()


def test_what_a_killed_step_left_is_continued_but_for_half_written_files(store: Store) -> None:
    folder = store.begin(STEP)
    (folder / "checkpoint").write_bytes(b"kept")
    (folder / "snapshots").mkdir()
    (folder / "snapshots/.1.bin.0123abcd.tmp").write_bytes(b"half")
    assert not store.is_whole(STEP)
    assert not store.holds(STEP)
    with pytest.raises(DamagedFileError, match=f"step {STEP} is missing"):
        store.verify(STEP)
    assert store.begin(STEP) == folder
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["checkpoint"]


@pytest.mark.parametrize("name", [*FILES, "meta.json"])
def test_one_flipped_bit_is_named_and_the_next_time_the_step_is_done_again(store: Store, name: str) -> None:
    whole = {path: path.read_bytes() for path in leave(store).rglob("*") if path.is_file()}
    flip(store.folder(STEP) / name)
    for look in (Store(store.root, thorough=True).finished, Store(store.root).verify):
        with pytest.raises(DamagedFileError, match=rf"step train\.a\.0: {name} is not what was written"):
            look(STEP)
    quick = Store(store.root)
    assert quick.is_whole(STEP) == (name == "weights.bin")  # the only large one
    quick.set_aside(STEP)
    assert quick.finished(STEP) is None
    assert len([*(store.root / "damaged").iterdir()]) == 1
    leave(quick)
    assert {path: path.read_bytes() for path in whole} == whole


@pytest.mark.parametrize("damage", ["shorter", "missing", "no meta", "of another step"])
def test_other_damage_is_named_too(store: Store, damage: str) -> None:
    folder = leave(store)
    if damage == "shorter":
        (folder / "weights.bin").write_bytes(b"12")
    elif damage == "missing":
        (folder / "weights.bin").unlink()
    elif damage == "no meta":
        (folder / "meta.json").unlink()
    else:
        (folder / "meta.json").write_bytes((leave(store, "train.b.0") / "meta.json").read_bytes())
    with pytest.raises(DamagedFileError, match=r"step train\.a\.0: (weights\.bin|meta\.json) is "):
        Store(store.root).finished(STEP)
    assert not Store(store.root).is_whole(STEP)


@pytest.mark.parametrize("moment", range(8))
def test_a_disk_that_is_full_at_any_moment_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    leave(store, "data.a.0")
    left = [moment]

    def full(_: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            leave(store)
    other = Store(store.root, thorough=True)
    assert other.is_whole("data.a.0")
    assert other.is_whole(STEP) == other.holds(STEP)
    leave(other)
    assert other.is_whole(STEP)


def test_a_place_that_cannot_be_used_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match=r"the output folder '.*file' is a file; give --out a folder"):
        Store(tmp_path / "file")
    with pytest.raises(RequestError, match=r"cannot be written to \(Not a directory\); give --out another"):
        Store(tmp_path / "file/below").prepare()
    with pytest.raises(RequestError, match="--out is empty"):
        Store("")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RequestError, match=r"cannot be written to \(Permission denied\); give --out another"):
        Store(tmp_path / "runs").prepare()


def test_a_store_of_earlier_versions_is_read_and_its_leases_are_ignored(store: Store) -> None:
    leave(store, "data.a.0")
    (store.root / "locks/.shared").write_text("c0ffee")
    (store.root / f"locks/{STEP}").write_text('{"pid": 7, "host": "alpha"}')
    (store.root / f"locks/{STEP}.lease").mkdir()
    (store.root / f"locks/{STEP}.lease/3").write_text("           0{}")
    (store.root / f"partial/{STEP}@3").mkdir()
    (store.root / f"partial/{STEP}@3/checkpoint-1").touch()
    (store.root / "opened").mkdir()
    other = Store(store.root)
    other.prepare()
    assert other.is_whole("data.a.0")
    with other.step_lock(STEP):
        leave(other)
    assert other.is_whole(STEP)


# -- locks ---------------------------------------------------------------------------------------------------

WORKER = """
import os, random, sys, time
from pathlib import Path
from penultimate.store import Store

store, side = Store(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
steps = [f"step.a.{number}" for number in range(20)]
random.Random(int(sys.argv[3])).shuffle(steps)
for step in steps:
    with store.step_lock(step):
        if not store.is_whole(step):
            (store.begin(step) / "rows.jsonl").write_text(step)
            time.sleep(0.02)
            os.write(side, f"{step}\\n".encode())
            store.finish(step, {"step": "step", "status": "done"})
    assert store.is_whole(step)
"""
HOLDER = """
import sys
from pathlib import Path
from penultimate.locks import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_step_that_processes_race_for_is_done_once(store: Store, tmp_path: Path) -> None:
    side = tmp_path / "side"
    side.touch()
    commands = [[sys.executable, "-c", WORKER, store.root, side, str(seed)] for seed in range(4)]
    racing = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in racing] == [0] * 4
    done = Counter(side.read_text().splitlines())
    assert done == {f"step.a.{number}": 1 for number in range(20)}


def test_a_lock_keeps_another_process_out_until_its_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "locks/step"
    assert not is_locked(path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_locked(path)
        with pytest.raises(BusyError, match="another process holds"), locked(path):
            pass
        threading.Timer(0.3, holder.kill).start()
        with locked(path, wait=True):
            assert holder.wait() == -9
    assert not is_locked(path)


def test_a_second_run_of_a_study_is_refused_in_a_sentence(store: Store) -> None:
    folder = store.study("tiny")
    with exclusively(store, folder):
        refused = pytest.raises(RequestError, match=r"study 'tiny' is being run in '.*' already; wait for it")
        with refused, exclusively(Store(store.root), folder):
            pass
    with exclusively(store, folder):
        assert is_locked(folder / ".lock")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_a_sentence(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RequestError, match=r"'.*locks' has no locks, .*: -o flock"), store.step_lock(STEP):
        pass


def test_meta_json_has_the_form_that_every_earlier_version_reads(store: Store) -> None:
    text = (leave(store) / "meta.json").read_text()
    content = json.loads(text)
    assert list(content) == ["files", "id", "schema", "sha256", "status", "step"]
    assert (content["schema"], content["files"]["few.json"]["bytes"]) == (2, len(FILES["few.json"]))
    assert text == json.dumps(content, indent=1, sort_keys=True) + "\n"
