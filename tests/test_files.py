"""Files: what a user's name becomes, how they are written, and what killed writers have left."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penultimate import files
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import (
    LONGEST_FILE_NAME,
    atomic_write,
    digest_file,
    file_name,
    given_path,
    nearest_beside,
    read_file,
    read_sealed,
    without_digest,
    write_sealed,
)

HOSTILE = (
    *(
        "..",
        ".",
        "...",
        ".lock",
        ".hidden",
        "/",
        "a/b",
        "../x",
        "/etc/x",
        "a\0b",
        "\n",
        "a\nb",
        " ",
        "a ",
        "a.",
    ),
    *(
        "-x",
        "--out",
        "~",
        "~root",
        "*",
        "a%2Fb",
        "%2E%2E",
        "%",
        "é" * 150,
        "e\u0301",
        "é",
        "x" * 300,
        "x" * 299,
    ),
    *("图" * 100, "\udcff", "\ud800", "a\\b", "C:", "rows.jsonl", "meta.json", "\u202ex", "CON", "A", "a"),
)


@pytest.fixture(autouse=True)
def _same_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_every_name_is_one_file_of_its_own_within_its_folder(tmp_path: Path) -> None:
    names = [file_name(name) for name in HOSTILE]
    assert len({*names}) == len(HOSTILE)
    for name in names:
        assert 0 < len(os.fsencode(name)) <= LONGEST_FILE_NAME
        assert "/" not in name
        assert name[0] != "."
        assert name[-1] not in ". "
        assert name.isprintable()
        (tmp_path / name).mkdir()
    assert {path.name for path in tmp_path.iterdir()} == {*names}


def test_usual_names_stay_as_they_are() -> None:
    for name in ("softmax", "resnet50 (seed=1)", "vit-b_16.augreg", "a,b", "x@y+z:w", "-x"):
        assert file_name(name) == name
    assert file_name("b/b") == "b%2Fb"


@pytest.mark.parametrize("name", ["", None, 3, b"x"])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(RequestError, match="a name is text of one character or more"):
        file_name(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_what_can_be_no_path_is_refused(path: str) -> None:
    with pytest.raises(RequestError, match="--to is"):
        given_path(path, "--to")


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o002, 0o664), (0o022, 0o644), (0o027, 0o640)])
def test_a_file_is_open_to_whom_the_umask_leaves_it(tmp_path: Path, umask: int, mode: int) -> None:
    os.umask(umask)
    for _ in range(2):
        atomic_write(tmp_path / "file", b"x")
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


@pytest.mark.parametrize("name", ["page.html", "x" * 255, "é" * 127])
def test_what_a_killed_writer_left_of_a_file_is_gone_with_the_next(tmp_path: Path, name: str) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:

        def pieces() -> Iterator[bytes]:
            yield b"x" * 2**20
            os.write(writer, b"!")
            threading.Event().wait()

        atomic_write(tmp_path / name, pieces())
    os.read(reader, 1)
    (left,) = tmp_path.iterdir()
    atomic_write(tmp_path / name, b"meanwhile")  # its writer lives: it is none of the leftovers
    assert left.exists()
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    (tmp_path / ".another.01234567.tmp").touch()
    atomic_write(tmp_path / name, b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {name, ".another.01234567.tmp"}
    assert (tmp_path / name).read_bytes() == b"whole"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x"
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        atomic_write(tmp_path / "file", pieces())
    assert not [*tmp_path.iterdir()]


def test_a_write_that_the_system_refuses_names_the_file_and_not_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for path, code in ((tmp_path / "file", errno.ENOSPC), (tmp_path / "none/file", errno.ENOENT)):
        with pytest.raises(OSError) as error:  # noqa: PT011
            atomic_write(path, b"x")
        assert (error.value.errno, error.value.filename) == (code, str(path))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("missing", "hint"),
    [
        ("bird.npz", " Did you mean '{}birds.npz'?"),
        ("quite other", ""),
        ("none/birds.npz", ""),
        ("birds.npz/x", ""),
        ("b\0", ""),
    ],
)
def test_the_nearest_name_beside_a_missing_path_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, hint: str
) -> None:
    (tmp_path / "birds.npz").touch()
    monkeypatch.chdir(tmp_path)
    assert nearest_beside(missing) == hint.format("")
    assert nearest_beside(tmp_path / missing) == hint.format(f"{tmp_path}{os.sep}")


def test_writers_of_one_file_at_once_leave_one_of_their_contents(tmp_path: Path) -> None:
    def work(letter: bytes) -> None:
        for _ in range(50):
            atomic_write(tmp_path / "file", itertools.repeat(letter, 100), durable=False)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() in {letter * 100 for letter in (b"a", b"b", b"c")}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_locks_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refused)
    atomic_write(tmp_path / "file", b"x")
    assert (tmp_path / "file").read_bytes() == b"x"


# -- what stands in the place of a file ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    for read in (digest_file, read_file, without_digest):
        with pytest.raises(OSError, match="it is no file"):
            read(path)
    with pytest.raises(DamagedFileError, match=rf"'{path}' cannot be read \(it is no file\)"):
        read_sealed(path, 1)


def test_a_folder_in_the_place_of_a_file_is_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    path.mkdir()
    (path / "mine").touch()
    for write in (lambda: atomic_write(path, b"x"), lambda: write_sealed(path, {}, 1)):
        with pytest.raises(RequestError, match=rf"'{path}' is a folder, .*move it away"):
            write()
    assert [each.name for each in tmp_path.iterdir()] == ["study.json"]
    assert [each.name for each in path.iterdir()] == ["mine"]


@pytest.mark.parametrize("schema", [b"[1]", b"null", b'"2"', b"{}", b"NaN", b"true"])
def test_a_schema_that_is_no_number_is_damage_and_no_other_version(tmp_path: Path, schema: bytes) -> None:
    (tmp_path / "x").write_bytes(b'{"schema": ' + schema + b"}")
    with pytest.raises(DamagedFileError, match="is not what was written"):
        read_sealed(tmp_path / "x", 2)


def test_no_file_takes_the_place_of_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, a file that is renamed to /dev/null would be in its place for everybody."""
    monkeypatch.setattr(files, "DEVICES", (str(tmp_path),))
    for name in ("null", "stdout"):
        with pytest.raises(RequestError, match=f"'.*{name}' is a device, where a file is to be written"):
            atomic_write(tmp_path / name, b"page")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    device = tmp_path / "device"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes a device")
    for path in (device, tmp_path / "link"):
        if path != device:
            path.symlink_to(device)
        with pytest.raises(RequestError, match="is a device"):
            atomic_write(path, b"page")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert (tmp_path / "link").is_symlink()
