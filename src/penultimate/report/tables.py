"""A table as CSV, as LaTeX, and as aligned text."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from penultimate.report.base import Built, Cell, Column, Curve, ExhibitTable, Panel, Point, Raster, TableRow
from penultimate.report.drawing.rasters import cell_name
from penultimate.report.shapes.cells import BOLD, MEAN_PER_CLASS
from penultimate.report.text import NO_BREAK, fixed, plain, unbroken

TAGS = {"ours": "measured here", "published": "published in the paper"}
LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': "''",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "-{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "²": r"\textsuperscript{2}",
    "×": r"$\times$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "λ": r"$\lambda$",
    "–": "--",
    "·": r"$\cdot$",
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa mu nu xi pi sigma phi chi psi omega Delta"
    " Lambda Sigma"
)
LATEX_SPECIALS |= {
    letter: rf"$\{name}$" for letter, name in zip("αβγδεζηθικμνξπσφχψωΔΛΣ", _GREEK.split(), strict=True)
}
LATEX_SPECIALS |= {letter: rf"\textsubscript{{{digit}}}" for digit, letter in enumerate("₀₁₂₃₄₅₆₇₈₉")}
LATEX_SPECIALS |= {"⁺": r"\textsuperscript{+}", "‖": r"$\Vert$", "′": "$'$", "≤": r"$\le$", "≥": r"$\ge$"}
SPECIAL = re.compile(f"-(?=-)|[{re.escape(''.join(LATEX_SPECIALS.keys() - {'-'}))}]")
"""A sign that LaTeX does not set as it is; of hyphens one before another, with which it would be a dash."""
FORMULA = re.compile("[=+@＝＋－＠-]")
"""How a cell begins that spreadsheets evaluate (full-width signs too)."""
GAP = 2
"""Blanks between two columns of a terminal."""
TEXT_WIDTH = 100
WORD_WIDTH = 46
"""Characters of a line of words in a column."""
HEAD_WIDTH, HEAD_LINES = 14, 3
"""Characters of a line of a heading over numbers, which is wider where it would have more lines."""
LINE = 90
"""The characters that a line of a paper holds."""


def to_csv(table: ExhibitTable) -> str:
    """Comma-separated values: numbers unrounded, each with its standard error and count where there are any.

    Text that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    errors = [any(row.cells[i].error is not None for row in table.rows) for i in range(len(table.columns))]
    counts = [any(row.cells[i].count is not None for row in table.rows) for i in range(len(table.columns))]
    header = [table.corner]
    for i, column in enumerate(table.columns):
        header.append(column.key)
        header.extend([f"{column.key}_se"] * errors[i] + [f"{column.key}_n"] * counts[i])
    writer.writerow([*(_harmless(name) for name in header), "source"])
    for row in table.rows:
        line = [_harmless(row.label)]
        for i, cell in enumerate(row.cells):
            line.append(_harmless(cell.text) if cell.value is None else repr(cell.value))
            line.extend(["" if cell.error is None else repr(cell.error)] * errors[i])
            line.extend(["" if cell.count is None else str(cell.count)] * counts[i])
        writer.writerow([*line, table.source])
    return buffer.getvalue()


def _harmless(text: str) -> str:
    """Text that no spreadsheet evaluates.

    >>> _harmless("=HYPERLINK(1)"), _harmless("softmax")
    ("'=HYPERLINK(1)", 'softmax')
    """
    text = plain(text)
    return f"'{text}" if FORMULA.match(text) else text


def latex_escape(text: str) -> str:
    r"""Text as LaTeX sets it, special characters included.

    >>> latex_escape("50% of R² \\input{x}")
    '50\\% of R\\textsuperscript{2} \\textbackslash{}input\\{x\\}'
    """
    return SPECIAL.sub(lambda found: LATEX_SPECIALS[found[0]], plain(text))


def to_latex(table: ExhibitTable, caption: str = "", legends: Iterable[str] = ()) -> str:
    """A booktabs tabular with its notes below, and those of `legends` (of bold, of daggers) that it needs."""
    layout = _layout(table)
    packages = "booktabs,array" if "p{" in layout else "booktabs"
    lines = [
        rf"% needs \usepackage{{{packages}}}; source: {TAGS[table.source]}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escape(caption or table.title)} ({TAGS[table.source]})}}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
    ]
    groups = column_groups(table)
    if any(group for group, _ in groups):
        heads = [rf"\multicolumn{{{span}}}{{c}}{{{latex_escape(group)}}}" for group, span in groups]
        lines.append(" & ".join(["", *heads]) + r" \\")
        ends = itertools.pairwise(itertools.accumulate((span for _, span in groups), initial=1))
        rules = (
            rf"\cmidrule(lr){{{before + 1}-{last}}}"
            for (group, _), (before, last) in zip(groups, ends, strict=True)
            if group
        )
        lines.append("".join(rules))
    heads = [latex_escape(column.label) for column in table.columns]
    lines.append(" & ".join([latex_escape(table.corner), *heads]) + r" \\")
    lines.append(r"\midrule")
    for row in table.rows:
        cells = [_latex_cell(cell) for cell in row.cells]
        lines.append(" & ".join([latex_escape(row.label), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = r" \par ".join(map(latex_escape, (*table.notes, *_needed(table, legends))))
    if notes:
        lines.append(rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes}}}")
    return "\n".join([*lines, r"\end{table}", ""])


def _layout(table: ExhibitTable) -> str:
    """Words to the left, numbers to the right; columns of sentences share what these leave of a line."""
    columns = [[row.label for row in table.rows]]
    columns += [[row.cells[i].text for row in table.rows] for i in range(len(table.columns))]
    widths = [max(map(len, texts), default=0) for texts in columns]
    words = _hold_words(table)
    are_long = [of_words and wide > WORD_WIDTH for of_words, wide in zip(words, widths, strict=True)]
    taken = sum(GAP + (0 if is_long else wide) for wide, is_long in zip(widths, are_long, strict=True))
    share = max(1 - taken / LINE, 0.5) / max(sum(are_long), 1)
    wrapped = rf">{{\raggedright\arraybackslash}}p{{{share:.2f}\linewidth}}"
    return "".join(
        wrapped if is_long else "l" if of_words else "r"
        for of_words, is_long in zip(words, are_long, strict=True)
    )


def _hold_words(table: ExhibitTable) -> list[bool]:
    """Whether the rows' headings (they do) and each column hold words alone."""
    columns = range(len(table.columns))
    return [True, *(all(row.cells[i].value is None for row in table.rows) for i in columns)]


def _needed(table: ExhibitTable, legends: Iterable[str]) -> list[str]:
    """Of the legends that of bold, where anything is, and that of daggers, where a heading has one."""
    headings = (*(column.label for column in table.columns), *(row.label for row in table.rows))
    uses = {
        BOLD: any(cell.best for row in table.rows for cell in row.cells),
        MEAN_PER_CLASS: any(MEAN_PER_CLASS in heading for heading in headings),
    }
    return [legend for legend in legends if any(legend.startswith(sign) and uses[sign] for sign in uses)]


def _latex_cell(cell: Cell) -> str:
    text = latex_escape(cell.text)
    return rf"\textbf{{{text}}}" if cell.best else text


def column_groups(table: ExhibitTable) -> list[tuple[str, int]]:
    """The group headings of neighbouring columns, with how many columns each spans."""
    groups: list[tuple[str, int]] = []
    for column in table.columns:
        if groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups


def width(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def to_text(table: ExhibitTable) -> str:
    """Aligned columns under their groups, words to the left and wrapped, numbers to the right.

    `*` marks what is bold on a page: values that no other in their column beats.
    """
    words = _hold_words(table)
    header = [plain(table.corner), *(plain(column.label) for column in table.columns)]
    body = [
        [plain(row.label), *(f"{plain(cell.text)}{'*' if cell.best else ''}" for cell in row.cells)]
        for row in table.rows
    ]
    starred = any(cell.best for row in table.rows for cell in row.cells)
    blocks = []
    for texts in (header, *body):
        is_head = texts is header
        cells = [
            _lines(text, of_words, is_head, starred) for text, of_words in zip(texts, words, strict=True)
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
    head = f"{plain(table.title)} [{TAGS[table.source]}]"
    body_lines = [line for block in lines[1:] for line in block]
    return "\n".join([head, rule, *groups, *lines[0], rule, *body_lines, rule, *map(_wrapped, table.notes)])


def _lines(text: str, of_words: bool, is_head: bool, starred: bool) -> list[str]:
    """A cell in lines: words are wrapped, and headings over numbers; these leave room for an asterisk."""
    if of_words:
        return textwrap.wrap(text, WORD_WIDTH) or [""]
    room = max(HEAD_WIDTH, math.ceil(len(text) / HEAD_LINES)) if is_head else len(text) + 1
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [line if not starred or line.endswith("*") else f"{line} " for line in lines]


def _grouped(table: ExhibitTable, widths: list[int]) -> tuple[list[str], list[int]]:
    """The headings of groups in a line, each ruled over its columns; and widths that have room for them."""
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


def _wrapped(note: str) -> str:
    """A note in lines; what a page says of bold is said of the asterisks that a terminal has in its place."""
    starred = re.sub(rf"(?:^|(?<=[.;] )){BOLD}", "* ", plain(note), flags=re.IGNORECASE)
    filled = textwrap.fill(unbroken(starred), TEXT_WIDTH, break_long_words=False, break_on_hyphens=False)
    return filled.replace(NO_BREAK, " ")


def panel_table(panel: Panel) -> ExhibitTable:
    """The marks of a panel as a table; means only, where it shows runs and means."""
    points = [point for point in panel.points if not point.faint] or list(panel.points)
    labels = _told_apart(points)
    xs, ys = (_coordinates([getattr(point, axis) for point in points]) for axis in "xy")
    rows = tuple(
        TableRow(label, (x, y), point.objective)
        for label, point, x, y in zip(labels, points, xs, ys, strict=True)
    )
    columns = (Column("x", panel.x_label or "To the right"), Column("y", panel.y_label or "Upwards"))
    notes = (panel.finding,) if panel.finding else ()
    return ExhibitTable(panel.name, panel.title, "Mark", columns, rows, panel.source, notes)


def _told_apart(points: Sequence[Point]) -> list[str]:
    """The labels of marks, those of several runs with the seeds that their details begin with."""
    labels = [point.label for point in points]
    seeds = [re.match(r"seed \d+", point.detail) for point in points]
    return [
        f"{label}, {seed[0]}" if seed and labels.count(label) > 1 else label
        for label, seed in zip(labels, seeds, strict=True)
    ]


def _coordinates(values: Sequence[float]) -> list[Cell]:
    """Coordinates along an axis: counts without decimals, ratios with three, percentages with one."""
    is_count, is_ratio = (
        all(value == round(value) for value in values),
        all(abs(value) <= 1 for value in values),
    )
    digits = 0 if is_count else 3 if is_ratio else 1
    return [Cell(fixed(value, digits), value) for value in values]


def points_csv(exhibit: Built) -> str:
    """The marks of an exhibit's figures as comma-separated values, or its lines', and the cells of its maps.

    A cell's x is the number of its column, its y that of its row, from 1. Empty without figures.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    heads = ("x_label", "y_label", "detail", "source")
    writer.writerow(["panel", "label", "x", "y", "x_se", "y_se", *heads, "value"])
    for figure in exhibit.figures:
        for panel in figure.panels:
            for point in panel.points or _along(panel.curves):
                numbers = (point.x, point.y, point.x_error, point.y_error)
                texts = (panel.x_label, panel.y_label, point.detail)
                writer.writerow(
                    [
                        _harmless(panel.name),
                        _harmless(point.label),
                        *("" if number is None else repr(number) for number in numbers),
                        *map(_harmless, texts),
                        panel.source,
                        "",
                    ]
                )
            for row, column, label, value in _cells(panel.raster):
                line = [
                    _harmless(panel.name),
                    _harmless(label),
                    column,
                    row,
                    "",
                    "",
                    "",
                    "",
                    "",
                    panel.source,
                ]
                writer.writerow([*line, "" if value is None else repr(value)])
    return buffer.getvalue() if exhibit.figures else ""


def _along(curves: Iterable[Curve]) -> Iterator[Point]:
    """The points of lines, of a panel without marks."""
    for curve in curves:
        yield from (Point(x, y, curve.objective, curve.label) for x, y in curve.points)


def _cells(raster: Raster | None) -> Iterator[tuple[int, int, str, float | None]]:
    """The cells of a map: number of the row and of the column, their names, the value."""
    if raster is None or raster.is_scale:
        return
    for row, (name, values) in enumerate(zip(raster.rows, raster.values, strict=True), 1):
        for column, (other, value) in enumerate(zip(raster.columns, values, strict=True), 1):
            yield row, column, cell_name(name, other), value


def render_exhibit_text(exhibit: Built) -> str:
    """An exhibit for the terminal: its caption, its tables, the numbers behind its figures, and its notes."""
    heading = exhibit.titled(plain(exhibit.title))
    if exhibit.unfinished:
        heading = f"UNFINISHED, {exhibit.unfinished}. {heading}"
    parts = [f"LIMITED RUN, not evidence. {heading}" if exhibit.limited else heading]
    parts += [_wrapped(text) for text in (exhibit.finding, exhibit.caption) if text]
    parts.extend(to_text(table) for table in exhibit.tables)
    parts.extend(
        to_text(panel_table(panel)) for figure in exhibit.figures for panel in figure.panels if panel.points
    )
    notes = [note for note in exhibit.notes if note != exhibit.finding]
    if notes:
        parts.append("\n".join(map(_wrapped, notes)))
    return "\n\n".join(parts) + "\n"
