"""The command `penultimate`. Parsing needs no tensor library; each command imports what it uses.

Exit codes: 0 done; 1 a step failed; 2 the request was wrong; 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by
SIGHUP (the same command continues).
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.arguments import LISTS, parser
from penultimate.errors import DamagedFileError, PenultimateError, RequestError, nearest, unknown
from penultimate.store import FULL

if TYPE_CHECKING:
    from penultimate.engine.observer import Summary
    from penultimate.records.reading import StudyFolder
    from penultimate.report import StudyResults
    from penultimate.study.spec import Study

STOPS = (signal.SIGTERM, signal.SIGHUP)
"""What Slurm, systemd and docker stop send, and a terminal that closes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code comes back. Never a traceback for a user's mistake."""
    with _stopped_as_by_ctrl_c() as came:
        return _main(list(sys.argv[1:] if arguments is None else arguments), came)


def _main(arguments: list[str], came: list[int]) -> int:
    try:
        if not arguments:
            arguments = ["--help"]
        _known_command(arguments[0])
        options = parser().parse_args(arguments)
        if options.version:
            from penultimate import __version__

            print(__version__)
            return 0
        options.line = _line(arguments)
        return COMMANDS[options.command](options)
    except PenultimateError as error:
        print(f"penultimate: {error}", file=sys.stderr)
        return 2 if isinstance(error, RequestError | DamagedFileError) else 1
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # the terminal may be gone
            print("\npenultimate: stopped; the same command continues from here", file=sys.stderr)
        return 128 + next(iter(came), signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in (*FULL, errno.EROFS, errno.EACCES):
            raise
        where = f" ({error.filename})" if error.filename else ""
        print(f"penultimate: {error.strerror}{where}; nothing done is lost", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _stopped_as_by_ctrl_c() -> Iterator[list[int]]:
    """Have the first of STOPS raise KeyboardInterrupt, the next nothing; yields those that came.

    A signal that is ignored (nohup) or dealt with already stays as it is.
    """
    came: list[int] = []

    def stop(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) == 1:
            raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    ours = [each for each in STOPS if in_main_thread and signal.getsignal(each) is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, stop)
    try:
        yield came
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


def _line(arguments: Sequence[str]) -> str:
    """The command as results record it: all but the folder they lie in."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if before != "--out" and argument != "--out" and not argument.startswith("--out="):
            kept.append(argument)
    return "penultimate " + shlex.join(kept)


def _known_command(name: str) -> None:
    if not name.startswith("-") and name not in COMMANDS:
        raise unknown("command", name, COMMANDS)


def _study(options: argparse.Namespace) -> Study:
    from penultimate.study.selection import load_study, override, restrict

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
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise RequestError(f"--seeds wants numbers such as 0,1,2 or 0-7; got '{text}'") from None
        if not numbers:
            raise RequestError(f"--seeds {text}: '{part.strip()}' holds no seed; write {last}-{first}")
        seeds.extend(numbers)
    return seeds


def _run(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.engine.run import run
    from penultimate.store import Store

    _check_processes(options)
    study = _study(options)
    display = Display(Store(options.out))
    summary = run(study, options.out, options.processes, display, options.line, options.on)
    folder = Path(options.out) / "studies" / study.name
    report = folder / "report.html"
    if summary.computed or not report.is_file():
        _write_report(options.out, study.name, None)
    _tell(summary, report)
    return 0 if summary.complete else 1


def _tell(summary: Summary, report: Path) -> None:
    from penultimate.engine.display import seconds_text
    from penultimate.plugins import loaded

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
        left = f"{len(summary.skipped)} steps depend on these and were left out; " if summary.skipped else ""
        print(f"{left}the same command tries again", file=sys.stderr)
        for plugin in loaded():
            print(f"What is wrong with a plug-in: penultimate check {plugin.path}", file=sys.stderr)
    print(f"Report: {report}")


def _write_report(out: str, study: str, to: str | None) -> Path:
    from penultimate.report import read_study, write_report

    target = Path(to) if to else Path(out) / "studies" / study / "report.html"
    write_report(read_study(out, study), target)
    return target


def _keep(options: argparse.Namespace) -> int:
    from penultimate.records.archive import keep

    print(f"Kept: {keep(_folder(options.out, options.study), options.to)}")
    return 0


def _referred(options: argparse.Namespace) -> StudyResults | None:
    """The reference run that is asked for, if one is."""
    if not options.reference:
        return None
    from penultimate.report import read_reference

    return read_reference(options.study)


def _folder(out: str, study: str) -> StudyFolder:
    from penultimate.records.reading import study_folder

    return study_folder(out, study)


def _plan(options: argparse.Namespace) -> int:
    from penultimate.engine.display import seconds_text
    from penultimate.engine.run import plan

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
    from penultimate.records.reading import study_folders

    folders = study_folders(options.out)
    if not folders:
        print(f"No study in '{options.out}' yet. Start one: penultimate run quickstart")
        return 0
    for folder in folders:
        counts = folder.counts()
        done, total = (sum(pair[side] for pair in counts.values()) for side in (0, 1))
        state = "complete" if done == total else "running" if folder.is_running() else "not complete"
        kinds = ", ".join(f"{name} {pair[0]}/{pair[1]}" for name, pair in counts.items())
        print(f"{folder.name}: {done} of {total} steps, {state} ({kinds})")
        for step_id, reason in folder.diverged().items():
            print(f"  diverged: {folder.called(step_id)}: {reason}")
        if (folder.path / "report.html").is_file():
            print(f"  report: {folder.path / 'report.html'}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from penultimate.report import exhibit, render_exhibit_text

    _load_plugins(options)
    source = _referred(options) or options.out
    built = exhibit(options.exhibit, source, options.study, options.allow_limited)
    print(render_exhibit_text(built))
    return 0


def _why(options: argparse.Namespace) -> int:
    from penultimate.records.tracing import explain
    from penultimate.registry import entry

    exhibit = entry("exhibit", options.exhibit).resolve()
    print(explain(_folder(options.out, options.study), exhibit, options.objective, options.target))
    return 0


def _report(options: argparse.Namespace) -> int:
    _load_plugins(options)
    referred = _referred(options)
    if referred is not None:
        from penultimate.report import write_report

        target = Path(options.to or f"{referred.description['name']}.html")
        write_report(referred, target)
        print(f"Report: {target}")
        return 0
    folder = _folder(options.out, options.study)
    print(f"Report: {_write_report(options.out, folder.name, options.to)}")
    return 0


def _tune(options: argparse.Namespace) -> int:
    from penultimate.store import Store
    from penultimate.tuning.axes import parse_grids
    from penultimate.tuning.conduct import EXPANSIONS, plan_tuning
    from penultimate.tuning.display import TuningDisplay
    from penultimate.tuning.run import tune
    from penultimate.tuning.words import plan_lines, result_lines

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
    if kind == "exhibit":
        from penultimate.report.listing import lines

        print(*lines(options.out), sep="\n")
        return 0
    _load_plugins(options)
    for failure in open_packages():
        print(f"penultimate: {failure}", file=sys.stderr)
    kinds = dict.fromkeys(names(kind), kind)
    if kind == "measurement":  # what a study can ask for: no stages, but simpler plug-ins
        from penultimate.measures import catalogue

        kinds = {name: catalogue.measurement(name).kind for name in catalogue.names()}
    width = max(map(len, kinds), default=0)
    for name, kind in kinds.items():
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
    "keep": _keep,
    "tune": _tune,
    "list": _list,
    "check": _check,
}

if __name__ == "__main__":
    sys.exit(main())
