"""The command `penultimate`. Parsing needs no tensor library; each command imports what it uses.

Exit codes: 0 done; 1 a step failed, or doctor found something to do; 2 the request was wrong; 130 stopped by
Ctrl-C, 143 by SIGTERM, 129 by SIGHUP (the same command continues).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from penultimate.arguments import LISTS, parser
from penultimate.banks.command import bank
from penultimate.errors import (
    DamagedFileError,
    PenultimateError,
    RequestError,
    legible,
    nearest,
    shortened,
    unknown,
)

if TYPE_CHECKING:
    from penultimate.engine.observer import Summary
    from penultimate.records.reading import StudyFolder
    from penultimate.report import StudyResults
    from penultimate.study.spec import Study

STOPS = (signal.SIGTERM, signal.SIGHUP)
"""What Slurm, systemd and docker stop send, and a terminal that closes."""
LONG = ("run", "tune")
"""Commands that leave what they have done, to be continued."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code comes back. Never a traceback for a user's mistake."""
    with _stopped_as_by_ctrl_c() as came:
        return _main(list(sys.argv[1:] if arguments is None else arguments), came)


def _main(arguments: list[str], came: list[int]) -> int:
    try:
        if not arguments:
            arguments = ["--help"]
        _known_command(arguments[0])
        if ("--set", "--help") in itertools.pairwise(arguments):
            return _settings(arguments)
        options = parser().parse_args(arguments)
        if options.version:
            from penultimate import __version__

            _say(__version__)
            return 0
        options.line = _line(arguments)
        return COMMANDS[options.command](options)
    except PenultimateError as error:
        _say(f"penultimate: {shortened(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, RequestError | DamagedFileError) else 1
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # the terminal may be gone
            left = "the same command continues from here" if arguments[0] in LONG else "nothing was changed"
            _say(f"\npenultimate: stopped; {left}", file=sys.stderr)
        return 128 + next(iter(came), signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _say(f"penultimate: {error.strerror or error}{where}; nothing done is lost", file=sys.stderr)
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


def _say(*lines: object, sep: str = "\n", file: TextIO | None = None) -> None:
    """Print what a terminal may be given, in characters that it has."""
    stream = file or sys.stdout
    text = legible(sep.join(map(str, lines)))
    print(text.encode(stream.encoding or "utf-8", "replace").decode(stream.encoding or "utf-8"), file=stream)


def _line(arguments: Sequence[str]) -> str:
    """The command as results record it: all but the folder they lie in, and that they are verified."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if before != "--out" and argument not in ("--out", "--verify") and not argument.startswith("--out="):
            kept.append(argument)
    return "penultimate " + shlex.join(kept)


def _known_command(name: str) -> None:
    if not name.startswith("-") and name not in COMMANDS:
        raise unknown("command", name, COMMANDS)


def _study(options: argparse.Namespace) -> Study:
    from penultimate.data.catalog import card
    from penultimate.objectives.presets import few_classes, resolve
    from penultimate.study.selection import changed, load_study, names_in

    _load_plugins(options)
    only = names_in(options.only or "")
    study = changed(load_study(options.study), options.assignments, only, _seeds(options.seeds))
    for term in (term for text in study.objectives for term in resolve(text).terms):
        told = few_classes(term, card(study.source).classes)
        if told:
            _say(f"penultimate: {told}", file=sys.stderr)
    return study


def _tell_of_plugins(study: Study) -> None:
    """Say of each plug-in file what the study does not use of it."""
    from penultimate.plugins import loaded
    from penultimate.study.usage import not_used

    for said in filter(None, (not_used(study, plugin) for plugin in loaded())):
        _say(f"penultimate: {said}", file=sys.stderr)


def _settings(arguments: Sequence[str]) -> int:
    """The settings of the study that is named before `--set --help`; of quickstart where none is."""
    from penultimate.study.selection import load_study, settings

    command, study, *_ = (*arguments, "quickstart")
    study = study if command in ("run", "plan") and not study.startswith("-") else "quickstart"
    _say(
        f"What --set changes, with the values of {study}; of one arm alone: ARM.SETTING=VALUE.",
        *(f"  {shortened(line, 110)}" for line in settings(load_study(study))),
    )
    return 0


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
    from penultimate.study.fields import MOST_SEEDS

    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise RequestError(f"--seeds wants numbers such as 0,1,2 or 0-7; got '{text}'") from None
        if not numbers:
            raise RequestError(f"--seeds {text}: '{part.strip()}' holds no seed; write {last}-{first}")
        seeds.extend(numbers[: MOST_SEEDS + 1])
        if len(seeds) > MOST_SEEDS:
            raise RequestError(f"--seeds {text}: more than {MOST_SEEDS:,} seeds; give fewer")
    return seeds


def _run(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.engine.run import run
    from penultimate.store import Store

    _check_processes(options)
    study = _study(options)
    _tell_of_plugins(study)
    display = Display(Store(options.out))
    summary = run(
        study, options.out, options.processes, display, options.line, options.on, verify=options.verify
    )
    report = Path(options.out) / "studies" / study.name / "report.html"
    if summary.computed or not report.is_file():
        _write_report(options.out, study.name, None)
    if options.verify:
        print(f"Every file of {summary.cached} finished steps is as it was written.")
    _tell(summary, report)
    return 0 if summary.complete else 1


def _tell(summary: Summary, report: Path) -> None:
    from penultimate.engine.display import seconds_text
    from penultimate.plugins import loaded

    if summary.computed or summary.failed:
        _say(
            f"{summary.computed} steps in {seconds_text(summary.seconds)}, {summary.cached} were done before"
        )
    else:
        _say("Everything is done already.")
    for step_id, reason in summary.diverged.items():
        _say(f"diverged: {step_id}: {reason}")
    for step_id, reason in summary.failed.items():
        _say(f"failed: {step_id}: {reason}", file=sys.stderr)
    if summary.failed:
        left = f"{len(summary.skipped)} steps depend on these and were left out; " if summary.skipped else ""
        _say(f"{left}the same command tries again", file=sys.stderr)
        for plugin in loaded():
            _say(f"What is wrong with a plug-in: penultimate check {plugin.path}", file=sys.stderr)
    _say(f"Report: {report}")


def _write_report(out: str, study: str, to: str | None) -> Path:
    from penultimate.report import read_study, write_report

    target = Path(to) if to else Path(out) / "studies" / study / "report.html"
    write_report(read_study(out, study), target)
    return target


def _keep(options: argparse.Namespace) -> int:
    from penultimate.records.archive import keep

    _say(f"Kept: {keep(_folder(options.out, options.study), options.to)}")
    return 0


def _join(options: argparse.Namespace) -> int:
    from penultimate.records.joining import join
    from penultimate.study import load_study

    study = load_study(options.study)
    _say(f"Kept: {join(options.parts, study.describe(), study.keys(), options.to)}")
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

    study = _study(options)
    _tell_of_plugins(study)
    made = plan(study, options.out)
    _say(f"{study.name}: {' '.join(study.title.split())}")
    _say(f"{'step':<18} {'done':>6} {'of':>6} {'each':>9} {'left':>9}")
    for cost in made.costs:
        each = "unknown" if cost.seconds_each is None else f"{cost.seconds_each:.1f} s"
        left = "unknown" if cost.seconds_left is None else seconds_text(cost.seconds_left)
        _say(f"{cost.name:<18} {cost.done:>6} {cost.total:>6} {each:>9} {left:>9}")
    processes = options.processes or max(1, (os.cpu_count() or 1) // study.threads)
    wall = seconds_text(made.seconds_left / processes)
    more = f", and {made.unknown} steps of unknown cost" if made.unknown else ""
    _say(f"left: {seconds_text(made.seconds_left)} of work, about {wall} on {processes} processes{more}")
    return 0


def _status(options: argparse.Namespace) -> int:
    from penultimate.records.reading import study_folders

    folders = study_folders(options.out)
    if not folders:
        _say(f"No study in '{options.out}' yet. Start one: penultimate run quickstart")
        return 0
    for folder in folders:
        counts = folder.counts()
        done, total = (sum(pair[side] for pair in counts.values()) for side in (0, 1))
        state = "complete" if done == total else "running" if folder.is_running() else "not complete"
        kinds = ", ".join(f"{name} {pair[0]}/{pair[1]}" for name, pair in counts.items())
        _say(f"{folder.name}: {done} of {total} steps, {state} ({kinds})")
        for step_id, reason in folder.diverged().items():
            _say(f"  diverged: {folder.called(step_id)}: {reason}")
        if (folder.path / "report.html").is_file():
            _say(f"  report: {folder.path / 'report.html'}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from penultimate.report import exhibit, render_exhibit_text

    _load_plugins(options)
    source = _referred(options) or options.out
    built = exhibit(options.exhibit, source, options.study, options.allow_limited)
    _say(render_exhibit_text(built))
    return 0


def _why(options: argparse.Namespace) -> int:
    from penultimate.records.tracing import explain
    from penultimate.registry import entry

    exhibit = entry("exhibit", options.exhibit).resolve()
    _say(explain(_folder(options.out, options.study), exhibit, options.objective, options.target))
    return 0


def _report(options: argparse.Namespace) -> int:
    _load_plugins(options)
    referred = _referred(options)
    if referred is not None:
        from penultimate.report import write_report

        target = Path(options.to or f"{referred.description['name']}.html")
        write_report(referred, target)
        _say(f"Report: {target}")
        return 0
    _say(f"Report: {_write_report(options.out, _folder(options.out, options.study).name, options.to)}")
    return 0


def _tune(options: argparse.Namespace) -> int:
    from penultimate.store import Store
    from penultimate.study.selection import load_study, override, restrict
    from penultimate.tuning.axes import parse_grids
    from penultimate.tuning.conduct import EXPANSIONS, plan_tuning
    from penultimate.tuning.display import TuningDisplay
    from penultimate.tuning.run import tune
    from penultimate.tuning.words import plan_lines, result_lines

    _check_processes(options)
    _load_plugins(options)
    study = override(load_study(options.study), options.assignments)
    planned = plan_tuning(
        restrict(study, (), _seeds(options.seeds)),
        options.objectives,
        parse_grids(options.grid),
        options.budget,
        EXPANSIONS if options.expansions is None else options.expansions,
        options.product,
    )
    _say(*plan_lines(planned))
    display = TuningDisplay(Store(options.out))
    result = tune(planned, options.out, options.processes, display, options.line, verify=options.verify)
    lines, errors = result_lines(result)
    _say(*lines)
    if errors:
        _say(*(f"penultimate: {error}" for error in errors), file=sys.stderr)
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

        _say(*lines(options.out))
        return 0
    _load_plugins(options)
    for failure in open_packages():
        _say(f"penultimate: {failure}", file=sys.stderr)
    kinds = dict.fromkeys(names(kind), kind)
    if kind == "measurement":  # what a study can ask for: no stages, but simpler plug-ins
        from penultimate.measures import catalogue

        kinds = {name: catalogue.measurement(name).kind for name in catalogue.names()}
    width = max(map(len, kinds), default=0)
    for name, kind in kinds.items():
        _say(f"{name:<{width}}  {entry(kind, name).summary}")
    if options.kind == "datasets":
        from penultimate.data.entries import listed

        _say("", "Published, where you have them (penultimate data check NAME --root DIR):", *listed())
    if options.kind == "objectives":
        from penultimate.objectives.presets import SUM

        _say("", f"'sigmoid + dropout(keep=0.8)' is one objective: {SUM}.")
    return 0


def _data(options: argparse.Namespace) -> int:
    from penultimate.data.inspection import check, get

    if options.doing == "check":
        return 0 if check(options.name, options.root, _say, _counting) else 1
    if options.root is None:
        raise RequestError(f"give the folder it is to lie in: penultimate data get {options.name} --root DIR")
    get(options.name, options.root, _say)
    return 0


def _counting(done: int) -> None:
    """How many images are decoded, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{done:,} images decoded ", end="", file=sys.stderr, flush=True)


def _doctor(options: argparse.Namespace) -> int:
    from penultimate.doctor import examine

    return examine(options.out)


def _check(options: argparse.Namespace) -> int:
    from penultimate.checking import check_file, example, render_report

    if (options.file is None) == (options.example is None):
        raise RequestError("give a file to check, or --example KIND for one to start from")
    if options.example is not None:
        print(example(options.example), end="")
        return 0
    report = check_file(options.file)
    _say(render_report(report))
    return 0 if report.ok else 1


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "plan": _plan,
    "status": _status,
    "show": _show,
    "why": _why,
    "report": _report,
    "keep": _keep,
    "join": _join,
    "tune": _tune,
    "list": _list,
    "data": _data,
    "doctor": _doctor,
    "check": _check,
    "bank": lambda options: bank(options, _say),
}

if __name__ == "__main__":
    sys.exit(main())
