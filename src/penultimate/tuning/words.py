"""A tuning in words: the table of choices for the terminal, and the choices as study data to import."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penultimate.errors import counted
from penultimate.objectives.presets import resolve
from penultimate.records.reading import out_option
from penultimate.records.tuning import TUNING_FILE, Tuned, Tuning, accuracy_text, budget_text

if TYPE_CHECKING:
    from penultimate.tuning.conduct import TuningPlan
    from penultimate.tuning.run import TuningResult

CHOSEN_FILE = "chosen.py"

WIDTH = 108
"""Characters of a line of the file of choices."""
HEADS = ("objective", "chosen", "holdout top-1, %", "at the start", "cells")


def kind_of(objective: str) -> tuple[str, ...]:
    """What distinguishes objectives regardless of their hyperparameters: the names of their terms.

    >>> kind_of("sigmoid + dropout(keep=0.8)")
    ('dropout', 'sigmoid')
    """
    return tuple(term.name for term in resolve(objective).terms)


def plan_lines(plan: TuningPlan) -> list[str]:
    """What is about to be done, and its cost at most."""
    study, main = plan.study, plan.study.main
    runs = sum(candidate.most_cells(plan.budget) for candidate in plan.candidates) * len(main.seeds)
    seeds = f"{counted(len(main.seeds), 'seed')} ({', '.join(map(str, main.seeds))})"
    first, *further = study.backbones
    return [
        f"{counted(len(plan.candidates), 'objective')} of study {study.name}; the holdout of {study.source}"
        " decides, and nothing else",
        f"at most {counted(plan.budget, 'cell')} an objective with {seeds} each: {counted(runs, 'run')} or"
        f" fewer, of {counted(main.recipe.epochs, 'epoch')}",
        *(f"  {candidate.slug}: {axis}" for candidate in plan.candidates for axis in candidate.axes),
        *([f"only on the first of the study's architectures, {first}"] if further else []),
    ]


def result_lines(result: TuningResult) -> tuple[list[str], list[str]]:
    """The result, and the errors: trainings that failed, objectives all of whose cells diverged."""
    summary, tuning, root = result.summary, result.tuning, result.folder.parent.parent
    done = counted(summary.computed, "step")
    lines = [f"{done} in {summary.seconds:,.0f} s" if summary.computed else "Every cell was done already."]
    if any(tuned.slug in result.slugs for tuned in tuning.objectives):
        lines += [
            *summary_lines(tuning, result.slugs),
            f"NINE, as study data: {result.folder / CHOSEN_FILE}",
            f"Every cell: penultimate show tableA1 --study {tuning.name}{out_option(root)}",
        ]
    if result.made_way:
        lines += [
            "This replaces an earlier tuning with other settings, whose cells are kept; to repeat that one:",
            *(f"  {command}" for command in commands_of(result.made_way)),
        ]
    errors = [f"failed: {step}: {reason}" for step, reason in summary.failed.items()]
    if result.unfinished:
        errors.append(f"not finished: {', '.join(result.unfinished)}; the same command tries again")
    errors += [
        f"every cell of {tuned.slug} diverged ({counted(len(tuned.cells), 'cell')}), so nothing can be"
        " chosen; try other values (--grid) or a smaller learning rate (--set recipe.learning_rate=...)"
        for tuned in tuning.objectives
        if tuned.slug in result.slugs and tuned.best is None
    ]
    return lines, errors


def commands_of(tuning: Tuning) -> tuple[str, ...]:
    """The commands that made a tuning, each once."""
    return tuple(dict.fromkeys(tuned.command for tuned in tuning.objectives))


def summary_lines(tuning: Tuning, only: Iterable[str] = ()) -> list[str]:
    """The choices as a table for the terminal, then remarks on them; `only` selects slugs."""
    wanted = set(only)
    listed = [tuned for tuned in tuning.objectives if not wanted or tuned.slug in wanted]
    lines = [HEADS]
    for tuned in listed:
        chosen = str(tuned.best) if tuned.best else "nothing: every cell diverged"
        cells = f"{len(tuned.cells)} of {tuning.budget}"
        lines.append((tuned.slug, chosen, accuracy_text(tuned.best), accuracy_text(tuned.at_start), cells))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return [*table, *(f"  {remark}" for tuned in listed for remark in tuned.remarks)]


def chosen_source(tuning: Tuning) -> str:
    """The choices as a Python file: NINE as a study lists objectives, and RECIPE_CHANGES where needed.

    Objectives of the study that were not tuned are included as they are there, and marked.
    """
    lines = {kind_of(text): _line(text, "as in the study, not tuned") for text in tuning.listed}
    lines.update({kind_of(tuned.start): _chosen(tuning, tuned) for tuned in tuning.objectives})
    parts = [_header(tuning), "NINE = (", *lines.values(), ")"]
    changed = [tuned.best for tuned in tuning.objectives if tuned.best and tuned.best.settings]
    if changed:
        parts += [
            "",
            "RECIPE_CHANGES = {",
            *(f"    {json.dumps(cell.objective)}: {json.dumps(dict(cell.settings))}," for cell in changed),
            "}",
            '"""What the choices change in the recipe, by objective: for `study.blocks.runs_by_recipe`."""',
        ]
    return "\n".join(parts) + "\n"


def _header(tuning: Tuning) -> str:
    """The docstring of the file: where the values come from."""
    remarks = [remark for tuned in tuning.objectives for remark in tuned.remarks]
    lines = [
        f"The hyperparameters that a tuning chose for study {tuning.study}: import NINE, or paste it.",
        "",
        *(line for command in commands_of(tuning) for line in _wrapped(command, "    ", "      ", " \\")),
        "",
        f"Chosen by top-1 on the holdout of {tuning.source} alone (the mean over seeds, after",
        f"{counted(tuning.recipe['epochs'], 'epoch')}), by no test set and no transfer task. The budget was",
        f"{budget_text(tuning)}. Every cell is in {TUNING_FILE}.",
        *(["The world was too small for this to be evidence of anything."] if tuning.limited else []),
        *(line for remark in remarks for line in _wrapped(remark, "- ", "  ")),
    ]
    safe = "\n".join(lines).replace('"' * 3, "'" * 3)
    return f'r"""{safe}\n"""\n'


def _wrapped(text: str, first: str, further: str, end: str = "") -> list[str]:
    """A text in lines of a page's width; `end` closes all lines but the last."""
    wrapper = textwrap.TextWrapper(WIDTH - len(end), first, further)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    lines = wrapper.wrap(text)
    return [line + end for line in lines[:-1]] + lines[-1:]


def _chosen(tuning: Tuning, tuned: Tuned) -> str:
    if tuned.best is None:
        return f"    # {tuned.slug}: every cell diverged"
    comment = f"{accuracy_text(tuned.best)} % after {len(tuned.cells)} of {tuning.budget} cells"
    return _line(tuned.best.objective, comment)


def _line(objective: str, comment: str) -> str:
    return f"    {json.dumps(objective, ensure_ascii=False)},  # {comment}"
