"""Commands that list what there is, look at data sets on disk, and check the plug-ins of a file."""

from __future__ import annotations

import argparse
import json
import sys

from penultimate import shipped
from penultimate.command import FLAG, Command, load_plugins, notice, say, takes
from penultimate.errors import RequestError, unknown
from penultimate.registry import PLUGIN_KINDS, entry, names

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


def _takes_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", help=", ".join(LISTS))
    parser.add_argument("--all", **FLAG, help="parts of studies and searches behind them, too")
    takes(parser, "--json", "--plugin")


def _list(options: argparse.Namespace) -> int:
    from penultimate.registry import open_packages

    if options.kind is None:
        print(json.dumps([*LISTS]) if options.json else "\n".join(LISTS))
        return 0
    if options.kind not in LISTS:
        raise unknown("list", options.kind, LISTS)
    kind = LISTS[options.kind]
    load_plugins(options)
    if options.json:
        print(json.dumps({name: entry(kind, name).summary for name in names(kind)}, indent=2))
        return 0
    notice(*open_packages())
    listed = names(kind)
    if kind == "measurement":  # those that a study can ask for, without their stages
        from penultimate.measures import catalogue

        listed = catalogue.names()
    folded = [name for name in listed if entry(kind, name).facts.get("folded") and not options.all]
    _say_columns({name: entry(kind, name).summary for name in listed if name not in folded})
    if folded:
        say("", f"{len(folded)} more, such as {folded[0]}: penultimate list {options.kind} --all")
    if kind == "exhibit":
        say("", "Finished runs of all of them come with the package:")
        say("penultimate show NAME --reference               evidence, with the seeds that claims need")
        say("penultimate show NAME --reference --study full  full, with one seed or two")
    if kind == "dataset":
        from penultimate.data.readers.entries import ENTRIES

        say("", "Published, where you have them (penultimate data check NAME --root DIR):")
        _say_columns({name: known.card.summary for name, known in ENTRIES.items()})
    if kind == "objective":
        from penultimate.objectives.parts import PARTS
        from penultimate.objectives.presets import COMPONENT_KINDS, SUM

        known = [entry(kind, name) for kind in COMPONENT_KINDS for name in names(kind)]
        parts = [one for one in known if one.is_plugin or one.name in PARTS]
        say("", "What else a sum may have:")
        _say_columns({one.name: f"{one.kind.replace('_', ' ')}: {one.summary}" for one in parts})
        say("", f"'sigmoid + dropout(keep=0.8)' is one objective: {SUM}.")
        say(
            "",
            f"Others come as plug-in files, --plugin {shipped.PREFIX}NAME: {', '.join(shipped.contents())}.",
        )
    return 0


def _say_columns(summaries: dict[str, str]) -> None:
    width = max(map(len, summaries), default=0)
    say(*(f"{name:<{width}}  {summary}" for name, summary in summaries.items()))


def _takes_data(parser: argparse.ArgumentParser) -> None:
    doings = parser.add_subparsers(dest="doing", metavar="check | get", required=True, help="what to do")
    for name, own, text in (
        (
            "check",
            ", or a folder, table or file of arrays of your own",
            "Check which files of a data set are there, missing or unreadable. Every image is decoded.",
        ),
        (
            "get",
            ", or kornblith2021: the 72 networks of the paper's authors, converted for --networks",
            "Have torchvision download a published data set, unpack ImageNet's archives, or convert the"
            " networks that the paper's authors released.",
        ),
    ):
        doing = doings.add_parser(name, help=text, description=text)
        doing.add_argument("name", help=f"a published one (penultimate list datasets){own}")
        doing.add_argument("--root", "--to", metavar="DIR", help="the folder in which it lies")


def _data(options: argparse.Namespace) -> int:
    from penultimate.data.inspection import check, get
    from penultimate.networks.released.catalogue import STUDY
    from penultimate.networks.released.convert import get as convert_checkpoints

    if options.doing == "check":
        return 0 if check(options.name, options.root, say, _counting) else 1
    if options.root is None:
        raise RequestError(f"say which folder to put it in: penultimate data get {options.name} --to DIR")
    if options.name == STUDY:
        convert_checkpoints(options.root, say)
    else:
        get(options.name, options.root, say)
    return 0


def _counting(done: int) -> None:
    """Show on a terminal how many images are decoded."""
    if sys.stderr.isatty():
        print(f"\r{done:,} images decoded ", end="", file=sys.stderr, flush=True)


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
    Command("list", "List what there is, by kind.", _takes_list, _list),
    Command("data", "Look at a data set on disk, or get one.", _takes_data, _data),
    Command(
        "check", "Check the plug-ins of a file, and explain each mistake in a sentence.", _takes_check, _check
    ),
)
