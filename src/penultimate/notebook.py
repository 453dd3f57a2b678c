"""What a notebook shows of a result: a table in HTML that needs no style sheet.

Words and tables have the colours of the notebook, so they are read on a light and on a dark screen.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from penultimate.errors import legible


def text(words: object) -> str:
    """Return words as one line of HTML that shows them as they are.

    >>> text("a <b>")
    'a &lt;b&gt;'
    """
    return html.escape(" ".join(legible(words).split()))


def table(title: str, head: Sequence[object], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose title and head are words, and whose rows are HTML: a heading and its cells.

    >>> table("Probe", (), [(text("k"), text(3))]).count("</tr>")
    1
    """
    cells = "".join(f'<th scope="col">{text(words)}</th>' for words in head)
    lines = [f"<table><caption>{text(title)}</caption>", f"<thead><tr>{cells}</tr></thead>" if cells else ""]
    lines.append("<tbody>")
    for label, *others in rows:
        listed = "".join(f"<td>{cell}</td>" for cell in others)
        lines.append(f'<tr><th scope="row" style="text-align: left">{label}</th>{listed}</tr>')
    return "\n".join(filter(None, [*lines, "</tbody></table>"]))


def facts(title: str, named: Mapping[str, object]) -> str:
    """Return a table of named values, without those that are None."""
    return table(title, (), [(text(name), text(value)) for name, value in named.items() if value is not None])
