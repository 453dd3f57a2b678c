"""The page of the user's own networks: the best for each task, the evidence, and their confusions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penultimate.errors import as_sentence
from penultimate.evaluation.baselines import first_lines, shortfalls
from penultimate.evaluation.boards import Board, boards_of, tasks_of
from penultimate.evaluation.cautions import cautions
from penultimate.evaluation.grouped import leaks
from penultimate.report.base import Built
from penultimate.report.measurements import Measurements
from penultimate.report.networks import OF_EVALUATIONS, name_in
from penultimate.report.page.form import Drawn, Explained
from penultimate.report.progress import whose
from penultimate.report.spec import Exhibit, Remarks, say_nothing
from penultimate.report.text import counted, listed, plain

DEPTH, OUTSIDE = "depth", "outside"
"""The exhibits of probes of every block, and of images of other data, if a study has them."""
FURTHER = "Further exhibits"
"""The heading of exhibits that are registered elsewhere with `page="evaluation"`."""
CHAPTERS = {
    "Task by task": ("ranking", "comparisons", "ranks", "baselines"),
    "Several labels": ("labels", "tableD1"),
    "What they confuse": ("confusions",),
    "Fine-tuned": ("tuned",),
    "Few labels": ("few_labels",),
    "Layer by layer": ("readout", DEPTH),
    "The features": ("features", "likeness"),
    "What it costs": ("cost",),
    "Transfer, foretold": ("foretold",),
    "As classifiers": ("classifiers",),
    "How sure they are": ("selective", "probe_calibration"),
    "Images of other data": (OUTSIDE,),
    "Plug-ins": ("plugins",),
    FURTHER: (),
    "What it rests on": ("basis",),
}
"""The exhibits of the page, under its headings."""
SHOWN = frozenset(name for names in CHAPTERS.values() for name in names)
STEP = 5
"""The step between possible ends of a board's scale, in per cent."""


@dataclass(frozen=True)
class ExhibitGroup:
    """A heading with its exhibits."""

    title: str
    exhibits: tuple[Built, ...]

    @property
    def anchor(self) -> str:
        """The id that the contents lead to."""
        return f"section-{self.exhibits[0].name}"


def shows(built: Built) -> bool:
    """Return whether an exhibit shows anything of this evaluation, rather than the paper's numbers alone."""
    return built.is_measured or bool(built.galleries)


def _answer(boards: list[Board], measurements: Measurements) -> str:
    if not boards and measurements.several_labels:
        return "Images have several labels each, so each label is scored by the area under its ROC curve."
    if not boards:
        return "No network has been tested on any task yet."
    single = boards[0]
    said = single.sentence()
    if single.name:
        return f"On {single.title}: {said}"
    tasks = counted(len(single.tasks), "task")
    leaders: dict[str, list[str]] = {}
    for board in boards[1:]:
        first = board.standings[0]
        if [each.network for each in board.leaders] == [first.network] and len(board.standings) > 1:
            leaders.setdefault(first.network.label, []).append(board.title)
    ahead = "; ".join(f"{name} on {listed(titles)}" for name, titles in leaders.items())
    told = f" Ahead of all others on a single task, beyond chance: {ahead}." if ahead else ""
    return f"In the mean over {tasks}: {said}{told}"


def _reading(boards: list[Board]) -> str:
    if not boards:
        return ""
    return (
        "The line marks the accuracy of a linear classifier on the frozen features, and the band its 95 %"
        " interval over test images. The number on the left is the network's place, or the range of places"
        " that paired tests on the same images leave open. A line in colour: no other network is better"
        " beyond chance. Paired tests can tell networks apart whose bands overlap."
    )


def _ends(board: Board) -> tuple[int, int]:
    """Return the ends of a board's scale, in per cent."""
    lows = [100 * standing.interval.low for standing in board.standings]
    highs = [100 * standing.interval.high for standing in board.standings]
    low, high = STEP * math.floor(min(lows) / STEP), STEP * math.ceil(max(highs) / STEP)
    return max(0, low - STEP * (low == high)), min(100, max(high, low + STEP))


def _share(ends: tuple[int, int], value: float) -> float:
    return (value - ends[0]) / (ends[1] - ends[0])


ONE_LABEL = "no task has images of one label each"


def _gaps(measurements: Measurements, by_name: Mapping[str, Built]) -> list[str]:
    """Return the missing results that a reader might look for, with the reasons."""
    asked = set(map(name_in, measurements.networks.measured))
    done = measurements.results.provenance.get("steps", {})
    given = measurements.results.description.get("networks", ())
    gaps = [note for note in by_name["ranking"].notes if note.startswith("No number")]
    provenance = measurements.results.provenance
    failed = {step: of["why"] for step, of in provenance.get("failed", {}).items()}
    for step, reason in (provenance.get("undefined", {}) | failed).items():
        kind = step.partition(".")[0]
        if kind not in ("probed", "given", "extract", "data"):
            gaps.append(as_sentence(f"{kind} of {whose(provenance, step)}: {plain(reason)}"))
    if not any(block.get("classifies") for block in given):
        gaps.append(
            "Accuracy, calibration and agreement of the networks' own final layers, class overlap, NCE and"
            " LEEP, and selective classification. They need a source with the classes that the networks tell"
            " apart (--source FOLDER --classifies all)."
        )
    if DEPTH not in by_name or not shows(by_name[DEPTH]):
        why = (
            "no probe of the layers before the last was asked for"
            if DEPTH not in asked
            else "the networks have no layer before the last, or it has no value for the reasons above"
            if DEPTH in done
            else ONE_LABEL
        )
        gaps.append(f"Which layer serves each task best: {why}.")
    if "readout" not in asked:
        gaps.append("Whether an earlier layer gains beyond chance (--layers).")
    if "baselines" not in asked:
        gaps.append("Pixels, colours and random convolutions, with which networks are compared by default.")
    if OUTSIDE not in asked:
        gaps.append("Whether images of other data are noticed (--outside FOLDER).")
    if "given_fine_tuning" not in asked:
        gaps.append("Fine-tuning of all weights on each task (--fine-tune).")
    elif "given_fine_tuning" not in done:
        gaps.append(f"Fine-tuning of all weights: {ONE_LABEL}.")
    return gaps


@dataclass(frozen=True)
class EvaluationPage:
    """The page of networks from elsewhere: the ranking first, then why one may trust it."""

    template: Path
    explained: Mapping[str, Explained] = field(default_factory=dict)
    remarks: Remarks = say_nothing
    rivals: tuple[str, ...] = ()
    curves: bool = False
    at_full_size: Mapping[str, str] = field(default_factory=dict)

    def draws(self, exhibit: Exhibit) -> bool:
        """Return whether the page contains an exhibit: its own ones, and those that name it."""
        return exhibit.name in SHOWN or exhibit.page == OF_EVALUATIONS

    def shows(self, built: Built) -> bool:
        """Return whether an exhibit shows anything of this evaluation, not only the paper's numbers."""
        return shows(built)

    def answer(self, measurements: Measurements) -> str:
        """Return nothing: an evaluation ends with its ranking, which `evaluate` prints."""
        return ""

    def context(self, drawn: Drawn) -> Mapping[str, Any]:
        """Return the variables of its template besides those of every page."""
        measurements = drawn.measurements
        exhibits = [built for _, built in drawn.made if built.wanted]
        by_name = {built.name: built for built in exhibits}
        chapters = [
            ExhibitGroup(
                title, tuple(by_name[name] for name in names if name in by_name and shows(by_name[name]))
            )
            for title, names in {**CHAPTERS, FURTHER: [name for name in by_name if name not in SHOWN]}.items()
        ]
        boards, odd = boards_of(tasks_of(measurements)), cautions(measurements)
        return {
            "chapters": [chapter for chapter in chapters if chapter.exhibits],
            "boards": boards,
            "warnings": [*first_lines(shortfalls(measurements)), *leaks(measurements)],
            "answer": _answer(boards, measurements),
            "reading": _reading(boards),
            "gaps": _gaps(measurements, by_name),
            "odd": lambda board, network: [
                caution for caution in odd if caution.network == network and caution.task in ("", board.name)
            ],
            "scale": lambda board, value: round(100 * _share(_ends(board), 100 * value), 2),
            "ends": _ends,
        }


PAGE = EvaluationPage(Path(__file__).with_name("page.html"))
