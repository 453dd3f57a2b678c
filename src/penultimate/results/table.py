"""A table of numbers or words: as HTML and LaTeX by pandas' Styler, as CSV, and for a terminal by rich."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from penultimate.results import escape
from penultimate.results.escape import WORSE
from penultimate.results.text import fixed, plain

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

Source: TypeAlias = Literal["ours", "published"]
"""The origin of numbers: measured here, or printed in the paper. A table or panel holds one kind only."""
Mark: TypeAlias = Literal["best", "worse", ""]
TAGS = {"ours": "measured here", "published": "published"}
MISSING = "–"
LONG_WORDS = 30
"""Words of more characters than this are wrapped in a table."""
SHORT = 10
"""The most characters of a heading that is never broken, such as "Top-1, %"."""


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

    def _aligned(self, frame: pd.DataFrame | None) -> list[list[Any]]:
        """Return the cells of a frame in the order of the table's columns, None where there is none."""
        keys, rows = [column.key for column in self.columns], len(self.values)
        if frame is None:
            return [[None] * len(keys) for _ in range(rows)]
        found = {key: [None if _is_absent(cell) else cell for cell in frame[key]] for key in frame.columns}
        return [list(row) for row in zip(*(found.get(key, [None] * rows) for key in keys), strict=True)]

    def shown(self) -> list[list[str]]:
        """Return the text of each cell."""
        return [
            [self._text(column, *cell) for column, *cell in zip(self.columns, *row, strict=True)]
            for row in zip(*map(self._aligned, (self.values, self.errors, self.texts)), strict=True)
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
        return [[mark if mark == kept else "" for mark in row] for row in self._aligned(self.marks)]

    @property
    def has_gaps(self) -> bool:
        """Whether a number was not measured; the word MISSING is a dash that says something else."""
        shown = zip(self._aligned(self.values), self._aligned(self.texts), strict=True)
        return any(pair == (None, None) for row in shown for pair in zip(*row, strict=True))

    @property
    def runs(self) -> str:
        """How many runs the means are over: "n = 9", or per column if columns differ; empty without runs."""
        spans: dict[str, str] = {}
        counts = list(zip(*self._aligned(self.counts), strict=True))
        for column, of_column in zip(self.columns, counts, strict=True):
            known = {int(count) for count in of_column if count is not None}
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
        if not any(keep):
            return None
        parts = {
            name: frame[keep]
            for name in ("values", "errors", "counts", "texts", "marks")
            if (frame := getattr(self, name)) is not None
        }
        slugs = tuple(itertools.compress(self.slugs, keep))
        return replace(self, slugs=slugs, **parts)

    def records(self) -> tuple[list[str], list[list[Any]]]:
        """Return the names of columns and the rows of the CSV: each number, any standard error and count."""
        values, errors, counts = map(self._aligned, (self.values, self.errors, self.counts))
        texts = self.shown()
        head, lines = [plain(self.corner)], [list[Any]([label]) for label in self.labels]
        for place, column in enumerate(self.columns):
            head.append(column.key)
            for line, value, text in zip(lines, values, texts, strict=True):
                line.append(text[place] if value[place] is None else value[place])
            for ending, cells in (("se", errors), ("n", counts)):
                if any(row[place] is not None for row in cells):
                    head.append(f"{column.key}_{ending}")
                    for line, row in zip(lines, cells, strict=True):
                        line.append(
                            int(row[place]) if ending == "n" and row[place] is not None else row[place]
                        )
        return [*head, "source"], [[*line, self.source] for line in lines]

    def to_pandas(self) -> pd.DataFrame:
        """Return the unrounded numbers, with standard errors and counts: the columns of the CSV."""
        import pandas as pd

        head, lines = self.records()
        return pd.DataFrame(lines, columns=head)

    def json(self) -> dict[str, Any]:
        """Return the table as JSON: each row with its heading, and its numbers or words by column."""
        rows = zip(self.labels, self._aligned(self.values), self.shown(), strict=True)
        keys = [column.key for column in self.columns]
        listed = [
            {
                self.corner: label,
                **{
                    key: text if value is None else value
                    for key, value, text in zip(keys, values, texts, strict=True)
                },
            }
            for label, values, texts in rows
        ]
        return {"name": self.name, "title": self.title, "source": self.source, "rows": listed}

    def marked_columns(self) -> Iterator[str]:
        """Yield for each row the keys of its marked cells, such as "bold top1; worse mean"."""
        for row in self.marked():
            by_mark: dict[str, list[str]] = {"bold": [], "worse": []}
            for column, mark in zip(self.columns, row, strict=True):
                if mark:
                    by_mark["bold" if mark == "best" else mark].append(column.key)
            yield "; ".join(f"{mark} {', '.join(keys)}" for mark, keys in by_mark.items() if keys)

    def csv(self) -> str:
        """Return comma-separated values: unrounded numbers; text that no spreadsheet takes for a formula."""
        return write_csv(*self.records())

    def _styler(self, cells: Sequence[Sequence[str]], labels: Sequence[str], heads: Sequence[str]) -> Styler:
        """Return a Styler of finished texts, whose rows and columns are numbers with these headings."""
        import pandas as pd

        frame = pd.DataFrame(cells, range(len(labels)), range(len(heads)), dtype=object)
        return frame.style.format_index(labels.__getitem__, axis=0).format_index(heads.__getitem__, axis=1)

    def html(self, icons: Mapping[str, str] | None = None, keys: Mapping[str, str] | None = None) -> str:
        """Return an HTML table; `icons` are the marks of objectives, `keys` their names in the page."""
        import pandas as pd

        cells = [
            [self._html_cell(text, mark) for text, mark in zip(*row, strict=True)]
            for row in zip(self.shown(), self.marked(), strict=True)
        ]
        icons = icons or {}
        slugs = self.slugs or [""] * len(self.values)
        labels = [
            icons.get(slug, "") + escape.html(label) for slug, label in zip(slugs, self.labels, strict=True)
        ]
        heads = [
            f'<span class="short">{head}</span>' if len(head) <= SHORT else head for head in self._heads()
        ]
        styler = self._styler(cells, labels, heads)
        words = self._hold_words()
        classes = pd.DataFrame(
            [
                [
                    "words" * is_words + " long" * (is_words and len(text) > LONG_WORDS)
                    for is_words, text in zip(words, row, strict=True)
                ]
                for row in self.shown()
            ],
            styler.data.index,
            styler.data.columns,
        )
        name = ("words" if all(words) else "numbers") + " marked" * any(map(any, self.marked()))
        kind = f'class="{name}" aria-label="{escape.html(self.title)}"'
        made = styler.set_td_classes(classes).to_html(
            table_attributes=kind, cell_ids=False, sparse_columns=True
        )
        made = re.sub(r"<style.*?</style>\s*", "", made, flags=re.DOTALL)
        made = re.sub(r' id="T_[^"]*"', "", made)
        corner = f'<th class="corner" scope="col">{escape.html(self.corner)}</th>'
        made = re.sub(r'<th class="blank level0"\s*>&nbsp;</th>', corner, made, count=1)
        made = made.replace("<thead>", f"<thead>{self._groups_html()}", 1)
        rows = iter(slugs)
        if keys:
            before, body = made.split("<tbody>", 1)
            body = re.sub(
                r"<tr>",
                lambda _: f'<tr data-mark="{k}">' if (k := keys.get(next(rows), "")) else "<tr>",
                body,
            )
            made = f"{before}<tbody>{body}"
        return made

    def _heads(self) -> list[str]:
        return [escape.html(column.label) for column in self.columns]

    def _html_cell(self, text: str, mark: Mark) -> str:
        number, plus, error = text.partition(" ± ")
        shown = escape.html(number)
        shown = f"<b>{shown}</b>" if mark == "best" else shown
        shown += f'<sup class="worse">{WORSE}</sup>' if mark == "worse" else ""
        return f'{shown} <span class="se">± {escape.html(error)}</span>' if plus else shown

    def _groups_html(self) -> str:
        groups = self.groups()
        if not any(group for group, _ in groups):
            return ""
        heads = [(f"<span>{escape.html(group)}</span>" if group else "", span) for group, span in groups]
        cells = "".join(f'<th colspan="{span}" scope="colgroup">{head}</th>' for head, span in heads)
        return f'<tr class="groups"><th></th>{cells}</tr>'

    def groups(self) -> list[tuple[str, int]]:
        """Return the headings that neighbouring columns share, and how many columns each spans."""
        return [
            (group, len(list(of)))
            for group, of in itertools.groupby(self.columns, lambda column: column.group)
        ]

    def _hold_words(self) -> list[bool]:
        """Return for each column whether it holds words alone."""
        values = self._aligned(self.values)
        places = range(len(self.columns))
        return [all(row[place] is None or isinstance(row[place], str) for row in values) for place in places]

    def latex(self, caption: str = "", legends: Sequence[str] = ()) -> str:
        """Return a booktabs table with its notes and the `legends` of its marks below."""
        signs = {
            "best": (r"\textbf{", "}"),
            "worse": ("", rf"\rlap{{{escape.LATEX_SPECIALS[WORSE]}}}"),
            "": ("", ""),
        }
        cells = [
            [signs[mark][0] + escape.latex(text) + signs[mark][1] for text, mark in zip(*row, strict=True)]
            for row in zip(self.shown(), self.marked(), strict=True)
        ]
        labels = [escape.latex(label) for label in self.labels]
        styler = self._styler(cells, labels, [escape.latex(column.label) for column in self.columns])
        wide = [any(len(text) > LONG_WORDS for text in texts) for texts in zip(*self.shown(), strict=True)]
        share = 0.6 / max(sum(wide), 1)
        kinds = (
            f"p{{{share:.2f}\\linewidth}}" if is_wide else "l" if words else "r"
            for words, is_wide in zip(self._hold_words(), wide or [False] * len(self.columns), strict=True)
        )
        made = styler.to_latex(
            hrules=True,
            column_format=f"l{''.join(kinds)}",
            caption=f"{escape.latex(caption or self.title)} ({TAGS[self.source]})",
            label=f"tab:{re.sub(r'[^A-Za-z0-9]+', '-', self.name).strip('-')}",
            position_float="centering",
        )
        head = [rf"\multicolumn{{{span}}}{{c}}{{{escape.latex(group)}}}" for group, span in self.groups()]
        if any(column.group for column in self.columns):
            made = made.replace(r"\toprule", "\\toprule\n" + " & ".join(["", *head]) + r" \\", 1)
        notes = r" \par ".join(escape.latex(note) for note in (*self.notes, *legends))
        below = rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes}}}" if notes else ""
        made = made.replace(r"\end{table}", f"{below}\n\\end{{table}}" if below else r"\end{table}")
        return f"% needs \\usepackage{{booktabs}}; source: {TAGS[self.source]}\n{made}"

    def text(self, width: int = 100) -> str:
        """Return the table for a terminal of this width; columns that do not fit follow below."""
        texts = [
            [
                text + {"best": "*", "worse": WORSE, "": " " * bool(self.marks is not None)}[mark]
                for text, mark in zip(*row, strict=True)
            ]
            for row in zip(self.shown(), self.marked(), strict=True)
        ]
        lines = [f"{plain(self.title)} [{TAGS[self.source]}]", *self._blocks(texts, width)]
        return "\n".join(line.rstrip() for block in lines for line in block.split("\n"))

    def _blocks(self, texts: Sequence[Sequence[str]], width: int) -> Iterator[str]:
        first = min(max(map(len, [self.corner, *self.labels])), width // 3)
        widths = [
            min(
                max([len(row[place]) for row in texts] + [max(map(len, column.label.split() or [""]))]),
                width // 2,
            )
            for place, column in enumerate(self.columns)
        ]
        places = list(range(len(self.columns)))
        while places:
            count, taken = 0, first
            while count < len(places) and (not count or taken + 2 + widths[places[count]] <= width):
                taken += 2 + widths[places[count]]
                count += 1
            yield self._rich([(place, [row[place] for row in texts]) for place in places[:count]], width)
            places = places[count:]

    def _rich(self, chosen: Sequence[tuple[int, list[str]]], width: int) -> str:
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        words = self._hold_words()
        drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="", show_edge=False)
        drawn.add_column(Text(plain(self.corner)), vertical="bottom", overflow="fold")
        group = ""
        for place, _ in chosen:
            column = self.columns[place]
            above = f"{plain(column.group)}\n" if column.group != group else ""
            group = column.group
            align: Literal["left", "right"] = "left" if words[place] else "right"
            drawn.add_column(
                Text(above + plain(column.label)), justify=align, vertical="bottom", overflow="fold"
            )
        for number, label in enumerate(self.labels):
            drawn.add_row(Text(plain(label)), *(Text(cells[number]) for _, cells in chosen))
        file = io.StringIO()
        Console(file=file, width=width, color_system=None, legacy_windows=False).print(drawn)
        return file.getvalue()


def table_of_rows(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[str, Sequence[Any]]],
    **table: Any,
) -> Table | None:
    """Return a table of (label, cells), each cell a number, a word or None; None without a row."""
    import pandas as pd

    cells = [list(row) for _, row in rows]
    keys = [column.key for column in columns]
    frame = pd.DataFrame(cells, [label for label, _ in rows], keys, dtype=object)
    return Table(name, title, tuple(columns), frame, **table) if rows else None


class Cell(NamedTuple):
    """A cell of `table_of_cells`: its number or word, what is shown instead, and its mark."""

    value: Any = None
    text: str | None = None
    mark: Mark = ""


def table_of_cells(
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


def _is_absent(cell: Any) -> bool:
    return cell is None or cell != cell


def write_csv(head: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    """Return lines as comma-separated values; numbers read back to the same value, None is an empty cell."""
    import csv

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(escape.csv, head))
    writer.writerows([_written(cell) for cell in line] for line in lines)
    return file.getvalue()


def _written(cell: Any) -> object:
    if _is_absent(cell):
        return ""
    return (
        escape.csv(cell) if isinstance(cell, str) else repr(float(cell)) if isinstance(cell, float) else cell
    )
