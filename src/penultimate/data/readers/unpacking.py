"""Unpacking archives of images that others made: whole or not at all, and nothing outside of the folder."""

from __future__ import annotations

import errno
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Self

from penultimate.errors import DamagedFileError, RequestError, shortened
from penultimate.files import make_folder

BLOCK = 64 * 1024
"""The number of bytes that are read at once."""
GROWTH = 20
"""Images hardly shrink when they are packed: an archive that grows more than that many times is a bomb."""
HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, b"X")
"""What stands before a member and says more of it, a long name say: tarfile holds it in memory."""
MOST_HEADER = 1 << 20
"""Bytes of it."""
COMPRESSED = {b"\x1f\x8b": "r:gz", b"BZh": "r:bz2", b"\xfd7zXZ": "r:xz"}
HARMLESS = 1 << 28
"""Bytes to which any archive may grow."""
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError, LookupError, MemoryError),
)
NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ)
"""The error numbers for names that a disk cannot hold."""


def unpack(archive: Path, root: Path, folder: str) -> list[Path]:
    """Unpack a tar or zip archive into `root/folder`, or into `root` where the archive holds `folder` itself.

    What it holds appears when all of it is written. Returns the folders and files that are new. Raises
    DamagedFileError for a broken archive, one that holds a link, a device, a name outside of its folder or a
    name twice, or that grows beyond all reason; and for one whose content is there already. Raises
    RequestError where the folder is a link or a file.
    """
    make_folder(root, "--root")
    if (root / folder).is_symlink() or ((root / folder).exists() and not (root / folder).is_dir()):
        raise RequestError(f"'{root / folder}' is a link or a file, and no folder; move it away")
    partial = Path(tempfile.mkdtemp(dir=root, prefix=".unpacking-"))
    try:
        left = max(HARMLESS, GROWTH * archive.stat().st_size)
        try:
            for name, file in _files(archive):
                try:
                    left -= _write(partial / _safe(archive, name), file, archive, left)
                except (FileExistsError, NotADirectoryError):
                    raise _refused(archive, name, "stands there twice") from None
                except OSError as error:
                    if error.errno in NO_NAME:
                        raise _refused(archive, name, "is a name that this disk cannot hold") from None
                    raise
        except DamagedFileError:
            raise
        except BROKEN as error:
            # EINVAL: the archive names a place before its own start.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # of the disk, not of the archive
            raise DamagedFileError(f"'{archive}' is not a whole archive: {error}; get it again") from None
        tops = sorted(partial.iterdir())
        target = root if [top.name for top in tops] == [folder] else root / folder
        target.mkdir(exist_ok=True)
        there = next((top.name for top in tops if os.path.lexists(target / top.name)), None)
        if there is not None:
            raise DamagedFileError(
                f"'{target / there}' is there already; remove it to unpack '{archive}' again"
            )
        return [top.rename(target / top.name) for top in tops]
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                if not entry.filename:
                    raise _refused(archive, "", "is no name")
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
    """Yield the members of a tar archive in its order; raises TarError where it does not end as it should.

    An archive that is cut short, or damaged in the middle, is a whole one to tarfile, which stops there.
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
        while tar.fileobj is not None and tar.fileobj.read(BLOCK):  # the checksum of gzip comes last
            pass
    if len(last) != tarfile.BLOCKSIZE or any(last):
        raise tarfile.ReadError("it is cut short or damaged")


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
        raise _refused(archive, name, "would lie outside of its folder")
    return path


def _write(path: Path, file: IO[bytes], archive: Path, most: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("xb") as out:
        while block := file.read(BLOCK):
            written += len(block)
            if written > most:
                raise _refused(archive, path.name, "makes it grow beyond all reason, as no images do")
            out.write(block)
    return written


def _refused(archive: Path, name: str, why: str) -> DamagedFileError:
    return DamagedFileError(f"'{archive}' is not unpacked: '{shortened(name, 200)}' in it {why}")
