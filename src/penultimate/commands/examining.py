"""The command that checks the plug-ins of a file."""

from __future__ import annotations

import argparse

from penultimate import shipped
from penultimate.command import Command, say
from penultimate.errors import RequestError
from penultimate.registry import PLUGIN_KINDS


def _takes_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", help="a Python file with @register.loss, .head, .regulariser, ... in it"
    )
    listed = f"{', '.join(PLUGIN_KINDS)}; or the file of an objective that comes with the package: "
    parser.add_argument(
        "--example", metavar="KIND", help=f"print a file that works: {listed}{', '.join(shipped.contents())}"
    )


def _check(options: argparse.Namespace) -> int:
    from penultimate.checking import check_file, example

    if (options.file is None) == (options.example is None):
        raise RequestError("give a file to check, or --example KIND for one to start from")
    if options.example is not None:
        print(example(options.example), end="")
        return 0
    report = check_file(options.file)
    say(report)
    return 0 if report.ok else 1


COMMANDS = (
    Command(
        "check", "Check the plug-ins of a file, and explain each mistake in a sentence.", _takes_check, _check
    ),
)
