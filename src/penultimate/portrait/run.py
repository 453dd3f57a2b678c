"""Draw a portrait: search, train and measure, and write the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penultimate.engine.observer import Engine, Observer, Summary
from penultimate.engine.run import run
from penultimate.portrait.page import answer
from penultimate.portrait.request import PortraitRequest
from penultimate.records.reading import study_folder
from penultimate.results.page import refresh_page
from penultimate.results.rows import read_run


@dataclass(frozen=True)
class Portrait:
    """A finished portrait: its study, what was computed, its page, and what it comes to in sentences."""

    study: str
    summary: Summary
    report: Path
    answer: str
    errors: tuple[str, ...] = ()


def draw(
    request: PortraitRequest,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    command: str = "",
    engine: Engine | str = "local",
    verify: bool = False,
) -> Portrait:
    """Search for the strength of an objective, train and measure it, and write its page.

    What is done already is not done again. Raises RequestError for an objective that the kept run has, for
    seeds that it lacks, and for what a search or a study refuses.
    """
    command = command or "penultimate.portrait(...) in Python"
    request.study()  # what cannot be run is refused before the search
    errors, found = list[str](), None
    if request.search is not None:
        searched = run(request.search, out, processes, observer, command, engine, verify)
        errors += [f"failed: {step}: {why}" for step, why in searched.failed.items()]
        found = study_folder(out, request.search.name).search()
        if not searched.complete:
            errors.append("the search is not finished; the same command tries again")
    study = request.study(found)
    summary = run(study, out, processes, observer, command, engine, verify)
    report = refresh_page(out, study.name)
    said = answer(read_run(out, study.name))
    return Portrait(study.name, summary, report, " ".join((said.sentence, *said.points)), tuple(errors))
