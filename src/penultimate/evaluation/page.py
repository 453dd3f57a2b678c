"""The page of the user's own networks: the best for each task, the evidence, and their confusions."""

from __future__ import annotations

import math

from penultimate.evaluation.standings import Board, boards
from penultimate.evaluation.warnings import Caution, cautions, warnings
from penultimate.results import escape
from penultimate.results.drawing import mark_icon
from penultimate.results.exhibit import marks_of
from penultimate.results.page import Answer, Page, Section
from penultimate.results.rows import Run
from penultimate.results.text import counted, listed

STEP = 5
"""The step between possible ends of a board's scale, in per cent."""
SECTIONS = {
    "tasks": Section("Task by task"),
    "labels": Section("Several labels"),
    "confusions": Section("What they confuse"),
    "tuned": Section("Fine-tuned"),
    "readout": Section("Layer by layer"),
    "features": Section("The features"),
    "cost": Section("What it costs"),
    "foretold": Section("Transfer, foretold"),
    "classifiers": Section("As classifiers"),
    "": Section("Further exhibits"),
    "basis": Section("What it rests on"),
}
READING = (
    "The line marks the accuracy of a linear classifier on the frozen features, and the band its 95 %"
    " interval over test images. The number on the left is the network's place, or the range of places that"
    " paired tests on the same images leave open. In colour: no other network is better beyond chance."
)


def answer(run: Run) -> Answer:
    """Return the top of the page: who is ahead, and the boards of all tasks and of each."""
    found, labels = boards(run), run.labels()
    warned = tuple(f"Caution: {warning}" for warning in warnings(run))
    if not found:
        of_labels = (
            "Images have several labels each, so each label is scored by the area under its ROC curve."
        )
        return Answer(
            of_labels if run.several_labels else "No network has been tested on any task yet.", warned
        )
    whole, *single = found
    leaders: dict[str, list[str]] = {}
    for board in single:
        if len(board.standings) > 1 and len(board.leaders) == 1:
            leaders.setdefault(labels[board.leaders[0]], []).append(board.title)
    where = f"On {whole.title}" if whole.task else f"In the mean over {counted(len(single), 'task')}"
    said = f"{where}: {whole.sentence(labels)}"
    if leaders:
        ahead = "; ".join(f"{name} on {listed(titles)}" for name, titles in leaders.items())
        said += f" Ahead of all others on a single task, beyond chance: {ahead}."
    odd = cautions(run)
    drawn = "".join(picture(run, board, odd) for board in found)
    return Answer(
        said, warned, picture=f'<div class="boards">{drawn}</div><p class="more">{escape.html(READING)}</p>'
    )


def picture(run: Run, board: Board, found: list[Caution]) -> str:
    """Return a board as HTML: a line for each network, with its place, its interval and its cautions."""
    labels = run.labels()
    marks = marks_of([], list(labels))
    table = 100 * board.standings[["accuracy", "low", "high"]]
    start, end = STEP * math.floor(table["low"].min() / STEP), STEP * math.ceil(table["high"].max() / STEP)
    start = max(0, start - STEP * (start == end))
    scale = 100 / max(end - start, STEP)
    lines = []
    for slug, value, low, high in table.itertuples():
        noted = [each for each in found if each.network == slug and each.task in ("", board.task)]
        small = "".join(
            f' <small class="caution" title="{escape.html(each.text)}">{escape.html(each.short)}</small>'
            for each in noted
        )
        is_first = slug in board.leaders and len(table) > 1
        lines.append(
            f'<li data-mark="{marks[slug].key}"{" class=unbeaten" * is_first}>'
            f'<span class="place">{board.place(slug)}</span>'
            f'<span class="name">{mark_icon(marks[slug])}{escape.html(labels[slug])}{small}</span>'
            f'<span class="track" aria-hidden="true"><i style="left: {scale * (low - start):.2f}%; width:'
            f' {scale * (high - low):.2f}%"></i><b style="left: {scale * (value - start):.2f}%"></b></span>'
            f'<span class="value"><b>{value:.1f}</b> <small>{low:.1f}–{high:.1f}</small></span></li>'
        )
    images = f"{board.images:,} test images" if board.task else "the mean of their accuracies"
    every = counted(len(board.answers), "task")
    title = board.title if board.task else "Both tasks" if len(board.answers) == 2 else f"All {every}"
    ends = f'<li class="ends" aria-hidden="true"><span>{start} %</span><span>{end} %</span></li>'
    head = f"<h4>{escape.html(title)} <span>{images}</span></h4>"
    return f'<div class="board">{head}<ol>{"".join(lines)}{ends}</ol></div>'


PAGE = Page("evaluation", answer, SECTIONS, others=lambda exhibit: exhibit.of_given)
