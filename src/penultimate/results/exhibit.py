"""An exhibit: a function of a run that yields tables, figures and sentences; its docstring is the caption.

    @exhibit("table3", "How far the classes are pulled apart", section="3.3")
    def table3(run):
        '''Class separation R² of the penultimate features: the share of variation between classes.'''
        yield table_of_means(run, "table3", "Class separation", {Column("r2", "R²", digits=3): seeds(...)})

`declare_exhibits` names the exhibits of a room, so that one is imported when it is asked for.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from penultimate import registry
from penultimate.errors import RequestError, as_sentence
from penultimate.lazy import found
from penultimate.results.escape import WORSE
from penultimate.results.table import MISSING, Table, write_csv
from penultimate.results.text import plain

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.results.figure import Figure, Panel
    from penultimate.results.palette import Mark
    from penultimate.results.rows import Run

Part: TypeAlias = "Table | Figure | Gallery | str | None"
Make: TypeAlias = "Callable[[Run], Iterator[Part]]"
POINTS = ("panel", "label", "x", "y", "x_se", "y_se", "x_label", "y_label", "detail", "source", "value")
"""The columns of the points of figures."""
BETTER = "better beyond chance"
BOLD = f"Bold: no other in the column is {BETTER}."
BEATEN = f"{WORSE}: another in the column is {BETTER}."


class Pictures(NamedTuple):
    """Images of a gallery as PNG files, with the two lines below them."""

    caption: str
    detail: str
    images: tuple[bytes, ...]


class Gallery(NamedTuple):
    """Groups of small images; `slug` gives the title the mark of an objective."""

    title: str
    slug: str
    groups: tuple[Pictures, ...]


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, or of one's own, and how it is made.

    `section` is its place in the paper or on its page, `study` the study that measures what a run may lack
    (empty if it lacks nothing), `page` the page that shows it, and `of_given` whether it shows networks that
    were not trained here.
    """

    name: str
    title: str
    make: Make
    section: str = ""
    study: str = "full"
    page: str = "usual"
    of_given: bool = False

    @property
    def caption(self) -> str:
        """The text below the title."""
        return " ".join((inspect.getdoc(self.make) or "").split())

    def __call__(self, run: Run, allow_limited: bool = False) -> Shown:
        """Return what the exhibit shows of a run; of several studies, the first that has measured it.

        Raises RequestError for a limited run unless `allow_limited`, and for networks that were not trained
        here if the exhibit is about trained ones.
        """
        if run.limited and not allow_limited:
            raise RequestError(
                f"study '{plain(run.name)}' is a limited run, too small to be evidence. Pass"
                " allow_limited=True (--allow-limited) to see it, marked as such, or run a full study"
            )
        if run.are_given and not self.of_given:
            raise RequestError(
                f"{number_of(self.name)} is about networks that a study trains, and those of"
                f" '{plain(run.name)}' were trained elsewhere; see: penultimate show ranking"
            )
        made = [self._shown(part) for part in run.parts or (run,)]
        chosen = next((shown for shown in made if shown.is_measured), made[0])
        if run.parts and chosen.is_measured:
            name = run.parts[made.index(chosen)].name
            return replace(chosen, parts=(*chosen.parts, f"The numbers are those of `{plain(name)}`."))
        return chosen

    def _shown(self, run: Run) -> Shown:
        is_shown = run.are_given or self.page != "evaluation"
        parts = list(mark([part for part in (self.make(run) if is_shown else ()) if part is not None]))
        words = {"source": run.title, "name": plain(run.name), "backbone": plain(run.backbone)}
        title, caption = (text.format_map(words) for text in (self.title, self.caption))
        shown = Shown(self.name, title, caption, tuple(parts), run.limited, run.unfinished, self.section)
        has_gaps = any(table.has_gaps for table in shown.tables if table.source == "ours")
        notes = diverged(run)
        if (has_gaps or not shown.is_measured) and self.study and not run.are_given:
            command = run.provenance.get("command", "") if run.unfinished else f"penultimate run {self.study}"
            start = f"{MISSING} not" if shown.is_measured else "Not"
            notes = [f"{start} measured: `{plain(command)}`.", *notes]
        return replace(shown, parts=(*parts, *notes))


def exhibit(
    name: str,
    title: str,
    *,
    section: str = "",
    study: str = "full",
    page: str = "usual",
    of_given: bool = False,
) -> Callable[[Make], Exhibit]:
    """Make an exhibit of a function of a run; one of a plug-in is registered at once."""

    def made(make: Make) -> Exhibit:
        made_of = Exhibit(name, title, make, section, study, page, of_given)
        if not make.__module__.startswith(registry.OWN):
            registry.register.exhibit(made_of)
        return made_of

    return made


def declare_exhibits(package: str, exhibits: Mapping[str, Mapping[str, str]], paper: str = "") -> None:
    """Declare the exhibits of a room, {module: {name: one line}}, in the order of its page."""
    for module, named in exhibits.items():
        for name, summary in named.items():
            registry.declare("exhibit", name, f"{package}.{module}:{name}", summary, paper)


@dataclass(frozen=True)
class Shown:
    """What an exhibit shows of a run: its tables, figures and sentences, in order."""

    name: str
    title: str
    caption: str
    parts: tuple[Table | Figure | Gallery | str, ...]
    limited: bool = False
    unfinished: str = ""
    section: str = ""

    @property
    def tables(self) -> list[Table]:
        """The tables."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def figures(self) -> list[Figure]:
        """The figures."""
        return [part for part in self.parts if not isinstance(part, Table | Gallery | str)]

    @property
    def panels(self) -> list[Panel]:
        """The panels of all figures."""
        return [panel for figure in self.figures for panel in figure.panels]

    @property
    def galleries(self) -> list[Gallery]:
        """The galleries, which only a page shows."""
        return [part for part in self.parts if isinstance(part, Gallery)]

    @property
    def notes(self) -> list[str]:
        """The sentences, each once."""
        return list(dict.fromkeys(part for part in self.parts if isinstance(part, str)))

    @property
    def is_measured(self) -> bool:
        """Whether it shows any number of this run, rather than printed numbers alone."""
        sources = {*(table.source for table in self.tables), *(panel.source for panel in self.panels)}
        return "ours" in sources or bool(self.galleries)

    @property
    def number(self) -> str:
        """The paper's name for the exhibit, or nothing if it has none."""
        return "" if number_of(self.name) == self.name else number_of(self.name)

    @property
    def heading(self) -> str:
        """The title, preceded by the paper's name for the exhibit if it has one."""
        return ". ".join(filter(None, (self.number, self.title)))

    def only(self, text: str) -> Shown:
        """Return the exhibit with only the rows whose heading has all of some words; RequestError if none."""
        kept = tuple(table for each in self.tables if (table := each.without(text)))
        if not kept:
            raise RequestError(f"no row of {self.name} has the words '{text}'")
        return replace(self, parts=kept, caption="")

    def verdicts(self) -> list[str]:
        """Return a line for each claim of the first table: its verdict, and what it says."""
        rows = self.tables[0].json()["rows"] if self.tables else []
        if not rows or "verdict" not in rows[0]:
            raise RequestError(f"--verdict is for claims; {self.name} judges none")
        return [f"{row['verdict']:<14} {next(iter(row.values()))}" for row in rows]

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Return each table by its name, and the marks of figures as NAME_points."""
        import pandas as pd

        frames = {table.name: table.to_pandas() for table in self.tables}
        if self.panels:
            frames[f"{self.name}_points"] = pd.DataFrame(self._points(), columns=list(POINTS))
        return frames

    def _points(self) -> list[list[Any]]:
        return [point for panel in self.panels for point in panel.records()]

    def csv(self) -> dict[str, str]:
        """Return the CSV of each table, and of the points of its figures, by the name of its file."""
        files = {f"{table.name}.csv": table.csv() for table in self.tables}
        return files | ({f"{self.name}_points.csv": write_csv(POINTS, self._points())} if self.panels else {})

    def latex(self) -> dict[str, str]:
        """Return each table in LaTeX with the notes on its signs, by the name of its file."""
        state = f" [{self.unfinished}]" if self.unfinished else ""
        before = f"{self.number}. " if self.number else ""
        legends = [note for note in self.notes if note.startswith(("Bold", WORSE, "†", "‡"))]
        return {
            f"{table.name}.tex": table.latex(f"{before}{table.title}{state}", legends)
            for table in self.tables
        }

    def svg(self) -> dict[str, str]:
        """Return each panel as a drawing of its own, by the name of its file."""
        from penultimate.results.drawing import draw

        known = marks_of([self])
        return {
            f"{panel.name}.svg": draw(panel, known).styled(panel.name, page=False) for panel in self.panels
        }

    def write(self, folder: Path | str) -> list[Path]:
        """Write all tables and drawings into a folder, and return the files."""
        from penultimate.files import atomic_write, make_folder

        folder = Path(folder)
        make_folder(folder)
        files = {**self.csv(), **self.latex(), **self.svg()}
        for name, content in files.items():
            atomic_write(folder / name, content.encode(errors="replace"), durable=False)
        return [folder / name for name in files]

    def text(self, width: int = 100) -> str:
        """Return the exhibit for a terminal: title, caption, tables, points of figures, notes."""

        def filled(text: str) -> str:
            return textwrap.fill(plain(text), min(width, 100), break_on_hyphens=False)

        state = ["LIMITED RUN, not evidence"] * self.limited
        state += [f"UNFINISHED, {self.unfinished}"] if self.unfinished else []
        parts = [filled(". ".join([*state, self.heading])), filled(self.caption)]
        parts += [table.text(width) for table in self.tables]
        parts += [panel.text() for panel in self.panels if panel.points and panel.numbered]
        return "\n\n".join(filter(None, [*parts, "\n".join(map(filled, self.notes))])) + "\n"

    def __repr__(self) -> str:
        held = ", ".join([*(table.name for table in self.tables), *(figure.name for figure in self.figures)])
        return f"{type(self).__name__}({self.heading!r}: {held or 'nothing measured'})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows, in the colours of a file."""
        made: str = found("penultimate.results.page:inline")(self)
        return made


def marks_of(shown: Iterable[Shown], first: Sequence[str] = ()) -> dict[str, Mark]:
    """Return the mark of each objective that exhibits draw, after those that come `first`."""
    from penultimate.results.palette import marks

    slugs = [*first]
    for each in shown:
        slugs += [slug for panel in each.panels for slug in panel.objectives()]
        slugs += [slug for table in each.tables for slug in table.slugs]
    return marks(list(dict.fromkeys(filter(None, slugs))))


def mark(parts: Iterable[Table | Figure | Gallery | str]) -> Iterator[Table | Figure | Gallery | str]:
    """Yield an exhibit's parts with the exception marked, never the rule, and the legend of the marks.

    Values that no other in their column beats are bold, as papers print them. Where these are more than those
    that are beaten, the beaten ones are marked instead, in all tables of the exhibit alike.
    """
    parts = list(parts)
    tables = [
        part for part in parts if isinstance(part, Table) and part.marks is not None and not part.own_marks
    ]
    marks = [cell for table in tables for cell in table.marks.to_numpy().ravel().tolist()]  # type: ignore[union-attr]
    best, worse = marks.count("best"), marks.count("worse")
    marks_worse = 2 * worse < best + worse
    for part in parts:
        yield replace(part, marks_worse=marks_worse) if part in tables and marks_worse else part
    if best + worse:
        yield (BOLD if not marks_worse else BEATEN if worse else f"Nothing is marked: no value is {BETTER}.")
        yield from dict.fromkeys(table.test for table in tables)
    elif tables:
        yield "Nothing is bold: three seeds are needed to tell which is best."


def diverged(run: Run) -> list[str]:
    """Return a note on the networks whose loss was no longer a number, or an empty list."""
    labels = {each.spec: each.label for arm in reversed(run.arms) for each in run.objectives(arm)}
    rows = run.frame[run.frame["status"] == "diverged"][["objective", "seed"]].drop_duplicates()
    lost = [(str(row.objective), row.seed) for row in rows.itertuples()]
    networks = run.provenance.get("diverged_networks", {})
    for step in run.provenance.get("diverged", {}):
        lost += [(network["objective"], network["seed"]) for network in networks.get(step, ())]
    named = [f"{labels.get(spec, plain(spec))}, seed {seed}" for spec, seed in dict.fromkeys(lost)]
    return [as_sentence(f"Diverged, and left out of every mean: {'; '.join(named)}")] if named else []


def number_of(name: str) -> str:
    """Return the paper's name for an exhibit.

    >>> [number_of(name) for name in ("tableE1", "figure5", "iclr_figure5")]
    ['Table E.1', 'Figure 5', 'ICLR Figure 5']
    """
    parts = re.fullmatch(r"(iclr_)?(table|figure)([A-Z]?)(\d+)", name)
    if parts is None:
        return name
    version, kind, letter, digits = parts.groups(default="")
    return f"{version[:4].upper()} {kind.capitalize()} {letter}{'.' if letter else ''}{digits}".strip()


def show(name: str, source: Run | Path | str = "runs", study: str = "", allow_limited: bool = False) -> Shown:
    """Return an exhibit, by its name, of a run or of the folder that holds it.

    `study` picks one of several in a folder (default: the one run last), or several, separated by commas.
    Raises RequestError for an unknown exhibit (with the nearest one), a folder without a study, and a limited
    study unless `allow_limited`.
    """
    from penultimate.results.rows import read_run

    if (
        isinstance(source, str)
        and name not in registry.names("exhibit")
        and source in registry.names("exhibit")
    ):
        raise RequestError(f"the exhibit comes before the results: pu.exhibit('{source}', '{name}')")
    wanted: Exhibit = registry.entry("exhibit", name).resolve()
    return wanted(read_run(source, study) if isinstance(source, Path | str) else source, allow_limited)
