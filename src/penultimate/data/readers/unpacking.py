"""Unpack other people's archives of images completely or not at all, and never outside the folder."""

from __future__ import annotations

import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Self

from penultimate.errors import DamagedFileError
from penultimate.files import BLOCK

GROWTH = 20
"""The largest growth of an honest archive; images hardly compress, so that more growth means a zip bomb."""
HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"X")
"""The types of extra headers before a member (a long name, for example), which tarfile holds in memory."""
MOST_HEADER = 1 << 20
"""Bytes of it."""
COMPRESSED = {b"\x1f\x8b": "r:gz", b"BZh": "r:bz2", b"\xfd7zXZ": "r:xz"}
HARMLESS = 1 << 28
"""The number of bytes to which any archive may grow."""
BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


def unpack(archive: Path, root: Path, folder: str) -> list[Path]:
    """Unpack a tar or zip archive into `root/folder`, or into `root` if the archive itself holds `folder`.

    The content appears only when all of it is written. Returns the new folders and files. Raises
    DamagedFileError for a broken archive, for a link, a device, a name outside the folder or a repeated name,
    for excessive growth, and if the content already exists.
    """
    root.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=root, prefix=".unpacking-"))
    try:
        left = max(HARMLESS, GROWTH * archive.stat().st_size)
        try:
            for name, file in _files(archive):
                left -= _write(partial / _safe(archive, name), file, archive, left)
        except DamagedFileError:
            raise
        except (FileExistsError, NotADirectoryError) as error:
            raise DamagedFileError(f"'{archive}' holds '{error.filename}' twice") from None
        except BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk failed, not the archive
            raise DamagedFileError(f"'{archive}' is not a whole archive: {error}; get it again") from None
        tops = sorted(partial.iterdir())
        target = root if [top.name for top in tops] == [folder] else root / folder
        target.mkdir(exist_ok=True)
        there = next((top.name for top in tops if (target / top.name).exists()), None)
        if there is not None:
            raise DamagedFileError(
                f"'{target / there}' already exists; remove it to unpack '{archive}' again"
            )
        return [top.rename(target / top.name) for top in tops]
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise _refused(archive, entry.filename, "is a link or a device")
                if not entry.is_dir():
                    with packed.open(entry) as file:
                        yield entry.filename, file
        return
    with archive.open("rb") as packed_file:
        for tar, member in tar_members(packed_file):
            if member.isdir():
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise _refused(archive, member.name, "is a link or a device")
            with content:
                yield member.name, content


def tar_members(file: IO[bytes]) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield the members of a tar archive in order; raises TarError if it does not end properly.

    The check is needed because tarfile stops silently where an archive is cut short or damaged.
    """
    last, start = b"", file.read(6)
    file.seek(0)
    mode = next((mode for magic, mode in COMPRESSED.items() if start.startswith(magic)), "r:")

    class Noticing(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal last
            last = bytes(buf)
            member = super().frombuf(buf, encoding, errors)
            if member.type in HEADERS and member.size > MOST_HEADER:
                raise tarfile.ReadError(f"it has a header of {member.size:,} bytes")
            return member

    with tarfile.open(fileobj=file, mode=mode, tarinfo=Noticing) as tar:  # type: ignore[call-overload]
        for member in tar:
            yield tar, member
    if len(last) != tarfile.BLOCKSIZE or any(last):
        raise tarfile.ReadError("it is cut short or damaged")


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
        raise _refused(archive, name, "would lie outside its folder")
    return path


def _write(path: Path, file: IO[bytes], archive: Path, most: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("xb") as out:
        while block := file.read(BLOCK):
            written += len(block)
            if written > most:
                raise _refused(archive, path.name, "makes it grow more than images can")
            out.write(block)
    return written


def _refused(archive: Path, name: str, why: str) -> DamagedFileError:
    return DamagedFileError(f"'{archive}' is not unpacked: '{name}' in it {why}")
