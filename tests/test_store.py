"""Step folders: whole or not there, verified, locked."""

from __future__ import annotations

import errno
import json
import os
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import (
    atomic_write,
    canonical_json,
    digest_arrays,
    digest_bytes,
    digest_file,
    read_sealed,
    write_sealed,
)
from penultimate.store import SCHEMA, SMALL, Store
from tests.opening import opened


def finished(store: Store, step_id: str = "train.a.0") -> Path:
    store.prepare()
    folder = store.begin(step_id)
    (folder / "weights.bin").write_bytes(bytes(range(256)) * 400)
    (folder / "rows.jsonl").write_bytes(b'{"metric":"top1","value":0.75}\n' * 4000)
    (folder / "few.json").write_bytes(b'{"width":24}')
    (folder / "checkpoint-3").write_bytes(b"scratch")
    store.finish(step_id, {"step": "train", "status": "done"}, ("checkpoint*",))
    return store.folder(step_id)


def flip(path: Path, position: int, quietly: bool = True) -> None:
    """Change a bit of a file; its time says nothing of that."""
    content, when = bytearray(path.read_bytes()), path.stat()
    content[position] ^= 1
    path.write_bytes(content)
    if quietly:
        os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


def test_a_finished_step_is_whole_and_its_scratch_is_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = finished(store)
    assert store.is_whole("train.a.0")
    assert sorted(path.name for path in folder.iterdir()) == [
        "few.json",
        "meta.json",
        "rows.jsonl",
        "weights.bin",
    ]
    assert store.verify("train.a.0") == folder
    assert not store.partial("train.a.0").exists()


def test_an_unfinished_step_is_not_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    store.begin("train.a.0")
    assert not store.is_whole("train.a.0")
    with pytest.raises(DamagedFileError):
        store.verify("train.a.0")


@pytest.mark.parametrize("position", [0, 5000, 102399])
def test_one_flipped_bit_is_found(tmp_path: Path, position: int) -> None:
    flip(finished(Store(tmp_path)) / "weights.bin", position)
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
    with pytest.raises(DamagedFileError, match=r"step train\.a\.0: (weights\.bin|meta\.json) "):
        store.finished("train.a.0")
    with pytest.raises(DamagedFileError):
        store.verify("train.a.0")
    store.set_aside("train.a.0")
    assert store.finished("train.a.0") is None
    assert not folder.exists()
    assert list((tmp_path / "damaged").iterdir())


@pytest.mark.parametrize("name", ["few.json", "rows.jsonl"])
def test_small_files_and_rows_are_digested_at_every_look(tmp_path: Path, name: str) -> None:
    path = finished(Store(tmp_path)) / name
    assert (path.stat().st_size > SMALL) == (name == "rows.jsonl")
    flip(path, path.stat().st_size // 2)
    with pytest.raises(DamagedFileError, match=f"{name} is not what was written"):
        Store(tmp_path).finished("train.a.0")


def test_a_large_file_is_digested_at_a_look_only_when_it_was_touched(tmp_path: Path) -> None:
    path = finished(Store(tmp_path)) / "weights.bin"
    flip(path, 7)
    assert Store(tmp_path).is_whole("train.a.0")
    later = path.stat().st_mtime + 10
    os.utime(path, (later, later))
    assert not Store(tmp_path).is_whole("train.a.0")


def test_a_thorough_look_digests_large_files_whatever_their_time_says(tmp_path: Path) -> None:
    path = finished(Store(tmp_path)) / "weights.bin"
    assert Store(tmp_path, thorough=True).is_whole("train.a.0")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    os.utime(path, (0, 0))  # as if the clock stood back when it was changed
    assert Store(tmp_path).is_whole("train.a.0")
    with pytest.raises(DamagedFileError, match=r"weights\.bin is not what was written"):
        Store(tmp_path, thorough=True).finished("train.a.0")


def test_any_bit_of_a_meta_is_seen(tmp_path: Path) -> None:
    path = finished(Store(tmp_path)) / "meta.json"
    whole = path.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(DamagedFileError, match=r"step train\.a\.0: meta\.json is not what was written"):
            Store(tmp_path).meta("train.a.0")


def test_a_meta_may_hold_what_looks_like_a_digest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    facts = {"note": '\n "sha256": "', "a": {"sha256": "0" * 64}, "sha": "1", "z": [{"sha256": ""}]}
    store.begin("given.a.0")
    store.finish("given.a.0", {"step": "given", "status": "done", **facts})
    meta = Store(tmp_path).finished("given.a.0")
    assert meta is not None
    assert {name: meta.content[name] for name in facts} == facts


def test_a_meta_under_the_digest_of_the_first_stores_is_read(tmp_path: Path) -> None:
    path = finished(Store(tmp_path)) / "meta.json"
    content = {name: value for name, value in json.loads(path.read_text()).items() if name != "sha256"}
    first = {**content, "sha256": digest_bytes(canonical_json(content).encode())}
    path.write_text(json.dumps(first, indent=1, sort_keys=True) + "\n")
    assert Store(tmp_path).is_whole("train.a.0")
    flip(path, path.read_bytes().index(b"train"))
    assert not Store(tmp_path).is_whole("train.a.0")


def test_a_step_is_durable_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.prepare()
    folder = store.begin("train.a.0")
    (folder / "rows.jsonl").write_bytes(b"")
    (folder / "splits").mkdir()
    (folder / "splits" / "train.npz").write_bytes(b"images")
    synced: list[tuple[str, bool]] = []

    def note(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)
        time.sleep(0.01)  # nothing is renamed before the slowest is durable
        synced.append((str(path), store.folder("train.a.0").exists()))

    monkeypatch.setattr(os, "fsync", note)
    store.finish("train.a.0", {"step": "train", "status": "done"})
    own = "partial/train.a.0"
    files = ("rows.jsonl", "splits", "splits/train.npz", "meta.json")
    assert sorted(synced[:-1]) == [(own, False), *((f"{own}/{name}", False) for name in sorted(files))]
    assert synced[-1] == ("steps", True)


@pytest.mark.parametrize("durable", [True, False])
def test_only_what_is_to_be_durable_is_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
    )
    path = tmp_path / "page.html"
    path.write_bytes(b"before")
    atomic_write(path, [b"af", b"ter"], durable=durable)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"after"]
    assert len(synced) == (2 if durable else 0)
    assert synced[1:] == ([tmp_path.name] if durable else [])


def test_a_look_reads_every_small_file_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    steps = [f"idle.{number}.0" for number in range(20)]
    for step_id in steps:
        (store.begin(step_id) / "rows.jsonl").write_bytes(b"")
        store.finish(step_id, {"step": "idle", "status": "done"})
    with opened(tmp_path) as files:
        assert all(Store(tmp_path).is_whole(step_id) for step_id in steps)
    assert Counter(files) == Counter(
        str(store.folder(step_id) / name) for step_id in steps for name in ("meta.json", "rows.jsonl")
    )
    with opened(tmp_path) as files:
        assert all(map(store.holds, steps))
    assert not store.holds("idle.20.0")
    assert files == []


def test_a_meta_of_another_schema_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = finished(Store(tmp_path)) / "meta.json"
    content = read_sealed(path, SCHEMA)
    for schema in (1, SCHEMA + 1):
        write_sealed(path, content, schema)
        for text in (path.read_text(), json.dumps({**content, "schema": schema})):
            path.write_text(text)
            for look in (Store(tmp_path).meta, Store(tmp_path).is_whole):
                with pytest.raises(RequestError, match=rf"another version .*\(schema {schema}; .*--out"):
                    look("train.a.0")


def test_a_meta_of_another_step_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    finished(store).rename(store.folder("train.b.0"))
    with pytest.raises(DamagedFileError, match=r"step train\.b\.0: meta\.json is that of step train\.a\.0"):
        store.meta("train.b.0")


def test_what_is_sealed_reads_back(tmp_path: Path) -> None:
    content = {"pair": (1, 2.5), "none": None, "text": "ä", "by number": {3: "x"}}
    write_sealed(tmp_path / "x", content, 7)
    assert read_sealed(tmp_path / "x", 7) == {**content, "pair": [1, 2.5], "by number": {"3": "x"}}
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "y", 7)
    with pytest.raises(DamagedFileError, match=r"cannot be read \(Is a directory\)"):
        read_sealed(tmp_path, 7)


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


# -- links, and who may read --------------------------------------------------------------------------------


def test_links_in_a_store_lead_nothing_elsewhere(tmp_path: Path) -> None:
    store, mine = Store(tmp_path / "runs"), tmp_path / "mine"
    mine.mkdir()
    (mine / "x").write_text("mine")
    store.prepare()
    store.partial("a.b.1").symlink_to(mine)
    folder = store.begin("a.b.1")
    (folder / "x").symlink_to(mine / "x")
    (folder / "inner").symlink_to(mine)
    (folder / "deep").mkdir()
    (folder / "deep/.bank.json.0123abcd.tmp").touch()
    (folder / "deep/x").symlink_to(mine / "x")
    assert store.begin("a.b.1") == folder
    assert [path.name for path in folder.iterdir()] == ["deep"]
    assert not [*(folder / "deep").iterdir()]
    (folder / "checkpoints").symlink_to(mine)
    (folder / "x").write_text("the step's")
    store.folder("a.b.1").symlink_to(tmp_path / "nothing")
    store.finish("a.b.1", {"step": "a", "status": "done"}, ("checkpoint*",))
    assert not store.folder("a.b.1").is_symlink()
    assert (store.verify("a.b.1") / "x").read_text() == "the step's"
    assert [path.name for path in mine.iterdir()] == ["x"]
    assert (mine / "x").read_text() == "mine"
    (aside,) = (tmp_path / "runs/damaged").iterdir()
    assert (aside / "a.b.1").is_symlink()


def test_a_step_that_is_a_link_is_set_aside_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    folder = finished(store)
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    store.set_aside("train.a.0")
    assert not store.holds("train.a.0")
    assert (elsewhere / "weights.bin").exists()


def test_partial_folders_that_are_links_are_not_taken_over(tmp_path: Path) -> None:
    store, mine = Store(tmp_path / "runs"), tmp_path / "mine"
    store.prepare(shared=True)
    mine.mkdir()
    (mine / "x").write_text("mine")
    (store.root / "partial/a.b.1@7").symlink_to(mine)
    (store.root / "partial/a.b.1@x").mkdir()
    with store.step_lock("a.b.1"):
        assert [*store.begin("a.b.1").iterdir()] == []
    assert (mine / "x").read_text() == "mine"


@pytest.mark.parametrize("leads", ["elsewhere", "nowhere"])
@pytest.mark.parametrize("name", ["steps", "partial", "locks", "studies", "damaged", "locks/.shared"])
def test_a_folder_of_a_store_is_no_link(tmp_path: Path, name: str, leads: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "runs" / name).symlink_to(tmp_path / leads)
    with pytest.raises(RequestError, match=rf"runs/{name}' is a link, .*move it away"):
        Store(tmp_path / "runs").prepare(shared=True)
    assert not [*(tmp_path / "elsewhere").iterdir()]
    assert not (tmp_path / "nowhere").exists()


def test_a_step_whose_file_leads_in_a_circle_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = finished(store)
    (folder / "meta.json").unlink()
    (folder / "meta.json").symlink_to("meta.json")
    assert not store.holds("train.a.0")
    assert not store.is_whole("train.a.0")


@pytest.mark.parametrize("name", ["link", "dangling", "file"])
def test_the_folder_of_a_study_is_no_link_and_no_file(tmp_path: Path, name: str) -> None:
    store, mine = Store(tmp_path / "runs"), tmp_path / "mine"
    store.prepare()
    mine.mkdir()
    (store.root / "studies/link").symlink_to(mine)
    (store.root / "studies/dangling").symlink_to(tmp_path / "nothing")
    (store.root / "studies/file").touch()
    with pytest.raises(RequestError, match=rf"studies/{name}' is a (link|file)"):
        store.study(name)
    assert not [*mine.iterdir()]


def test_names_that_a_file_system_takes_for_the_same_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.prepare()
    store.study("Mine")
    assert store.study("other").is_dir()
    monkeypatch.setattr(Path, "samefile", lambda self, other: self.name.lower() == other.name.lower())
    with pytest.raises(RequestError, match="is the folder of 'Mine' too"):
        store.study("mine")


@pytest.mark.parametrize("umask", [0o077, 0o002])
def test_all_of_a_store_is_open_to_whom_the_umask_leaves_it(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = Store(tmp_path / "runs")
        store.prepare(shared=True)
        with store.step_lock("train.a.0"):
            finished(store)
        store.set_aside("train.a.0")
        with store.step_lock("train.a.0"):
            finished(store)
        write_sealed(store.study("tiny") / "study.json", {}, SCHEMA)
    finally:
        os.umask(before)
    for path in (tmp_path / "runs").rglob("*"):
        wanted = (0o777 if path.is_dir() else 0o666) & ~umask
        assert path.stat().st_mode & 0o777 == wanted, path


@pytest.mark.parametrize("root", ["", "a\0b", "x" * 300])
def test_a_store_that_can_be_nowhere_is_refused(root: str) -> None:
    with pytest.raises(RequestError, match=r"--out"):
        Store(root).prepare()
