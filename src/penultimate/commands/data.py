"""Commands for data sets on disk, and for banks of features computed elsewhere."""

from __future__ import annotations

import argparse
import sys

from penultimate.command import Command, say
from penultimate.errors import RequestError


def _takes_data(parser: argparse.ArgumentParser) -> None:
    doings = parser.add_subparsers(
        dest="doing", metavar="check | get | prepare", required=True, help="what to do"
    )
    for name, text in (
        (
            "check",
            "Check which files of a data set are there, missing or unreadable. Every image is decoded.",
        ),
        ("get", "Unpack a published data set from archives in --root, or download it where possible."),
    ):
        doing = doings.add_parser(name, help=text, description=text)
        own = ", or a folder, table or file of arrays of your own" if name == "check" else ""
        doing.add_argument("name", help=f"a published one (penultimate list datasets){own}")
        doing.add_argument("--root", metavar="DIR", help="the folder in which it lies")
        if name == "check":
            doing.add_argument(
                "--near-copies",
                action="store_true",
                help="also name test images that look like training images, though their bytes differ",
            )
    text = "Copy the images, resized, into a few large files for faster training. A killed copy is resumed."
    doing = doings.add_parser("prepare", help=text, description=text)
    doing.add_argument("name", help="a published one, or a folder, table or file of arrays of your own")
    doing.add_argument("--root", metavar="DIR", help="the folder in which it lies")
    doing.add_argument("--to", metavar="DIR", required=True, help="the folder for the copy")
    doing.add_argument(
        "--size", metavar="N", type=int, required=True, help="the shorter side in pixels, such as 256"
    )
    doing.add_argument(
        "--raw",
        action="store_true",
        help="the bytes of pixels, several times as large as JPEGs of quality 95",
    )


def _takes_bank(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="+",
        help="features and labels that something else wrote; of several files, of the same examples, each"
        " column of labels gives a ranking with paired tests",
    )
    parser.add_argument(
        "--features",
        metavar="NAMES",
        help="the array of features, or the columns that are one each, by commas (default: the only array of"
        " two dimensions)",
    )
    parser.add_argument(
        "--columns",
        metavar="PATTERN",
        help="the columns that are a feature each, by a pattern, quoted for the shell: 'f*'",
    )
    parser.add_argument(
        "--test",
        nargs="+",
        default=[],
        metavar="FILE",
        help="of several files: their test examples, a file for each in the same order (default: a fifth of"
        " the examples, drawn within the classes of the first column)",
    )
    parser.add_argument(
        "--split", default="", metavar="NAME", help="the column that says which are tested on"
    )
    parser.add_argument(
        "--group",
        default="",
        metavar="NAME",
        help="the column of groups, such as patients: each is used whole for training or for testing, and"
        " intervals and tests are of groups",
    )
    parser.add_argument("--ids", metavar="NAME", help="the column by which rows of several files are matched")
    parser.add_argument(
        "--labels", metavar="NAMES", help="columns of labels, such as class,site (default: all there are)"
    )
    parser.add_argument(
        "--examples", type=int, default=10_000, help="what the probes use of the bank (default: 10000)"
    )


def _data(options: argparse.Namespace) -> int:
    from penultimate.data.readers.inspection import check, get

    if options.doing == "check":
        return 0 if check(options.name, options.root, say, _counting, options.near_copies) else 1
    if options.doing == "prepare":
        from penultimate.data.disk.preparing import QUALITY, prepare

        quality = 0 if options.raw else QUALITY
        prepare(options.name, options.root, options.to, options.size, say, quality, _counting)
        return 0
    if options.root is None:
        raise RequestError(f"say which folder to put it in: penultimate data get {options.name} --root DIR")
    get(options.name, options.root, say)
    return 0


def _counting(done: int) -> None:
    """Show on a terminal how many images are decoded."""
    if sys.stderr.isatty():
        print(f"\r{done:,} images decoded ", end="", file=sys.stderr, flush=True)


def _bank(options: argparse.Namespace) -> int:
    features, labels = ([*filter(None, (of or "").split(","))] for of in (options.features, options.labels))
    if options.columns:
        if features:
            raise RequestError("--features names columns, and --columns a pattern of them; give one of these")
        features = [options.columns]
    if len(options.file) > 1:
        from penultimate.banks.compared import comparison_lines

        told = {"tests": options.test, "split": options.split, "group": options.group, "ids": options.ids}
        say(*comparison_lines(options.file, features, labels, **told))
        return 0
    if options.test or options.split:
        raise RequestError("--test and --split go with several files, which are compared")
    from penultimate.banks.organisation import organisation_lines

    kept = (options.examples, options.ids, options.group)
    say(*organisation_lines(options.file[0], features, labels, *kept))
    return 0


COMMANDS = (
    Command("data", "Look at a data set on disk, or get one.", _takes_data, _data),
    Command(
        "bank",
        "Measure how features in a file (.npz, .safetensors or .parquet) are organised: R^2 and accuracies of"
        " probes for each column of labels. Several files are compared on the same examples.",
        _takes_bank,
        _bank,
    ),
)
