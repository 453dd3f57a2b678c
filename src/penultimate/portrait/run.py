"""Draw a portrait: search, train and measure, and write the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penultimate.engine.observer import Engine, Observer, Summary
from penultimate.engine.run import run
from penultimate.portrait.request import PortraitRequest
from penultimate.report import refresh_page, study_answer
from penultimate.study.spec import Study
from penultimate.tuning.conduct import TuningPlan
from penultimate.tuning.run import trained_only, tune


@dataclass(frozen=True)
class Portrait:
    """A finished portrait: its study, what was computed, its page, and what it comes to in sentences."""

    study: str
    summary: Summary
    report: Path
    answer: str
    errors: tuple[str, ...] = ()


def first_cells(plan: TuningPlan) -> Study:
    """Return the study of the trainings with which a search begins."""
    (candidate,) = plan.candidates
    points = [tuple(axis.centre for axis in candidate.axes)]
    for place, axis in enumerate(candidate.axes):
        points += [(*points[0][:place], value, *points[0][place + 1 :]) for value in axis.grid]
    objectives = tuple(dict.fromkeys(candidate.setting(point)[0] for point in points))
    return trained_only(plan.study, objectives, candidate.recipe)


def draw(
    request: PortraitRequest,
    out: Path | str = "runs",
    processes: int | None = None,
    searching: Observer | None = None,
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
    errors: list[str] = []
    tuned = None
    if request.plan is not None:
        found = tune(request.plan, out, processes, searching, command, engine, verify)
        errors += [f"failed: {step}: {why}" for step, why in found.summary.failed.items()]
        tuned = next((one for one in found.tuning.objectives), None)
        if found.unfinished:
            errors.append("the search is not finished; the same command tries again")
    study = request.study(tuned)
    summary = run(study, out, processes, observer, command, engine, verify=verify)
    report = refresh_page(out, study.name)
    return Portrait(study.name, summary, report, study_answer(out, study.name), tuple(errors))
