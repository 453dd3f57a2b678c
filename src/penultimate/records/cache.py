"""The rows of a large study as Parquet beside it, which is read much faster than the files of its steps."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.files import atomic_write, digest_bytes

if TYPE_CHECKING:
    import pandas as pd

CACHED, CACHED_STATE = "rows.parquet", "rows.state"
LARGE = 20_000
"""The number of rows from which the file pays: PyArrow's import alone takes as long as reading fewer."""


def read_frame(folder: Path, state: str) -> pd.DataFrame | None:
    """Return the rows that `write_frame` left for this state of a study, if they are as they were written."""
    try:
        content = (folder / CACHED).read_bytes()
        if (folder / CACHED_STATE).read_bytes() != _signed(state, content):
            return None
        import pandas as pd

        return pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except (OSError, ImportError):
        return None


def write_frame(folder: Path, state: str, frame: pd.DataFrame) -> None:
    """Leave the rows of a large study in its folder; nothing without PyArrow or in a read-only folder."""
    if len(frame) < LARGE:
        return
    with contextlib.suppress(OSError, ImportError, UnicodeEncodeError):  # a file's name may be no text
        content: bytes = frame.to_parquet(engine="pyarrow", index=False)
        atomic_write(folder / CACHED, content, durable=False)
        atomic_write(folder / CACHED_STATE, _signed(state, content), durable=False)


def _signed(state: str, content: bytes) -> bytes:
    return f"{state} {digest_bytes(content)}\n".encode()
