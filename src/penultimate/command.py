"""Parts that commands share: their declaration, their output, and options that several of them take."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from penultimate.console import folded, terminal_width
from penultimate.errors import RequestError, counted, legible

if TYPE_CHECKING:
    from penultimate.engine.observer import Summary
    from penultimate.study.spec import Study


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


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return int(text)


FLAG: dict[str, Any] = {"action": "store_true"}
REPEATABLE: dict[str, Any] = {"action": "append", "default": []}
OPTIONS: dict[str, dict[str, Any]] = {
    "--out": {"default": "runs", "help": "the folder of all results (default: runs)"},
    "--json": {**FLAG, "help": "as JSON, for other programs"},
    "--processes": {"type": _positive, "help": "worker processes (default: one for each core)"},
    "--on": {
        "default": "local",
        "metavar": "ENGINE",
        "help": "local (default), ray, ray:HOST:PORT (or ray:auto) for a cluster, or MODULE:CLASS",
    },
    "--gpus": {
        "type": float,
        "metavar": "SHARE",
        "help": "the share of a GPU of a step that trains or runs a network: 1, or 0.1 for ten side by side"
        " on each; 4 for four that share a training; 0 for the CPU (default: what the study says, or 0)",
    },
    "--verify": {
        **FLAG,
        "help": "first check every file of every finished step by its digest, and recompute what is damaged",
    },
    "--set": {
        **REPEATABLE,
        "metavar": "SETTING=VALUE",
        "dest": "assignments",
        "help": "change a setting, such as recipe.epochs=28; repeatable; --set --help lists them",
    },
    "--seeds": {"help": "other seeds, such as 0,1,2 or 0-7 (default: the study's)"},
    "--data": {
        **REPEATABLE,
        "metavar": "NAME=FOLDER",
        "help": "where a published data set of the study lies (penultimate list datasets); repeatable",
    },
    "--root": {
        "default": "",
        "metavar": "FOLDER",
        "help": "where the others lie, each in its own folder",
    },
    "--plugin": {
        **REPEATABLE,
        "metavar": "FILE",
        "help": "a Python file of plug-ins, or examples:NAME (such as examples:focal) for an objective that"
        " comes with the package; repeatable",
    },
    "--plan": {**FLAG, "help": "only say what would be done, and how long it takes"},
}
"""The options that several commands have."""
OF_A_RUN = ("--out", "--processes", "--on", "--gpus", "--verify")


def takes(parser: argparse._ActionsContainer, *options: str) -> None:
    """Add options of OPTIONS to a command."""
    for option in options:
        parser.add_argument(option, **OPTIONS[option])


def say(*lines: object, sep: str = "\n", file: TextIO | None = None) -> None:
    """Print text, folded to the width of a terminal, without characters that could upset it."""
    text, columns = legible(sep.join(map(str, lines))), terminal_width(file)
    print(text if columns is None else folded(text, columns), file=file)


def say_as_it_is(*lines: object) -> None:
    """Print text that is meant to be copied, or read by a program: no line is folded."""
    print(legible("\n".join(map(str, lines))))


def notice(*sentences: object) -> None:
    """Print sentences on standard error, each under the name of the program."""
    for sentence in sentences:
        say(f"penultimate: {sentence}", file=sys.stderr)


def load_plugins(options: argparse.Namespace) -> None:
    """Load the files named by --plugin."""
    from penultimate.plugins import load_plugin

    for file in options.plugin:
        load_plugin(file)


def seeds(text: str | None) -> list[int]:
    """Return the numbers in "0,1,2" or "0-7"; raises RequestError for any other text.

    >>> seeds("3,0-2"), seeds(None)
    ([3, 0, 1, 2], [])
    """
    listed: list[int] = []
    for part in () if text is None else text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            numbers = range(0)
        if not numbers:
            raise RequestError(f"--seeds wants numbers such as 0,1,2 or 0-7; got '{text}'")
        listed.extend(numbers)
    return listed


def with_gpus(study: Study, options: argparse.Namespace) -> Study:
    """Return a study whose steps take the share of a GPU given by --gpus, if it was given."""
    return study if options.gpus is None else dataclasses.replace(study, gpus=options.gpus)


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
        skipped = f"left out because of these: {counted(len(summary.skipped), 'step')}; "
        say(f"{skipped if summary.skipped else ''}the same command tries again", file=sys.stderr)
        for plugin in loaded():
            say(f"To check the plug-in: penultimate check {plugin.path}", file=sys.stderr)
    say(f"Report: {report}")


def tell_plan(study: Study, options: argparse.Namespace, as_json: bool = False) -> int:
    """Print which steps of a study are done, and what the rest is expected to cost."""
    from penultimate.engine.plan import plan
    from penultimate.engine.schedule import side_by_side
    from penultimate.files import size_text
    from penultimate.progress import seconds_text

    made, title = plan(study, options.out), " ".join(study.title.split())
    processes, steps = (
        options.processes or side_by_side(study.threads),
        len(made.graph.steps) - len(made.done),
    )
    if as_json:
        kinds = [{**dataclasses.asdict(cost), "seconds_left": cost.seconds_left} for cost in made.costs]
        whole = {
            "study": study.name,
            "title": title,
            "kinds": kinds,
            "steps_left": steps,
            "steps_of_unknown_cost": made.unknown,
            "trainings_left": made.trainings,
            "batches_left": made.training_steps,
            "bytes_left": made.bytes_left,
            "seconds_left": made.seconds_left,
            "processes": processes,
        }
        print(json.dumps(whole, indent=2))
        return 0
    say(f"{study.name}: {title}", f"{'step':<18} {'done':>6} {'of':>6} {'each':>9} {'left':>9}")
    for cost in made.costs:
        seconds, remaining = cost.seconds_each, cost.seconds_left
        short = f"{seconds:.1f} s" if seconds is not None and seconds < 60 else _time(seconds)
        say(f"{cost.name:<18} {cost.done:>6} {cost.total:>6} {short:>9} {_time(remaining):>9}")
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


def _time(seconds: float | None) -> str:
    from penultimate.progress import seconds_text

    return "unknown" if seconds is None else seconds_text(seconds)
