"""The page of a study: one HTML file, with its contents as CSV, LaTeX and SVG in a folder beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from penultimate import registry
from penultimate.errors import RequestError, legible
from penultimate.files import atomic_write, given_path, make_folder
from penultimate.records.reading import PAGE, PAGE_STATE, study_folder
from penultimate.records.table import COLUMNS
from penultimate.results import escape
from penultimate.results.drawing import draw, mark_icon, mark_variables
from penultimate.results.exhibit import Exhibit, Shown, marks_of
from penultimate.results.palette import INK, PAPER
from penultimate.results.rows import Run, read_run
from penultimate.results.table import TAGS
from penultimate.results.text import plain

HERE = Path(__file__).parent
MOST_DRAWINGS = 5
"""The most panels of an exhibit whose drawings are listed below it."""


class Answer(NamedTuple):
    """The top of a page: a sentence, a picture, and at most three bullets.

    The picture is made of `panels`, which are named and drawn by exhibits of the page, or is HTML. `decides`
    says that the sentence is a verdict by a rule of the study's own, which a terminal prints after the run.
    """

    sentence: str
    points: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    picture: str = ""
    decides: bool = False


@dataclass(frozen=True)
class Section:
    """A section of the page: its title, its question, and the part of the page that it stands in.

    The exhibits of a `folded` section are headings, which the reader opens.
    """

    title: str
    question: str = ""
    part: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A kind of page, which a paper, the evaluation and the portrait register under a name.

    `answer` makes its top from a run. `sections` are its sections in order, by the `section` of exhibits,
    of which one begins with the other; "" is for exhibits without one. `glossary` and `before` (which stands
    before the first section) return HTML, and `source` names the published values. `others` says whether the
    page also shows an exhibit that names another page.
    """

    name: str
    answer: Callable[[Run], Answer]
    sections: Mapping[str, Section]
    question: str = ""
    glossary: Callable[[Run], str] = field(default=lambda run: "")
    before: Callable[[Run], str] = field(default=lambda run: "")
    source: str = ""
    others: Callable[[Exhibit], bool] = field(default=lambda exhibit: False)


class Chapter(NamedTuple):
    """The exhibits of a section, by its key in the page."""

    key: str
    section: Section
    exhibits: list[Shown]

    @property
    def place(self) -> str:
        """Its place in the paper: a number is a section, a capital an appendix, and a word neither."""
        if not self.key[:1].isdigit() and not self.key[:1].isupper():
            return ""
        return f"The paper, {'section' if self.key[0].isdigit() else 'appendix'} {self.key}"

    @property
    def anchor(self) -> str:
        """The id that the contents lead to."""
        return f"section-{self.key.lower().replace('.', '-') or 'beyond'}"


def page_of(run: Run) -> Page:
    """Return the page that a study names, or the usual one of its kind."""
    page: Page = registry.entry("page", run.page).resolve()
    return page


def exhibits_of(page: Page) -> list[Exhibit]:
    """Return the exhibits that a page shows, in the order in which they were declared."""
    every = [registry.entry("exhibit", name).resolve() for name in registry.names("exhibit")]
    known = [each for each in every if isinstance(each, Exhibit)]
    return [each for each in known if each.page == page.name or page.others(each)]


def refresh_page(out: Path | str, study: str, again: bool = False) -> Path:
    """Write a study's page into its folder if it is out of date (or if `again`), and return its path.

    The state that it shows (`StudyFolder.state`) is kept beside it, so that an older page is recognised.
    """
    folder = study_folder(out, study)
    page, shown, state = folder.path / PAGE, folder.path / PAGE_STATE, folder.state()
    if again or not page.is_file() or not shown.is_file() or shown.read_bytes() != state:
        write_page(read_run(out, study), page)
        atomic_write(shown, state, durable=False)
    return page


def study_answer(out: Path | str, study: str) -> str:
    """Return the verdict of a study by a rule of its own, in a sentence; empty if it has no such rule."""
    run = read_run(out, study)
    answer = None if run.limited else page_of(run).answer(run)
    return plain(answer.sentence) if answer and answer.decides else ""


def write_page(run: Run, path: Path | str, page: Page | None = None) -> list[Path]:
    """Write the page to `path` and its tables and drawings into the folder `STEM_files` beside it.

    The same run gives the same bytes. Returns the written files, the page first. Raises RequestError if the
    path cannot be a file.
    """
    path = given_path(path, "--to")
    folder = path.parent / f"{path.stem}_files"
    if path.is_dir() or (path.exists() and not path.is_file()) or folder.is_symlink() or folder.is_file():
        raise RequestError(
            f"the report cannot be written to '{path}' and '{folder.name}' beside it: one of them is"
            " something else; move it away, or give another file with --to"
        )
    try:
        make_folder(path.parent)
        make_folder(folder)
    except OSError as error:
        raise RequestError(f"the report cannot be written to '{path}' ({error.strerror or error})") from None
    files = render_page(run, path.stem, page)
    targets = {folder / name if name else path: content for name, content in files.items()}
    for target, content in targets.items():
        atomic_write(target, content, durable=False)
    return list(targets)


def render_page(run: Run, stem: str = "report", page: Page | None = None) -> dict[str, bytes]:
    """Return every file of the page by its name in the folder; the page is first, with an empty name."""
    from markupsafe import Markup

    page = page or page_of(run)
    made = [each(run, allow_limited=True) for each in exhibits_of(page) if each.of_given or not run.are_given]
    measured = [shown for shown in made if shown.is_measured]
    known = marks_of(measured, [each.slug for arm in run.arms for each in run.objectives(arm)])
    panels = [panel for shown in measured for panel in shown.panels]
    drawings = {panel.name: draw(panel, known) for panel in panels}
    files: dict[str, str] = {}
    for shown in measured:
        svg = {
            f"{panel.name}.svg": drawings[panel.name].styled(panel.name, page=False) for panel in shown.panels
        }
        for name, content in {**shown.csv(), **shown.latex(), **svg}.items():
            if files.setdefault(name, content) != content:
                raise RequestError(
                    f"two tables or panels of the page are called '{name}': rename one of them"
                )
    files["results.csv"] = run.frame[[*COLUMNS]].to_csv(index=False)
    answer, script = page.answer(run), (HERE / "page.js").read_text(encoding="utf-8")
    html = _template().render(
        run=run,
        title=plain(run.description.get("title", "") or run.name),
        question=plain(run.description.get("question", "")) or page.question,
        answer=answer,
        leading=[panel for panel in panels if panel.name in answer.panels],
        page=page,
        chapters=chapters_of(page, measured),
        unmeasured=[shown for shown in made if not shown.is_measured],
        provenance=_provenance(run),
        sheet=base64.b64encode(run.sheet).decode() if run.sheet else "",
        marks=known,
        icons=defaultdict(str, {slug: mark_icon(mark) for slug, mark in known.items()}),
        labels=defaultdict(str, run.labels(*run.arms)),
        drawings=drawings,
        folder=quote(os.fsencode(f"{stem}_files")),
        files=files,
        most_drawings=MOST_DRAWINGS,
        styles=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        light=Markup(mark_variables(known, dark=False)),
        dark=Markup(mark_variables(known, dark=True)),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    texts = {"": html, **files}
    return {name: text.encode(errors="replace") for name, text in texts.items()}


def chapters_of(page: Page, exhibits: Iterable[Shown]) -> list[Chapter]:
    """Return exhibits under the headings of the page, in its order."""
    grouped: dict[str, list[Shown]] = defaultdict(list)
    for shown in exhibits:
        fits = [key for key in page.sections if key and shown.section.startswith(key)]
        grouped[max(fits, key=len, default="")].append(shown)
    sections = {**page.sections, "": page.sections.get("", Section("More"))}
    return [Chapter(key, section, grouped[key]) for key, section in sections.items() if key in grouped]


def _template() -> Any:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: legible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "say": lambda text: Markup(escape.html(text)),
        "packed": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
        "base64": lambda content: base64.b64encode(content).decode(),
        "objectives": lambda panels: list(
            dict.fromkeys(slug for panel in panels for slug in panel.objectives())
        ),
    }
    return environment.get_template("page.html")


def _provenance(run: Run) -> dict[str, Any]:
    """Return the provenance and the settings of a run as texts and nested records."""
    recipes = [block["recipe"] for block in run.description.get("networks", ()) if "recipe" in block]
    entries = {
        **run.provenance,
        "recipe": (recipes or [{}])[0],
        "measurements": run.description.get("measure"),
    }
    return {
        plain(name.replace("_", " ")).capitalize(): _record(value)
        for name, value in entries.items()
        if value not in ("", None, {}, [], ()) and name not in ("diverged_networks", "undefined_of")
    }


def _record(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {plain(name): _record(each) for name, each in value.items()}
    return plain(", ".join(map(str, value)) if isinstance(value, list | tuple) else value)


def inline(shown: Shown) -> str:
    """Return an exhibit as HTML that stands alone, for a notebook: its drawings lie on paper of their own."""
    known, say = marks_of([shown]), escape.html
    state = [shown.unfinished, "Limited run: not evidence." if shown.limited else ""]
    lines = [f"<div><p><b>{say(shown.heading)}</b></p>"]
    lines += [f"<p>{say(text)}</p>" for text in (shown.caption, *state) if text]
    sheet = (
        f"display: flex; flex-wrap: wrap; gap: 12px; padding: 8px; background: {PAPER[0]}; color: {INK[0]}"
    )
    for figure in shown.figures:
        lines.append(f'<div style="{sheet}">')
        for panel in figure.panels:
            drawing = draw(panel, known)
            prefix = f"pu{hashlib.sha256(drawing.raw.encode()).hexdigest()[:10]}"
            head = say(f"{panel.title} [{TAGS[panel.source]}] {panel.finding}")
            lines += [
                f'<figure style="width: {panel.size[0]:g}px; margin: 0"><figcaption>{head}</figcaption>'
            ]
            lines += [drawing.styled(prefix, page=False), "</figure>"]
        lines.append("</div>")
    for table in shown.tables:
        head = say(f"{table.title} [{TAGS[table.source]}] {table.runs}")
        opening = "<details open>" if table.source == "ours" and not table.folded else "<details>"
        lines.append(f"{opening}<summary>{head}</summary>{table.html()}</details>")
    return "\n".join([*lines, *(f"<p>{say(note)}</p>" for note in shown.notes), "</div>"])
