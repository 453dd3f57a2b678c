"""Parts that commands share: their declaration, their output, and options that several of them take."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from penultimate.console import folded, terminal_width
from penultimate.errors import RequestError, counted, legible

if TYPE_CHECKING:
    from penultimate.engine.observer import Summary
    from penultimate.engine.plan import Plan
    from penultimate.records.reading import StudyFolder
    from penultimate.study.spec import Study


PAGES = "pages"
"""The folder of a store in which pages of several studies lie, each in a folder of its own."""


@dataclass(frozen=True)
class Command:
    """Subcommand: its name, its line of help, a function that adds its options, and a function that runs it.

    A command that `goes_on` keeps what it has done when it is stopped; the same command then continues it.
    """

    name: str
    text: str
    takes: Callable[[argparse.ArgumentParser], None]
    do: Callable[[argparse.Namespace], int]
    goes_on: bool = False


def say(*lines: object, sep: str = "\n", file: TextIO | None = None) -> None:
    """Print text, folded to the width of a terminal, without characters that could upset it."""
    text, columns = legible(sep.join(map(str, lines))), terminal_width(file)
    print(text if columns is None else folded(text, columns), file=file)


def say_as_it_is(*lines: object) -> None:
    """Print text that is meant to be copied, or read by a program: no line is folded."""
    print(legible("\n".join(map(str, lines))))


def load_plugins(options: argparse.Namespace) -> None:
    """Load the files named by --plugin."""
    from penultimate.plugins import load_plugin

    for file in options.plugin:
        load_plugin(file)


def check_processes(options: argparse.Namespace) -> None:
    """Raise RequestError if --processes is less than one."""
    if options.processes is not None and options.processes < 1:
        raise RequestError(f"--processes must be at least 1, not {options.processes}")


def seeds(text: str | None) -> list[int]:
    """Return the numbers in "0,1,2" or "0-7"; raises RequestError for any other text."""
    if text is None:
        return []
    from penultimate.study.fields import MOST_SEEDS

    listed: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise RequestError(f"--seeds wants numbers such as 0,1,2 or 0-7; got '{text}'") from None
        if not numbers:
            raise RequestError(f"--seeds {text}: '{part.strip()}' holds no seed; write {last}-{first}")
        listed.extend(numbers[: MOST_SEEDS + 1])
        if len(listed) > MOST_SEEDS:
            raise RequestError(f"--seeds {text}: more than {MOST_SEEDS:,} seeds; give fewer")
    return listed


def tell(summary: Summary, report: Path) -> None:
    """Print what a run computed, which steps failed, and where its page is."""
    from penultimate.plugins import loaded
    from penultimate.progress import seconds_text

    if summary.computed or summary.failed:
        done = f"{counted(summary.computed, 'step')} in {seconds_text(summary.seconds)}"
        say(f"{done}, {summary.cached} done before")
    else:
        say("Everything is done already.")
    for step_id, reason in summary.diverged.items():
        say(f"diverged: {step_id}: {reason}")
    for step_id, reason in summary.failed.items():
        log = report.parent / f"failed-{step_id}.log"
        say(f"failed: {step_id}: {reason}{f' (log: {log})' if log.is_file() else ''}", file=sys.stderr)
    if summary.failed:
        skipped = counted(len(summary.skipped), "step")
        left = f"left out because of these: {skipped}; " if summary.skipped else ""
        say(f"{left}the same command tries again", file=sys.stderr)
        for plugin in loaded():
            say(f"To check the plug-in: penultimate check {plugin.path}", file=sys.stderr)
    say(f"Report: {report}")


def write_page(out: str, study: str, to: str | None) -> Path:
    """Write a study's page, into its folder unless `to` names another place, and return its path."""
    from penultimate.results import page, refreshing, rows

    if to is None:
        return refreshing.refresh_page(out, study, again=True)
    return page.write_page(rows.read_run(out, study), to)[0]


def write_joint_page(out: str, studies: Sequence[str], to: str | None) -> Path:
    """Write one page of several studies, into a folder of its own unless `to` names another place."""
    from penultimate.results import page, rows
    from penultimate.study.selection import own_name

    path = Path(to) if to is not None else Path(out) / PAGES / own_name("-".join(studies)) / "report.html"
    return page.write_page(rows.read_run(out, ",".join(studies)), path)[0]


def folder_of(out: str, study: str) -> StudyFolder:
    """Return the folder of the named study, or of the one that was run last."""
    from penultimate.records.reading import study_folder

    return study_folder(out, study)


def verifies(parser: argparse.ArgumentParser) -> None:
    """Add the option --verify to a command."""
    parser.add_argument(
        "--verify",
        action="store_true",
        help="first check every file of every finished step by its digest, and recompute what is damaged",
    )


def takes_settings(parser: argparse.ArgumentParser) -> None:
    """Add the option --set to a command."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        dest="assignments",
        help="change a setting, such as recipe.epochs=28; repeatable; --set --help lists them",
    )


def takes_data(parser: argparse.ArgumentParser) -> None:
    """Add the options --data and --root, which say where data lie, to a command."""
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="where a published data set of the study lies (penultimate list datasets); repeatable",
    )
    parser.add_argument(
        "--root", default="", metavar="FOLDER", help="where the others lie, each in its own folder"
    )


def takes_plugins(parser: argparse.ArgumentParser) -> None:
    """Add the option --plugin to a command."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file of plug-ins, or examples:NAME (such as examples:focal) for an objective that"
        " comes with the package; repeatable",
    )


def takes_out(parser: argparse.ArgumentParser) -> None:
    """Add the option --out to a command."""
    parser.add_argument("--out", default="runs", help="the folder of all results (default: runs)")


def takes_json(parser: argparse._ActionsContainer) -> None:
    """Add the option --json to a command."""
    parser.add_argument("--json", action="store_true", help="as JSON, for other programs")


def takes_engine(parser: argparse.ArgumentParser) -> None:
    """Add the option --on to a command."""
    engines = "local (default), ray, ray:HOST:PORT (or ray:auto) for a cluster, or MODULE:CLASS"
    parser.add_argument("--on", default="local", metavar="ENGINE", help=engines)


def takes_gpus(parser: argparse.ArgumentParser, usual: str = "what the study says") -> None:
    """Add the option --gpus to a command."""
    parser.add_argument(
        "--gpus",
        type=float,
        metavar="SHARE",
        help="the share of a GPU of a step that trains or runs a network: 1, or 0.1 for ten side by side on"
        f" each; 4 for four that share a training; 0 for the CPU (default: {usual})",
    )


def with_gpus(study: Study, options: argparse.Namespace) -> Study:
    """Return a study whose steps take the share of a GPU given by --gpus, if it was given."""
    return study if options.gpus is None else dataclasses.replace(study, gpus=options.gpus)


def takes_processes(parser: argparse.ArgumentParser) -> None:
    """Add the option --processes to a command."""
    parser.add_argument("--processes", type=int, help="worker processes (default: one for each core)")


def tell_plan(study: Study, options: argparse.Namespace, as_json: bool = False) -> int:
    """Print which steps of a study are done, and what the rest is expected to cost."""
    from penultimate.engine.plan import plan
    from penultimate.engine.schedule import side_by_side
    from penultimate.files import size_text
    from penultimate.progress import seconds_text

    made = plan(study, options.out)
    processes = options.processes or side_by_side(study.threads)
    if as_json:
        print(json.dumps(_plan_as_json(study, made, processes), indent=2))
        return 0
    say(f"{study.name}: {' '.join(study.title.split())}")
    say(f"{'step':<18} {'done':>6} {'of':>6} {'each':>9} {'left':>9}")
    for cost in made.costs:
        each = "unknown" if cost.seconds_each is None else _each(cost.seconds_each)
        left = "unknown" if cost.seconds_left is None else seconds_text(cost.seconds_left)
        say(f"{cost.name:<18} {cost.done:>6} {cost.total:>6} {each:>9} {left:>9}")
    steps = len(made.graph.steps) - len(made.done)
    counts = [counted(steps, "step")]
    if made.trainings:
        counts.insert(0, f"{counted(made.trainings, 'training')} of {made.training_steps:,} batches")
    if made.bytes_left:
        counts.append(f"about {size_text(made.bytes_left)} of files")
    wall = seconds_text(made.seconds_left / processes)
    more = f", and {counted(made.unknown, 'step')} whose cost shows when one is done" if made.unknown else ""
    say(
        f"left: {', '.join(counts)}; {seconds_text(made.seconds_left)} of work, about {wall} on {processes}"
        f" {'process' if processes == 1 else 'processes'}{more}"
    )
    data = [step.config["name"] for step in made.graph.steps.values() if step.name == "data"]
    nowhere = [name for name in data if name in study.nowhere]
    if nowhere:
        say(
            f"The location of {', '.join(nowhere)} was not given (--data NAME=FOLDER, --root FOLDER): sizes"
            " are as published, and steps that are done already are not recognised."
        )
    return 0


def _each(seconds: float) -> str:
    """Return the time of a step, with tenths of seconds if it takes less than a minute."""
    from penultimate.progress import seconds_text

    return f"{seconds:.1f} s" if seconds < 60 else seconds_text(seconds)


def _plan_as_json(study: Study, made: Plan, processes: int) -> dict[str, object]:
    """Return a plan for other programs; a cost that is unknown is null."""
    kinds = [{**dataclasses.asdict(cost), "seconds_left": cost.seconds_left} for cost in made.costs]
    return {
        "study": study.name,
        "title": " ".join(study.title.split()),
        "kinds": kinds,
        "steps_left": len(made.graph.steps) - len(made.done),
        "steps_of_unknown_cost": made.unknown,
        "trainings_left": made.trainings,
        "batches_left": made.training_steps,
        "bytes_left": made.bytes_left,
        "seconds_left": made.seconds_left,
        "processes": processes,
    }
