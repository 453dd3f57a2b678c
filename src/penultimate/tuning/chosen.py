"""The choices of a search: as a Python file that a study imports, and as the command that trains them."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Sequence

from penultimate import registry
from penultimate.errors import counted
from penultimate.records.tuning import GridCell, Number, Tuned, Tuning, accuracy_text, budget_text
from penultimate.study.selection import AND, OWN_RECIPE
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import kind_of

CHOSEN_FILE = "chosen.py"
WIDTH = 108
"""The largest number of characters in a line of the file of choices."""


def chosen_source(tuning: Tuning, command: str) -> str:
    """Return the choices as a Python file: NINE as a study lists objectives, and RECIPE_CHANGES if needed.

    Objectives of the study that were not searched are included as the study has them, and marked.
    """
    lines = {kind_of(text): _line(text, "as in the study, not tuned") for text in tuning.listed}
    lines.update({kind_of(tuned.start): _chosen(tuned) for tuned in tuning.objectives})
    parts = [_header(tuning, command), "NINE = (", *lines.values(), ")"]
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


def run_command(tuning: Tuning, study: Study, name: str, options: Sequence[str] = ()) -> str:
    """Return the command that trains what a search chose, or "" if nothing was chosen.

    A declared search has no transfer tasks; then the command runs the first study that is tuned by it. `name`
    is the study as it was typed, and `options` are those that its run shares with the search.
    """
    chosen = [tuned.best for tuned in tuning.objectives if tuned.best]
    if not chosen:
        return ""
    if not study.targets:
        studies = (registry.entry("study", one).resolve() for one in registry.names("study"))
        study = next((one for one in studies if study.name in one.tuned_by), study)
        name = study.name if study.targets else name
    recipes = {text: block.recipe for block in reversed(study.runs) for text in block.objectives}
    additions = []
    for cell in chosen:
        changes = recipe_changes(tuning, cell)
        if recipes.get(cell.objective) != study.main.recipe.changed(changes):
            own = AND.join(f"recipe.{key}={value!r}" for key, value in changes.items())
            additions += ["--add", f"{cell.objective}{OWN_RECIPE if own else ''}{own}"]
    return shlex.join(["penultimate", "run", name, *options, *additions])


def _header(tuning: Tuning, command: str) -> str:
    """Return the docstring of the file: where the values come from."""
    remarks = [remark for tuned in tuning.objectives for remark in tuned.remarks]
    trained = counted(tuning.recipe["epochs"], "epoch")
    when = f"in the epoch that is best of {trained}" if tuning.stops else f"after {trained}"
    how = (
        f"Chosen by top-1 on the holdout of {tuning.source} alone (the mean over seeds, {when}), by no test"
        f" set and no transfer task: {budget_text(tuning)}."
    )
    lines = [
        f"The hyperparameters that a search chose for study {tuning.study}: import NINE, or paste it.",
        "",
        *_wrapped(command, "    ", "      ", " \\"),
        "",
        *_wrapped(how, "", ""),
        f"Every cell: penultimate show tableA1 --study {tuning.name}",
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


def _chosen(tuned: Tuned) -> str:
    if tuned.best is None:
        return f"    # {tuned.slug}: every cell diverged"
    count = counted(len(tuned.cells), "cell")
    return _line(tuned.best.objective, f"{accuracy_text(tuned.best)} % on the holdout, of {count}")


def _line(objective: str, comment: str) -> str:
    return f"    {json.dumps(objective, ensure_ascii=False)},  # {comment}"
