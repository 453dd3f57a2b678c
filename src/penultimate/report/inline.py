"""An exhibit as HTML that stands alone: what a notebook shows, and what the gallery of the site is made of.

Words and tables take the colours around them. Drawings lie on paper of their own, in the colours of a file:
marks and maps were chosen for one background, and a notebook does not tell its own.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

from penultimate import notebook
from penultimate.files import digest_bytes
from penultimate.notebook import text
from penultimate.report.base import (
    WORSE,
    Built,
    Cell,
    Curve,
    ExhibitTable,
    Figure,
    Gallery,
    Panel,
    Point,
)
from penultimate.report.drawing.figures import draw_panel, mark_icon
from penultimate.report.drawing.palette import INK, PAPER, Mark, marks
from penultimate.report.tables import TAGS
from penultimate.report.text import typeset

SHEET = (
    f"display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr));"
    f" gap: 12px; padding: 8px; background: {PAPER[0]}; color: {INK[0]}; border-radius: 4px"
)
LONG = 14
"""Tables with more rows than this are folded."""


def objectives_drawn(exhibits: Iterable[Built]) -> Iterator[str]:
    """Yield the objectives that the figures of exhibits draw as marks, lines, or names of maps."""
    for figure in (figure for built in exhibits for figure in built.figures):
        yield from (each.objective for each in _drawn(figure))
        for raster in (panel.raster for panel in figure.panels if panel.raster):
            yield from (*raster.row_marks, *raster.column_marks)


def _drawn(figure: Figure) -> list[Point | Curve]:
    """Return the lines and marks of a figure that belong to an objective."""
    drawn: list[Point | Curve] = []
    for panel in figure.panels:
        drawn += [*panel.curves, *panel.points]
    return [each for each in drawn if each.objective]


def table_html(table: ExhibitTable) -> str:
    """Return a table with the heading cells that a screen reader needs."""
    heads = [f"{column.group}: {column.label}" if column.group else column.label for column in table.columns]
    rows = [(text(row.label), *(_cell(table, cell) for cell in row.cells)) for row in table.rows]
    return notebook.table(table.title, (table.corner, *heads), rows)


def _cell(table: ExhibitTable, cell: Cell) -> str:
    if table.is_worse(cell):
        return f'{text(cell.text)}<sup style="display: inline-block; width: 0">{WORSE}</sup>'
    return f"<b>{text(cell.text)}</b>" if table.is_bold(cell) else text(cell.text)


def legend(figure: Figure, known: dict[str, Mark]) -> str:
    """Return the marks with their labels, for a figure whose lines have none."""
    labels = {each.objective: text(each.label) for each in reversed(_drawn(figure))} if figure.legend else {}
    entries = [f"<span>{mark_icon(known[slug])} {label}</span>" for slug, label in reversed(labels.items())]
    return " ".join(entries)


def exhibit_html(built: Built) -> str:
    """Return an exhibit as HTML without scripts and style sheets: finding, figures, pictures and tables.

    Tables that are long, published, or beside a figure are folded, and so are the notes.
    """
    known = marks([*dict.fromkeys(objectives_drawn([built]))])
    said = [built.finding, built.unfinished, "Limited run: not evidence." if built.limited else ""]
    lines = ["<div>", f"<p><b>{text(typeset(built.titled(built.title)))}</b></p>"]
    lines += [f"<p>{text(typeset(sentence))}</p>" for sentence in said if sentence]
    for figure in built.figures:
        panels = "".join(_panel(panel, known) for panel in figure.panels)
        below = f'<div style="grid-column: 1 / -1">{legend(figure, known)}</div>'
        lines.append(f'<div style="{SHEET}">{panels}{below}</div>')
    lines += map(_pictures, built.galleries)
    for table in built.tables:
        whole = f'<div style="overflow-x: auto">{table_html(table)}</div>'
        folds = table.folded or len(table.rows) > LONG or bool(built.figures) or table.source != "ours"
        lines.append(_folded(f"{table.title} ({TAGS[table.source]})", whole) if folds else whole)
    notes = dict.fromkeys((built.caption, *built.notes, *map(str, built.missing)))
    listed = [f"<p>{text(typeset(note))}</p>" for note in notes if note and note != built.finding]
    return "\n".join([*lines, _folded("Notes", "".join(listed)) if listed else "", "</div>"])


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{text(title)}</summary>{content}</details>"


def _panel(panel: Panel, known: dict[str, Mark]) -> str:
    """Return a panel under its title, with ids that no other drawing of the notebook has."""
    drawing = draw_panel(panel, known)
    prefix = f"pu{digest_bytes(drawing.raw.encode(errors='replace'))[:10]}"
    width = f"min-width: 0; max-width: {1.4 * panel.size[0]:g}px; margin: 0"
    head = f"{text(typeset(panel.title))} ({TAGS[panel.source]})"
    drawn = drawing.styled(prefix, page=False)
    return f'<figure style="{width}"><figcaption style="color: inherit">{head}</figcaption>{drawn}</figure>'


def _pictures(gallery: Gallery) -> str:
    """Return the pictures of a gallery, each group with what is confused in it."""
    groups = []
    for group in gallery.groups:
        encoded = (base64.b64encode(png).decode() for png in group.images)
        images = "".join(f'<img src="data:image/png;base64,{png}" width="48" alt="">' for png in encoded)
        words = text(f"{group.truth} taken for {group.taken_for}: {group.count}, {group.share} %")
        groups.append(f"<p>{images} {words}</p>")
    return _folded(f"{gallery.label} on {gallery.title}", "".join(groups))
