"""A table as CSV and as LaTeX; the points of figures as CSV."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from penultimate.report.base import (
    WORSE,
    Built,
    Cell,
    Curve,
    ExhibitTable,
    Point,
    Raster,
)
from penultimate.report.drawing.rasters import cell_name
from penultimate.report.marks import BOLD, UNMARKED
from penultimate.report.shapes.cells import MEAN_PER_CLASS
from penultimate.report.text import plain

if TYPE_CHECKING:
    import pandas as pd

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
LATEX_SPECIALS[WORSE] = r"\textsuperscript{$\bigtriangledown$}"
LATEX_SPECIALS |= {"⁺": r"\textsuperscript{+}", "‖": r"$\Vert$", "′": "$'$", "≤": r"$\le$", "≥": r"$\ge$"}
LABEL = re.compile(r"[^A-Za-z0-9]+")
"""What is not kept of a table's name in the label by which a paper refers to it."""
SPECIAL = re.compile(f"-(?=-)|[{re.escape(''.join(LATEX_SPECIALS.keys() - {'-'}))}]")
"""A character that LaTeX does not print as it is, or a hyphen before another, which would make a dash."""
SIGNED = r"[+-][\d.,]*\d(e[+-]?\d+)?( ?%)?($| [^\W\d_][^|!\"]*$| \([^|!\"]*$)"
"""A number with its sign, alone or before words: no formula, since no operator follows the number."""
FORMULA = re.compile(f"(?!{SIGNED})[=+@＝＋－＠-]")
"""The beginning of a cell that spreadsheets evaluate (full-width signs too)."""
POINTS = ("panel", "label", "x", "y", "x_se", "y_se", "x_label", "y_label", "detail", "source", "value")
"""The columns of the points of figures."""
GAP = 2
"""The number of blanks between two columns in a terminal."""
WORD_WIDTH = 46
"""The number of characters in a line of words in a column."""
LINE = 90
"""The number of characters in a line of a paper."""


def to_csv(table: ExhibitTable) -> str:
    """Return comma-separated values: unrounded numbers, each with any standard error and count.

    Text that a spreadsheet would take for a formula gets a leading apostrophe; a signed number with its unit
    does not.
    """
    head, lines = _records(table)
    return _csv([*(_harmless(name) for name in head[:-1]), head[-1]], lines)


def to_frame(table: ExhibitTable) -> pd.DataFrame:
    """Return a table as a pandas DataFrame with the columns of its CSV."""
    import pandas as pd

    head, lines = _records(table)
    return pd.DataFrame(lines, columns=_apart(head))


def to_frames(exhibit: Built) -> dict[str, pd.DataFrame]:
    """Return the tables of an exhibit by name, and the points of its figures, as pandas DataFrames."""
    import pandas as pd

    frames = {table.name: to_frame(table) for table in exhibit.tables}
    if exhibit.figures:
        frames[f"{exhibit.name}_points"] = pd.DataFrame(_marks(exhibit), columns=list(POINTS))
    return frames


def _records(table: ExhibitTable) -> tuple[list[str], list[list[str | float | None]]]:
    """Return the names of columns and the rows: each number followed by any standard error and count."""
    errors = [any(row.cells[i].error is not None for row in table.rows) for i in range(len(table.columns))]
    counts = [any(row.cells[i].count is not None for row in table.rows) for i in range(len(table.columns))]
    head = [table.corner]
    for i, column in enumerate(table.columns):
        head.append(column.key)
        head.extend([f"{column.key}_se"] * errors[i] + [f"{column.key}_n"] * counts[i])
    lines: list[list[str | float | None]] = []
    for row in table.rows:
        line: list[str | float | None] = [row.label]
        for i, cell in enumerate(row.cells):
            line.append(cell.text if cell.value is None else cell.value)
            line.extend([cell.error] * errors[i] + [cell.count] * counts[i])
        lines.append([*line, table.source])
    return [*head, "source"], lines


def _csv(head: list[str], lines: Iterable[Iterable[str | float | None]]) -> str:
    """Return lines as comma-separated values that no spreadsheet evaluates; None is an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_apart(head))
    writer.writerows(
        [_harmless(each) if isinstance(each, str) else _written(each) for each in line] for line in lines
    )
    return buffer.getvalue()


def _apart(names: list[str]) -> list[str]:
    """Return the names of columns, with a number behind any that a column before it has.

    Readers of tables find columns by name, and many do not tell capitals apart.

    >>> _apart(["Network", "a_percent", "a_percent", "A_percent_2", "source"])
    ['Network', 'a_percent', 'a_percent_3', 'A_percent_2', 'source']
    """
    taken = {name.casefold() for name in names}
    known = set[str]()
    apart = []
    for name in names:
        count = itertools.count(2)
        told = name
        while told.casefold() in known or (told != name and told.casefold() in taken):
            told = f"{name}_{next(count)}"
        known.add(told.casefold())
        apart.append(told)
    return apart


def _harmless(text: str) -> str:
    """Return the text in a form that no spreadsheet evaluates.

    >>> _harmless("=HYPERLINK(1)"), _harmless("+0.43 points")
    ("'=HYPERLINK(1)", '+0.43 points')
    """
    text = plain(text)
    return f"'{text}" if FORMULA.match(text) else text


def _written(number: float | None) -> str:
    return "" if number is None else repr(number)


def latex_escape(text: str) -> str:
    r"""Return the text in LaTeX, with its special characters escaped.

    >>> latex_escape("50% of R² \\input{x}")
    '50\\% of R\\textsuperscript{2} \\textbackslash{}input\\{x\\}'
    """
    return SPECIAL.sub(lambda found: LATEX_SPECIALS[found[0]], plain(text))


def to_latex(table: ExhibitTable, caption: str = "", legends: Iterable[str] = ()) -> str:
    """Return a booktabs tabular with its notes and the `legends` (of bold, daggers) that it needs below."""
    layout = _layout(table)
    packages = "booktabs,array" if "p{" in layout else "booktabs"
    lines = [
        rf"% needs \usepackage{{{packages}}}; source: {TAGS[table.source]}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escape(caption or table.title)} ({TAGS[table.source]})}}",
        rf"\label{{tab:{LABEL.sub('-', table.name).strip('-')}}}",
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
        cells = [_latex_cell(table, cell) for cell in row.cells]
        lines.append(" & ".join([latex_escape(row.label), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = r" \par ".join(map(latex_escape, (*table.notes, *_needed(table, legends))))
    if notes:
        lines.append(rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes}}}")
    return "\n".join([*lines, r"\end{table}", ""])


def latex_of(exhibit: Built) -> dict[str, str]:
    """Return the tables of an exhibit in LaTeX, by their names."""
    legends = (*exhibit.notes, *re.split(r"(?<=\.) ", exhibit.caption))
    far = f" [{exhibit.unfinished}]" if exhibit.unfinished else ""
    return {
        table.name: to_latex(table, exhibit.titled(f"{table.title}{far}"), legends)
        for table in exhibit.tables
    }


def _layout(table: ExhibitTable) -> str:
    """Return the column types: words left, numbers right; columns of sentences share the rest of the line."""
    columns = [[row.label for row in table.rows]]
    columns += [[row.cells[i].text for row in table.rows] for i in range(len(table.columns))]
    widths = [max(map(len, texts), default=0) for texts in columns]
    words = hold_words(table)
    are_long = [of_words and wide > WORD_WIDTH for of_words, wide in zip(words, widths, strict=True)]
    taken = sum(GAP + (0 if is_long else wide) for wide, is_long in zip(widths, are_long, strict=True))
    share = max(1 - taken / LINE, 0.5) / max(sum(are_long), 1)
    wrapped = rf">{{\raggedright\arraybackslash}}p{{{share:.2f}\linewidth}}"
    return "".join(
        wrapped if is_long else "l" if of_words else "r"
        for of_words, is_long in zip(words, are_long, strict=True)
    )


def hold_words(table: ExhibitTable) -> list[bool]:
    """Return, for the headings of rows (always true) and each column, whether it holds words alone."""
    columns = range(len(table.columns))
    return [True, *(all(row.cells[i].value is None for row in table.rows) for i in columns)]


def _needed(table: ExhibitTable, legends: Iterable[str]) -> list[str]:
    """Return the legends that a table needs: of bold and of the mark in cells, of daggers in headings."""
    headings = (*(column.label for column in table.columns), *(row.label for row in table.rows))
    cells = [cell for row in table.rows for cell in row.cells]
    uses = {
        BOLD: any(map(table.is_bold, cells)),
        WORSE: any(map(table.is_worse, cells)),
        UNMARKED: table.marks_worse and not any(map(table.is_worse, cells)),
        MEAN_PER_CLASS: any(MEAN_PER_CLASS in heading for heading in headings),
    }
    return [legend for legend in legends if any(legend.startswith(sign) and uses[sign] for sign in uses)]


def _latex_cell(table: ExhibitTable, cell: Cell) -> str:
    """Return a cell in LaTeX; a mark takes no room, so that numbers stay aligned."""
    text = latex_escape(cell.text)
    if table.is_worse(cell):
        return rf"{text}\rlap{{{LATEX_SPECIALS[WORSE]}}}"
    return rf"\textbf{{{text}}}" if table.is_bold(cell) else text


def column_groups(table: ExhibitTable) -> list[tuple[str, int]]:
    """Return the group headings of neighbouring columns, and the number of columns that each spans."""
    groups: list[tuple[str, int]] = []
    for column in table.columns:
        if groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups


def points_csv(exhibit: Built) -> str:
    """Return the marks (or lines) and map cells of an exhibit's figures as comma-separated values.

    The x of a cell is the number of its column and its y that of its row, from 1. Empty without figures.
    """
    return _csv([*POINTS], _marks(exhibit)) if exhibit.figures else ""


def _marks(exhibit: Built) -> Iterator[list[str | float | None]]:
    """Yield a row for each mark (or point of a line) and map cell of an exhibit's figures."""
    for figure in exhibit.figures:
        for panel in figure.panels:
            for point in panel.points or _along(panel.curves):
                numbers = (point.x, point.y, point.x_error, point.y_error)
                said = (panel.x_label, panel.y_label, point.detail, panel.source, None)
                yield [panel.name, point.label, *numbers, *said]
            for row, column, label, value in _cells(panel.raster):
                yield [panel.name, label, column, row, *[None] * 5, panel.source, value]


def _along(curves: Iterable[Curve]) -> Iterator[Point]:
    """Yield the points of the lines in a panel without marks."""
    for curve in curves:
        yield from (Point(x, y, curve.objective, curve.label) for x, y in curve.points)


def _cells(raster: Raster | None) -> Iterator[tuple[int, int, str, float | None]]:
    """Yield the cells of a map: the numbers of row and column, their names, and the value."""
    if raster is None or raster.is_scale:
        return
    for row, (name, values) in enumerate(zip(raster.rows, raster.values, strict=True), 1):
        for column, (other, value) in enumerate(zip(raster.columns, values, strict=True), 1):
            yield row, column, cell_name(name, other), value
