"""An exhibit as data, and how it is built: parts made of quantities, and sentences about them.

    TABLE3 = Exhibit(
        name="table3",
        title="How far the classes are pulled apart",
        caption="Class separation R² of the penultimate features ...",
        parts=(TableOfRuns(...), PrintedTable(...)),
        section="3.3",
        summary="Class separation in the penultimate layer",
    )

A constant like this in any module of `report/exhibits` is all that a new exhibit takes.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penultimate import registry
from penultimate.errors import RequestError, as_sentence
from penultimate.report.base import Built, ExhibitTable, Figure, Gallery, Missing, number_of
from penultimate.report.later import additions_note, with_reason
from penultimate.report.marks import with_marks
from penultimate.report.measurements import Measurements
from penultimate.report.networks import USUAL_PAGE, StudyNetworks, facts_of_page, is_further
from penultimate.report.progress import needs_training, undefined, unfinished, way_on
from penultimate.report.quantity import Quantity
from penultimate.report.remarks import of_diverged
from penultimate.report.runs import fewer, shared_seeds
from penultimate.report.sets import is_published
from penultimate.report.spans import with_bars
from penultimate.report.text import plain

if TYPE_CHECKING:
    from penultimate.records.table import Row

EVALUATE, PORTRAIT = "evaluate", "portrait"
"""The commands that measure what no study of this package measures."""
OURS = "Ours"
"""The beginning of a note or finding that states the result here."""

Finding: TypeAlias = Callable[[Measurements], str | tuple[str, ...]]
"""A function that puts a study's numbers into sentences, or returns an empty string."""


@dataclass(frozen=True)
class Piece:
    """The result of a part: tables, figures, notes, gaps, words for the caption, and the `method`.

    The method of measurement stands after the note on the paper. A piece that is not `wanted` is empty
    because the study asks for nothing of the kind.
    """

    tables: tuple[ExhibitTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    wanted: bool = True
    method: tuple[str, ...] = ()
    galleries: tuple[Gallery, ...] = ()


Remarks: TypeAlias = Callable[[Measurements, bool, bool, bool], tuple[str, ...]]
"""A page's remarks on an exhibit, given whether it is measured, of the main arm alone, and of other
architectures."""


def say_nothing(*_: object) -> tuple[str, ...]:
    """Return no remark."""
    return ()


class Remarking(Protocol):
    """The part of a page that exhibits use."""

    @property
    def remarks(self) -> Remarks: ...
    @property
    def at_full_size(self) -> Mapping[str, str]: ...


class Part(Protocol):
    """A shape, or a builder of its own, with the quantities that it reads."""

    @property
    def quantities(self) -> tuple[Quantity, ...]: ...

    def build(self, measurements: Measurements) -> Piece: ...


@dataclass(frozen=True)
class Bespoke:
    """A part that no shape describes: a function of the measurements."""

    builder: Callable[[Measurements], Piece]
    quantities: tuple[Quantity, ...] = ()

    def build(self, measurements: Measurements) -> Piece:
        return self.builder(measurements)


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of the paper, as data.

    caption      may hold {source}, {name}, {backbone} and the words that its parts supply
    findings     sentences about the numbers here; the first that begins with `OURS`
                 stands before the tables and figures
    paper_says   what the paper prints or says about it
    method       how it was measured here, if that is not obvious
    section      its section in the paper; "" if the paper does not have it
    page         the page that draws it
    place        its place among the exhibits of its section, if tables do not come before figures
    measured_by  the study of its paper that measures it, if not the first one, or EVALUATE
    of_another   whether it shows further architectures instead of the main one
    or_arm       the arm whose networks it shows instead of the main ones, if a study has it
    of_same_runs whether its columns are compared with each other, and so are means over the seeds for which
                 every objective has all of its quantities, if there are any
    seeds        those seeds, once a study is known (`with_shared_seeds`); none if all are shown
    of_given     whether it also shows studies of given networks alone, then without the paper's numbers; by
                 default all exhibits do except those of the paper
    summary      its line in `penultimate list exhibits`
    short        its line in the page's contents; by default the title
    title_of_given  its title where the networks are given, if it answers another question there
    """

    name: str
    title: str
    caption: str
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...] = ()
    paper_says: str = ""
    method: tuple[str, ...] = ()
    section: str = ""
    page: str = USUAL_PAGE
    place: int = 0
    measured_by: str = ""
    of_another: bool = False
    or_arm: str = ""
    of_same_runs: bool = False
    seeds: frozenset[int] = frozenset()
    of_given: bool | None = None
    summary: str = ""
    short: str = ""
    title_of_given: str = ""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities that its parts read, each once."""
        return tuple(dict.fromkeys(quantity for part in self.parts for quantity in part.quantities))

    @property
    def shows_given(self) -> bool:
        """Whether the exhibit shows studies that trained none of their networks."""
        is_of_paper = bool(self.section) and self.page == USUAL_PAGE
        return not is_of_paper if self.of_given is None else self.of_given

    @property
    def study(self) -> str:
        """The study of its paper that measures it; EVALUATE, or empty if its paper names no study."""
        return self.measured_by or str(facts_of_page(self.page).get("first", ""))

    def expect_shown(self, networks: StudyNetworks) -> None:
        """Raise RequestError for an exhibit of the paper if the study trained no network."""
        if networks.are_given and not self.shows_given:
            name = str(networks.description.get("name", ""))
            raise RequestError(
                f"{self.number} is about networks that a study trains with the paper's objectives; those of"
                f" '{plain(name)}' were not trained there, whatever they are called. What it shows:"
                f" penultimate show ranking --study {shlex.quote(name)} (or comparisons, features, likeness,"
                " depth, confusions)"
            )

    def shows(self, row: Row, backbone: str) -> bool:
        """Return whether the exhibit shows a row of a study whose main architecture is `backbone`."""
        is_among = not self.seeds or {row.seed, row.seed_b} - {None} <= self.seeds
        of_quantity = any(self.covers(quantity, row) for quantity in self.quantities)
        return is_among and of_quantity and self.is_of(row, backbone)

    def with_shared_seeds(self, measurements: Measurements) -> Exhibit:
        """Return the exhibit with the seeds that it shows for a study."""
        if not self.of_same_runs:
            return self
        return dataclasses.replace(self, seeds=shared_seeds(measurements, self.quantities))

    def covers(self, quantity: Quantity, row: Row) -> bool:
        """Return whether a row holds a quantity of the exhibit, for any network."""
        if row.arm in self.arms_of(quantity):
            row = dataclasses.replace(row, arm=quantity.arm)
        return quantity.covers(row)

    def arms_of(self, quantity: Quantity) -> tuple[str, ...]:
        """Return the arms whose networks may have a quantity of the exhibit."""
        return tuple(dict.fromkeys((quantity.arm, *filter(None, (self.or_arm, quantity.or_arm)))))

    def is_of(self, row: Row, backbone: str) -> bool:
        """Return whether a row belongs to the architecture that the exhibit shows, or to none."""
        of_main = row.backbone in (None, backbone)
        return of_main != self.of_another or (of_main and is_further(backbone, self.page))

    @property
    def order(self) -> tuple[object, ...]:
        """The key that sorts exhibits in the order of the paper; those that it does not have come last."""
        is_figure = "figure" in self.name
        return (
            not self.section,
            self.section,
            self.place,
            is_figure,
            self.name.startswith("iclr_"),
            self.name,
        )

    @property
    def number(self) -> str:
        """The paper's name for it, such as "Table E.1"."""
        return number_of(self.name)


def declare_exhibits(package: str, folder: Iterable[str], paper: str = "") -> None:
    """Declare every `Exhibit` that a module of a package defines, in the order of the paper."""
    modules = [importlib.import_module(f"{package}.{info.name}") for info in pkgutil.iter_modules(folder)]
    places = {
        value.name: (value, f"{module.__name__}:{name}")
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Exhibit)
    }
    for exhibit, place in sorted(places.values(), key=lambda found: found[0].order):
        registry.declare("exhibit", exhibit.name, place, exhibit.summary, paper)


def all_exhibits() -> list[Exhibit]:
    """Return every exhibit that is registered, in the order of the paper."""
    found: list[Exhibit] = [registry.entry("exhibit", name).resolve() for name in registry.names("exhibit")]
    return sorted((one for one in found if isinstance(one, Exhibit)), key=lambda exhibit: exhibit.order)


def assemble(exhibit: Exhibit, measurements: Measurements) -> Built:
    """Return the exhibit, built from admitted measurements."""
    if exhibit.or_arm:
        measurements = measurements.or_in_arm(exhibit.or_arm)
    exhibit, unrestricted = exhibit.with_shared_seeds(measurements), measurements
    if exhibit.seeds:
        measurements = unrestricted.of_seeds(exhibit.seeds)
    are_given = measurements.networks.are_given
    if are_given and exhibit.title_of_given:
        exhibit = dataclasses.replace(exhibit, title=exhibit.title_of_given)
    if are_given and exhibit.page == USUAL_PAGE:
        exhibit = dataclasses.replace(exhibit, findings=(), paper_says="")
    if exhibit.measured_by == EVALUATE and not are_given:
        exhibit = dataclasses.replace(exhibit, parts=())
    pieces = [part.build(measurements) for part in exhibit.parts] or [Piece(wanted=False)]
    words = measurements.words
    for piece in pieces:
        words = {**words, **piece.words}
    gaps: dict[Missing, None] = {}
    without: list[str] = []
    for part, piece in zip(exhibit.parts, pieces, strict=False):
        why = undefined(measurements, part.quantities) if piece.missing else ""
        if piece.missing and needs_training(measurements, part.quantities):
            why = "it is measured during training, and these networks were trained elsewhere"
        without += [as_sentence(f"{gap.what}: no value: {why}") for gap in piece.missing if why]
        needed = [(one, exhibit.arms_of(one)) for one in part.quantities]
        found = [] if why else [_at_full_size(gap, exhibit, measurements) for gap in piece.missing]
        gaps |= dict.fromkeys(with_reason(gap, measurements.results, needed) for gap in found)
    missing = tuple(gaps)
    is_asked = not exhibit.of_another or bool(measurements.further)
    way = way_on(measurements, exhibit.quantities) if is_asked else ""
    missing = tuple(dataclasses.replace(gap, command=way) if way else gap for gap in missing)
    missing = tuple(
        gap if gap.command else gap.run_by(exhibit.study or measurements.networks.study)
        for gap in missing
        if gap.command or not are_given  # no study of the package measures them
    )
    tables = tuple(
        table for piece in pieces for table in piece.tables if not are_given or table.source == "ours"
    )
    figures, spans = with_bars([figure for piece in pieces for figure in piece.figures])
    is_measured = Built(exhibit.name, exhibit.title, "", tables, figures).is_measured
    said = [finding(measurements) for finding in exhibit.findings if is_measured]
    findings = [text for found in said for text in ((found,) if isinstance(found, str) else found) if text]
    is_shown = is_measured and bool(exhibit.quantities)
    tables, of_parts = with_marks(tables, (note for piece in pieces for note in piece.notes), measurements)
    of_architectures = unrestricted.of_others if exhibit.of_another else (unrestricted,)
    of_one_arm = {quantity.arm for quantity in exhibit.quantities} == {""} and _compares(tables, figures)
    shared = len(exhibit.seeds) if exhibit.of_same_runs else None
    sentences = [
        *(str(gap) for gap in missing),
        *without,
        additions_note(measurements.results) if is_measured else "",
        *of_parts,
        *findings,
        exhibit.paper_says,
        *(note for piece in pieces for note in piece.method),
        *exhibit.method,
        spans,
        *_page_remarks(unrestricted, is_shown, of_one_arm, exhibit.of_another),
        *(fewer(one, exhibit.quantities, tables, shared) for one in of_architectures),
        *of_diverged(unrestricted),
    ]
    first = next((text for text in (*of_parts, *findings) if text.startswith(OURS)), "")
    if are_given:  # all that is shown is the user's own
        sentences, first = [*map(_unowned, sentences)], _unowned(first)
    return Built(
        exhibit.name,
        exhibit.title,
        exhibit.caption.format_map(words).strip(),
        tables,
        figures,
        tuple(dict.fromkeys(text for text in sentences if text)),
        measurements.limited,
        any(piece.wanted for piece in pieces),
        missing,
        unfinished(measurements),
        exhibit.short or exhibit.title,
        first,
        exhibit.paper_says,
        tuple(gallery for piece in pieces for gallery in piece.galleries),
    )


def _unowned(sentence: str) -> str:
    """Return a sentence without the word that sets the result here apart from the paper's.

    >>> _unowned("Ours: for one of two networks it holds.")
    'For one of two networks it holds.'
    """
    said = sentence.removeprefix(f"{OURS}: ")
    return sentence if said == sentence else said[:1].upper() + said[1:]


def _page_remarks(
    measurements: Measurements, is_measured: bool, of_one_arm: bool, of_another: bool
) -> tuple[str, ...]:
    """Return the remarks of the study's page on an exhibit; none if no such page is registered."""
    page = _remarking(measurements)
    return page.remarks(measurements, is_measured, of_one_arm, of_another) if page else ()


def _remarking(measurements: Measurements) -> Remarking | None:
    """Return the study's page, or None if no such page is registered."""
    name = measurements.networks.page
    if name not in registry.names("page"):
        return None
    page: Remarking = registry.entry("page", name).resolve()
    return page


def _at_full_size(gap: Missing, exhibit: Exhibit, measurements: Measurements) -> Missing:
    """Return a gap of a study of published images with the command of one that fills it, if there is one."""
    page = _remarking(measurements)
    if page is None or not is_published(measurements.source):
        return gap
    command = page.at_full_size.get(gap.what, page.at_full_size.get(exhibit.name, ""))
    return dataclasses.replace(gap, command=f"penultimate {command}", why="") if command else gap


def _compares(tables: tuple[ExhibitTable, ...], figures: tuple[Figure, ...]) -> bool:
    """Return whether a table or panel of ours compares objectives, so that a missing one matters."""
    groups = [{row.objective for row in table.rows} for table in tables if table.source == "ours"]
    for panel in (panel for figure in figures for panel in figure.panels if panel.source == "ours"):
        drawn = {point.objective for point in panel.points} | {curve.objective for curve in panel.curves}
        groups.append(drawn | {*(panel.raster.row_marks if panel.raster else ())})
    return any(len(slugs - {""}) > 1 for slugs in groups)
