"""Exhibits and the report: from a study's results to tables, figures and one self-contained page.

Names are resolved when first used; nothing here needs a tensor library, and a drawing library only to draw.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.lazy import attributes

if TYPE_CHECKING:
    from penultimate.report.base import Built as Built
    from penultimate.report.base import StudyResults as StudyResults
    from penultimate.report.page.page import render_report as render_report
    from penultimate.report.page.page import write_report as write_report
    from penultimate.report.terminal import render_exhibit_text as render_exhibit_text
    from penultimate.results.rows import Run

__getattr__, __dir__ = attributes(
    __name__,
    {
        "base": "Built StudyResults",
        "page.page": "render_report write_report",
        "terminal": "render_exhibit_text",
    },
    "exhibit read_reference read_study refresh_page study_answer write_study",
)
__all__ = __dir__()


def exhibit(
    name: str, source: StudyResults | Run | Path | str = "runs", study: str = "", allow_limited: bool = False
) -> Built:
    """Return an exhibit of the paper, by its name, from a study's results or from the folder that holds them.

    `study` picks one of several in a folder (default: the one run last), or several, separated by commas.
    Raises RequestError for an unknown exhibit (with the nearest one), a folder without a study, and a limited
    study unless `allow_limited`.
    """
    from penultimate.errors import RequestError
    from penultimate.registry import entry, names
    from penultimate.report.several import build

    if name not in names("exhibit") and isinstance(source, str) and source in names("exhibit"):
        raise RequestError(f"the exhibit comes before the results: pu.exhibit('{source}', '{name}')")
    wanted = entry("exhibit", name).resolve()
    from penultimate.results.exhibit import Exhibit, show

    if isinstance(wanted, Exhibit):
        return show(name, source, study, allow_limited)  # type: ignore[arg-type, return-value]
    results = read_study(source, study) if isinstance(source, Path | str) else source
    return build(wanted, results, allow_limited)  # type: ignore[arg-type]


def read_study(path: Path | str = "runs", study: str = "") -> StudyResults:
    """Return the results in a study's folder (or in the folder of all studies), for exhibits and the page.

    Several studies, separated by commas, are read as one (`report.several`). One that stands beside a kept
    run (`Study.beside`) is read with that run's networks.
    """
    from penultimate.records.provenance import provenance
    from penultimate.records.reading import study_folder
    from penultimate.report.base import StudyResults
    from penultimate.report.beside import beside_reference

    names = [name.strip() for name in study.split(",") if name.strip()]
    if len(names) > 1:
        from penultimate.report.several import read_studies

        return read_studies(path, names)
    folder = study_folder(path, *names)
    return beside_reference(
        StudyResults(
            folder.described(), folder.table(), folder.contact_sheet(), provenance(folder), folder.arrays
        )
    )


def refresh_page(out: Path | str, study: str, again: bool = False) -> Path:
    """Write a study's page into its folder if it is out of date (or if `again`), and return its path.

    The state that it shows (`StudyFolder.state`) is kept beside it, so that an older page is recognised.
    """
    from penultimate.files import atomic_write
    from penultimate.records.reading import PAGE, PAGE_STATE, study_folder

    folder = study_folder(out, study)
    page, shown, state = folder.path / PAGE, folder.path / PAGE_STATE, folder.state()
    if again or not page.is_file() or not shown.is_file() or shown.read_bytes() != state:
        write_study(out, study, page)
        atomic_write(shown, state, durable=False)
    return page


def write_study(out: Path | str, study: str, to: Path | str, reference: bool = False) -> None:
    """Write the page of a study, of several, or of a kept run; those that have not moved by the old room."""
    from penultimate.report.page.page import write_report
    from penultimate.results import rows
    from penultimate.results.page import Page, write_page

    run = rows.read_reference(study) if reference else rows.read_run(out, study)
    page = _page_of(run)
    if isinstance(page, Page):
        write_page(run, to, page)
    else:
        write_report(read_reference(study) if reference else read_study(out, study), to)


def study_answer(out: Path | str, study: str) -> str:
    """Return the verdict of a study by a rule of its own, in a sentence; empty if it has no such rule."""
    from penultimate.report.measurements import admit
    from penultimate.report.text import plain
    from penultimate.results.page import Page
    from penultimate.results.rows import read_run

    run = read_run(out, study)
    page = _page_of(run)
    if isinstance(page, Page):
        answer = None if run.limited else page.answer(run)
        return plain(answer.sentence) if answer and answer.decides else ""
    return plain(page.answer(admit(read_study(out, study), allow_limited=True)))


def _page_of(run: Run) -> Any:
    from penultimate.registry import entry

    return entry("page", run.page).resolve()


def read_reference(study: str = "") -> StudyResults:
    """Return the reference run of a study (by default, its paper's main one) that comes with the package.

    Raises RequestError if there is none.
    """
    from penultimate.records.archive import reference
    from penultimate.report.base import StudyResults
    from penultimate.report.later import todays

    kept = reference(study)
    return StudyResults.of(kept, todays(str(kept.description["name"])))
