"""The command that evaluates the user's own networks and data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penultimate.command import FLAG, OF_A_RUN, Command, say, takes, tell, tell_plan
from penultimate.console import terminal_width
from penultimate.errors import RequestError

if TYPE_CHECKING:
    from penultimate.evaluation.request import Request


class _Model(argparse.Action):
    """The option for a model, and the one for the weights of the model before it."""

    def __call__(
        self, parser: Any, options: argparse.Namespace, value: str | Sequence[Any] | None, flag: Any = None
    ) -> None:
        if flag == "--model":
            options.model = [*options.model, (str(value), "")]
        elif not options.model or options.model[-1][1]:
            raise RequestError("--weights FILE follows the --model that it is for")
        else:
            options.model[-1] = (options.model[-1][0], str(value))


MODELS = (
    "timm:NAME, torchvision:NAME, hf:NAME or hf:FOLDER (transformers), open_clip:NAME/WEIGHTS or"
    " open_clip:FOLDER, FILE.py:FUNCTION that builds a module, onnx:FILE, or a folder of networks that were"
    " trained here; with settings 'timm:NAME(pretrained=False)'; repeatable"
)
FLAGS = {
    "--example": "two trained networks and two tasks that come with the package, before any of your own",
    "--fine-tune": "also train all weights on each task, which takes long",
    "--layers": "also name the layer of each network to read for each task, chosen on validation images, and"
    " what it gains over the penultimate features on test images",
    "--speed": "also measure how many images a second each network takes on this machine",
    "--calibrate": "also measure the calibration of the linear probes, for which each is fitted again",
}
REPEATED = {
    "--features": (
        "NAME=FILE",
        "in place of models and data: features and labels in files, compared on the same examples; twice or"
        " more",
    ),
    "--data": (
        "[NAME=]FOLDER",
        "a task: a folder of images, with or without folders of splits, or a known data set; repeatable",
    ),
    "--outside": (
        "[NAME=]FOLDER",
        "images of other data, with any classes or none: measures how well each network tells them from the"
        " source's (without a source, from the first task's); repeatable",
    ),
}
TEXTS = {
    "--source": ("[NAME=]FOLDER", "what the networks were trained on, if at hand"),
    "--classifies": (
        "all|NAME,...",
        "the networks whose final layers are for the source's classes, in its order",
    ),
    "--class-order": (
        "FILE.json|text|natural|dictionary",
        "the order of the source's classes in the networks' outputs: a list of names, a class_to_idx or an"
        " id2label, or how they are sorted (default: text, as torchvision's ImageFolder sorts folders;"
        " natural: 2 before 10, as timm does)",
    ),
    "--group": (
        "COLUMN|LEVEL",
        "the column of your tables, or the level of your folders (1: the first below a class), such as a"
        " patient, that must not be split between training and test; intervals and tests are of whole groups",
    ),
    "--poolings": (
        "all|POOLING,...",
        "evaluate vision transformers once more with each of these poolings of their tokens: cls, mean (of"
        " all tokens), patches:mean, cls+mean (the class token and the mean of patches, side by side)",
    ),
    "--root": ("FOLDER", "where data that are only named lie"),
    "--name": ("NAME", "the name of the study, to keep several apart (default: evaluation)"),
}


def _takes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", action=_Model, default=[], metavar="[NAME=]MODEL", help=MODELS)
    weights = "a checkpoint with the weights of the --model before it"
    add("--weights", action=_Model, metavar="FILE", help=weights)
    for option, (metavar, words) in REPEATED.items():
        add(option, action="append", default=[], metavar=metavar, help=words)
    for option, (metavar, words) in TEXTS.items():
        add(option, default="", metavar=metavar, help=words)
    for option, words in FLAGS.items():
        add(option, **FLAG, help=words)
    simple = (
        "leave out the probes on pixels, colours and random convolutions, with which networks are compared"
    )
    add("--no-baselines", action="store_false", dest="baselines", help=simple)
    copies = "what to do with equal files: keep all (default), or drop all but one (a test image if there is)"
    add("--copies", choices=("keep", "drop"), default="keep", help=f"{copies}, and all that have two labels")
    size = "the size of the images that all networks see (default: each network's own)"
    add("--size", type=int, metavar="PIXELS", help=size)
    crop = "the share of the resized image that the centre crop keeps (default: each network's own)"
    add("--crop", type=float, metavar="SHARE", help=crop)
    takes(parser, "--plan", *OF_A_RUN)


def _request(options: argparse.Namespace) -> Request:
    from penultimate.evaluation import example
    from penultimate.evaluation.naming import data_named, networks_named, outside_named
    from penultimate.evaluation.request import NAME, Request

    networks = networks_named(options.model)
    data = data_named([*([options.source] if options.source else []), *options.data], options.root)
    source = next(iter(data)) if options.source else ""
    if options.example:
        networks, data = example.with_example(networks, data)
    chosen, group = _listed(options.classifies), options.group
    alike = "fine_tune size crop class_order copies baselines speed calibrate layers"
    return Request(
        networks,
        data,
        source,
        chosen == ["all"] or chosen,
        outside=outside_named(options.outside, data, options.root),
        group=int(group) if group.isdecimal() else group,
        poolings="all" if options.poolings == "all" else _listed(options.poolings),
        gpus=options.gpus or 0.0,
        name=options.name or (example.NAME if options.example else NAME),
        **{name: getattr(options, name) for name in alike.split()},
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
    from penultimate.results.exhibit import show
    from penultimate.store import Store

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
    for name in ("ranking", "readout", "labels"):
        shown = show(name, done.run)
        if shown.is_measured or name == "ranking":
            say(shown.text(terminal_width() or 160))
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
