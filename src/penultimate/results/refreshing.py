"""Keep the pages of studies up to date."""

from __future__ import annotations

from pathlib import Path

from penultimate.files import atomic_write
from penultimate.records.reading import PAGE, PAGE_STATE, study_folder
from penultimate.results.page import page_of, write_page
from penultimate.results.rows import read_run
from penultimate.results.text import plain


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
