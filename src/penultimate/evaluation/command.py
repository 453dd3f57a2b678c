"""The command that evaluates the user's own networks and data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penultimate.command import (
    Command,
    check_processes,
    say,
    takes_engine,
    takes_gpus,
    takes_out,
    takes_processes,
    tell,
    tell_plan,
    verifies,
)
from penultimate.errors import RequestError

if TYPE_CHECKING:
    from penultimate.evaluation.request import Request


class _Weights(argparse.Action):
    """The option for the weights of the preceding model."""

    def __call__(
        self, parser: Any, options: argparse.Namespace, value: str | Sequence[Any] | None, flag: Any = None
    ) -> None:
        if not options.model or options.model[-1][1]:
            raise RequestError("--weights FILE follows the --model that it is for")
        options.model[-1] = (options.model[-1][0], str(value))


class _Model(argparse.Action):
    """The option for a model, whose weights may follow."""

    def __call__(
        self, parser: Any, options: argparse.Namespace, value: str | Sequence[Any] | None, flag: Any = None
    ) -> None:
        options.model = [*options.model, (str(value), "")]


def _takes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--example",
        action="store_true",
        help="two trained networks and two tasks that come with the package, before any of your own",
    )
    parser.add_argument(
        "--model",
        action=_Model,
        default=[],
        metavar="[NAME=]MODEL",
        help="timm:NAME, torchvision:NAME, hf:NAME or hf:FOLDER (transformers), open_clip:NAME/WEIGHTS or"
        " open_clip:FOLDER, FILE.py:FUNCTION that builds a module, onnx:FILE, or a folder of"
        " networks that were trained here; with settings 'timm:NAME(pretrained=False)'; repeatable",
    )
    parser.add_argument(
        "--weights",
        action=_Weights,
        metavar="FILE",
        help="a checkpoint with the weights of the --model before it",
    )
    parser.add_argument(
        "--features",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="in place of models and data: features and labels in files, compared on the same examples;"
        " twice or more",
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="[NAME=]FOLDER",
        help="a task: a folder of images, with or without folders of splits, or a known data set; repeatable",
    )
    parser.add_argument(
        "--source", default="", metavar="[NAME=]FOLDER", help="what the networks were trained on, if at hand"
    )
    parser.add_argument(
        "--outside",
        action="append",
        default=[],
        metavar="[NAME=]FOLDER",
        help="images of other data, with any classes or none: measures how well each network tells them from"
        " the source's (without a source, from the first task's); written as for --data; repeatable",
    )
    parser.add_argument(
        "--classifies",
        default="",
        metavar="all|NAME,...",
        help="the networks whose final layers are for the source's classes, in its order",
    )
    parser.add_argument(
        "--class-order",
        default="",
        metavar="FILE.json|text|natural",
        help="the order of the source's classes in the networks' outputs: a list of names, a class_to_idx or"
        " an id2label, or how they are sorted (default: text, as torchvision's ImageFolder sorts folders;"
        " natural: 2 before 10, as timm does)",
    )
    parser.add_argument(
        "--group",
        default="",
        metavar="COLUMN|LEVEL",
        help="the column of your tables, or the level of your folders (1: the first below a class), such as a"
        " patient, that must not be split between training and test; intervals and tests are then of whole"
        " groups",
    )
    parser.add_argument(
        "--copies",
        choices=("keep", "drop"),
        default="keep",
        help="what to do with equal files: keep all (default), or drop all but one (a test image where there"
        " is one), and drop all copies of an image that has two labels",
    )
    parser.add_argument("--root", default="", metavar="FOLDER", help="where data that are only named lie")
    parser.add_argument(
        "--fine-tune", action="store_true", help="also train all weights on each task, which takes long"
    )
    parser.add_argument(
        "--no-baselines",
        action="store_false",
        dest="baselines",
        help="leave out the probes on pixels, colours and random convolutions that each network is compared"
        " with",
    )
    parser.add_argument(
        "--join",
        action="append",
        default=[],
        metavar="A+B",
        help="also probe the features of these networks together, by their names; repeatable",
    )
    parser.add_argument(
        "--poolings",
        default="",
        metavar="all|POOLING,...",
        help="evaluate vision transformers once more with each of these poolings of their tokens: cls, mean"
        " (of all tokens), patches:mean, cls+mean (the class token and the mean of patches, side by side)",
    )
    parser.add_argument(
        "--layers",
        action="store_true",
        help="also name the layer of each network to read for each task, chosen on validation images, and"
        " what it gains over the penultimate features on test images",
    )
    parser.add_argument(
        "--speed",
        action="store_true",
        help="also measure how many images a second each network takes on this machine",
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="also measure the calibration of the linear probes, for which each is fitted again",
    )
    parser.add_argument(
        "--size",
        type=int,
        metavar="PIXELS",
        help="the size of the images that all networks see (default: each network's own)",
    )
    parser.add_argument(
        "--crop",
        type=float,
        metavar="SHARE",
        help="the share of the resized image that the centre crop keeps, such as 0.9 (default: each network's"
        " own)",
    )
    parser.add_argument(
        "--name", default="", help="the name of the study, to keep several apart (default: evaluation)"
    )
    parser.add_argument(
        "--plan", action="store_true", help="only say what would be done, and how long it takes"
    )
    takes_out(parser)
    takes_processes(parser)
    takes_engine(parser)
    takes_gpus(parser, "0")
    verifies(parser)


def _request(options: argparse.Namespace) -> Request:
    from penultimate.evaluation import example
    from penultimate.evaluation.naming import data_named, networks_named, outside_named
    from penultimate.evaluation.request import NAME, Request

    networks = networks_named(options.model)
    data = data_named([*([options.source] if options.source else []), *options.data], options.root)
    source = next(iter(data)) if options.source else ""
    if options.example:
        networks, data = example.with_example(networks, data)
    chosen = _listed(options.classifies)
    return Request(
        networks=networks,
        data=data,
        source=source,
        classifies=chosen == ["all"] or chosen,
        fine_tune=options.fine_tune,
        size=options.size,
        crop=options.crop,
        class_order=options.class_order,
        copies=options.copies,
        name=options.name or (example.NAME if options.example else NAME),
        gpus=options.gpus or 0.0,
        baselines=options.baselines,
        speed=options.speed,
        join=options.join,
        outside=outside_named(options.outside, data, options.root),
        calibrate=options.calibrate,
        poolings="all" if options.poolings == "all" else _listed(options.poolings),
        layers=options.layers,
        group=int(options.group) if options.group.isdecimal() else options.group,
    )


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _compare_features(options: argparse.Namespace) -> int:
    """Print the comparison of feature files; raise RequestError for networks and data beside them."""
    from penultimate.banks.compared import comparison_lines

    if options.model or options.data or options.source or options.example:
        raise RequestError(
            "--features compares files that hold features and labels, without --model and --data"
        )
    named = {}
    for text in options.features:
        name, sign, file = (part.strip() for part in text.partition("="))
        if not sign or not name or not file:
            raise RequestError(f"--features takes NAME=FILE, not '{text}'")
        if name in named:
            raise RequestError(f"two files are called '{name}'; name one of them otherwise")
        named[name] = file
    say(*comparison_lines(named, group=options.group))
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.evaluation.evaluating import carry_out
    from penultimate.report import exhibit, render_exhibit_text
    from penultimate.store import Store

    check_processes(options)
    if options.features:
        return _compare_features(options)
    request = _request(options)
    if options.plan:
        return tell_plan(request.study(), options)
    display = Display(Store(options.out))
    done = carry_out(
        request, options.out, options.processes, display, options.line, options.on, options.verify
    )
    if done.warnings:
        say(*done.warnings, "")
    for name in ("ranking", "readout", "labels", "tableD1"):
        shown = exhibit(name, options.out, done.study)
        if shown.is_measured or name == "ranking" or any(": no value: " in note for note in shown.notes):
            say(render_exhibit_text(shown))
    say(*done.remarks)
    tell(done.summary, done.report)
    return 0 if done.summary.complete else 1


COMMANDS = (
    Command(
        "evaluate",
        "Evaluate networks of your own on data of your own: one page that ranks them.",
        _takes,
        _evaluate,
        True,
    ),
)
