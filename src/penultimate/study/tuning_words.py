"""A tuning in words: the table of choices for the terminal, and the choices as study data to import."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penultimate.objectives.presets import resolve
from penultimate.study.tuning_record import TUNING_FILE, Cell, Tuned, Tuning

if TYPE_CHECKING:
    from penultimate.study.tuning import TuningPlan
    from penultimate.study.tuning_running import TuningResult

CHOSEN_FILE = "chosen.py"

WIDTH = 108
"""Characters of a line of the file of choices."""
HEADS = ("objective", "chosen", "holdout top-1, %", "at the start", "cells")


def kind_of(objective: str) -> tuple[str, ...]:
    """What tells objectives apart when their hyperparameters do not: the names of their terms.

    >>> kind_of("sigmoid + dropout(keep=0.8)")
    ('dropout', 'sigmoid')
    """
    return tuple(term.name for term in resolve(objective).terms)


def accuracy_text(cell: Cell | None) -> str:
    """The mean holdout top-1 of a cell in per cent, with its standard error where there is one."""
    if cell is None:
        return "–"
    if not math.isfinite(cell.mean):
        return "diverged"
    error = cell.standard_error
    return f"{100 * cell.mean:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")


def budget_text(tuning: Tuning) -> str:
    """What every objective was given."""
    seeds = ", ".join(map(str, tuning.seeds))
    noun = "seed" if len(tuning.seeds) == 1 else "seeds"
    return f"at most {counted(tuning.budget, 'cell')} an objective, each trained with {noun} {seeds}"


def plan_lines(plan: TuningPlan) -> list[str]:
    """What is about to be done, and what it may cost."""
    study = plan.study
    runs = sum(one.most_cells(plan.budget) for one in plan.candidates) * len(study.seeds)
    cells = counted(plan.budget, "cell")
    seeds = f"{counted(len(study.seeds), 'seed')} ({', '.join(map(str, study.seeds))})"
    lines = [
        f"{counted(len(plan.candidates), 'objective')} of study {study.name}; the holdout of {study.source}"
        " decides, and nothing else",
        f"at most {cells} an objective with {seeds} each: {counted(runs, 'run')} or fewer, of"
        f" {counted(study.recipe.epochs, 'epoch')}",
    ]
    for one in plan.candidates:
        for axis in one.axes:
            lines.append(f"  {one.slug}: {axis.key} from {', '.join(map(repr, axis.grid))}")
    if len(study.backbones) > 1:
        lines.append(f"only on the first of the study's backbones, {study.backbones[0]}")
    return lines


def result_lines(result: TuningResult) -> tuple[list[str], list[str]]:
    """What came out, and the errors: trainings that failed, objectives of which every cell diverged."""
    summary, tuning = result.summary, result.tuning
    done = counted(summary.computed, "step")
    lines = [f"{done} in {summary.seconds:,.0f} s" if summary.computed else "Every cell was done already."]
    shown = [one.slug for one in tuning.objectives if one.slug in result.slugs]
    if shown:
        lines += [*summary_lines(tuning, shown), f"NINE, as study data: {result.folder / CHOSEN_FILE}"]
        lines.append(f"Every cell: penultimate show tableA1 --study {tuning.name}")
    if result.made_way:
        lines.append(
            "This takes the place of an earlier tuning with other settings, whose cells are kept; again by:"
        )
        lines += [f"  {command}" for command in commands_of(result.made_way)]
    errors = [f"failed: {step}: {reason}" for step, reason in summary.failed.items()]
    if result.unfinished:
        errors.append(f"not finished: {', '.join(result.unfinished)}; the same command tries again")
    for slug in result.without_choice:
        one = tuning.of(slug)
        assert one is not None
        errors.append(
            f"every cell of {slug} diverged ({counted(len(one.cells), 'cell')}), so nothing can be chosen;"
            " try other values (--grid) or a smaller learning rate (--set recipe.learning_rate=...)"
        )
    return lines, errors


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "cell"), counted(9, "cell")
    ('1 cell', '9 cells')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def commands_of(tuning: Tuning) -> tuple[str, ...]:
    """The commands by which a tuning was made, each once."""
    return tuple(dict.fromkeys(one.command for one in tuning.objectives))


def summary_lines(tuning: Tuning, only: Iterable[str] = ()) -> list[str]:
    """The choices as a table for the terminal, then what has to be said about them; `only` some slugs."""
    wanted = set(only)
    shown = [one for one in tuning.objectives if not wanted or one.slug in wanted]
    lines = [HEADS, *(_summary(tuning, one) for one in shown)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADS))]
    table = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return [*table, *(f"  {remark}" for one in shown for remark in one.remarks)]


def _summary(tuning: Tuning, one: Tuned) -> tuple[str, ...]:
    chosen = str(one.best) if one.best else "nothing: every cell diverged"
    cells = f"{len(one.cells)} of {tuning.budget}"
    return one.slug, chosen, accuracy_text(one.best), accuracy_text(one.at_start), cells


def chosen_source(tuning: Tuning) -> str:
    """The choices as a Python file: NINE, the objectives as a study lists them, and ADJUSTMENTS where needed.

    Objectives of the study that were not tuned stand there as the study has them, and are marked so.
    """
    tuned = {kind_of(one.start): one for one in tuning.objectives}
    lines = []
    for text in tuning.listed:
        one = tuned.pop(kind_of(text), None)
        lines.append(_line(text, "as in the study, not tuned") if one is None else _chosen(tuning, one))
    lines += [_chosen(tuning, one) for one in tuned.values()]
    recipes = {
        one.best.objective: dict(one.best.settings)
        for one in tuning.objectives
        if one.best is not None and one.best.settings
    }
    parts = [_header(tuning), "NINE = (", *lines, ")"]
    if recipes:
        told = [f"    {json.dumps(key)}: {json.dumps(value)}," for key, value in recipes.items()]
        parts += [
            "",
            "ADJUSTMENTS = {",
            *told,
            "}",
            '"""What the choices change in the recipe, by objective."""',
        ]
    return "\n".join(parts) + "\n"


def _header(tuning: Tuning) -> str:
    """The docstring of the file: how the values came."""
    lines = [
        f"The hyperparameters that a tuning chose for study {tuning.study}: import NINE, or paste it.",
        "",
        *(line for command in commands_of(tuning) for line in _wrapped(command, "    ", "      ", " \\")),
        "",
        f"Chosen by top-1 on the holdout of {tuning.source} alone (the mean over seeds, after",
        f"{counted(tuning.recipe['epochs'], 'epoch')}), by no test set and no transfer task. The budget was",
        f"{budget_text(tuning)}. Every cell is in {TUNING_FILE}.",
        *(["The world was too small for this to be evidence of anything."] if tuning.limited else []),
        *(line for one in tuning.objectives for text in one.remarks for line in _wrapped(text, "- ", "  ")),
    ]
    safe = "\n".join(lines).replace('"' * 3, "'" * 3)
    return f'r"""{safe}\n"""\n'


def _wrapped(text: str, first: str, further: str, end: str = "") -> list[str]:
    """A text in lines of a page's width; `end` stands at the end of all but the last."""
    lines = textwrap.wrap(
        text,
        WIDTH - len(end),
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line + end for line in lines[:-1]] + lines[-1:]


def _chosen(tuning: Tuning, one: Tuned) -> str:
    if one.best is None:
        return f"    # {one.slug}: every cell diverged"
    told = f"{accuracy_text(one.best)} % after {len(one.cells)} of {tuning.budget} cells"
    return _line(one.best.objective, told)


def _line(objective: str, comment: str) -> str:
    return f"    {json.dumps(objective, ensure_ascii=False)},  # {comment}"
