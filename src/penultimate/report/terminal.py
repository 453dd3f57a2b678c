"""A table, and a whole exhibit, as text for a terminal."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence

from penultimate.console import folded, terminal_width
from penultimate.report.base import WORSE, Built, Cell, Column, ExhibitTable, Panel, Point, TableRow
from penultimate.report.marks import BOLD
from penultimate.report.tables import GAP, TAGS, WORD_WIDTH, column_groups, hold_words
from penultimate.report.text import NO_BREAK, fixed, plain, unbroken

TEXT_WIDTH = 100
"""The number of characters in a line of prose, unless the terminal is narrower."""
BLOCKS, SPARKS = "▁▂▃▄▅▆▇█", 24
"""The blocks that draw a curve in a terminal, and the most that draw one."""
WORD_WIDTHS, LEAST_WORDS = (WORD_WIDTH, 32, 24), 14
"""The numbers of characters in a line of words that are tried in turn, and that of a table of one column."""
MARKS = ("*", WORSE)
"""The marks behind numbers."""
MOST_ROWS = 150
"""The most rows of a folded table that are printed."""
HEAD_WIDTH, HEAD_LINES = 14, 3
"""The number of characters in a line of a heading over numbers; a long heading gets wider lines."""


def render_exhibit_text(exhibit: Built) -> str:
    """Return an exhibit for the terminal: caption, tables, the numbers behind its figures, and notes."""
    heading = exhibit.titled(plain(exhibit.title))
    if exhibit.unfinished:
        heading = f"UNFINISHED, {exhibit.unfinished}. {heading}"
    parts = [_wrapped(f"LIMITED RUN, not evidence. {heading}" if exhibit.limited else heading)]
    parts += [_wrapped(text) for text in (exhibit.finding, exhibit.caption) if text]
    parts.extend(map(_table_text, exhibit.tables))
    panels = [panel for figure in exhibit.figures for panel in figure.panels if panel.points]
    parts.extend(_panel_text(panel) for panel in panels)
    notes = [note for note in exhibit.notes if note != exhibit.finding]
    if notes:
        parts.append("\n".join(map(_wrapped, notes)))
    return "\n\n".join(parts) + "\n"


def _table_text(table: ExhibitTable) -> str:
    """Return a table as text; of one that is folded on a page and very long, only where to find it."""
    if not table.folded or len(table.rows) <= MOST_ROWS:
        return to_text(table)
    return _wrapped(
        f"{plain(table.title)} [{TAGS[table.source]}]: {len(table.rows)} rows. All are printed with --json,"
        f" and lie in {table.name}.csv beside the page; words behind the exhibit's name choose some."
    )


def text_width() -> int:
    """Return the number of characters in a line of prose."""
    return min(TEXT_WIDTH, terminal_width() or TEXT_WIDTH)


def to_text(table: ExhibitTable) -> str:
    """Return a table as `aligned` text; on a terminal that is too narrow, its columns in several parts."""
    limit, count = terminal_width(), len(table.columns)
    for words in WORD_WIDTHS if count > 1 else (*WORD_WIDTHS, LEAST_WORDS):
        whole = aligned(table, words)
        if limit is None or max(map(width, whole.split("\n"))) <= limit:
            return whole
    if count < 2:
        return whole
    middle = (count + 1) // 2
    halves = [
        dataclasses.replace(
            table,
            columns=table.columns[part],
            rows=tuple(dataclasses.replace(row, cells=row.cells[part]) for row in table.rows),
            notes=table.notes if part.start else (),
        )
        for part in (slice(0, middle), slice(middle, count))
    ]
    return "\n".join(map(to_text, halves))


def aligned(table: ExhibitTable, longest: int = WORD_WIDTH) -> str:
    """Return a table in aligned columns under their groups: words left and wrapped, numbers right.

    `*` marks values that are bold on a page because no other in their column beats them, and `WORSE` those
    that another beats. If two or more columns hold sentences, each row is a paragraph. Other words are
    wrapped to `longest` characters.
    """
    words = hold_words(table)
    head = f"{plain(table.title)} [{TAGS[table.source]}]"
    limit = terminal_width()
    head = textwrap.fill(head, limit) if limit else head
    columns = zip(*(row.cells for row in table.rows), strict=True)
    if sum(max(len(cell.text) for cell in column) > WORD_WIDTH for column in columns) > 1:
        return "\n".join(
            [head, *map(functools.partial(_paragraph, table), table.rows), *map(_wrapped, table.notes)]
        )
    header = [plain(table.corner), *(plain(column.label) for column in table.columns)]
    body = [
        [plain(row.label), *(f"{plain(cell.text)}{_mark(table, cell)}" for cell in row.cells)]
        for row in table.rows
    ]
    starred = any(_mark(table, cell) for row in table.rows for cell in row.cells)
    blocks = []
    for texts in (header, *body):
        is_head = texts is header
        cells = [
            _lines(text, longest if of_words else 0, is_head, starred)
            for text, of_words in zip(texts, words, strict=True)
        ]
        height = max(map(len, cells))
        gaps = [[""] * (height - len(cell)) for cell in cells]
        whole = [gap + cell if is_head else cell + gap for gap, cell in zip(gaps, cells, strict=True)]
        blocks.append([list(line) for line in zip(*whole, strict=True)])
    groups, widths = _grouped(
        table, [max(width(line[i]) for block in blocks for line in block) for i in range(len(words))]
    )
    lines = [
        [(" " * GAP).join(map(_aligned, line, widths, words)).rstrip() for line in block] for block in blocks
    ]
    rule = "─" * max(width(line) for block in (groups, *lines) for line in block)
    body_lines = [line for block in lines[1:] for line in block]
    return "\n".join([head, rule, *groups, *lines[0], rule, *body_lines, rule, *map(_wrapped, table.notes)])


def _paragraph(table: ExhibitTable, row: TableRow) -> str:
    """Return a row of sentences as a paragraph: its heading, and the columns below it."""
    aside = max(len(column.label) for column in table.columns) + GAP
    columns = text_width()
    lines = ["─" * columns, *textwrap.wrap(plain(row.label), columns)]
    for column, cell in zip(table.columns, row.cells, strict=True):
        said = textwrap.wrap(plain(cell.text), columns - GAP - aside) or [""]
        firsts = (plain(column.label), *[""] * len(said))
        lines += [f"{'':{GAP}}{first:<{aside}}{line}" for first, line in zip(firsts, said, strict=False)]
    return "\n".join(lines)


def _lines(text: str, of_words: int, is_head: bool, starred: bool) -> list[str]:
    """Return the lines of a cell: words and headings over numbers are wrapped, with room for a mark.

    `of_words` is the number of characters in a line of words, or 0 for a column of numbers.
    """
    if of_words:
        return textwrap.wrap(text, of_words) or [""]
    room = max(HEAD_WIDTH, math.ceil(len(text) / HEAD_LINES)) if is_head else len(text) + 1
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [line if not starred or line.endswith(MARKS) else f"{line} " for line in lines]


def _mark(table: ExhibitTable, cell: Cell) -> str:
    """Return the mark behind a cell's text: an asterisk for bold, or that of a worse value."""
    return "*" if table.is_bold(cell) else WORSE if table.is_worse(cell) else ""


def _grouped(table: ExhibitTable, widths: list[int]) -> tuple[list[str], list[int]]:
    """Return a line of group headings, each ruled over its columns, and column widths with room for them."""
    groups = column_groups(table)
    if not any(group for group, _ in groups):
        return [], widths
    heads, wider = [" " * widths[0]], widths[:1]
    for group, span in groups:
        name = f"{plain(group)} " if group else ""
        own = widths[len(wider) : len(wider) + span]
        room = max(sum(own) + GAP * (span - 1), width(name))
        own[0] += room - sum(own) - GAP * (span - 1)
        heads.append(name + ("─" if name else " ") * (room - width(name)))
        wider += own
    return [(" " * GAP).join(heads).rstrip()], wider


def _aligned(text: str, columns: int, left: bool) -> str:
    space = " " * (columns - width(text))
    return text + space if left else space + text


def width(text: str) -> int:
    """Return the width of a text in terminal columns: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _wrapped(note: str) -> str:
    """Return a note in lines, with the page's word "bold" replaced by the terminal's asterisks."""
    starred = re.sub(rf"(?:^|(?<=[.;] )){BOLD}", "* ", plain(note), flags=re.IGNORECASE)
    filled = textwrap.fill(unbroken(starred), text_width(), break_long_words=False, break_on_hyphens=False)
    return filled.replace(NO_BREAK, " ")


def _panel_text(panel: Panel) -> str:
    """Return a panel as text: its outline if it has one, its curves in short, or the marks in it."""
    if panel.outline:
        lines = [line[: len(line) - len(line.lstrip())] + plain(line.lstrip()) for line in panel.outline]
        drawn = "\n".join([f"{plain(panel.title)} [{TAGS[panel.source]}]", *lines])
        return folded(drawn, terminal_width() or max(map(len, lines)))
    return to_text(course_table(panel) or panel_table(panel))


def course_table(panel: Panel) -> ExhibitTable | None:
    """Return the curves of a panel whose marks only stand at their ends; None for another panel.

    Each row draws a curve with blocks, from its lowest value to its highest, and says where these are.
    """
    ends = {(curve.objective, *curve.points[-1]): curve for curve in panel.curves if len(curve.points) > 2}
    marks = [point for point in panel.points if not point.faint]
    if not marks or not all((mark.objective, mark.x, mark.y) in ends for mark in marks):
        return None
    lines = {mark: ends[mark.objective, mark.x, mark.y].points for mark in marks}
    texts: list[dict[float, str]] = []
    for axis in (0, 1):
        values = [point[axis] for line in lines.values() for point in line]
        texts.append({cell.value or 0.0: cell.text for cell in _coordinates(values)})
    rows = []
    for label, (mark, line) in zip(_distinct_labels(marks), lines.items(), strict=True):
        lowest, highest = (pick(line, key=lambda point: point[1]) for pick in (min, max))
        cells = [Cell(f"{texts[1][y]} at {texts[0][x]}", y) for x, y in (line[0], lowest, highest, line[-1])]
        rows.append(TableRow(label, (Cell(sparkline([y for _, y in line])), *cells), mark.objective))
    columns = (
        Column("course", "Course"),
        *(Column(name.lower(), name, panel.y_label) for name in ("First", "Lowest", "Highest", "Last")),
    )
    notes = (
        f"At: {panel.x_label}. Each course is drawn on a scale of its own.",
        *filter(None, [panel.finding]),
    )
    return ExhibitTable(panel.name, panel.title, "Line", columns, tuple(rows), panel.source, notes)


def sparkline(values: Sequence[float]) -> str:
    """Return values as a line of blocks, the lowest for the least value; a long line is thinned out.

    >>> sparkline([0.1, 0.2, 0.4, 0.3])
    '▁▃█▆'
    """
    count = min(len(values), SPARKS)
    kept = [values[round(place * (len(values) - 1) / max(count - 1, 1))] for place in range(count)]
    low, span = min(kept), max(kept) - min(kept)
    steps = len(BLOCKS) - 1
    return "".join(BLOCKS[round(steps * (value - low) / span) if span else 0] for value in kept)


def panel_table(panel: Panel) -> ExhibitTable:
    """Return the marks of a panel as a table, or only the means if it shows both runs and means."""
    points = [point for point in panel.points if not point.faint] or list(panel.points)
    labels = _distinct_labels(points)
    xs, ys = (_coordinates([getattr(point, axis) for point in points]) for axis in "xy")
    rows = tuple(
        TableRow(label, (x, y), point.objective)
        for label, point, x, y in zip(labels, points, xs, ys, strict=True)
    )
    columns = (Column("x", panel.x_label or "To the right"), Column("y", panel.y_label or "Upwards"))
    notes = (panel.finding,) if panel.finding else ()
    return ExhibitTable(panel.name, panel.title, "Mark", columns, rows, panel.source, notes)


def _distinct_labels(points: Sequence[Point]) -> list[str]:
    """Return the labels of marks; several runs of one label get the seeds at the start of their details."""
    labels = [point.label for point in points]
    seeds = [re.match(r"seed \d+", point.detail) for point in points]
    return [
        f"{label}, {seed[0]}" if seed and labels.count(label) > 1 else label
        for label, seed in zip(labels, seeds, strict=True)
    ]


def _coordinates(values: Sequence[float]) -> list[Cell]:
    """Return coordinates along an axis: counts without decimals, ratios with three, percentages with one."""
    is_count, is_ratio = (
        all(value.is_integer() for value in map(float, values)),
        all(abs(value) <= 1 for value in values),
    )
    digits = 0 if is_count else 3 if is_ratio else 1
    return [Cell(fixed(value, digits), value) for value in values]
