"""Write the gallery: a page for each exhibit, drawn from the runs that come with the package.

Each page has the exhibit's sentence, its figures and tables, the published values, and the command that
shows it.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable
from pathlib import Path

from docs.quoted import MAIN, finding, shown

from penultimate.paper import published
from penultimate.paper.page import PAGE
from penultimate.portrait.page import OWN_ORDER, headline
from penultimate.records.archive import read_kept, references
from penultimate.registry import entry, names
from penultimate.report import exhibit
from penultimate.report.base import Built, ExhibitTable, Figure, StudyResults
from penultimate.report.beside import beside_reference
from penultimate.report.drawing.figures import draw_panel, mark_variables
from penultimate.report.drawing.palette import Mark, marks
from penultimate.report.inline import legend, objectives_drawn, table_html
from penultimate.report.measurements import admit
from penultimate.results.page import chapters_of

RUNS = {"doses": "sweep", "better": "better", "projectors": "sweep"}
"""The run that an exhibit is drawn from, where it is not the main one; it counts once it is kept."""
INTRODUCTION = (
    "Every table and figure, drawn from the runs that come with the package. Each page gives the sentence"
    " that the numbers make, the published values, and the command that shows the exhibit in a terminal."
)
OF_PORTRAITS = (
    "Objectives of other papers that [ship as examples](../reference/examples.md), each tuned, trained and"
    " measured as the nine were, and drawn beside them. `make portraits` makes them again."
)
PORTRAITS = Path(__file__).parent / "portraits"
"""The kept rows of finished portraits, a folder each."""
LONG = 14
"""Tables of a portrait with more rows than this are folded."""
FOLDED = 12
"""Tables with more columns than this are folded."""


def exhibits() -> dict[str, Built]:
    """Return every exhibit that the runs of the package hold, by its name."""
    found = {}
    for name in names("exhibit"):
        if entry("exhibit", name).resolve().page == PAGE.name:
            built = shown(name, run_of(name))
            if built.wanted and (built.tables or built.figures):
                found[name] = built
    return found


def run_of(name: str) -> str:
    """Return the kept run that an exhibit is drawn from."""
    run = RUNS.get(name, MAIN)
    return run if run in references() else MAIN


def plain(text: str) -> str:
    """Return text as Markdown that shows it as it is."""
    for special in "\\`*_[]{}<>|#$~":
        text = text.replace(special, f"\\{special}")
    return text.replace("\n", " ")


@functools.cache
def portraits() -> dict[str, StudyResults]:
    """Return the finished portraits, each beside the reference run, by the name of its objective."""
    kept = {card.parent.name: read_kept(card.parent) for card in sorted(PORTRAITS.glob("*/kept.json"))}
    return {name: beside_reference(StudyResults.of(run)) for name, run in kept.items()}


def exhibits_of(results: StudyResults) -> list[Built]:
    """Return the exhibits of a portrait's own page, in its order."""
    found = [exhibit(name, results) for name in OWN_ORDER]
    return [built for built in found if built.is_measured]


def portrait(name: str, results: StudyResults, known: dict[str, Mark]) -> list[str]:
    """Return the lines of a portrait's page: what it comes to, its figures and its tables."""
    said = headline(admit(results))
    lines = [f"# {plain(str(results.description['title']))}", "", f"**{plain(said.answer)}**", ""]
    lines += [f"- {plain(detail)}" for detail in said.details] + [""]
    lines += ["```console", f"{results.provenance['command']}", "```", ""]
    for built in exhibits_of(results):
        lines += [f"## {plain(built.title)}", "", plain(built.caption), ""]
        for figure in built.figures:
            lines += drawn(figure, known)
        for each in built.tables:
            folds = len(each.rows) > LONG
            body = table(each)
            lines += [f":::{{dropdown}} {plain(each.title)}", *body, ":::", ""] if folds else body
        lines += [f"- {plain(note)}" for note in built.notes] + [""]
    return lines


def table(built: ExhibitTable) -> list[str]:
    """Return a table as HTML that scrolls by itself."""
    head = f'<div class="exhibit-table" tabindex="0" role="group" aria-label="{html.escape(built.title)}">'
    return raw([head, table_html(built), "</div>"])


def raw(lines: Iterable[str]) -> list[str]:
    """Return HTML as a block of MyST."""
    return ["```{raw} html", *lines, "```", ""]


def drawn(figure: Figure, known: dict[str, Mark]) -> list[str]:
    """Return a figure's panels as SVG in the colours of the page."""
    panels = [
        f'<figure class="panel {panel.source}" style="flex-basis: {min(panel.size[0], 290):g}px; max-width:'
        f' {1.6 * panel.size[0]:g}px"><figcaption>{html.escape(panel.title)}</figcaption>'
        f"{draw_panel(panel, known).styled(f'{panel.name}-')}</figure>"
        for panel in figure.panels
    ]
    said = legend(figure, known)
    below = [f'<p class="legend">{said}</p>'] if said else []
    return raw(['<div class="panels">', *panels, "</div>", *below])


def page(name: str, built: Built, known: dict[str, Mark]) -> list[str]:
    """Return the lines of an exhibit's page."""
    run = run_of(name)
    lines = [f"({name})=", f"# {plain(built.title)}", ""]
    lines += [f"**{plain(finding(name, run))}**", ""] if built.finding else []
    for figure in built.figures:
        lines += drawn(figure, known)
    lines += [plain(built.caption), ""]
    lines += [
        "```console",
        f"penultimate show {name} --reference{f' --study {run}' if run != MAIN else ''}",
        "```",
        "",
    ]
    for source, title in (("ours", "Measured here"), ("published", "Published in the paper")):
        tables = [each for each in built.tables if each.source == source]
        lines += [f"## {title}", ""] if tables else []
        for each in tables:
            folds = each.folded or len(each.columns) > FOLDED
            body = table(each)
            lines += [f":::{{dropdown}} {plain(each.title)}", *body, ":::", ""] if folds else body
    if built.notes:
        lines += [":::{dropdown} Notes", *(f"- {plain(note)}" for note in built.notes), ":::", ""]
    return lines


def thumbnail(folder: Path, built: Built, known: dict[str, Mark]) -> str:
    """Draw the first panel of an exhibit into a file for the index, and return its name; "" without one."""
    panels = [panel for figure in built.figures for panel in figure.panels]
    panels = [panel for panel in panels if panel.raster is None or not panel.raster.is_scale]
    if not panels:
        return ""
    path = folder / f"{built.name}.svg"
    path.write_text(draw_panel(panels[0], known).styled("t", page=False), encoding="utf-8")
    return path.name


def colours(known: dict[str, Mark]) -> str:
    """Return the style sheet of the marks, for paper and for a dark screen."""
    return "\n".join(
        f'html[data-theme="{theme}"] {{ {mark_variables(known, dark=theme == "dark")} }}'
        for theme in ("light", "dark")
    )


def write(folder: Path, static: Path) -> None:
    """Write the page of every exhibit, their index, and the colours of their marks."""
    folder.mkdir(parents=True, exist_ok=True)
    static.mkdir(parents=True, exist_ok=True)
    found = exhibits()
    drawn_of = {name: exhibits_of(results) for name, results in portraits().items()}
    every = [*found.values(), *(built for listed in drawn_of.values() for built in listed)]
    known = marks([*published.objectives(), *dict.fromkeys(objectives_drawn(every))])
    (static / "marks.css").write_text(colours(known) + "\n", encoding="utf-8")
    index = ["# Gallery", "", INTRODUCTION, ""]
    chapters = chapters_of(PAGE, (entry("exhibit", name).resolve() for name in found))
    parts: dict[str, list[str]] = {}
    for chapter in chapters:
        parts.setdefault(chapter.part or "The claims", []).extend(each.name for each in chapter.exhibits)
    for part, listed in parts.items():
        index += [f"## {plain(part)}", "", "::::{grid} 1 2 2 3", ":gutter: 3", ""]
        for name in listed:
            summary = plain(entry("exhibit", name).summary)
            picture = thumbnail(folder, found[name], known)
            index += [
                f":::{{grid-item-card}} {summary}",
                *([f":img-top: {picture}", f":img-alt: {summary}"] if picture else []),
                f":link: {name}",
                ":link-type: doc",
                "",
                f"`{name}`",
                ":::",
                "",
            ]
        index += ["::::", ""]
    pages = [name for listed in parts.values() for name in listed]
    if portraits():
        index += ["## Portraits of objectives", "", OF_PORTRAITS, ""]
    for name, results in portraits().items():
        page_name = f"portrait-{name}"
        index += [f"- [{plain(str(results.description['title']))}]({page_name}.md)"]
        text = "\n".join(portrait(name, results, known)) + "\n"
        (folder / f"{page_name}.md").write_text(text, encoding="utf-8")
        pages.append(page_name)
    index += ["", "```{toctree}", ":hidden:", "", *pages, "```"]
    (folder / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    for name, built in found.items():
        (folder / f"{name}.md").write_text("\n".join(page(name, built, known)) + "\n", encoding="utf-8")
