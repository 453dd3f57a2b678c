"""The command `penultimate`. Parsing needs no tensor library; each command imports what it uses.

Exit codes: 0 done; 1 a step failed; 2 the request was wrong; 130 interrupted (the same command continues).
"""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from penultimate.errors import PenultimateError, RequestError, nearest, unknown
from penultimate.store import FULL

if TYPE_CHECKING:
    from penultimate.study.local import Summary
    from penultimate.study.reading import StudyFolder
    from penultimate.study.spec import Study

LISTS = {
    "objectives": "objective",
    "datasets": "dataset",
    "backbones": "backbone",
    "metrics": "metric",
    "probes": "probe",
    "studies": "study",
    "exhibits": "exhibit",
}


class _Parser(argparse.ArgumentParser):
    """Errors as sentences, with the nearest command."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message}\n{self.format_usage().strip()}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="penultimate",
        description="Which training objective gives features that transfer, and what does it do inside?",
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    for name, text in (
        ("run", "Run a study: do what is not done yet, then write its report."),
        ("plan", "Show a study's steps, which of them are done, and what the rest is expected to cost."),
    ):
        one = command(name, text)
        one.add_argument(
            "study", help="a study's name (penultimate list studies) or the path of a study file"
        )
        one.add_argument("--out", default="runs", help="the folder of all results (default: runs)")
        one.add_argument("--seeds", help="other seeds, such as 0,1,2 or 0-7")
        one.add_argument("--only", help="some of the study's objectives, such as softmax,sigmoid")
        one.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", dest="assignments")
        one.add_argument("--processes", type=int, help="worker processes (default: one for each core)")
        _takes_plugins(one)
    status = command("status", "Show the studies of a folder and how far each has come.")
    status.add_argument("--out", default="runs")
    show = command("show", "Print an exhibit (a table or figure of the paper) from a study's results.")
    show.add_argument("exhibit", help="its name (penultimate list exhibits)")
    why = command("why", "Show where a number comes from: its rows, steps, settings, machine and files.")
    why.add_argument("exhibit")
    why.add_argument("objective", help="an objective of the study")
    why.add_argument("target", nargs="?", help="a data set of the study")
    report = command("report", "Write the report of a study again.")
    report.add_argument("--to", metavar="FILE", help="where to (default: in the study's folder)")
    for one in (show, why, report):
        one.add_argument("--study", default="", help="the study's name (default: the one run last)")
        one.add_argument("--out", default="runs")
        one.add_argument(
            "--allow-limited", action="store_true", help="accept a study too small to be evidence"
        )
    tune = command("tune", "Search for an objective's hyperparameters on the holdout; nothing else decides.")
    tune.add_argument(
        "objectives", nargs="+", metavar="OBJECTIVE", help="an objective, or all of the study's: all"
    )
    tune.add_argument("--study", default="quickstart", help="whose data, recipe and values to start from")
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
    tune.add_argument("--expansions", type=int, help="how often a grid is expanded at its edge (default: 2)")
    tune.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", dest="assignments")
    tune.add_argument("--out", default="runs", help="the folder of all results (default: runs)")
    tune.add_argument("--processes", type=int, help="worker processes (default: one for each core)")
    _takes_plugins(tune)
    listing = command("list", "List what there is, by kind.")
    listing.add_argument("kind", help=", ".join(LISTS))
    _takes_plugins(listing)
    check = command("check", "Check the plug-ins of a file: what is wrong is said in a sentence.")
    check.add_argument("file", help="a Python file with @register.loss, .head, .penalty, ... in it")
    return parser


def _takes_plugins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="FILE", help="a Python file of plug-ins; repeatable"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code comes back. Never a traceback for a user's mistake."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not arguments:
            arguments = ["--help"]
        _known_command(arguments[0])
        options = _parser().parse_args(arguments)
        if options.version:
            from penultimate import __version__

            print(__version__)
            return 0
        options.line = "penultimate " + shlex.join(arguments)
        return COMMANDS[options.command](options)
    except PenultimateError as error:
        print(f"penultimate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\npenultimate: stopped; the same command continues from here", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in (*FULL, errno.EROFS, errno.EACCES):
            raise
        where = f" ({error.filename})" if error.filename else ""
        print(f"penultimate: {error.strerror}{where}; nothing done is lost", file=sys.stderr)
        return 1


def _known_command(name: str) -> None:
    if not name.startswith("-") and name not in COMMANDS:
        raise unknown("command", name, COMMANDS)


def _study(options: argparse.Namespace) -> Study:
    from penultimate.study.spec import load_study, override, restrict

    _load_plugins(options)
    only = [name.strip() for name in (options.only or "").split(",") if name.strip()]
    return restrict(override(load_study(options.study), options.assignments), only, _seeds(options.seeds))


def _load_plugins(options: argparse.Namespace) -> None:
    from penultimate.plugins import load_plugin

    for file in options.plugin:
        load_plugin(file)


def _check_processes(options: argparse.Namespace) -> None:
    if options.processes is not None and options.processes < 1:
        raise RequestError(f"--processes must be at least 1, not {options.processes}")


def _seeds(text: str | None) -> list[int]:
    if not text:
        return []
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            seeds.extend(range(int(first), int(last if dash else first) + 1))
        except ValueError:
            raise RequestError(f"--seeds wants numbers such as 0,1,2 or 0-7; got '{text}'") from None
    return seeds


def _run(options: argparse.Namespace) -> int:
    from penultimate.store import Store
    from penultimate.study.display import Display
    from penultimate.study.running import run

    _check_processes(options)
    study = _study(options)
    display = Display(Store(options.out))
    summary = run(study, options.out, options.processes, display, options.line)
    folder = Path(options.out) / "studies" / study.name
    report = folder / "report.html"
    if summary.computed or not report.is_file():
        _write_report(options.out, study.name, None)
    _tell(summary, report)
    return 0 if summary.complete else 1


def _tell(summary: Summary, report: Path) -> None:
    from penultimate.study.display import seconds_text

    if summary.computed or summary.failed:
        print(
            f"{summary.computed} steps in {seconds_text(summary.seconds)}, {summary.cached} were done before"
        )
    else:
        print("Everything is done already.")
    for step_id, reason in summary.diverged.items():
        print(f"diverged: {step_id}: {reason}")
    for step_id, reason in summary.failed.items():
        print(f"failed: {step_id}: {reason}", file=sys.stderr)
    if summary.failed:
        print(
            f"{len(summary.skipped)} steps depend on these and were left out; the same command tries again",
            file=sys.stderr,
        )
    print(f"Report: {report}")


def _write_report(out: str, study: str, to: str | None) -> Path:
    from penultimate.report import read_study, write_report

    target = Path(to) if to else Path(out) / "studies" / study / "report.html"
    write_report(read_study(out, study), target)
    return target


def _folder(out: str, study: str) -> StudyFolder:
    from penultimate.study.reading import study_folder

    return study_folder(out, study)


def _plan(options: argparse.Namespace) -> int:
    from penultimate.study.display import seconds_text
    from penultimate.study.running import plan

    made = plan(_study(options), options.out)
    study = made.graph.study
    print(f"{study.name}: {study.title}")
    print(f"{'step':<18} {'done':>6} {'of':>6} {'each':>9} {'left':>9}")
    for cost in made.costs:
        each = "unknown" if cost.seconds_each is None else f"{cost.seconds_each:.1f} s"
        left = "unknown" if cost.seconds_left is None else seconds_text(cost.seconds_left)
        print(f"{cost.name:<18} {cost.done:>6} {cost.total:>6} {each:>9} {left:>9}")
    processes = options.processes or max(1, (os.cpu_count() or 1) // study.threads)
    if made.seconds_left is not None:
        wall = seconds_text(made.seconds_left / processes)
        print(f"left: {seconds_text(made.seconds_left)} of work, about {wall} on {processes} processes")
    return 0


def _status(options: argparse.Namespace) -> int:
    from penultimate.study.reading import study_folders

    found = study_folders(options.out)
    if not found:
        print(f"No study in '{options.out}' yet. Start one: penultimate run quickstart")
        return 0
    for folder in found:
        counts = folder.counts()
        done, total = (sum(pair[side] for pair in counts.values()) for side in (0, 1))
        state = "complete" if done == total else "running" if folder.is_running() else "not complete"
        kinds = ", ".join(f"{name} {pair[0]}/{pair[1]}" for name, pair in counts.items())
        print(f"{folder.name}: {done} of {total} steps, {state} ({kinds})")
        for step_id, reason in folder.diverged().items():
            print(f"  diverged: {step_id}: {reason}")
        if (folder.path / "report.html").is_file():
            print(f"  report: {folder.path / 'report.html'}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from penultimate.report import exhibit, render_exhibit_text

    shown = exhibit(options.exhibit, options.out, options.study, options.allow_limited)
    print(render_exhibit_text(shown))
    return 0


def _why(options: argparse.Namespace) -> int:
    from penultimate.registry import entry
    from penultimate.study.tracing import explain

    entry("exhibit", options.exhibit)
    print(explain(_folder(options.out, options.study), options.objective, options.target))
    return 0


def _report(options: argparse.Namespace) -> int:
    folder = _folder(options.out, options.study)
    print(f"Report: {_write_report(options.out, folder.name, options.to)}")
    return 0


def _tune(options: argparse.Namespace) -> int:
    from penultimate.store import Store
    from penultimate.study.tuning import EXPANSIONS, plan_tuning
    from penultimate.study.tuning_axes import parse_grids
    from penultimate.study.tuning_display import TuningDisplay
    from penultimate.study.tuning_running import tune
    from penultimate.study.tuning_words import plan_lines, result_lines

    _check_processes(options)
    options.only = ""
    planned = plan_tuning(
        _study(options),
        options.objectives,
        parse_grids(options.grid),
        options.budget,
        EXPANSIONS if options.expansions is None else options.expansions,
    )
    print(*plan_lines(planned), sep="\n")
    result = tune(planned, options.out, options.processes, TuningDisplay(Store(options.out)), options.line)
    lines, errors = result_lines(result)
    print(*lines, sep="\n")
    if errors:
        print(*(f"penultimate: {error}" for error in errors), sep="\n", file=sys.stderr)
    return 1 if errors else 0


def _list(options: argparse.Namespace) -> int:
    from penultimate.registry import entry, names, open_packages

    if options.kind not in LISTS:
        raise RequestError(
            f"nothing is listed under '{options.kind}'.{nearest(options.kind, LISTS)}"
            f" Known: {', '.join(LISTS)}."
        )
    kind = LISTS[options.kind]
    _load_plugins(options)
    for failure in open_packages():
        print(f"penultimate: {failure}", file=sys.stderr)
    listed = names(kind)
    width = max(map(len, listed), default=0)
    for name in listed:
        print(f"{name:<{width}}  {entry(kind, name).summary}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from penultimate.checking import check_file, render_report

    report = check_file(options.file)
    print(render_report(report))
    return 0 if report.ok else 1


COMMANDS = {
    "run": _run,
    "plan": _plan,
    "status": _status,
    "show": _show,
    "why": _why,
    "report": _report,
    "tune": _tune,
    "list": _list,
    "check": _check,
}

if __name__ == "__main__":
    sys.exit(main())
