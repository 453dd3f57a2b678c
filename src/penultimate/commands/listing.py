"""Command that lists what there is, by kind."""

from __future__ import annotations

import argparse
import json
import sys

from penultimate.command import Command, load_plugins, say, takes_json, takes_plugins
from penultimate.errors import RequestError, nearest

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
    takes_json(parser)
    parser.add_argument("--all", action="store_true", help="parts of studies and searches behind them, too")
    takes_plugins(parser)


def _list(options: argparse.Namespace) -> int:
    from penultimate.registry import entry, names, open_packages

    if options.kind is None:
        print(json.dumps([*LISTS]) if options.json else "\n".join(LISTS))
        return 0
    if options.kind not in LISTS:
        raise RequestError(
            f"nothing is listed under '{options.kind}'.{nearest(options.kind, LISTS)}"
            f" Known: {', '.join(LISTS)}."
        )
    kind = LISTS[options.kind]
    if options.json:
        load_plugins(options)
        print(json.dumps({name: entry(kind, name).summary for name in names(kind)}, indent=2))
        return 0
    if kind == "exhibit":
        width = max(map(len, names(kind)))
        say(*(f"{name:<{width}}  {entry(kind, name).summary}" for name in names(kind)))
        say("", "Finished runs of all of them come with the package:")
        say("penultimate show NAME --reference               evidence, with the seeds that claims need")
        say("penultimate show NAME --reference --study full  full, with one seed or two")
        return 0
    load_plugins(options)
    for failure in open_packages():
        say(f"penultimate: {failure}", file=sys.stderr)
    listed = names(kind)
    if kind == "measurement":  # those that a study can ask for, without their stages
        from penultimate.measures import catalogue

        listed = catalogue.names()
    folded = [name for name in listed if entry(kind, name).facts.get("folded") and not options.all]
    shown = [name for name in listed if name not in folded]
    width = max(map(len, shown), default=0)
    for name in shown:
        say(f"{name:<{width}}  {entry(kind, name).summary}")
    if folded:
        say("", f"{len(folded)} more, such as {folded[0]}: penultimate list {options.kind} --all")
    if options.kind == "datasets":
        from penultimate.data.readers.entries import ENTRIES

        say("", "Published, where you have them (penultimate data check NAME --root DIR):")
        width = max(map(len, ENTRIES))
        say(*(f"{name:<{width}}  {known.card.summary}" for name, known in ENTRIES.items()))
    if options.kind == "objectives":
        from penultimate.objectives.parts import PARTS
        from penultimate.objectives.presets import COMPONENT_KINDS, SUM
        from penultimate.shipped import PREFIX, contents

        known = [entry(kind, name) for kind in COMPONENT_KINDS for name in names(kind)]
        parts = [one for one in known if one.is_plugin or one.name in PARTS]
        say("", "What else a sum may have:")
        say(*(f"{one.name:<{width}}  {one.kind.replace('_', ' ')}: {one.summary}" for one in parts))
        say("", f"'sigmoid + dropout(keep=0.8)' is one objective: {SUM}.")
        say("", f"Others come as plug-in files, --plugin {PREFIX}NAME: {', '.join(contents())}.")
    return 0


COMMANDS = (Command("list", "List what there is, by kind.", _takes_list, _list),)
