"""Command that searches for an objective's hyperparameters."""

from __future__ import annotations

import argparse
import sys

from penultimate.command import (
    Command,
    check_processes,
    load_plugins,
    say,
    seeds,
    takes_data,
    takes_engine,
    takes_gpus,
    takes_out,
    takes_plugins,
    takes_processes,
    takes_settings,
    verifies,
    with_gpus,
)


def _takes(tune: argparse.ArgumentParser) -> None:
    from penultimate.objectives.presets import SUM

    tune.add_argument(
        "objectives",
        nargs="+",
        metavar="OBJECTIVE",
        help=f"an objective, such as 'sigmoid + dropout' ({SUM}), or all of the study's: all",
    )
    tune.add_argument("--study", default="nine", help="whose data, recipe and values to start from")
    tune.add_argument("--seeds", help="the seeds of every cell, such as 0,1 (default: the study's)")
    tune.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="the values to try first, such as temperature=0.04,0.05 or recipe.learning_rate=0.5,1; one value"
        " fixes it; repeatable (default: factors of two around the start)",
    )
    tune.add_argument("--budget", type=int, help="cells an objective may take, the same for all (default: 9)")
    tune.add_argument("--product", action="store_true", help="try every combination of the grids' values")
    tune.add_argument("--expansions", type=int, help="how often a grid is expanded at its edge (default: 2)")
    takes_settings(tune)
    takes_data(tune)
    takes_out(tune)
    verifies(tune)
    takes_processes(tune)
    takes_engine(tune)
    takes_gpus(tune)
    takes_plugins(tune)


def _tune(options: argparse.Namespace) -> int:
    from penultimate.store import Store
    from penultimate.study.selection import load_study, located_in, restrict
    from penultimate.study.settings import override
    from penultimate.tuning.axes import parse_grids
    from penultimate.tuning.conduct import plan_tuning
    from penultimate.tuning.display import TuningDisplay
    from penultimate.tuning.run import tune
    from penultimate.tuning.words import plan_lines, result_lines, run_with_choice

    check_processes(options)
    load_plugins(options)
    study = override(load_study(options.study), options.assignments)
    study = with_gpus(located_in(study, options.data, options.root), options)
    planned = plan_tuning(
        restrict(study, (), seeds(options.seeds)),
        options.objectives,
        parse_grids(options.grid),
        options.budget,
        options.expansions,
        options.product,
    )
    say(*plan_lines(planned))
    display = TuningDisplay(Store(options.out))
    result = tune(planned, options.out, options.processes, display, options.line, options.on, options.verify)
    lines, errors = result_lines(result)
    say(*lines)
    typed = (("--set", options.assignments), ("--data", options.data), ("--plugin", options.plugin))
    shared = [word for option, values in typed for value in values for word in (option, value)]
    shared += ["--root", options.root] if options.root else []
    shared += ["--out", options.out] if options.out != "runs" else []
    command = run_with_choice(result, study, options.study, shared)
    if command:
        say(f"To train and measure what was chosen: {command}")
    if errors:
        say(*(f"penultimate: {error}" for error in errors), file=sys.stderr)
    return 1 if errors else 0


COMMANDS = (
    Command(
        "tune",
        "Search for an objective's hyperparameters on the holdout; nothing else decides.",
        _takes,
        _tune,
        True,
    ),
)
