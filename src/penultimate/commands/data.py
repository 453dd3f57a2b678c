"""The command for data sets on disk."""

from __future__ import annotations

import argparse
import sys

from penultimate.command import Command, say
from penultimate.errors import RequestError


def _takes_data(parser: argparse.ArgumentParser) -> None:
    doings = parser.add_subparsers(dest="doing", metavar="check | get", required=True, help="what to do")
    for name, text in (
        (
            "check",
            "Check which files of a data set are there, missing or unreadable. Every image is decoded.",
        ),
        ("get", "Have torchvision download a published data set, or unpack ImageNet's archives."),
    ):
        doing = doings.add_parser(name, help=text, description=text)
        own = ", or a folder, table or file of arrays of your own" if name == "check" else ""
        doing.add_argument("name", help=f"a published one (penultimate list datasets){own}")
        doing.add_argument("--root", metavar="DIR", help="the folder in which it lies")


def _data(options: argparse.Namespace) -> int:
    from penultimate.data.inspection import check, get

    if options.doing == "check":
        return 0 if check(options.name, options.root, say, _counting) else 1
    if options.root is None:
        raise RequestError(f"say which folder to put it in: penultimate data get {options.name} --root DIR")
    get(options.name, options.root, say)
    return 0


def _counting(done: int) -> None:
    """Show on a terminal how many images are decoded."""
    if sys.stderr.isatty():
        print(f"\r{done:,} images decoded ", end="", file=sys.stderr, flush=True)


COMMANDS = (Command("data", "Look at a data set on disk, or get one.", _takes_data, _data),)
