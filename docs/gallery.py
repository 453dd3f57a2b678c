"""Write the gallery: a page for each exhibit, drawn from the runs that come with the package.

Each page has the exhibit's sentence, its figures and tables, the published values, and the command that
shows it.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable
from pathlib import Path

from docs.quoted import MAIN

from penultimate.paper.page import PAGE
from penultimate.portrait.page import answer
from penultimate.records.archive import read_kept
from penultimate.records.references import references
from penultimate.registry import entry, names
from penultimate.results.beside import beside_reference
from penultimate.results.drawing import draw, mark_icon, mark_variables
from penultimate.results.exhibit import Shown, marks_of, show
from penultimate.results.figure import Figure
from penultimate.results.page import chapters_of
from penultimate.results.palette import Mark
from penultimate.results.rows import Run, read_reference
from penultimate.results.table import Table

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


def exhibits() -> dict[str, Shown]:
    """Return every exhibit that the runs of the package hold, by its name."""
    found = {}
    for name in names("exhibit"):
        exhibit = entry("exhibit", name).resolve()
        if exhibit.page == PAGE.name or PAGE.others(exhibit):
            made = show(name, read(run_of(name)))
            if made.is_measured:
                found[name] = made
    return found


@functools.cache
def read(run: str) -> Run:
    """Return a kept run."""
    return read_reference(run)


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
def portraits() -> dict[str, Run]:
    """Return the finished portraits, each beside the reference run, by the name of its objective."""
    kept = {card.parent.name: read_kept(card.parent) for card in sorted(PORTRAITS.glob("*/kept.json"))}
    return {
        name: beside_reference(Run(run.table.frame(), run.description, run.provenance, run.arrays))
        for name, run in kept.items()
    }


def exhibits_of(run: Run) -> list[Shown]:
    """Return the exhibits of a portrait's own page, in its order."""
    found = [show(name, run) for name in names("exhibit") if name.startswith("portrait_")]
    return [shown for shown in found if shown.is_measured]


def portrait(run: Run, known: dict[str, Mark]) -> list[str]:
    """Return the lines of a portrait's page: what it comes to, its figures and its tables."""
    said = answer(run)
    lines = [f"# {plain(str(run.description['title']))}", "", f"**{plain(said.sentence)}**", ""]
    lines += [f"- {plain(point)}" for point in said.points] + [""]
    lines += ["```console", f"{run.provenance['command']}", "```", ""]
    for each in exhibits_of(run):
        lines += [f"## {plain(each.title)}", "", plain(each.caption), ""]
        for figure in each.figures:
            panels = [
                f'<figure class="panel {panel.source}"><figcaption>{html.escape(panel.title)}</figcaption>'
                f"{draw(panel, known).styled(f'{panel.name}-')}</figure>"
                for panel in figure.panels
            ]
            lines += raw(['<div class="panels">', *panels, "</div>"])
        for held in each.tables:
            label = html.escape(held.title)
            head = f'<div class="exhibit-table" tabindex="0" role="group" aria-label="{label}">'
            body = raw([head, held.html(), "</div>"])
            folds = len(held.labels) > LONG
            lines += [f":::{{dropdown}} {plain(held.title)}", *body, ":::", ""] if folds else body
        lines += [f"- {plain(note)}" for note in each.notes] + [""]
    return lines


def table(built: Table) -> list[str]:
    """Return a table as HTML that scrolls by itself."""
    head = f'<div class="exhibit-table" tabindex="0" role="group" aria-label="{html.escape(built.title)}">'
    return raw([head, built.html(), "</div>"])


def raw(lines: Iterable[str]) -> list[str]:
    """Return HTML as a block of MyST."""
    return ["```{raw} html", *lines, "```", ""]


def drawn(figure: Figure, known: dict[str, Mark]) -> list[str]:
    """Return a figure's panels as SVG in the colours of the page."""
    panels = [
        f'<figure class="panel {panel.source}" style="flex-basis: {min(panel.size[0], 290):g}px; max-width:'
        f' {1.6 * panel.size[0]:g}px"><figcaption>{html.escape(panel.title)}</figcaption>'
        f"{draw(panel, known).styled(f'{panel.name}-')}</figure>"
        for panel in figure.panels
    ]
    named = {
        each.slug: each.label
        for panel in figure.panels
        for each in (*panel.points, *panel.curves)
        if each.slug in known
    }
    said = " ".join(f"{mark_icon(known[slug])} {html.escape(label)}" for slug, label in named.items())
    below = [f'<p class="legend">{said}</p>'] if said and figure.legend else []
    return raw(['<div class="panels">', *panels, "</div>", *below])


def page(name: str, built: Shown, known: dict[str, Mark]) -> list[str]:
    """Return the lines of an exhibit's page."""
    run = run_of(name)
    lines = [f"({name})=", f"# {plain(built.title)}", ""]
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


def thumbnail(folder: Path, built: Shown, known: dict[str, Mark]) -> str:
    """Draw the first panel of an exhibit into a file for the index, and return its name; "" without one."""
    panels = built.panels
    if not panels:
        return ""
    path = folder / f"{built.name}.svg"
    path.write_text(draw(panels[0], known).styled("t", page=False), encoding="utf-8")
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
    of_portraits = [each for run in portraits().values() for each in exhibits_of(run)]
    known = marks_of([*found.values(), *of_portraits])
    (static / "marks.css").write_text(colours(known) + "\n", encoding="utf-8")
    index = ["# Gallery", "", INTRODUCTION, ""]
    chapters = chapters_of(PAGE, found.values())
    parts: dict[str, list[str]] = {}
    for chapter in chapters:
        parts.setdefault(chapter.section.part or "The claims", []).extend(
            built.name for built in chapter.exhibits
        )
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
    for name, run in portraits().items():
        page_name = f"portrait-{name}"
        index += [f"- [{plain(str(run.description['title']))}]({page_name}.md)"]
        text = "\n".join(portrait(run, known)) + "\n"
        (folder / f"{page_name}.md").write_text(text, encoding="utf-8")
        pages.append(page_name)
    index += ["", "```{toctree}", ":hidden:", "", *pages, "```"]
    (folder / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    for name, built in found.items():
        (folder / f"{name}.md").write_text("\n".join(page(name, built, known)) + "\n", encoding="utf-8")
