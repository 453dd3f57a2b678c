"""Commands that show, report, trace, keep, join and list the results of studies."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from penultimate.command import FLAG, Command, load_plugins, notice, say, say_as_it_is, takes
from penultimate.console import folded, terminal_width
from penultimate.errors import PenultimateError, RequestError, counted

if TYPE_CHECKING:
    from penultimate.results.exhibit import Shown

LONG = 150
"""The number of lines of an exhibit from which its last line says how to print fewer."""
PAGES = "pages"
"""The folder of a store in which pages of several studies lie, each in a folder of its own."""


def _takes_results(parser: argparse.ArgumentParser, several: str = "", reference: bool = True) -> None:
    parser.add_argument("--study", default="", help=f"the study's name{several} (default: the one run last)")
    takes(parser, "--out")
    if reference:
        text = "read a reference run that comes with the package (evidence, unless --study names another)"
        parser.add_argument("--reference", **FLAG, help=text)


def _takes_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exhibit", help="its name (penultimate list exhibits)")
    parser.add_argument(
        "words", nargs="*", help="print only the rows with these words: show claims separation"
    )
    parser.add_argument("--verdict", **FLAG, help="for claims: print only each claim and its verdict")
    form = parser.add_mutually_exclusive_group()
    takes(form, "--json")
    form.add_argument("--csv", **FLAG, help="its tables as CSV, with unrounded numbers")
    form.add_argument("--latex", **FLAG, help="its tables as LaTeX, for a paper")
    form.add_argument("--open", **FLAG, help="show its figures and tables in a browser")
    _takes_results(parser, ", or several, separated by commas")
    parser.add_argument("--allow-limited", **FLAG, help="accept a study too small to be evidence")
    takes(parser, "--plugin")


def _takes_status(parser: argparse.ArgumentParser) -> None:
    takes(parser, "--out", "--json")
    text = "compare every file of every finished step with its digest, and list what is damaged"
    parser.add_argument("--verify", **FLAG, help=text)


def _takes_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exhibit", help="the exhibit that shows the number (penultimate list exhibits)")
    parser.add_argument("objective", help="an objective of the study, or a network that was given")
    parser.add_argument("target", nargs="?", help="a data set of the study (default: the pretraining set)")
    _takes_results(parser)


def _takes_report(parser: argparse.ArgumentParser) -> None:
    text = "the study, or several finished ones on one page; what is named first comes first"
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=text)
    text = "where to (default: in the study's folder; of several in one of its own)"
    parser.add_argument("--to", metavar="FILE", help=text)
    _takes_results(parser)
    takes(parser, "--plugin")


def _takes_keep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="FOLDER", help="the folder for the three files")
    _takes_results(parser, reference=False)


def _takes_join(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", help="the whole: its name or its Python file")
    parser.add_argument("parts", nargs="+", metavar="FOLDER", help="what keep wrote of a part")
    parser.add_argument("--to", required=True, metavar="FOLDER", help="the folder for the whole")
    parser.add_argument("--partial", **FLAG, help="allow networks or measurements that no part has")


def _status(options: argparse.Namespace) -> int:
    from penultimate.records.reading import PAGE, out_option, study_folders

    damaged: list[str] = []
    found: list[dict[str, object]] = []
    folders = study_folders(options.out, damaged.append)
    if not folders and not damaged and not options.json:
        start = f"penultimate run quickstart{out_option(Path(options.out))}"
        say(f"No study in '{options.out}' yet. Start one: {start}")
        return 0
    for folder in folders:
        counts = folder.counts()
        done, total = (sum(pair[side] for pair in counts.values()) for side in (0, 1))
        state = "complete" if done == total else "running" if folder.is_running() else "not complete"
        if options.json:
            found.append(
                {"study": folder.name, "done": done, "of": total, "state": state, "steps": counts}
                | {"diverged": folder.diverged(), "report": str(folder.path / PAGE)}
            )
            continue
        say(f"{folder.name}: {done} of {total} steps, {state}")
        left = ", ".join(f"{of - there} {name}" for name, (there, of) in counts.items() if there < of)
        if left:
            say(folded(f"  left: {left}", min(79, terminal_width() or 79)))
        for step_id, reason in folder.diverged().items():
            say(f"  diverged: {step_id}: {reason}")
        if (folder.path / PAGE).is_file():
            say(f"  report: {folder.path / PAGE}")
    if options.json:
        print(json.dumps(found, indent=2))
    notice(*damaged)
    return max(2 if damaged else 0, _verify(options.out) if options.verify else 0)


def _verify(out: str) -> int:
    """List the steps whose files are not what was written; return 1 if there are any and 0 otherwise."""
    from penultimate.store import Store

    store, whole, damaged = Store(out, thorough=True), 0, 0
    for path in sorted((store.root / "steps").glob("*")):
        try:
            whole += store.finished(path.name) is not None
        except PenultimateError as error:
            damaged += 1
            say(f"damaged: {error}")
    say(f"Every file of {counted(whole, 'finished step')} is as it was written.")
    if damaged:
        say(f"{counted(damaged, 'step')} damaged: penultimate run STUDY --verify computes them again.")
    return 1 if damaged else 0


def _show(options: argparse.Namespace) -> int:
    from penultimate.results.exhibit import show
    from penultimate.results.rows import read_reference

    load_plugins(options)
    _expect_one_place(options)
    source = read_reference(options.study) if options.reference else options.out
    shown = show(options.exhibit, source, "" if options.reference else options.study, options.allow_limited)
    if options.words:
        shown = shown.only(" ".join(options.words))
    if options.json:
        print(json.dumps({"tables": [table.json() for table in shown.tables]}, indent=2))
    elif options.csv or options.latex:
        if not shown.tables:
            raise RequestError(f"{shown.name} has no table, only figures; the page has their points as CSV")
        say_as_it_is(*(table.csv() for table in shown.tables) if options.csv else shown.latex().values())
    elif options.open:
        say(f"Written: {_opened(shown)}")
    elif options.verdict:
        say(*shown.verdicts())
    else:
        text = shown.text(terminal_width() or 160)
        say(text)
        if text.count("\n") > LONG and not options.words:
            verdicts = "; --verdict prints the verdicts alone" if shown.name == "claims" else ""
            say(f"Some rows alone: penultimate show {shown.name} WORDS{verdicts}")
    return 0 if shown.is_measured else 1


def _opened(shown: Shown) -> Path:
    """Write an exhibit as HTML into a temporary folder, open it in a browser, and return its path."""
    import tempfile
    import webbrowser

    from penultimate.results import escape

    path = Path(tempfile.mkdtemp(prefix="penultimate-")) / f"{shown.name}.html"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape.html(shown.title)}</title>'
    style = '<body style="font-family: sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em">'
    path.write_text(f"{head}{style}{shown._repr_html_()}</body></html>", encoding="utf-8", errors="replace")
    webbrowser.open(path.as_uri())
    return path


def _why(options: argparse.Namespace) -> int:
    import pandas as pd

    from penultimate.records.archive import KeptStudy, reference
    from penultimate.records.reading import StudyFolder, study_folder
    from penultimate.records.tracing import explain
    from penultimate.registry import entry
    from penultimate.results.rows import read_reference, read_run

    _expect_one_place(options)
    folder: StudyFolder | KeptStudy
    if options.reference:
        folder, run = reference(options.study), read_reference(options.study)
    else:
        folder = study_folder(options.out, options.study)
        run = read_run(options.out, folder.name)
    log: list[pd.DataFrame] = []
    entry("exhibit", options.exhibit).resolve()(dataclasses.replace(run, log=log), allow_limited=True)
    objective, target = options.objective, options.target
    data = {folder.description["source"], *folder.description["targets"]}
    if objective in data and target is not None and target not in data:  # the words in the other order
        objective, target = target, objective
    say(explain(folder, options.exhibit, pd.concat(log) if log else run.frame[:0], objective, target))
    return 0


def _report(options: argparse.Namespace) -> int:
    from penultimate.records.reading import study_folder
    from penultimate.results import page, rows
    from penultimate.study.selection import own_name

    load_plugins(options)
    if options.studies and (options.study or options.reference):
        other = "--study" if options.study else "--reference"
        raise RequestError(f"name the studies, or give {other}, not both")
    _expect_one_place(options)
    names, path = options.studies or [options.study], options.to
    if options.reference:
        run = rows.read_reference(options.study)
        path = path or f"{run.name}.html"
    elif len(names) > 1:
        run = rows.read_run(options.out, ",".join(names))
        path = path or Path(options.out) / PAGES / own_name("-".join(names)) / "report.html"
    else:
        study = study_folder(options.out, names[0]).name
        if path is None:
            say(f"Report: {page.refresh_page(options.out, study, again=True)}")
            return 0
        run = rows.read_run(options.out, study)
    say(f"Report: {page.write_page(run, path)[0]}")
    return 0


def _keep(options: argparse.Namespace) -> int:
    from penultimate.records.archive import keep
    from penultimate.records.reading import study_folder

    say(f"Kept: {keep(study_folder(options.out, options.study), options.to)}")
    return 0


def _join(options: argparse.Namespace) -> int:
    from penultimate.records.joining import join
    from penultimate.study import load_study
    from penultimate.study.unfold import unfold

    study = load_study(options.study)
    measured = {one.measurement.name for requests in study.measured().values() for one in requests}
    graph = unfold(study)
    asked = [
        (step.name, {**step.columns, **({"arm": arm} if "arm" in step.columns else {})})
        for step_id, step in graph.steps.items()
        if step.name in measured
        for arm in graph.arms[step_id]
    ]
    written = join(options.parts, study.describe(), study.keys(), asked, options.to, options.partial)
    say(f"Kept: {written}")
    return 0


def _expect_one_place(options: argparse.Namespace) -> None:
    """Raise RequestError if the options ask for results of both the package and a folder."""
    if options.reference and options.out != "runs":
        raise RequestError(
            "--reference reads a run of the package, --out those of a folder: give one of them"
        )


COMMANDS = (
    Command("status", "Show the studies of a folder and how far each has come.", _takes_status, _status),
    Command("show", "Print a table or figure of the paper from a study's results.", _takes_show, _show),
    Command("why", "Show where a number comes from: its rows, steps, settings and files.", _takes_why, _why),
    Command("report", "Write the report of a study again, or one of several.", _takes_report, _report),
    Command(
        "keep", "Write a study's rows and provenance into a folder, small and readable.", _takes_keep, _keep
    ),
    Command("join", "Join the kept parts of a study that was run in parts.", _takes_join, _join),
)
