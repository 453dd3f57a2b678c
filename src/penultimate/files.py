"""Files that are written whole or not at all, with a sha256 that every reader checks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from penultimate.errors import DamagedFileError, RequestError, nearest, shortened
from penultimate.locks import is_at

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FULL = (errno.ENOSPC, errno.EDQUOT)
DEVICES = ("/dev", "/dev/fd")
"""Folders of devices, and of links to a process's own streams, in which no file is written."""
LONGEST_FILE_NAME = 200
"""The largest length in bytes of a file name that comes from outside, so that endings fit into 255 bytes."""
PLAIN = " ()=,:+@"
"""The characters besides letters, digits and "_.-~" that are kept in file names."""
BLOCK = 64 * 1024
"""The number of bytes that are read at once."""
DIGITS = 64
"""The length of a hexadecimal sha256."""
SEAL = b'\n "sha256": "'
"""The text before the digest of a sealed file; nothing else in the file has this indentation and name."""


class OtherVersionError(RequestError):
    """Error for a file that another version of this package wrote in a different format."""


def digest_bytes(content: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def open_file(path: Path | str) -> BinaryIO:
    """Open a file for reading; raises OSError for a pipe or a device, which might never come to an end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb", buffering=0)
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no file", str(path))


def read_file(path: Path | str) -> bytes:
    """Return the content of a file; raises OSError for a pipe or a device."""
    with open_file(path) as file:
        return file.read()


def digest_file(path: Path | str) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    state = hashlib.sha256()
    with open_file(path) as file:
        while block := file.read(BLOCK):
            state.update(block)
    return state.hexdigest()


def digest_arrays(*arrays: npt.NDArray[np.generic]) -> str:
    """Return the sha256 of the types, shapes and contents of arrays, in order."""
    import numpy as np

    state = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array)
        state.update(f"{whole.dtype.str}{whole.shape}".encode())
        state.update(whole.reshape(-1).view(np.uint8).data)
    return state.hexdigest()


canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""JSON encoder with sorted keys and no spaces, so that equal values give equal strings."""


def sync(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_name(name: str) -> str:
    """Return a name for the file or folder of something that a user named; different names stay different.

    Usual names are kept. A name that would lead elsewhere (.., a/b), hide the file or end in a dot or a space
    is percent-encoded, and a long one ends in its digest. Raises RequestError for a name that is empty or not
    text.

    >>> file_name("resnet50 (seed=1)"), file_name(".."), file_name("a/b"), len(file_name("x" * 300))
    ('resnet50 (seed=1)', '%2E%2E', 'a%2Fb', 200)
    """
    if not isinstance(name, str) or not name:
        raise RequestError(f"a name is text of one character or more, not {name!r}")
    safe = quote(name.encode(errors="surrogatepass"), safe=PLAIN)
    if safe[-1] in ". ":
        safe = f"{safe[:-1]}%{ord(safe[-1]):02X}"
    if safe[0] == ".":
        safe = f"%2E{safe[1:]}"
    if len(safe) > LONGEST_FILE_NAME:  # no encoded name contains "%~", so this differs from all others
        mark = f"%~{digest_bytes(safe.encode())[:32]}"
        safe = safe[: LONGEST_FILE_NAME - len(mark)] + mark
    return safe


def given_path(path: Path | str, option: str, home: bool = False) -> Path:
    """Return a path that a user gave with an option; raises RequestError if no file can have this name.

    With `home`, "~" at its beginning stands for the home folder.
    """
    if not str(path):
        raise RequestError(f"{option} is empty; give a path ('.' is the current folder)")
    try:
        found = Path(path).expanduser() if home else Path(path)
        os.stat(found)
    except (TypeError, ValueError, RuntimeError, OSError) as error:  # RuntimeError: nobody has such a home
        if isinstance(error, OSError) and error.errno not in (errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ):
            return found
        why = getattr(error, "strerror", None) or str(error)
        told = shortened(repr(path), 300)
        raise RequestError(f"{option} is a path, and {told} cannot be one ({why})") from None
    return found


def nearest_beside(path: Path | str) -> str:
    """Return the hint that ends an error about a missing path: what lies beside it under the nearest name."""
    path = Path(path)
    try:
        hint = nearest(path.name, sorted(entry.name for entry in path.parent.iterdir()))
    except (OSError, ValueError):
        return ""
    return hint.replace("'", f"'{path.parent}{os.sep}", 1) if path.parent.name else hint


def write_given(path: Path | str, content: bytes, what: str) -> None:
    """Write a file at a path that a user gave; raises RequestError if it cannot lie there."""
    path = given_path(path, what)
    try:
        atomic_write(path, content)
    except (OSError, ValueError) as error:
        if isinstance(error, RequestError) or (isinstance(error, OSError) and error.errno in FULL):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise RequestError(f"{what} cannot be written to '{path}' ({why})") from None


def make_folder(path: Path, option: str = "--to") -> None:
    """Make a folder that a user named, and its parents; raises RequestError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a ValueError means that no file can have this name
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        said = getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            said = "a file has this name"
        raise RequestError(
            f"'{path}' cannot be made a folder ({said}); give another place with {option}"
        ) from None


def atomic_write(path: Path, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file so that a reader, or a crash, sees either the old content or the new one, never a part.

    The content may come in pieces. A file that is easily rebuilt need not be `durable`: it may be lost if the
    power fails. The file's mode is rw-rw-rw- minus the umask. A temporary file that a killed process left for
    the same file is removed. Raises RequestError if a folder or a device has the file's name.
    """
    _expect_no_device(path)
    with _named(path):
        _write(path, content, durable)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let an error of the system name a file as its user knows it, not the temporary one beside it."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _write(path: Path, content: bytes | Iterable[bytes], durable: bool) -> None:
    handle, temporary = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            temporary.replace(path)
        if durable:
            sync(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, IsADirectoryError):
            raise RequestError(f"'{path}' is a folder, where a file is to be written; move it away") from None
        raise


def _expect_no_device(path: Path) -> None:
    """Raise RequestError for a device: a file in its place would take it from the whole machine."""
    try:
        mode = path.stat().st_mode
    except OSError:  # most files are new
        mode = 0
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or str(path.absolute().parent) in DEVICES:
        raise RequestError(f"'{path}' is a device, where a file is to be written; name a file")


def _temporary(path: Path) -> tuple[int, Path]:
    """Open a new temporary file beside a path and lock it; remove those that ended processes have left.

    The lock ends with this process.
    """
    name = path.name if len(os.fsencode(path.name)) <= LONGEST_FILE_NAME else digest_bytes(os.fsencode(path))
    while True:
        mine = path.with_name(f".{name}.{secrets.token_hex(4)}.tmp")
        try:
            handle = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        try:
            with contextlib.suppress(
                OSError
            ):  # not every file system supports locks; without them nothing is removed
                fcntl.flock(handle, fcntl.LOCK_EX)
            if is_at(handle, mine):  # otherwise another process took it for a leftover before it was locked
                _sweep(path.parent, f".{name}.", mine.name)
                return handle, mine
        except BaseException:
            os.close(handle)
            mine.unlink(missing_ok=True)
            raise
        os.close(handle)


def _sweep(folder: Path, beginning: str, but: str) -> None:
    """Remove the temporary files of one file, except those that a process is writing."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        stale = [
            entry.path
            for entry in entries
            if entry.name.startswith(beginning)
            and entry.name.endswith(".tmp")
            and len(entry.name) == len(but)
            and entry.name != but
        ]
        for left in stale:
            with contextlib.suppress(OSError):
                handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(left)
                finally:
                    os.close(handle)


def _digests(sealed: bytes, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the digests that a sealed file may hold: of its bytes, or (older files) of its canonical JSON."""
    before, seal, after = sealed.partition(SEAL)
    yield digest_bytes(before + seal + after[DIGITS:])
    yield digest_bytes(canonical_json(content).encode())


def write_sealed(path: Path, content: Mapping[str, Any], schema: int) -> None:
    """Write a sealed file."""
    atomic_write(path, sealed(content, schema))


def sealed(content: Mapping[str, Any], schema: int) -> bytes:
    """Return JSON that includes the number of its format and its own sha256."""
    text = json.dumps({**content, "schema": schema, "sha256": ""}, indent=1, sort_keys=True, allow_nan=False)
    whole = (text + "\n").encode()
    before, seal, after = whole.partition(SEAL)
    return before + seal + digest_bytes(whole).encode() + after


def read_sealed(path: Path | str, schema: int, what: str = "", mend: str = "") -> dict[str, Any]:
    """Return the content of a file that `write_sealed` wrote.

    `what` names the file in errors, and `mend` says what to do about another format. Raises
    FileNotFoundError, PermissionError, OtherVersionError, and DamagedFileError if the file is not as it was
    written.
    """
    what = what or f"'{path}'"
    try:
        whole = read_file(path)
        content: dict[str, Any] = json.loads(whole.decode())
        digest = content.pop("sha256", None)
        fits = digest in _digests(whole, content)
        found = content.pop("schema")
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise DamagedFileError(f"{what} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedFileError(f"{what} is not what was written") from None
    if found != schema and (fits or (digest is None and type(found) is int)):
        raise OtherVersionError(
            f"{what} was written by another version of penultimate (schema {found}; this one reads {schema});"
            f" {mend or 'give --out another folder'}"
        )
    if not fits:
        raise DamagedFileError(f"{what} is not what was written (its sha256 differs)")
    return content


def with_digest(content: bytes) -> bytes:
    """Return bytes preceded by their sha256."""
    return digest_bytes(content).encode() + content


def without_digest(path: Path) -> bytes:
    """Return the bytes that were passed to `with_digest`; raises DamagedFileError if they have changed."""
    content = read_file(path)
    if digest_bytes(content[DIGITS:]).encode() != content[:DIGITS]:
        raise DamagedFileError(f"{path.name} is not what was written (its sha256 differs)")
    return content[DIGITS:]


def size_text(count: float) -> str:
    """Return a number of bytes as text, in the largest unit that fits.

    >>> size_text(512), size_text(45_300_000), size_text(2e12)
    ('512 bytes', '45.3 MB', '2.0 TB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def standing(path: Path) -> Path:
    """Return a path if it exists, or else its nearest parent folder that does."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.exists())
