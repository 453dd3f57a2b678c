"""The choices of a tuning as a Python file that a study imports."""

from __future__ import annotations

import json
import textwrap

from penultimate.errors import counted
from penultimate.records.tuning import (
    TUNING_FILE,
    GridCell,
    Number,
    Tuned,
    Tuning,
    accuracy_text,
    budget_text,
)
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import kind_of

CHOSEN_FILE = "chosen.py"
WIDTH = 108
"""The largest number of characters in a line of the file of choices."""


def commands_of(tuning: Tuning) -> tuple[str, ...]:
    """Return the commands that made a tuning, each once."""
    return tuple(dict.fromkeys(tuned.command for tuned in tuning.objectives))


def chosen_source(tuning: Tuning) -> str:
    """Return the choices as a Python file: NINE as a study lists objectives, and RECIPE_CHANGES if needed.

    Objectives of the study that were not tuned are included as the study has them, and marked.
    """
    lines = {kind_of(text): _line(text, "as in the study, not tuned") for text in tuning.listed}
    lines.update({kind_of(tuned.start): _chosen(tuning, tuned) for tuned in tuning.objectives})
    parts = [_header(tuning), "NINE = (", *lines.values(), ")"]
    best = [tuned.best for tuned in tuning.objectives if tuned.best]
    changed = {cell.objective: changes for cell in best if (changes := recipe_changes(tuning, cell))}
    if changed:
        parts += [
            "",
            "RECIPE_CHANGES = {",
            *(
                f"    {json.dumps(objective)}: {json.dumps(changes)},"
                for objective, changes in changed.items()
            ),
            "}",
            '"""What the choices change in the recipe, by objective: for `study.blocks.runs_by_recipe`."""',
        ]
    return "\n".join(parts) + "\n"


def recipe_changes(tuning: Tuning, cell: GridCell) -> dict[str, Number]:
    """Return what a cell changes in the recipe of its search, the epoch at which it is to stop among it."""
    changes = dict(cell.settings)
    if tuning.stops and cell.peak_epoch is not None:
        changes |= Recipe(**tuning.recipe).changed(changes).stopped_after(cell.peak_epoch)
    return changes


def _header(tuning: Tuning) -> str:
    """Return the docstring of the file: where the values come from."""
    remarks = [remark for tuned in tuning.objectives for remark in tuned.remarks]
    trained = counted(tuning.recipe["epochs"], "epoch")
    when = ("in the epoch", f"that is best of {trained}") if tuning.stops else ("after", trained)
    lines = [
        f"The hyperparameters that a tuning chose for study {tuning.study}: import NINE, or paste it.",
        "",
        *(line for command in commands_of(tuning) for line in _wrapped(command, "    ", "      ", " \\")),
        "",
        f"Chosen by top-1 on the holdout of {tuning.source} alone (the mean over seeds, {when[0]}",
        f"{when[1]}), by no test set and no transfer task. The budget was",
        f"{budget_text(tuning)}. Every cell is in {TUNING_FILE}.",
        *(["The world was too small for this to be evidence of anything."] if tuning.limited else []),
        *(line for remark in remarks for line in _wrapped(remark, "- ", "  ")),
    ]
    safe = "\n".join(lines).replace('"' * 3, "'" * 3)
    return f'r"""{safe}\n"""\n'


def _wrapped(text: str, first: str, further: str, end: str = "") -> list[str]:
    """Return a text as lines of WIDTH characters at most; `end` closes all lines but the last."""
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
