"""Write the numbers of README and of these pages from the runs that come with the package.

    python -m docs.quotes            # rewrite what is out of date
    python -m docs.quotes --check    # only name it

A block of a page between `<!-- numbers: NAME -->` and `<!-- end -->` is the text that `docs.quoted` makes
under that name. A picture is drawn by `docs.pictures` if the digest in it is not that of its data. So a new
reference run changes the words, and `tests/test_quotes.py` fails until they are written again.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docs.quoted import QUOTES

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- numbers: (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return README and every page of the documentation that is written by hand."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def quoted(page: str) -> list[str]:
    """Return the names of the blocks of a page's text."""
    return [match[2] for match in BLOCK.finditer(page)]


def written(page: str) -> str:
    """Return a page's text with each block as the kept rows have it.

    Raises KeyError with the known names for a block that no function makes.
    """

    def block(match: re.Match[str]) -> str:
        start, name, old, end = match.groups()
        if name not in QUOTES:
            raise KeyError(f"no quotation is called '{name}'; known: {', '.join(sorted(QUOTES))}")
        text = QUOTES[name]()
        return f"{start}\n{text}\n{end}" if "\n" in old or "\n" in text else f"{start}{text}{end}"

    return BLOCK.sub(block, page)


def stale() -> list[Path]:
    """Return the pages that no longer say what the kept rows have."""
    return [path for path in pages() if (text := path.read_text(encoding="utf-8")) != written(text)]


def main(arguments: list[str]) -> int:
    """Rewrite the pages that are out of date, or only name them (`--check`); return the exit code."""
    from docs import pictures

    old, drawn = stale(), pictures.stale()
    for path in (*old, *drawn):
        print(f"{'out of date' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}")
    if "--check" in arguments:
        return 1 if old or drawn else 0
    for path in old:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in drawn:
        pictures.draw(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
