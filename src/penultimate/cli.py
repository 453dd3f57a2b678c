"""The command `penultimate`. Parsing needs no tensor library; each command imports what it uses.

EXIT_CODES explains the exit codes; `penultimate --help` ends with it.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from penultimate.command import Command, notice, say
from penultimate.commands import listing, running, showing, tuning
from penultimate.errors import (
    DamagedFileError,
    PenultimateError,
    RequestError,
    nearest,
    shortened,
    unknown,
)
from penultimate.evaluation import command as evaluation
from penultimate.portrait import command as portrait

EXIT_CODES = """exit codes:
  0    done
  1    done as far as it goes: a step failed (each is named, with its log), an exhibit or `why` has no
       number to show, `check`, `data check` or `status --verify` found something to do, the system refused
       something
  2    the request was wrong, or a file is damaged: what to do is said
  130  stopped by Ctrl-C (143: by SIGTERM, 129: by SIGHUP, 141: nothing reads the output); a command that
       computes goes on where it was when it is given again
"""
MODULES = (running, evaluation, portrait, showing, listing, tuning)
ORDER = (
    *("run", "show", "report", "evaluate", "portrait", "check"),
    *("plan", "status", "why", "list", "tune", "data", "keep", "join"),
)
BY_NAME = {command.name: command for module in MODULES for command in module.COMMANDS}
COMMANDS = {name: BY_NAME[name] for name in ORDER}
STOPS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that Slurm, systemd and docker send to stop a process, or that a closing terminal sends."""
LEFT_OUT = ("--out", "--verify", "--accept")
"""Options that are no part of a command as results record it."""
GONE = {
    "doctor": "penultimate status --verify lists what is damaged",
    "bank": "penultimate evaluate --features NAME=FILE compares features in files",
    "--no-timing": "nothing is timed any more: leave it out",
    "--device": "a plan tells the time as soon as one step of a kind is done on that device",
    "--images-per-second": "a plan tells the time as soon as one network is trained",
    "--join": "join them in a file of your own: penultimate evaluate --features NAME=FILE",
    "--budget": "every cell of the grids is trained; --grid says which values they have",
    "--expansions": "if the choice lies at the edge of a grid, give a wider --grid; finished cells are kept",
}
"""Commands and options of earlier versions, and what replaces them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; a user's mistake never ends in a traceback."""
    os.environ["MPLBACKEND"] = "agg"  # a notebook may name a backend that is not installed here
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # it prints "?" for characters that its encoding lacks
            stream.reconfigure(errors="replace")
    for each in STOPS:
        if signal.getsignal(each) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(each, _stop)
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        return _done(words)
    except PenultimateError as error:
        notice(shortened(str(error)))
        return 2 if isinstance(error, RequestError | DamagedFileError) else 1
    except KeyboardInterrupt as stop:
        goes_on = words[0] in COMMANDS and COMMANDS[words[0]].goes_on
        say(file=sys.stderr)
        notice(f"stopped; {'the same command continues from here' if goes_on else 'nothing was changed'}")
        return 128 + int((*stop.args, signal.SIGINT)[0])
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"'{error.filename}': " if error.filename else ""
        notice(
            f"{where}{error.strerror or error}; nothing done is lost: free some space, change who may write,"
            " or name another place (--to, --out), and give the same command again"
        )
        return 1


def _stop(number: int, frame: object) -> NoReturn:
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def _done(words: list[str]) -> int:
    if words[0] in GONE:
        raise RequestError(f"the command '{words[0]}' is gone: {GONE[words[0]]}")
    if not words[0].startswith("-") and words[0] not in COMMANDS:
        raise unknown("command", words[0], COMMANDS)
    if ("--set", "--help") in itertools.pairwise(words):
        return running.settings_help(words)
    if "--no-timing" in words:  # it would change nothing, and scripts still give it
        notice(f"the option --no-timing is gone: {GONE['--no-timing']}")
        words = [word for word in words if word != "--no-timing"]
    options, extra = _parser().parse_known_args(words)
    if extra:
        parser = _parser_of(words[0]) if words[0] in COMMANDS else _parser()
        hint = _hint(extra, words[0], parser)
        raise RequestError(
            f"unrecognized arguments: {' '.join(extra)}.{hint}\n{parser.format_usage().strip()}"
        )
    if options.version:
        from penultimate import __version__

        say(__version__)
        return 0
    options.line = _line(words)
    command: Command = COMMANDS[options.command]
    return command.do(options)


def _line(words: Sequence[str]) -> str:
    """Return the command line as results record it, without the results folder, --verify and --accept.

    Who repeats it accepts no change that was made later.
    """
    pairs = itertools.pairwise(["", *words])
    kept = [
        word
        for before, word in pairs
        if before != "--out" and word not in LEFT_OUT and not word.startswith("--out=")
    ]
    return "penultimate " + shlex.join(kept)


def _hint(extra: Sequence[str], name: str, parser: argparse.ArgumentParser) -> str:
    """Return what replaces an option that is gone, or the nearest option as a question, or nothing."""
    option = extra[0].partition("=")[0]
    if option in GONE:
        return f" The option {option} is gone: {GONE[option]}."
    if name == "evaluate" and not any(each.startswith("-") for each in extra):
        from penultimate.networks.sources import is_a_network

        options = (f"--{'model' if is_a_network(each) else 'data'} {each}" for each in extra)
        return f" Did you mean {' '.join(options)}?"
    if option[2:] in COMMANDS:
        return f" That is a command: penultimate {option[2:]}."
    options = (each for each in parser._option_string_actions if each.startswith("--"))
    return nearest(option, options) if option.startswith("-") else ""


class _Parser(argparse.ArgumentParser):
    """Parser that reports errors in sentences."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message}\n{self.format_usage().strip()}")


def _parser_of(name: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=f"penultimate {name}")
    COMMANDS[name].takes(parser)
    return parser


def _parser() -> argparse.ArgumentParser:
    whole = _Parser(
        prog="penultimate",
        description="Which training objective gives features that transfer, and what does it do inside?",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="store_true", help="print the version and stop")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for command in COMMANDS.values():
        command.takes(commands.add_parser(command.name, help=command.text, description=command.text))
    return whole


if __name__ == "__main__":
    sys.exit(main())
