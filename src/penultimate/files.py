"""Files that are written whole or not at all, with a sha256 that every reader checks."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from penultimate.errors import DamagedFileError, RequestError, nearest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FULL = (errno.ENOSPC, errno.EDQUOT)
LONGEST_FILE_NAME = 200
"""The largest length in bytes of a file name that comes from outside, so that endings fit into 255 bytes."""
PLAIN = " ()=,:+@"
"""The characters besides letters, digits and "_.-~" that are kept in file names."""
DIGITS = 64
"""The length of a hexadecimal sha256."""
SEAL = b'\n "sha256": "'
"""The text before the digest of a sealed file; nothing else in the file has this indentation and name."""


class OtherVersionError(RequestError):
    """Error for a file that another version of this package wrote in a different format."""


def digest_bytes(content: bytes) -> str:
    """Return the sha256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest_file(path: Path | str) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    """Return a path that a user gave with an option; raises RequestError if it is empty.

    With `home`, "~" at its beginning stands for the home folder.
    """
    if not str(path):
        raise RequestError(f"{option} is empty; give a path ('.' is the current folder)")
    return Path(path).expanduser() if home else Path(path)


def nearest_beside(path: Path | str) -> str:
    """Return the hint that ends an error about a missing path: what lies beside it under the nearest name."""
    path = Path(path)
    try:
        hint = nearest(path.name, sorted(entry.name for entry in path.parent.iterdir()))
    except OSError:
        return ""
    return hint.replace("'", f"'{path.parent}{os.sep}", 1) if path.parent.name else hint


def write_given(path: Path | str, content: bytes, what: str) -> None:
    """Write a file at a path that a user gave; raises RequestError if it cannot lie there."""
    path = given_path(path, what)
    try:
        atomic_write(path, content)
    except OSError as error:
        if error.errno in FULL:  # the place is right
            raise
        raise RequestError(f"{what} cannot be written to '{path}' ({error.strerror or error})") from None


def make_folder(path: Path, option: str = "--to") -> None:
    """Make a folder that a user named, and its parents; raises RequestError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise RequestError(
            f"'{path}' cannot be made a folder ({why}); give another place with {option}"
        ) from None


def atomic_write(path: Path, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file so that a reader, or a crash, sees either the old content or the new one, never a part.

    The content may come in pieces. A file that is easily rebuilt need not be `durable`: it may be lost if the
    power fails. Raises RequestError for a folder or a device (root would replace /dev/null for everybody).
    """
    if path.exists() and not path.is_file():
        raise RequestError(f"'{path}' is no file; name a file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)
        raise
    if durable:
        sync(path.parent)


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
        whole = Path(path).read_bytes()
        content: dict[str, Any] = json.loads(whole.decode())
        digest, found = content.pop("sha256"), content["schema"]
        before, seal, after = whole.partition(SEAL)
        is_whole = digest == digest_bytes(before + seal + after[DIGITS:])
        if not is_whole:  # the first stores and kept runs were sealed so
            is_whole = digest == digest_bytes(canonical_json(content).encode())
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise DamagedFileError(f"{what} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedFileError(f"{what} is not what was written") from None
    if not is_whole:
        raise DamagedFileError(f"{what} is not what was written (its sha256 differs)")
    if found != schema:
        raise OtherVersionError(
            f"{what} was written by another version of penultimate (schema {found}; this one reads {schema});"
            f" {mend or 'give --out another folder'}"
        )
    del content["schema"]
    return content


def with_digest(content: bytes) -> bytes:
    """Return bytes preceded by their sha256."""
    return digest_bytes(content).encode() + content


def without_digest(path: Path) -> bytes:
    """Return the bytes that were passed to `with_digest`; raises DamagedFileError if they have changed."""
    content = path.read_bytes()
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
