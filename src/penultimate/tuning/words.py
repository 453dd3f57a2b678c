"""A tuning in words, for the terminal: the plan, the table of choices, and the failures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from penultimate import registry
from penultimate.errors import counted
from penultimate.records.reading import out_option
from penultimate.records.tuning import Tuning, accuracy_text
from penultimate.study.selection import AND, OWN_RECIPE
from penultimate.study.spec import Study
from penultimate.tuning.chosen import CHOSEN_FILE, commands_of, recipe_changes
from penultimate.tuning.conduct import TuningPlan
from penultimate.tuning.run import TuningResult

HEADS = ("objective", "chosen", "holdout top-1, %", "at the start", "cells")


def plan_lines(plan: TuningPlan) -> list[str]:
    """Return lines that say what will be done, and what it costs at most."""
    study, main = plan.study, plan.study.main
    runs = sum(candidate.most_cells(plan) for candidate in plan.candidates) * len(main.seeds)
    seeds = f"{counted(len(main.seeds), 'seed')} ({', '.join(map(str, main.seeds))})"
    first, *further = study.backbones
    return [
        f"{counted(len(plan.candidates), 'objective')} of study {study.name}; the holdout of {study.source}"
        " decides, and nothing else",
        f"at most {counted(plan.budget, 'cell')} an objective with {seeds} each: {counted(runs, 'run')} or"
        f" fewer, of {counted(main.recipe.epochs, 'epoch')}",
        *(["the epoch in which the mean over seeds is highest is chosen with each"] if plan.stops else []),
        *(f"  {candidate.slug}: {axis}" for candidate in plan.candidates for axis in candidate.axes),
        *([f"only on the first of the study's architectures, {first}"] if further else []),
    ]


def result_lines(result: TuningResult) -> tuple[list[str], list[str]]:
    """Return the result and the errors (failed trainings, objectives whose every cell diverged), as lines."""
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


def run_with_choice(result: TuningResult, study: Study, name: str, options: Sequence[str] = ()) -> str:
    """Return the command that trains what a tuning chose, or "" where nothing was chosen.

    A search has no transfer tasks; then the command runs the first study that is tuned by it. `name` is the
    study as it was typed, and `options` are those that its run shares with the search.
    """
    chosen = [tuned.best for tuned in result.tuning.objectives if tuned.best and tuned.slug in result.slugs]
    if not chosen:
        return ""
    if not study.targets:
        studies = (registry.entry("study", one).resolve() for one in registry.names("study"))
        tuned_by = [one for one in studies if study.name in one.tuned_by]
        study = tuned_by[0] if tuned_by else study
        name = study.name
    recipes = {text: block.recipe for block in reversed(study.runs) for text in block.objectives}
    additions = []
    for cell in chosen:
        changes = recipe_changes(result.tuning, cell)
        if recipes.get(cell.objective) != study.main.recipe.changed(changes):
            own = AND.join(f"recipe.{key}={value!r}" for key, value in changes.items())
            additions += ["--add", f"{cell.objective}{OWN_RECIPE if own else ''}{own}"]
    return shlex.join(["penultimate", "run", name, *options, *additions])


def summary_lines(tuning: Tuning, only: Iterable[str] = ()) -> list[str]:
    """Return the choices as a table for the terminal, then remarks on them; `only` selects slugs."""
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
