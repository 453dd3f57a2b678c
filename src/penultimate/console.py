"""What fits a terminal: the number of characters in a line, and text that is folded to it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import TextIO

LEAST = 40
"""The number of characters in a line below which nothing is folded further."""
COLUMNS = re.compile(r"(?P<before>.*\S {2,})(?P<last>\S.*)")
"""A line of a list: its columns, which two blanks or more separate, and the last of them."""


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the number of characters in a line of the terminal; None if the output is no terminal.

    The environment variable COLUMNS, where it is set, stands for a terminal of that width.
    """
    stream = stream or sys.stdout
    if "COLUMNS" not in os.environ and not stream.isatty():
        return None
    return max(LEAST, shutil.get_terminal_size().columns)


def folded(text: str, columns: int) -> str:
    r"""Return text whose lines end between two words before they are longer than `columns`.

    What a line goes on with is indented: below the last column of a list, or by two blanks.

    >>> print(folded("nine    nine objectives, one seed, eight tasks", 30))
    nine    nine objectives, one
            seed, eight tasks
    >>> print(folded("  left: 3 trainings, 9 measurements of features", 40))
      left: 3 trainings, 9 measurements of
        features
    """
    return "\n".join(line if len(line) <= columns else _folded(line, columns) for line in text.split("\n"))


def _folded(line: str, columns: int) -> str:
    within = len(line) - len(line.lstrip())
    found = COLUMNS.fullmatch(line, within)
    if found and found.start("last") <= columns // 2:
        before, last, indent = line[: found.start("last")], found["last"], found.start("last")
    else:
        before, last, indent = line[:within], line[within:], within + 2
    parts = textwrap.wrap(
        last,
        columns,
        initial_indent=before,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(parts)
