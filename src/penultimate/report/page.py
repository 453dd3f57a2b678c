"""The report: one self-contained HTML file; CSV, LaTeX and SVG of what it shows in a folder beside it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penultimate import registry
from penultimate.errors import RequestError
from penultimate.report import glossary
from penultimate.report.curves import training_curves
from penultimate.report.exhibits.base import Exhibit, Figure, StudyResults
from penultimate.report.exhibits.measurements import Measurements, admit
from penultimate.report.figures import Drawing, draw_panel, mark_icon, mark_variables
from penultimate.report.palette import Mark, marks
from penultimate.report.regime import compare, summary
from penultimate.report.statements import headline
from penultimate.report.tables import column_groups, points_csv, to_csv, to_latex
from penultimate.report.text import plain, typeset
from penultimate.store import atomic_write, make_folder

HERE = Path(__file__).parent
FIGURES_FIRST = (
    "figure5",
    "figure1",
    "figureD1",
    "figure6",
    "iclr_figure5",
    "figureC1",
    "figureC2",
    "figureC3",
    "figure2",
    "figureB1",
    "figure3",
    "figure4",
    "figureE1",
    "figureE2",
    "figureE3",
    "figureC4",
    "figureC5",
    "figureC6",
    "figureC7",
)
TABLES_NEXT = (
    "table1",
    "table3",
    "table4",
    "tableC1",
    "tableC2",
    "tableC3",
    "tableE1",
    "tableE2",
    "tableA1",
    "iclr_tableA2",
    "tableA2",
    "plugins",
    "claims",
)
PROVENANCE = {
    "command": "Command",
    "commit": "Commit",
    "dirty": "Changed since the commit",
    "version": "Version",
    "packages": "Packages",
    "versions": "Versions",
    "python": "Python",
    "hosts": "Machines",
    "host": "Machine",
    "machine": "Machine",
    "processor": "Processor",
    "device": "Device",
    "threads": "Threads per process",
    "seeds": "Seeds",
    "draw": "Draw of the data",
    "data": "Data (sha256)",
    "seconds": "Seconds of work, by kind of step",
    "steps": "Steps done, of how many",
    "recipe": "Training recipe",
    "diverged": "Diverged",
    "undefined": "Undefined",
}

SHARES = ("steps",)
"""Of the provenance, what counts pairs: how many are done, of how many."""


@dataclass(frozen=True)
class Shown:
    """A panel as it stands in the page."""

    svg: str
    title: str
    finding: str
    source: str


def exhibit_names() -> list[str]:
    """All exhibits, figures first; those that only a plug-in knows come last."""
    known = registry.names("exhibit")
    first = [name for name in (*FIGURES_FIRST, *TABLES_NEXT) if name in known]
    return first + [name for name in known if name not in first]


def write_report(results: StudyResults, path: Path | str) -> list[Path]:
    """Write the report to `path` and its tables and drawings into the folder `STEM_files` beside it.

    The same results give the same bytes. A limited study is shown, marked as such in every exhibit. Returns
    the files written, the page first. Raises RequestError when the path cannot be a file.
    """
    path = Path(path)
    if path.is_dir():
        raise RequestError(
            f"the report's path '{path}' is a folder; give a file such as '{path / 'report.html'}'"
        )
    files = render_report(results, path.stem)
    folder = path.with_name(f"{path.stem}_files")
    for parent in (path.parent, folder):
        if parent.exists() and not parent.is_dir():
            raise RequestError(f"the report needs the folder '{parent}', but a file has that name")
        make_folder(parent)
    written = []
    for name, content in files.items():
        target = folder / name if name else path
        atomic_write(target, content)
        written.append(target)
    return written


def render_report(results: StudyResults, stem: str = "report") -> dict[str, bytes]:
    """Every file of the report by its name in the folder beside it; the page under the empty name, first."""
    measurements = admit(results, allow_limited=True)
    builders = [registry.entry("exhibit", name).resolve() for name in exhibit_names()]
    made = [build(results, allow_limited=True) for build in builders]
    exhibits = [one for one in made if one.wanted]
    curves = training_curves(measurements)
    known = marks([one.slug for one in measurements.objectives] + list(glossary.OBJECTIVES))
    figures = [*(figure for exhibit in exhibits for figure in exhibit.figures), *([curves] if curves else [])]
    drawings = {panel.name: draw_panel(panel, known) for figure in figures for panel in figure.panels}
    files = _side_files(results, exhibits, drawings)
    page = _page(results, measurements, exhibits, figures, drawings, known, f"{stem}_files", files)
    return {"": page.encode(), **files}


def _side_files(
    results: StudyResults, exhibits: list[Exhibit], drawings: Mapping[str, Drawing]
) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for exhibit in exhibits:
        for table in exhibit.tables:
            files[f"{table.name}.csv"] = to_csv(table).encode()
            files[f"{table.name}.tex"] = to_latex(table, f"{exhibit.number}. {table.title}").encode()
        for figure in exhibit.figures:
            for panel in figure.panels:
                drawing = drawings[panel.name].styled(panel.name, page=False)
                files[f"{panel.name}.svg"] = f'<?xml version="1.0" encoding="utf-8"?>\n{drawing}\n'.encode()
        if exhibit.figures:
            files[f"{exhibit.name}_points.csv"] = points_csv(exhibit).encode()
    files["results.csv"] = results.table.to_csv().encode()
    return files


def _page(
    results: StudyResults,
    measurements: Measurements,
    exhibits: list[Exhibit],
    figures: list[Figure],
    drawings: Mapping[str, Drawing],
    known: Mapping[str, Mark],
    folder: str,
    files: Mapping[str, bytes],
) -> str:
    import jinja2
    from markupsafe import Markup

    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["groups"] = column_groups
    environment.filters["typeset"] = _typeset
    own = {one.slug: known[one.slug] for one in measurements.objectives}
    return environment.get_template("page.html").render(
        description=results.description,
        title=plain(results.description.get("title", "") or results.description.get("name", "")),
        question=plain(results.description.get("question", "")),
        measurements=measurements,
        headline=headline(measurements),
        differences=compare(results, measurements),
        regime_summary=summary(measurements),
        exhibits=exhibits,
        curves=next((figure for figure in figures if figure.name == "curves"), None),
        shown={figure.name: _shown(figure, drawings) for figure in figures},
        drawn={figure.name: _drawn(figure, own) for figure in figures},
        marks=known,
        own_marks=own,
        labels=_labels(measurements),
        icon=lambda slug: Markup(mark_icon(known[slug])),
        glossary=_glossary(measurements),
        terms=[(name, term.sentence, Markup(term.equation)) for name, term in glossary.TERMS],
        sheet=base64.b64encode(results.sheet).decode() if results.sheet else "",
        provenance=_provenance(results),
        folder=quote(folder),
        files=files,
        styles=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        light=Markup(mark_variables(known, dark=False)),
        dark=Markup(mark_variables(known, dark=True)),
        script=Markup(script),
        script_digest=digest,
        long_text=lambda text: len(text) > 30,
    )


def _typeset(text: str) -> str:
    """Text as the page sets it, escaped; what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(typeset(text)))))


def _shown(figure: Figure, drawings: Mapping[str, Drawing]) -> list[Shown]:
    from markupsafe import Markup

    return [
        Shown(
            Markup(drawings[panel.name].styled(panel.name)),
            panel.title,
            panel.finding,
            panel.source,
        )
        for panel in figure.panels
    ]


def _drawn(figure: Figure, own: Collection[str]) -> set[str]:
    """The study's objectives that a figure shows, as a point, a curve or a mark of a map."""
    slugs: set[str] = set()
    for panel in figure.panels:
        slugs.update(point.objective for point in panel.points)
        slugs.update(curve.objective for curve in panel.curves)
        slugs.update((*panel.raster.row_marks, *panel.raster.column_marks) if panel.raster else ())
    return slugs & set(own)


def _labels(measurements: Measurements) -> dict[str, str]:
    """One label per mark for the legends."""
    labels: dict[str, str] = {}
    for objective in measurements.objectives:
        labels.setdefault(objective.slug, objective.label)
    return labels


def _glossary(measurements: Measurements) -> list[tuple[str, str, str, str, str]]:
    """The study's objectives: (slug, label, sentence, equation, spec)."""
    from markupsafe import Markup

    entries: list[tuple[str, str, str, str, str]] = []
    for one in measurements.objectives:
        explained = glossary.OBJECTIVES.get(one.slug)
        sentence = explained.sentence if explained else _own_words(one.spec)
        entries.append(
            (one.slug, one.label, sentence, Markup(explained.equation if explained else ""), one.spec)
        )
    return entries


def _own_words(spec: str) -> str:
    """What a combination or a plug-in says of itself."""
    try:
        names = [term.name for term in registry.parse_sum(spec)]
    except RequestError:
        return "An objective of this study."
    said = [glossary.OBJECTIVES[name].sentence for name in names if name in glossary.OBJECTIVES]
    for kind in ("loss", "head", "penalty"):
        said += [registry.entry(kind, name).summary for name in names if name in registry.names(kind)]
    joined = "A combination. " if len(names) > 1 else ""
    return joined + (" ".join(said) or "An objective of this study.")


def _provenance(results: StudyResults) -> list[tuple[str, Any]]:
    """Provenance and the study's settings as (label, text or nested list), the known ones first."""
    settings = {
        key: results.description[key]
        for key in ("seeds", "draw", "recipe")
        if key in results.description and key not in results.provenance
    }
    told = {**results.provenance, **settings}
    order = [key for key in PROVENANCE if key in told] + sorted(key for key in told if key not in PROVENANCE)
    return [
        (PROVENANCE.get(key, plain(key.replace("_", " ")).capitalize()), _record(told[key], key in SHARES))
        for key in order
        if told[key] not in ("", None, {}, [])
    ]


def _record(value: Any, shares: bool = False) -> Any:
    """JSON as text, or as a list of (name, record) for mappings; where `shares`, [2, 3] is "2 of 3"."""
    shown: dict[type, Callable[[Any], str]] = {bool: lambda one: "yes" if one else "no"}
    if isinstance(value, Mapping):
        return [(plain(key), _record(one, shares)) for key, one in value.items()]
    if isinstance(value, list | tuple):
        if shares and len(value) == 2 and all(isinstance(one, int) for one in value):
            return f"{value[0]:,} of {value[1]:,}"
        return ", ".join(str(_record(one)) for one in value)
    return shown.get(type(value), plain)(value)
