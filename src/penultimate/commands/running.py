"""Commands that plan and run studies."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penultimate.command import (
    FLAG,
    OF_A_RUN,
    REPEATABLE,
    Command,
    load_plugins,
    notice,
    say,
    say_as_it_is,
    seeds,
    takes,
    tell,
    tell_plan,
    with_gpus,
)
from penultimate.console import terminal_width
from penultimate.errors import RequestError, counted

if TYPE_CHECKING:
    from penultimate.study.spec import Study


def _takes_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", help="a study's name (penultimate list studies) or the path of a study file")
    takes(parser, "--seeds", "--set", "--data", "--root", "--plugin")
    parser.add_argument(
        "--add",
        **REPEATABLE,
        metavar="OBJECTIVE",
        help="train this objective beside all of the study's: 'poly1(epsilon=2)', with --plugin FILE if it is"
        " your own; repeatable",
    )
    parser.add_argument(
        "--only",
        help="some of the study's objectives, such as softmax,sigmoid; +poly1 adds one, as --add does",
    )
    parser.add_argument(
        "--networks",
        default="",
        metavar="TABLE",
        help="train nothing: the study's networks are the files of a table (CSV or JSON; columns file,"
        " objective, seed and, if wanted, arm)",
    )


def _takes_plan(parser: argparse.ArgumentParser) -> None:
    _takes_study(parser)
    takes(parser, "--out", "--processes", "--gpus", "--json")


def _takes_run(parser: argparse.ArgumentParser) -> None:
    _takes_study(parser)
    takes(parser, *OF_A_RUN)
    parser.add_argument(
        "--accept",
        **FLAG,
        help="keep what is done although plug-ins have changed since: you know that the change is harmless",
    )


def _study(options: argparse.Namespace) -> Study:
    """Return the study that is asked for; notices say what is unusual about it."""
    from penultimate.objectives.advice import few_classes
    from penultimate.objectives.presets import resolve
    from penultimate.plugins import loaded
    from penultimate.study.existing import what_is_left_out
    from penultimate.study.selection import changed, load_study, located_in, names_in, not_used

    load_plugins(options)
    named = list(dict.fromkeys(names_in(options.only or "")))
    if options.only is not None and not named:
        raise RequestError("--only names no objective; without it, all are run")
    only = [name for name in named if not name.startswith("+")]
    add = [name for text in options.add for name in names_in(text)]
    add = list(dict.fromkeys([*add, *(name[1:].strip() for name in named if name.startswith("+"))]))
    whole = load_study(options.study)
    study = changed(whole, options.assignments, only, seeds(options.seeds), options.networks, add)
    if options.networks:
        notice(*what_is_left_out(changed(whole, options.assignments, only, add=add), study))
    study = with_gpus(located_in(study, options.data, options.root), options)
    terms = [term for text in study.objectives for term in resolve(text).terms]
    notice(*filter(None, (few_classes(term, study.card(study.source).classes) for term in terms)))
    notice(*filter(None, (not_used(study, plugin) for plugin in loaded())))
    return study


def _run(options: argparse.Namespace) -> int:
    from penultimate.engine.display import Display
    from penultimate.engine.run import run
    from penultimate.networks.released.catalogue import STUDY
    from penultimate.results.page import refresh_page, study_answer
    from penultimate.store import Store

    study = _study(options)
    if study.name == STUDY:  # with --networks it has a name of its own
        raise RequestError(
            f"{STUDY} measures the networks of the paper's authors: give --networks FOLDER/networks.csv,"
            f" which `penultimate data get {STUDY} --to FOLDER` writes"
        )
    summary = run(
        study,
        options.out,
        options.processes,
        Display(Store(options.out)),
        options.line,
        options.on,
        verify=options.verify,
        accept=options.accept,
    )
    report = refresh_page(options.out, study.name)
    if options.verify:
        say(f"Every file of {counted(summary.cached, 'finished step')} is as it was written.")
    tell(summary, report)
    answer = study_answer(options.out, study.name)
    if answer:
        say("", *textwrap.wrap(answer, min(100, terminal_width() or 100)))
    return 0 if summary.complete else 1


def _plan(options: argparse.Namespace) -> int:
    study = _study(options)
    code = tell_plan(study, options, options.json)
    if study.search is not None and not options.json:
        from penultimate.tuning.grid import search_study

        trainings = counted(len(search_study(study).keys()), "training")
        say(f"Its search ({trainings}): penultimate tune all --study {study.name}")
    return code


def settings_help(arguments: Sequence[str]) -> int:
    """Print the settings of the study that is named before `--set --help`, by default those of nine."""
    from penultimate.study.selection import load_study
    from penultimate.study.settings import settings

    command, study, *_ = (*arguments, "nine")
    study = study if command in ("run", "plan") and not study.startswith("-") else "nine"
    say(f"What --set changes, with the values of {study}; of one arm alone: ARM.SETTING=VALUE.")
    say_as_it_is(*(f"  {line}" for line in settings(load_study(study))))
    return 0


COMMANDS = (
    Command("run", "Run a study: do what is not done yet, then write its report.", _takes_run, _run, True),
    Command(
        "plan",
        "Show a study's steps, which of them are done, and what the rest is expected to cost.",
        _takes_plan,
        _plan,
    ),
)
