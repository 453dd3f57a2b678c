"""Command that searches for an objective's hyperparameters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penultimate.command import (
    FLAG,
    OF_A_RUN,
    REPEATABLE,
    Command,
    load_plugins,
    notice,
    say,
    seeds,
    takes,
    tell,
    with_gpus,
)
from penultimate.errors import counted

if TYPE_CHECKING:
    from penultimate.records.tuning import Tuning


def _takes(tune: argparse.ArgumentParser) -> None:
    from penultimate.objectives.presets import SUM

    tune.add_argument(
        "objectives",
        nargs="+",
        metavar="OBJECTIVE",
        help=f"an objective, such as 'sigmoid + dropout' ({SUM}), or all of the study's: all",
    )
    tune.add_argument("--study", default="nine", help="whose data, recipe and values to start from")
    tune.add_argument(
        "--grid",
        **REPEATABLE,
        metavar="NAME=VALUES",
        help="the values to try, such as temperature=0.04,0.05 or recipe.learning_rate=0.5,1; one value fixes"
        " it; repeatable (default: the study's, or factors of two around the start)",
    )
    tune.add_argument("--product", **FLAG, help="try every combination of the grids' values")
    takes(tune, "--seeds", "--set", "--data", "--root", "--plugin", *OF_A_RUN)


def _plan_lines(plan: Tuning, epochs: int) -> list[str]:
    """Return lines on what is searched and what decides."""
    cells = sum(len(tuned.cells) for tuned in plan.objectives)
    runs = counted(cells * len(plan.seeds), "training")
    return [
        f"{counted(len(plan.objectives), 'objective')} of study {plan.study}; the holdout of {plan.source}"
        " decides, and nothing else",
        f"{counted(cells, 'cell')} with {counted(len(plan.seeds), 'seed')}"
        f" ({', '.join(map(str, plan.seeds))}) each: {runs} of {counted(epochs, 'epoch')}",
        *(["the epoch in which the mean over seeds is highest is chosen with each"] if plan.stops else []),
        *(f"  {tuned.slug}: {axis}" for tuned in plan.objectives for axis in tuned.axes),
    ]


def _choice_lines(search: Tuning) -> list[str]:
    """Return a table of all cells in which the chosen ones are marked, then the remarks on the choices."""
    from penultimate.records.tuning import accuracy_text

    lines = [("cell", "holdout top-1, %", "")]
    for tuned in search.objectives:
        lines += [
            (str(cell), accuracy_text(cell), "chosen" if cell is tuned.best else "") for cell in tuned.cells
        ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return [*table, *(f"  {remark}" for tuned in search.objectives for remark in tuned.remarks)]


def _tune(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.engine.run import run
    from penultimate.records.reading import study_folder
    from penultimate.results.page import refresh_page
    from penultimate.store import Store
    from penultimate.study.selection import load_study, located_in, restrict
    from penultimate.study.settings import override
    from penultimate.tuning.axes import parse_grids
    from penultimate.tuning.grid import run_command, search_study

    load_plugins(options)
    study = override(load_study(options.study), options.assignments)
    study = with_gpus(located_in(study, options.data, options.root), options)
    tuned = restrict(study, (), seeds(options.seeds))
    search = search_study(tuned, options.objectives, parse_grids(options.grid), options.product)
    assert search.tunes is not None
    say(*_plan_lines(search.tunes, search.main.recipe.epochs))
    display = Display(Store(options.out))
    summary = run(
        search, options.out, options.processes, display, options.line, options.on, verify=options.verify
    )
    tell(summary, refresh_page(options.out, search.name))
    found = study_folder(options.out, search.name).search()
    if found is None or not found.objectives:
        return 1
    say("", *_choice_lines(found))
    typed = (("--set", options.assignments), ("--data", options.data), ("--plugin", options.plugin))
    shared = [word for option, values in typed for value in values for word in (option, value)]
    shared += ["--root", options.root] if options.root else []
    shared += ["--out", options.out] if options.out != "runs" else []
    command = run_command(found, study, options.study, shared)
    if command:
        say(f"To train and measure what was chosen: {command}")
    lost = [one for one in found.objectives if one.best is None]
    notice(
        *(
            f"every cell of {one.slug} diverged ({counted(len(one.cells), 'cell')}), so nothing can be"
            " chosen; try other values (--grid) or a smaller learning rate (--set recipe.learning_rate=...)"
            for one in lost
        )
    )
    return 0 if summary.complete and not lost else 1


COMMANDS = (
    Command(
        "tune",
        "Search for an objective's hyperparameters on the holdout; nothing else decides.",
        _takes,
        _tune,
        True,
    ),
)
