"""What the command `penultimate` takes: its subcommands, their options and their help."""

from __future__ import annotations

import argparse
from typing import NoReturn

from penultimate.banks import command as banks
from penultimate.checking import CHECKS
from penultimate.errors import RequestError
from penultimate.objectives.presets import SUM

LISTS = {
    "objectives": "objective",
    "datasets": "dataset",
    "backbones": "backbone",
    "metrics": "metric",
    "probes": "probe",
    "measurements": "measurement",
    "studies": "study",
    "exhibits": "exhibit",
}


class _Parser(argparse.ArgumentParser):
    """Errors as sentences, with the nearest command."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message}\n{self.format_usage().strip()}")


def parser() -> argparse.ArgumentParser:
    whole = _Parser(
        prog="penultimate",
        description="Which training objective gives features that transfer, and what does it do inside?",
    )
    whole.add_argument("--version", action="store_true", help="print the version and stop")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    for name, text in (
        ("run", "Run a study: do what is not done yet, then write its report."),
        ("plan", "Show a study's steps, which of them are done, and what the rest is expected to cost."),
    ):
        subcommand = command(name, text)
        subcommand.add_argument(
            "study", help="a study's name (penultimate list studies) or the path of a study file"
        )
        subcommand.add_argument("--out", default="runs", help="the folder of all results (default: runs)")
        subcommand.add_argument("--seeds", help="other seeds, such as 0,1,2 or 0-7")
        subcommand.add_argument(
            "--only", help="some of the study's objectives, such as softmax,sigmoid, and those of plug-ins"
        )
        _takes_settings(subcommand)
        subcommand.add_argument("--processes", type=int, help="worker processes (default: one for each core)")
        if name == "run":
            _verifies(subcommand)
            engines = "local (default), ray, ray:HOST:PORT (or ray:auto) for a cluster, or MODULE:CLASS"
            subcommand.add_argument("--on", default="local", metavar="ENGINE", help=engines)
        _takes_plugins(subcommand)
    status = command("status", "Show the studies of a folder and how far each has come.")
    status.add_argument("--out", default="runs")
    show = command("show", "Print an exhibit (a table or figure of the paper) from a study's results.")
    show.add_argument("exhibit", help="its name (penultimate list exhibits)")
    why = command("why", "Show where a number comes from: its rows, steps, settings, machine and files.")
    why.add_argument("exhibit", help="whose numbers are meant (penultimate list exhibits)")
    why.add_argument("objective", help="an objective of the study, or a network that was given")
    why.add_argument("target", nargs="?", help="a data set of the study (default: the pretraining set)")
    report = command("report", "Write the report of a study again.")
    report.add_argument("--to", metavar="FILE", help="where to (default: in the study's folder)")
    for subcommand in (show, report):
        subcommand.add_argument(
            "--reference", action="store_true", help="from the reference run that comes with the package"
        )
    keep = command("keep", "Write a finished study's rows and provenance into a folder, small and readable.")
    keep.add_argument("--to", required=True, metavar="FOLDER")
    join = command(
        "join", "Write the kept parts of a study, run apart or on several machines, as the kept whole."
    )
    join.add_argument("study", help="the whole: its name or its Python file")
    join.add_argument("parts", nargs="+", metavar="FOLDER", help="what keep wrote of a part")
    join.add_argument("--to", required=True, metavar="FOLDER")
    for subcommand in (show, why, report, keep):
        subcommand.add_argument("--study", default="", help="the study's name (default: the one run last)")
        subcommand.add_argument("--out", default="runs")
    show.add_argument("--allow-limited", action="store_true", help="accept a study too small to be evidence")
    for subcommand in (show, report):
        _takes_plugins(subcommand)
    tune = command("tune", "Search for an objective's hyperparameters on the holdout; nothing else decides.")
    tune.add_argument(
        "objectives",
        nargs="+",
        metavar="OBJECTIVE",
        help=f"an objective, such as 'sigmoid + dropout' ({SUM}), or all of the study's: all",
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
    tune.add_argument("--product", action="store_true", help="try every combination of the grids' values")
    tune.add_argument("--expansions", type=int, help="how often a grid is expanded at its edge (default: 2)")
    _takes_settings(tune)
    tune.add_argument("--out", default="runs", help="the folder of all results (default: runs)")
    _verifies(tune)
    tune.add_argument("--processes", type=int, help="worker processes (default: one for each core)")
    _takes_plugins(tune)
    listing = command("list", "List what there is, by kind.")
    listing.add_argument("kind", help=", ".join(LISTS))
    listing.add_argument(
        "--out", default="runs", help="the folder of results in which exhibits are looked for (default: runs)"
    )
    _takes_plugins(listing)
    data = command("data", "Look at a data set on disk, or get one.")
    doings = data.add_subparsers(dest="doing", metavar="check | get", required=True, parser_class=_Parser)
    for name, text in (
        ("check", "Say what of a data set is there, what is missing and what cannot be read; decode it all."),
        ("get", "Unpack a published data set's archives that lie in --root, or download it if that can be."),
    ):
        doing = doings.add_parser(name, help=text, description=text)
        own = ", or a folder, table or file of arrays of your own" if name == "check" else ""
        doing.add_argument("name", help=f"a published one (penultimate list datasets){own}")
        doing.add_argument("--root", metavar="DIR", help="the folder in which it lies")
    doctor = command(
        "doctor",
        "Say what of the machine, the versions, the results and the data is sound, and what to do about what"
        " is not. Every file is read; none is changed.",
    )
    doctor.add_argument("--out", default="runs", help="the folder of all results (default: runs)")
    check = command("check", "Check the plug-ins of a file: what is wrong is said in a sentence.")
    check.add_argument(
        "file", nargs="?", help="a Python file with @register.loss, .head, .penalty, ... in it"
    )
    check.add_argument("--example", metavar="KIND", help=f"print a file that works: {', '.join(CHECKS)}")
    banks.takes(command("bank", banks.TEXT))
    return whole


def _verifies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verify",
        action="store_true",
        help="first digest every file of every finished step, and compute what is damaged anew",
    )


def _takes_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        dest="assignments",
        help="change a setting, such as recipe.epochs=28; repeatable; --set --help lists them",
    )


def _takes_plugins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="FILE", help="a Python file of plug-ins; repeatable"
    )
