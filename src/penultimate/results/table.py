"""A table of numbers or words: as HTML and LaTeX by pandas' Styler, as CSV, and for a terminal by rich."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from penultimate.results import escape
from penultimate.results.escape import WORSE
from penultimate.results.text import NO_BREAK, fixed, plain

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

Source: TypeAlias = Literal["ours", "published"]
"""The origin of numbers: measured here, or printed in the paper. A table or panel holds one kind only."""
Mark: TypeAlias = Literal["best", "worse", ""]
TAGS = {"ours": "measured here", "published": "published"}
MISSING = "–"
LONG_WORDS, SHORT_HEAD = 30, 10
"""Words of more characters are wrapped in a table, and headings of at most as many are never broken."""


@dataclass(frozen=True)
class Column:
    """A column: its name in a CSV file, its heading, and how its numbers are shown.

    `group` is the heading that it shares with its neighbours. `better` is "high" or "low" if the values of
    objectives are compared with each other and marked. With `with_error`, the standard error stands beside
    the number.
    """

    key: str
    label: str
    group: str = ""
    digits: int = 1
    better: Literal["high", "low", ""] = ""
    with_error: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A table of one source. Its frames have the rows' labels as index and the columns' keys as columns.

    values   unrounded numbers in the unit of their column, or words; None or NaN is a dash
    errors   standard errors, and `counts` the runs behind each mean; both may lack columns
    texts    what is shown instead of a rounded number, digit for digit; None shows the number
    marks    "best" where no other in the column is better beyond chance, "worse" where one is
    marks_worse  whether the worse are marked in place of the best (`exhibit.mark` decides)
    own_marks    whether the exhibit itself says what its marks mean
    slugs    the objective of each row, which gives it its mark; empty without any
    folded   whether the reader opens it on the page
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    values: pd.DataFrame
    source: Source = "ours"
    corner: str = "Objective"
    errors: pd.DataFrame | None = None
    counts: pd.DataFrame | None = None
    texts: pd.DataFrame | None = None
    marks: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    slugs: tuple[str, ...] = ()
    folded: bool = False
    marks_worse: bool = False
    own_marks: bool = False
    test: str = (
        "Beyond chance: objectives are compared seed by seed (paired t-test, two-sided level 0.05, three"
        " seeds or more), corrected for all comparisons of an objective (Holm). An objective that is ahead of"
        " each of the others needs no correction."
    )

    @property
    def labels(self) -> list[str]:
        """The headings of the rows."""
        return [str(label) for label in self.values.index]

    def _cells(self, frame: pd.DataFrame | None) -> list[list[Any]]:
        """Return the cells of a frame in the order of the table's columns, None where there is none."""
        rows = len(self.values)
        columns = [
            [None] * rows
            if frame is None or column.key not in frame.columns
            else [None if cell is None or cell != cell else cell for cell in frame[column.key]]
            for column in self.columns
        ]
        return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in range(rows)]

    def shown(self) -> list[list[str]]:
        """Return the text of each cell."""
        return [
            [self._text(column, *cell) for column, *cell in zip(self.columns, *row, strict=True)]
            for row in zip(*map(self._cells, (self.values, self.errors, self.texts)), strict=True)
        ]

    def _text(self, column: Column, value: Any, error: Any, text: Any) -> str:
        if text is not None or isinstance(value, str):
            return plain(value if text is None else text)
        if value is None:
            return MISSING
        beside = f" ± {fixed(error, column.digits + 1)}" if column.with_error and error is not None else ""
        return f"{fixed(value, column.digits)}{beside}"

    def marked(self) -> list[list[Mark]]:
        """Return the mark that each cell bears: "best" for bold, or "worse"."""
        kept = "worse" if self.marks_worse else "best"
        return [[mark if mark == kept else "" for mark in row] for row in self._cells(self.marks)]

    @property
    def has_gaps(self) -> bool:
        """Whether a number was not measured; the word MISSING is a dash that says something else."""
        shown = zip(self._cells(self.values), self._cells(self.texts), strict=True)
        return any(pair == (None, None) for row in shown for pair in zip(*row, strict=True))

    @property
    def runs(self) -> str:
        """How many runs the means are over: "n = 9", or per column if columns differ; empty without runs."""
        spans: dict[str, str] = {}
        counts = [[int(n) for n in of if n is not None] for of in zip(*self._cells(self.counts), strict=True)]
        for column, known in zip(self.columns, counts, strict=True):
            if known:
                ends = dict.fromkeys((min(known), max(known)))
                spans[column.group or column.label] = "–".join(map(str, ends))
        if len({*spans.values()}) <= 1:
            return f"n = {next(iter(spans.values()))}" if spans else ""
        return "; ".join(f"{name}: n = {span}" for name, span in spans.items())

    def without(self, words: str) -> Table | None:
        """Return the table with only those rows whose heading has all of some words; None if none has."""
        wanted = words.lower().split()
        keep = [all(word in label.lower() for word in wanted) for label in self.labels]
        frames = {name: getattr(self, name) for name in ("values", "errors", "counts", "texts", "marks")}
        kept: dict[str, Any] = {name: frame[keep] for name, frame in frames.items() if frame is not None}
        slugs = tuple(itertools.compress(self.slugs, keep))
        return replace(self, slugs=slugs, **kept) if any(keep) else None

    def records(self) -> tuple[list[str], list[list[Any]]]:
        """Return the names of columns and the rows of the CSV: each number, any standard error and count."""
        columns: dict[str, list[Any]] = {plain(self.corner): [*self.labels]}
        parts = map(self._cells, (self.values, self.errors, self.counts))
        values, errors, counts = (list(zip(*part, strict=True)) for part in parts)
        texts = list(zip(*self.shown(), strict=True))
        for place, column in enumerate(self.columns if len(self.values) else ()):
            pairs = zip(values[place], texts[place], strict=True)
            columns[column.key] = [text if value is None else value for value, text in pairs]
            if any(error is not None for error in errors[place]):
                columns[f"{column.key}_se"] = [*errors[place]]
            if any(count is not None for count in counts[place]):
                columns[f"{column.key}_n"] = [None if n is None else int(n) for n in counts[place]]
        columns["source"] = [self.source] * len(self.values)
        return [*columns], [list(row) for row in zip(*columns.values(), strict=True)]

    def to_pandas(self) -> pd.DataFrame:
        """Return the unrounded numbers, with standard errors and counts: the columns of the CSV."""
        import pandas as pd

        head, lines = self.records()
        return pd.DataFrame(lines, columns=head)

    def json(self) -> dict[str, Any]:
        """Return the table as JSON: each row with its heading, and its numbers or words by column."""
        head, lines = self.records()
        keys = [column.key for column in self.columns]
        named = [(line[0], dict(zip(head, line, strict=True))) for line in lines]
        listed = [{self.corner: label, **{key: row[key] for key in keys}} for label, row in named]
        return {"name": self.name, "title": self.title, "source": self.source, "rows": listed}

    def marked_columns(self) -> Iterator[str]:
        """Yield for each row the keys of its marked cells, such as "bold top1, mean" or "worse mean"."""
        word = "worse" if self.marks_worse else "bold"
        for row in self.marked():
            keys = [column.key for column, mark in zip(self.columns, row, strict=True) if mark]
            yield f"{word} {', '.join(keys)}" if keys else ""

    def csv(self) -> str:
        """Return comma-separated values: unrounded numbers; text that no spreadsheet takes for a formula."""
        return write_csv(*self.records())

    def _styler(
        self, escaped: Callable[[object], str], write: Callable[[str, Mark], str], labels: Sequence[str]
    ) -> Styler:
        """Return a Styler of finished cells under escaped headings; rows and columns are numbered."""
        import pandas as pd

        cells = [list(map(write, *row)) for row in zip(self.shown(), self.marked(), strict=True)]
        frame = pd.DataFrame(cells, range(len(cells)), range(len(self.columns)), dtype=object)
        heads = [escaped(column.label) for column in self.columns]
        groups = [escaped(column.group) for column in self.columns]
        if any(groups):
            # Neighbours with the same group share its number, and so one heading.
            changes = [before != group for before, group in itertools.pairwise(["", *groups])]
            numbers = [sum(changes[: place + 1]) for place in range(len(groups))]
            frame.columns = pd.MultiIndex.from_arrays([numbers, range(len(heads))])
            named = dict(zip(numbers, groups, strict=True))
            styler = frame.style.format_index(named.__getitem__, axis=1, level=0)
        else:
            styler = frame.style
        styler.columns.names = [*[""] * (styler.columns.nlevels - 1), escaped(self.corner)]
        last = styler.columns.nlevels - 1
        return styler.format_index(labels.__getitem__).format_index(heads.__getitem__, axis=1, level=last)

    def html(self, icons: Mapping[str, str] | None = None) -> str:
        """Return an HTML table; `icons` are the marks of objectives."""
        import pandas as pd

        slugs = self.slugs or [""] * len(self.values)
        icons = icons or {}
        labels = [
            icons.get(slug, "") + escape.html(label) for slug, label in zip(slugs, self.labels, strict=True)
        ]
        styler, words = self._styler(_html_heading, _html_cell, labels), self._hold_words()
        classes = [
            [
                "words" * of_words + " long" * (of_words and len(text) > LONG_WORDS)
                for of_words, text in zip(words, row, strict=True)
            ]
            for row in self.shown()
        ]
        styler.set_td_classes(pd.DataFrame(classes, styler.index, styler.columns))
        name = ("words" if all(words) else "numbers") + " marked" * any(map(any, self.marked()))
        made = styler.to_html(table_attributes=f'class="{name}" aria-label="{escape.html(self.title)}"')
        return re.sub(r'(?s)<style.*?</style>\s*| id="T_[^"]*"', "", made)

    def _hold_words(self) -> list[bool]:
        """Return for each column whether it holds words alone."""
        columns = zip(*self._cells(self.values), strict=True)
        return [all(cell is None or isinstance(cell, str) for cell in column) for column in columns]

    def latex(self, caption: str = "", legends: Sequence[str] = ()) -> str:
        """Return a booktabs table with its notes and the `legends` of its marks below."""
        styler = self._styler(escape.latex, _latex_cell, [*map(escape.latex, self.labels)])
        wide = [any(len(text) > LONG_WORDS for text in texts) for texts in zip(*self.shown(), strict=True)]
        paragraph = f"p{{{0.6 / max(sum(wide), 1):.2f}\\linewidth}}"
        kinds = [
            paragraph if long else "l" if words else "r"
            for long, words in zip(wide, self._hold_words(), strict=True)
        ]
        made = styler.to_latex(
            hrules=True,
            column_format=f"l{''.join(kinds)}",
            multicol_align="c",
            caption=f"{escape.latex(caption or self.title)} ({TAGS[self.source]})",
            label=f"tab:{re.sub(r'[^A-Za-z0-9]+', '-', self.name).strip('-')}",
            position_float="centering",
        )
        notes = r" \par ".join(escape.latex(note) for note in (*self.notes, *legends))
        below = f"\\par\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {notes}}}\n" if notes else ""
        made = made.replace(r"\end{table}", rf"{below}\end{{table}}")
        return f"% needs \\usepackage{{booktabs}}; source: {TAGS[self.source]}\n{made}"

    def text(self, width: int = 100) -> str:
        """Return the table for a terminal of this width; columns that do not fit follow below."""
        signs = {"best": "*", "worse": WORSE, "": " " * (self.marks is not None)}
        rows = [
            [text + signs[mark] for text, mark in zip(*row, strict=True)]
            for row in zip(self.shown(), self.marked(), strict=True)
        ]
        first = min(max(map(len, [self.corner, *self.labels])), width // 3)
        blocks, room = [dict[int, int]()], width - first
        for place, column in enumerate(self.columns):
            needed = max(
                [len(row[place]) for row in rows] + [*map(len, f"{column.group} {column.label}".split())]
            )
            taken = min(needed, width // 2)
            if blocks[-1] and taken + 2 > room:
                blocks.append({})
                room = width - first
            blocks[-1][place] = taken
            room -= taken + 2
        drawn = "".join(self._drawn(rows, first, widths) for widths in blocks)
        lines = [f"{plain(self.title)} [{TAGS[self.source]}]", *drawn.splitlines()]
        return "\n".join(line.rstrip() for line in lines)

    def _drawn(self, rows: Sequence[Sequence[str]], first: int, widths: Mapping[int, int]) -> str:
        """Return the columns with these widths as rich draws them, beside headings that are `first` wide."""
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        words, groups = self._hold_words(), [column.group for column in self.columns]
        drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="", show_edge=False)
        drawn.add_column(Text(plain(self.corner)), vertical="bottom", overflow="fold", width=first)
        for place, width in widths.items():
            is_first = place == min(widths) or groups[place - 1] != groups[place]
            head = f"{plain(groups[place])}\n" * is_first + plain(self.columns[place].label)
            side: Literal["left", "right"] = "left" if words[place] else "right"
            drawn.add_column(Text(head), justify=side, vertical="bottom", overflow="fold", width=width)
        for label, row in zip(self.labels, rows, strict=True):
            drawn.add_row(Text(plain(label)), *(Text(row[place]) for place in widths))
        file = io.StringIO()
        full = first + sum(width + 2 for width in widths.values())
        Console(file=file, width=full, color_system=None, legacy_windows=False).print(drawn)
        return file.getvalue()


def _html_heading(text: object) -> str:
    heading = escape.html(text)
    return heading.replace(" ", NO_BREAK) if len(heading) <= SHORT_HEAD else heading


def _html_cell(text: str, mark: Mark) -> str:
    number, plus, error = map(escape.html, text.partition(" ± "))
    number = f"<b>{number}</b>" if mark == "best" else number
    number += f'<sup class="worse">{WORSE}</sup>' if mark == "worse" else ""
    return f'{number} <span class="se">± {error}</span>' if plus else number


def _latex_cell(text: str, mark: Mark) -> str:
    cell = escape.latex(text)
    if mark == "worse":
        return rf"{cell}\rlap{{{escape.LATEX_SPECIALS[WORSE]}}}"
    return rf"\textbf{{{cell}}}" if mark == "best" else cell


class Cell(NamedTuple):
    """A cell of `table_of_rows`: its number or word, what is shown instead, and its mark."""

    value: Any = None
    text: str | None = None
    mark: Mark = ""


def table_of_rows(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[str, Sequence[Any]]],
    **table: Any,
) -> Table | None:
    """Return a table of (label, cells), each a `Cell`, a number, a word or None; None without a row."""
    import pandas as pd

    every = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in cells] for _, cells in rows]
    labels, keys = [label for label, _ in rows], [column.key for column in columns]
    values, texts, marks = (
        pd.DataFrame([[cell[part] for cell in cells] for cells in every], labels, keys, dtype=object)
        for part in range(3)
    )
    has_marks = any(cell.mark for cells in every for cell in cells)
    made = {"texts": texts, "marks": marks if has_marks else None, **table}
    return Table(name, title, tuple(columns), values, **made) if rows else None


def write_csv(head: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    """Return lines as comma-separated values; numbers read back to the same value, None is an empty cell."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([[*map(escape.csv, line)] for line in (head, *lines)])
    return file.getvalue()
