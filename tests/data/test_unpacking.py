"""Archives that others made: whole or not at all, and nothing outside of the folder."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.published import jpeg, tar

from penultimate.data.readers.unpacking import unpack
from penultimate.errors import DamagedFileError, RequestError


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def zip_of(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")


def test_an_archive_with_its_folder_and_one_without(tmp_path: Path) -> None:
    tar(tmp_path / "a.tgz", {"set/images/a.jpg": jpeg(0), "set/./images/b.jpg": jpeg(1)}, "w:gz")
    root = tmp_path / "root"
    assert unpack(tmp_path / "a.tgz", root, "set") == [root / "set"]
    tar(tmp_path / "b.tar", {"./annotations/list.txt": b"a 1"})
    assert unpack(tmp_path / "b.tar", root, "set") == [root / "set/annotations"]
    zip_of(tmp_path / "c.zip", "Training_01.txt", "Testing_01.txt")
    unpack(tmp_path / "c.zip", root, "set")
    assert files(root) == [
        "set/Testing_01.txt",
        "set/Training_01.txt",
        "set/annotations/list.txt",
        "set/images/a.jpg",
        "set/images/b.jpg",
    ]
    assert (root / "set/images/b.jpg").read_bytes() == jpeg(1)


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    tar(tmp_path / "b.tar", {"images/x.jpg": b"new"})
    (tmp_path / "root/set/images").mkdir(parents=True)
    (tmp_path / "root/set/images/x.jpg").write_bytes(b"old")
    with pytest.raises(DamagedFileError, match=r"images' is there already"):
        unpack(tmp_path / "b.tar", tmp_path / "root", "set")
    assert (tmp_path / "root/set/images/x.jpg").read_bytes() == b"old"


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with tarfile.open(path, "w") as archive:
            for each in (tarfile.TarInfo("set/a.jpg"), tarfile.TarInfo(name)):
                content = b"x" if each.name != name or kind == tarfile.REGTYPE else b""
                each.size = len(content)
                if each.name == name:
                    each.type, each.linkname = kind, target
                archive.addfile(each, io.BytesIO(content))

    return write


def _zip_link(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("set/link")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")


def _zip_without_name(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("x")
        entry.filename = ""
        archive.writestr(entry, b"x")


def _bomb(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        member = tarfile.TarInfo("set/zeros.jpg")
        member.size = 1 << 40
        file.write(member.tobuf() + bytes(1 << 24))


def _zip_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("set/zeros.jpg", bytes(1 << 24))


def _header_bomb(path: Path) -> None:
    """A name of a terabyte."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        member = tarfile.TarInfo("././@LongLink")
        member.size, member.type = 1 << 40, tarfile.GNUTYPE_LONGNAME
        file.write(tarfile.TarInfo("set/a.jpg").tobuf() + member.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "above": (_member("set/../../out.jpg"), r"'set/\.\./\.\./out\.jpg' in it would lie outside"),
    "absolute": (_member("/tmp/out.jpg"), "'/tmp/out.jpg' in it would lie outside"),
    "Windows": (_member("set\\..\\out.jpg"), "would lie outside"),
    "link": (_member("set/link", tarfile.SYMTYPE, "/etc"), "'set/link' in it is a link or a device"),
    "hard link": (_member("set/link", tarfile.LNKTYPE, "/etc/passwd"), "is a link or a device"),
    "device": (_member("set/null", tarfile.CHRTYPE), "is a link or a device"),
    "pipe": (_member("set/pipe", tarfile.FIFOTYPE), "is a link or a device"),
    "twice": (_member("set/./a.jpg"), "twice"),
    "zip, above": (lambda path: zip_of(path, "../out.jpg"), "would lie outside"),
    "zip, absolute": (lambda path: zip_of(path, "/out.jpg"), "would lie outside"),
    "zip, no name": (_zip_without_name, "'' in it is no name"),
    "zip, long": (lambda path: zip_of(path, "set/" + "x" * 256), "x' in it is a name that this disk cannot"),
    "long": (_member("set/" + "𝔸" * 64), "𝔸' in it is a name that this disk cannot hold"),
    "very long": (_member("set/" + "d/" * 3000 + "x"), "d/x' in it is a name that this disk cannot hold"),
    "below a file": (_member("set/a.jpg/x"), "'set/a.jpg/x' in it stands there twice"),
    "zip, link": (_zip_link, "is a link or a device"),
    "bomb": (_bomb, "'zeros.jpg' in it makes it grow beyond all reason"),
    "header bomb": (_header_bomb, "it has a header of 1,099,511,627,776 bytes"),
    "zip bomb": (_zip_bomb, "grow beyond all reason"),
    "no archive": (lambda path: path.write_bytes(b"<html>404</html>"), "is not a whole archive"),
    "empty": (lambda path: path.write_bytes(b""), "is not a whole archive"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_leaves_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penultimate.data.readers.unpacking.HARMLESS", 1 << 22)
    write, message = HOSTILE[kind]
    write(tmp_path / "archive")
    with pytest.raises(DamagedFileError, match=message):
        unpack(tmp_path / "archive", tmp_path / "root", "set")
    assert files(tmp_path) == ["archive"]
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_cut_short_leaves_nothing(mode: str, tmp_path: Path) -> None:
    tar(tmp_path / "archive", {f"set/{number}.jpg": jpeg(number) for number in range(50)}, mode)
    whole = (tmp_path / "archive").read_bytes()
    ends = (
        [512, 1024, 2048, *range(3000, len(whole) - 12000, 2500)]
        if mode == "w"
        else range(50, len(whole) - 20, 97)
    )
    for end in ends:
        (tmp_path / "archive").write_bytes(whole[:end])
        with pytest.raises(DamagedFileError, match="is not a whole archive"):
            unpack(tmp_path / "archive", tmp_path / "root", "set")
        assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize("kind", ["w:gz", "w:bz2", "w:xz", "zip", "zip, bz2", "zip, xz"])
def test_a_damaged_byte_of_a_compressed_archive_is_noticed(tmp_path: Path, kind: str) -> None:
    """Noise can hardly be compressed, so that a flipped bit of it is one of the archive."""
    path, methods = tmp_path / "archive", {"zip": 8, "zip, bz2": 12, "zip, xz": 14}
    noise = random.Random(0).randbytes(2000)
    if kind in methods:
        with zipfile.ZipFile(path, "w", methods[kind]) as archive:
            archive.writestr("set/a.jpg", noise)
    else:
        tar(path, {"set/a.jpg": noise}, kind)
    whole = path.read_bytes()
    for place in range(len(whole) // 4, 3 * len(whole) // 4, 53):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(DamagedFileError):
            unpack(path, tmp_path / "root", "set")
        assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize("what", ["link", "dangling", "file", "pipe"])
def test_what_stands_in_the_place_of_the_folder_is_named_and_kept(tmp_path: Path, what: str) -> None:
    zip_of(tmp_path / "archive", "a.jpg")
    (tmp_path / "mine").mkdir()
    (tmp_path / "root").mkdir()
    place = tmp_path / "root/set"
    if what in ("link", "dangling"):
        place.symlink_to(tmp_path / ("mine" if what == "link" else "nothing"))
    else:
        place.touch() if what == "file" else os.mkfifo(place)
    with pytest.raises(RequestError, match="root/set' is a link or a file, and no folder; move it away"):
        unpack(tmp_path / "archive", tmp_path / "root", "set")
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["set"]
    assert list((tmp_path / "mine").iterdir()) == []
    with pytest.raises(RequestError, match=r"cannot be made a folder .* another place with --root"):
        unpack(tmp_path / "archive", tmp_path / "archive", "set")


def test_a_link_in_the_folder_is_not_replaced(tmp_path: Path) -> None:
    zip_of(tmp_path / "archive", "a.jpg")
    (tmp_path / "root/set").mkdir(parents=True)
    (tmp_path / "root/set/a.jpg").symlink_to(tmp_path / "nothing")
    with pytest.raises(DamagedFileError, match="is there already"):
        unpack(tmp_path / "archive", tmp_path / "root", "set")
    assert (tmp_path / "root/set/a.jpg").is_symlink()
