"""The command that draws the portrait of an objective."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from penultimate.command import (
    FLAG,
    OF_A_RUN,
    REPEATABLE,
    Command,
    load_plugins,
    notice,
    say,
    seeds,
    takes,
    tell,
    tell_plan,
)
from penultimate.console import terminal_width
from penultimate.portrait import CELLS, SEEDS

if TYPE_CHECKING:
    from penultimate.portrait.request import PortraitRequest


def _takes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("objective", help="an objective, such as 'focal(gamma=2)' or 'focal + dropout'")
    parser.add_argument(
        "--seeds",
        help=f"the seeds to train, such as 0-2 (default: {SEEDS[0]}-{SEEDS[-1]}), of the kept run's",
    )
    parser.add_argument(
        "--grid",
        **REPEATABLE,
        metavar="NAME=VALUES",
        help="the values to try, such as gamma=0.5,1,2 or recipe.learning_rate=0.6,1.2; one value fixes it;"
        f" repeatable (default: {CELLS} values, by factors of two around the one given)",
    )
    parser.add_argument("--thorough", **FLAG, help="search with as many values and seeds as the others were")
    parser.add_argument("--no-strengths", **FLAG, help="train only the strength that the search chooses")
    parser.add_argument("--name", default="", help="the name of its study (default: portrait-OBJECTIVE)")
    takes(parser, "--plan", "--plugin", *OF_A_RUN)


def _request(options: argparse.Namespace) -> PortraitRequest:
    from penultimate.portrait.request import PortraitRequest
    from penultimate.tuning.axes import parse_grids

    return PortraitRequest(
        objective=options.objective,
        seeds=tuple(seeds(options.seeds)) or SEEDS,
        grids=parse_grids(options.grid),
        strengths=not options.no_strengths,
        thorough=options.thorough,
        name=options.name,
        gpus=options.gpus or 0.0,
    )


def _tell_plan(request: PortraitRequest, options: argparse.Namespace) -> int:
    from penultimate.portrait.request import plan_words

    say(*textwrap.wrap(" ".join(plan_words(request)), terminal_width() or 100), "")
    for part in filter(None, (request.search, request.study())):
        tell_plan(part, options)
    return 0


def _portrait(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.portrait.request import plan_words
    from penultimate.portrait.run import draw
    from penultimate.results.exhibit import show
    from penultimate.store import Store

    load_plugins(options)
    request, width = _request(options), terminal_width() or 100
    if options.plan:
        return _tell_plan(request, options)
    say(*textwrap.wrap(" ".join(plan_words(request)), width))
    display = Display(Store(options.out))
    done = draw(request, options.out, options.processes, display, options.line, options.on, options.verify)
    notice(*done.errors)
    shown = show("portrait_place", options.out, done.study, allow_limited=True)
    say(*([shown.text(width)] if shown.is_measured else []))
    tell(done.summary, done.report)
    say("", *textwrap.wrap(done.answer, width))
    return 0 if done.summary.complete and not done.errors else 1


COMMANDS = (
    Command(
        "portrait",
        "Tune, train and measure an objective of your own, and show it beside those of the reference run.",
        _takes,
        _portrait,
        True,
    ),
)
