"""Studies: planned, and run."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.commands.shared import (
    Command,
    check_processes,
    load_plugins,
    say,
    seeds,
    takes_data,
    takes_no_timing,
    takes_out,
    takes_plugins,
    takes_processes,
    takes_settings,
    tell,
    verifies,
)
from penultimate.errors import RequestError, counted, shortened

if TYPE_CHECKING:
    from penultimate.study.spec import Study


def _takes_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", help="a study's name (penultimate list studies) or the path of a study file")
    takes_out(parser)
    parser.add_argument("--seeds", help="other seeds, such as 0,1,2 or 0-7")
    parser.add_argument(
        "--only", help="some of the study's objectives, such as softmax,sigmoid, and those of plug-ins"
    )
    takes_settings(parser)
    takes_data(parser)
    takes_processes(parser)
    takes_plugins(parser)
    parser.add_argument(
        "--gpus",
        type=float,
        metavar="SHARE",
        help="the share of a GPU of a step that trains or runs a network: 1, or 0.1 for ten side by side on"
        " each; 4 for four that share a training; 0 for the CPU (default: what the study says)",
    )


def _takes_plan(parser: argparse.ArgumentParser) -> None:
    _takes_study(parser)
    takes_no_timing(parser)


def _takes_run(parser: argparse.ArgumentParser) -> None:
    _takes_study(parser)
    verifies(parser)
    engines = "local (default), ray, ray:HOST:PORT (or ray:auto) for a cluster, or MODULE:CLASS"
    parser.add_argument("--on", default="local", metavar="ENGINE", help=engines)


def _study(options: argparse.Namespace) -> Study:
    from penultimate.objectives.presets import few_classes, resolve
    from penultimate.study.evaluation import located_in
    from penultimate.study.selection import changed, load_study, names_in

    load_plugins(options)
    only = list(dict.fromkeys(names_in(options.only or "")))
    if options.only is not None and not only:
        raise RequestError("--only names no objective; without it, all are run")
    study = changed(load_study(options.study), options.assignments, only, seeds(options.seeds))
    study = located_in(study, options.data, options.root)
    for term in (term for text in study.objectives for term in resolve(text).terms):
        told = few_classes(term, study.card(study.source).classes)
        if told:
            say(f"penultimate: {told}", file=sys.stderr)
    return study if options.gpus is None else dataclasses.replace(study, gpus=options.gpus)


def _tell_of_plugins(study: Study) -> None:
    """Say of each plug-in file what the study does not use of it."""
    from penultimate.plugins import loaded
    from penultimate.study.usage import not_used

    for said in filter(None, (not_used(study, plugin) for plugin in loaded())):
        say(f"penultimate: {said}", file=sys.stderr)


def _run(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.engine.run import run
    from penultimate.report import refresh_page
    from penultimate.store import Store

    check_processes(options)
    study = _study(options)
    _tell_of_plugins(study)
    display = Display(Store(options.out))
    summary = run(
        study, options.out, options.processes, display, options.line, options.on, verify=options.verify
    )
    report = refresh_page(options.out, study.name)
    if options.verify:
        print(f"Every file of {counted(summary.cached, 'finished step')} is as it was written.")
    tell(summary, report)
    return 0 if summary.complete else 1


def _plan(options: argparse.Namespace) -> int:
    check_processes(options)
    study = _study(options)
    _tell_of_plugins(study)
    return tell_plan(study, options)


def tell_plan(study: Study, options: argparse.Namespace) -> int:
    """Say what of a study is done, and what the rest is expected to cost.

    What is timed for it is said on standard error before it is, for a large network takes half a minute.
    """
    from penultimate.engine.display import seconds_text
    from penultimate.engine.forecast.room import expect_room
    from penultimate.engine.forecast.timings import Timings
    from penultimate.engine.run import plan
    from penultimate.engine.schedule import side_by_side
    from penultimate.files import size_text

    made = plan(study, options.out, Timings(options.timing, _say_on_stderr))
    say(f"{study.name}: {' '.join(study.title.split())}")
    say(f"{'step':<18} {'done':>6} {'of':>6} {'each':>9} {'left':>9}")
    for cost in made.costs:
        sign = "~" if cost.is_guess else ""
        each = "unknown" if cost.seconds_each is None else f"{sign}{cost.seconds_each:.1f} s"
        left = "unknown" if cost.seconds_left is None else seconds_text(cost.seconds_left)
        say(f"{cost.name:<18} {cost.done:>6} {cost.total:>6} {each:>9} {left:>9}")
    if any(cost.is_guess for cost in made.costs):
        say("~ is a guess: one batch of each architecture was timed on this machine, with first weights")
    if made.unknown and not options.timing:
        say("what is unknown can be timed on this machine: the same command without --no-timing")
    steps = len(made.graph.steps) - len(made.done)
    counts = [counted(steps, "step")]
    if made.trainings:
        counts.insert(0, f"{counted(made.trainings, 'training')} of {made.training_steps:,} batches")
    counts.append(f"{'' if made.bytes_are_whole else 'at least '}{size_text(made.bytes_left)} of files")
    processes = options.processes or side_by_side(study.threads)
    wall = seconds_text(made.seconds_left / processes)
    more = f", and {counted(made.unknown, 'step')} of unknown cost" if made.unknown else ""
    say(
        f"left: {', '.join(counts)}; {seconds_text(made.seconds_left)} of work, about {wall} on {processes}"
        f" {'process' if processes == 1 else 'processes'}{more}"
    )
    todo = [step for step_id, step in made.graph.steps.items() if step_id not in made.done]
    try:
        expect_room(study, todo, Path(options.out), min(processes, steps))
    except RequestError as error:
        say(f"It would not start here: {error}")
    data = [step.config["name"] for step in made.graph.steps.values() if step.name == "data"]
    nowhere = [name for name in data if name in study.nowhere]
    if nowhere:
        say(
            "It is not said where these lie, so their sizes are as published, and what is done is not known:"
            f" {', '.join(nowhere)} (--data NAME=FOLDER, --root FOLDER)"
        )
    return 0


def _say_on_stderr(text: str) -> None:
    say(f"penultimate: {text}; it is kept, and --no-timing plans without it", file=sys.stderr)


def settings_help(arguments: Sequence[str]) -> int:
    """The settings of the study that is named before `--set --help`; of quickstart where none is."""
    from penultimate.study.selection import load_study
    from penultimate.study.settings import settings

    command, study, *_ = (*arguments, "quickstart")
    study = study if command in ("run", "plan") and not study.startswith("-") else "quickstart"
    say(
        f"What --set changes, with the values of {study}; of one arm alone: ARM.SETTING=VALUE.",
        *(f"  {shortened(line, 110)}" for line in settings(load_study(study))),
    )
    return 0


COMMANDS = (
    Command("run", "Run a study: do what is not done yet, then write its report.", _takes_run, _run, True),
    Command(
        "plan",
        "Show a study's steps, which of them are done, and what the rest is expected to cost.",
        _takes_plan,
        _plan,
    ),
)
