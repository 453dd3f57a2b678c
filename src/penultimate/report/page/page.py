"""The report: one self-contained HTML file, with its contents as CSV, LaTeX and SVG in a folder beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from penultimate.errors import RequestError, legible
from penultimate.files import atomic_write, given_path, make_folder
from penultimate.report.base import WORSE, Built, ExhibitTable, Figure, Panel, StudyResults
from penultimate.report.drawing.figures import Drawing, draw_panel, mark_icon, mark_variables
from penultimate.report.drawing.palette import Mark, marks
from penultimate.report.marks import BOLD, UNMARKED
from penultimate.report.networks import StudyObjective
from penultimate.report.page.curves import training_curves
from penultimate.report.page.form import Drawn, Page, of_all_arms, page_of
from penultimate.report.page.provenance import provenance
from penultimate.report.progress import unfinished
from penultimate.report.several import assemble_of, members, of_several
from penultimate.report.shapes.cells import MEAN_PER_CLASS
from penultimate.report.spec import all_exhibits
from penultimate.report.tables import column_groups, latex_of, points_csv, to_csv
from penultimate.report.text import plain, typeset
from penultimate.results import page as results_page

HERE = Path(__file__).parent
SMALL = 240
"""The greatest width, in points, of panels that share a row and have no tags."""
MANY = 3
"""The number of exhibits from which a note that they share is printed once for all."""
WIDTH, GAP = 130, 4
"""The number of characters in a line of a table, and in the space between two columns."""
LONG_HEADING = 40
"""The greatest number of characters of a row's heading that stays on one line."""

OPTION = re.compile(r"(?<!\S)(--[a-z-]{1,24})(?=[\s=]|$)")
"""An option of a command."""


def write_report(results: StudyResults, path: Path | str) -> list[Path]:
    """Write the report to `path` and its tables and drawings into the folder `STEM_files` beside it.

    The same results give the same bytes. Every exhibit of a limited study is marked as limited. Returns the
    written files, the page first. Raises RequestError if the path cannot be a file.
    """
    path = given_path(path, "--to")
    folder = path.parent / f"{path.stem}_files"
    _expect_place(path, folder)
    files = render_report(results, path.stem)
    for parent in (path.parent, folder):
        make_folder(parent)
    written = []
    for name, content in files.items():
        target = folder / name if name else path
        atomic_write(target, content, durable=False)
        written.append(target)
    return written


def _expect_place(path: Path, folder: Path) -> None:
    """Raise RequestError if a page cannot be written or would replace something else, such as a device."""
    try:
        if path.is_dir():
            raise RequestError(
                f"the report's path '{path}' is a folder; move it away, or give a file such as"
                f" '{path / 'report.html'}'"
            )
        if path.exists() and not path.is_file():
            raise RequestError(
                f"the report's path '{path}' is no ordinary file; move it away, or give another with --to"
            )
        if folder.is_symlink():
            raise RequestError(f"'{folder}' is a link, which nothing is written through; move it away")
        for parent in (path.parent, folder):
            if parent.exists() and not parent.is_dir():
                raise RequestError(
                    f"the report needs the folder '{parent}', but a file has that name; move it away"
                )
    except OSError as error:
        raise RequestError(
            f"the report cannot be written to '{path}' ({error.strerror or error}); give another file by --to"
        ) from None


def render_report(results: StudyResults, stem: str = "report") -> dict[str, bytes]:
    """Return every file of the report by its name in the folder; the page is first, with an empty name."""
    of = members(results, allow_limited=True)
    measurements = of[0]
    page = page_of(measurements)
    if isinstance(page, results_page.Page):
        return results_page.render_page(results.run(), stem, page)
    made = [(exhibit, assemble_of(exhibit, of)) for exhibit in all_exhibits() if page.draws(exhibit)]
    exhibits = [built for _, built in made if built.wanted and page.shows(built)]
    curves = training_curves(measurements) if page.curves else None
    figures = [*(figure for exhibit in exhibits for figure in exhibit.figures), *([curves] if curves else [])]
    drawn = [point.objective for figure in figures for panel in figure.panels for point in panel.points]
    drawn += [row.objective for exhibit in exhibits for table in exhibit.tables for row in table.rows]
    objectives = tuple({one.slug: one for each in of for one in of_all_arms(each)}.values())
    known = marks([*(objective.slug for objective in objectives), *page.explained, *filter(None, drawn)])
    panels: dict[str, Panel] = {}
    for panel in (panel for figure in figures for panel in figure.panels):
        if panels.setdefault(panel.name, panel) != panel:
            raise _called_twice(panel.name)
    drawings = {name: draw_panel(panel, known) for name, panel in panels.items()}
    files = _side_files(results, exhibits, drawings)
    shown = Drawn(measurements, made, figures, drawings)
    html = _page(results, page, shown, objectives, known, f"{stem}_files", files)
    return {"": html.encode(), **files}


def _side_files(
    results: StudyResults, exhibits: list[Built], drawings: Mapping[str, Drawing]
) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    taken: dict[str, bytes] = {}

    def add(name: str, content: str) -> None:
        files[name] = content.encode(errors="replace")
        if (
            taken.setdefault(name.lower(), files[name]) != files[name]
        ):  # also where capitals count for nothing
            raise _called_twice(name)

    for exhibit in exhibits:
        for table in exhibit.tables:
            add(f"{table.name}.csv", to_csv(table))
        for name, source in latex_of(exhibit).items():
            add(f"{name}.tex", source)
        for figure in exhibit.figures:
            for panel in figure.panels:
                drawing = drawings[panel.name].styled(panel.name, page=False)
                add(f"{panel.name}.svg", f'<?xml version="1.0" encoding="utf-8"?>\n{drawing}\n')
        if exhibit.figures:
            add(f"{exhibit.name}_points.csv", points_csv(exhibit))
    add("results.csv", results.table.to_csv())
    for part in results.parts:
        add(f"results-{part.name}.csv", part.table.to_csv())
    return files


def _called_twice(name: str) -> RequestError:
    return RequestError(
        f"two tables or panels of the page are called '{name}', and files have these names: give one another"
    )


def _page(
    results: StudyResults,
    page: Page,
    drawn: Drawn,
    objectives: tuple[StudyObjective, ...],
    known: Mapping[str, Mark],
    folder: str,
    files: Mapping[str, bytes],
) -> str:
    import jinja2
    from markupsafe import Markup

    measurements, made, figures, drawings = drawn
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([page.template.parent, HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: legible(value) if type(value) is str else value,
    )
    environment.filters["groups"] = column_groups
    environment.filters["typeset"] = _typeset
    environment.filters["code"] = _code
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode()
    environment.filters["packed"] = lambda content: base64.b64encode(gzip.compress(content, mtime=0)).decode()
    in_study = {objective.slug: known[objective.slug] for objective in objectives}
    return environment.get_template(page.template.name).render(
        **page.context(drawn),
        command="" if results.is_joined else plain(results.provenance.get("command", "")),
        title=plain(results.description.get("title", "") or results.description.get("name", "")),
        question=plain(results.description.get("question", "")),
        measurements=measurements,
        several=of_several(results),
        unfinished=unfinished(measurements),
        drawings={
            panel.name: Markup(drawings[panel.name].styled(panel.name))
            for figure in figures
            for panel in figure.panels
        },
        drawn={figure.name: _objectives_shown(figure, in_study) for figure in figures},
        marks=known,
        own_marks=in_study,
        labels={objective.slug: objective.label for objective in objectives},
        icon=lambda slug: Markup(mark_icon(known[slug])),
        sheet=base64.b64encode(results.sheet).decode() if results.sheet else "",
        provenance=provenance(results),
        folder=quote(os.fsencode(folder)),
        files=files,
        styles=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        light=Markup(mark_variables(known, dark=False)),
        dark=Markup(mark_variables(known, dark=True)),
        script=Markup(script),
        script_digest=digest,
        said_once=_shared_notes(
            [built for _, built in made if built.wanted and built.is_measured], page.rivals
        ),
        long_text=lambda text: len(text) > 30,
        is_drawn=_is_drawn,
        is_small=_is_small,
        is_folded=_is_folded,
        is_dense=_is_dense,
        has_words=_has_words,
        of_numbers=_are_numeric,
        has_sentences=_has_sentences,
        are_cards=_are_cards,
        worse=WORSE,
    )


def _shared_notes(exhibits: Iterable[Built], rivals: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the notes that many exhibits share, except those that stand with each exhibit.

    The exceptions are legends of bold and of marks, below tables, and the rivals of the page's first remark.
    """
    counts = Counter(note for built in exhibits for note in dict.fromkeys(built.notes))
    with_each = (
        BOLD,
        WORSE,
        UNMARKED,
        MEAN_PER_CLASS,
        *(rivals[1:] if {*rivals[:1]} & counts.keys() else ()),
    )
    return tuple(note for note, count in counts.items() if count >= MANY and not note.startswith(with_each))


def _typeset(text: str) -> str:
    """Return escaped text for the page; text between backticks becomes code, letter by letter."""
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`]+)`", legible(text))
    return Markup("").join(
        _code(part) if place % 2 else escape(typeset(part)) for place, part in enumerate(parts)
    )


def _code(text: str) -> str:
    """Return escaped code for the page; a line may break anywhere except after the dashes of an option."""
    from markupsafe import Markup, escape

    parts = OPTION.split(text)
    marked = (
        Markup("<span>{}</span>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    )
    return Markup("<code>{}</code>").format(Markup("").join(marked))


def _is_small(figure: Figure) -> bool:
    return all(panel.size[0] <= SMALL for panel in figure.panels)


def _is_folded(figure: Figure) -> bool:
    """Return whether a figure is folded, as the paper's small panels are."""
    return _is_small(figure) and all(panel.source == "published" for panel in figure.panels)


def _is_drawn(exhibit: Built) -> bool:
    """Return whether it is a figure of the paper, which shows what its folded tables hold."""
    ours = any(panel.source == "ours" for figure in exhibit.figures for panel in figure.panels)
    return ours and "figure" in exhibit.name


def _is_dense(table: ExhibitTable) -> bool:
    """Return whether the columns of a table need more than the page's width at their usual spacing."""
    lines = [[column.label.split()[-1] for column in table.columns]]
    lines += [[cell.text for cell in row.cells] for row in table.rows]
    widths = (max(map(len, column)) + GAP for column in zip(*lines, strict=True))
    return sum(widths) + max((len(row.label) for row in table.rows), default=0) > WIDTH


def _has_words(table: ExhibitTable) -> bool:
    """Return whether some cells hold words or settings, which are aligned left and may break."""
    texts = (cell.text for row in table.rows for cell in row.cells if cell.value is None)
    return any(re.search(r"[^\W\d_]{2}| = ", text) for text in texts)


def _are_numeric(table: ExhibitTable) -> list[bool]:
    """Return, for each column, whether any cell is numeric; dashes then align like numbers."""
    columns = zip(*(row.cells for row in table.rows), strict=True)
    return [any(cell.value is not None for cell in column) for column in columns] or [False] * len(
        table.columns
    )


def _has_sentences(table: ExhibitTable) -> bool:
    """Return whether the headings of rows are sentences."""
    return max((len(row.label) for row in table.rows), default=0) > LONG_HEADING


def _are_cards(table: ExhibitTable) -> bool:
    """Return whether the rows of a table are set one below the other, since three columns hold sentences."""
    columns = zip(*(row.cells for row in table.rows), strict=True)
    longest = (max(len(cell.text) for cell in column) for column in columns)
    return _has_sentences(table) and sum(length > LONG_HEADING for length in longest) >= 3


def _objectives_shown(figure: Figure, own: Collection[str]) -> set[str]:
    """Return the study's objectives that a figure shows as a point, a curve or a mark of a map."""
    slugs: set[str] = set()
    for panel in figure.panels:
        slugs.update(point.objective for point in panel.points)
        slugs.update(curve.objective for curve in panel.curves)
        slugs.update((*panel.raster.row_marks, *panel.raster.column_marks) if panel.raster else ())
    return slugs & set(own)
