"""The command `penultimate`. Parsing needs no tensor library; each command imports what it uses.

EXIT_CODES explains the exit codes; `penultimate --help` ends with it.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import itertools
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from penultimate.command import Command, say
from penultimate.commands import data, examining, listing, running, showing, tuning
from penultimate.errors import (
    DamagedFileError,
    PenultimateError,
    RequestError,
    nearest,
    shortened,
    unknown,
)
from penultimate.evaluation import command as evaluation
from penultimate.files import FULL
from penultimate.portrait import command as portrait
from penultimate.variables import expect_variables

EXIT_CODES = """exit codes:
  0    done
  1    done as far as it goes: a step failed (each is named, with its log), an exhibit or `why` has no
       number to show, `check`, `data check` or `status --verify` found something to do, the system refused
       something
  2    the request was wrong, or a file is damaged: what to do is said
  130  stopped by Ctrl-C (143: by SIGTERM, 129: by SIGHUP, 141: nothing reads the output); a command that
       computes goes on where it was when it is given again
"""
STOPS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that Slurm, systemd and docker send to stop a process, or that a closing terminal sends."""
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the system about who may read and write, or that nobody may write."""
COMMANDS = {
    command.name: command
    for module in (running, evaluation, portrait, showing, listing, tuning, data, examining)
    for command in module.COMMANDS
}


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
    os.environ["MPLBACKEND"] = (
        "agg"  # pages need no window, and a notebook may name a backend that is not installed here
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # it prints "?" for characters that its encoding lacks
            stream.reconfigure(errors="replace")
    with _stopped_as_by_ctrl_c() as came:
        return _main(list(sys.argv[1:] if arguments is None else arguments), came)


def _main(arguments: list[str], came: list[int]) -> int:
    try:
        if not arguments:
            arguments = ["--help"]
        _known_command(arguments[0])
        if ("--set", "--help") in itertools.pairwise(arguments):
            return running.settings_help(arguments)
        options, extra = _parser().parse_known_args(arguments)
        if extra:
            of = arguments[0] if arguments[0] in COMMANDS else ""
            raise RequestError(f"unrecognized arguments: {' '.join(extra)}.{_guess(extra, of)}\n{_usage(of)}")
        if options.version:
            from penultimate import __version__

            say(__version__)
            return 0
        expect_variables()
        options.line = _line(arguments)
        command: Command = COMMANDS[options.command]
        return command.do(options)
    except PenultimateError as error:
        say(f"penultimate: {shortened(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, RequestError | DamagedFileError) else 1
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):  # the terminal may be closed already
            goes_on = arguments[0] in COMMANDS and COMMANDS[arguments[0]].goes_on
            left = "the same command continues from here" if goes_on else "nothing was changed"
            say(f"\npenultimate: stopped; {left}", file=sys.stderr)
        return 128 + next(iter(came), signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if arguments[0] not in COMMANDS or not COMMANDS[arguments[0]].goes_on:
            return 0
        with contextlib.suppress(OSError):
            left = "its output is no longer read; the same command continues from here"
            say(f"penultimate: stopped: {left}", file=sys.stderr)
        return 128 + signal.SIGPIPE
    except OSError as error:
        say(f"penultimate: {_of_the_system(error)}", file=sys.stderr)
        return 1


def _of_the_system(error: OSError) -> str:
    """Return what the operating system refused, where, and what helps."""
    why, where = error.strerror or str(error), f" '{error.filename}'" if error.filename else ""
    if error.errno in FULL:
        at = f" of{where}" if where else ""
        return (
            f"the disk{at} is full ({why}); nothing done is lost: free some space, or name a place on another"
            " disk, and give the same command again"
        )
    if where and error.errno in FORBIDDEN:
        return (
            f"{where.lstrip()} cannot be read or written ({why}); nothing done is lost: mend who may use it,"
            " or name another place (--to, --out)"
        )
    return f"{why}{f' ({error.filename})' if where else ''}; nothing done is lost"


@contextlib.contextmanager
def _stopped_as_by_ctrl_c() -> Iterator[list[int]]:
    """Turn the first signal of STOPS into KeyboardInterrupt and ignore later ones; yield those received.

    A signal that is ignored (nohup) or already handled is left as it is.
    """
    came: list[int] = []

    def stop(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) == 1:
            raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    ours = [each for each in STOPS if in_main_thread and signal.getsignal(each) is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, stop)
    try:
        yield came
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


def _line(arguments: Sequence[str]) -> str:
    """Return the command line as results record it, without the results folder, --verify and --accept.

    Who repeats it accepts no change that was made later.
    """
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if before != "--out" and argument not in LEFT_OUT and not argument.startswith("--out="):
            kept.append(argument)
    return "penultimate " + shlex.join(kept)


def _known_command(name: str) -> None:
    if name in GONE:
        raise RequestError(f"the command '{name}' is gone: {GONE[name]}")
    if not name.startswith("-") and name not in COMMANDS:
        raise unknown("command", name, COMMANDS)


class _Parser(argparse.ArgumentParser):
    """Parser that reports errors in sentences and suggests the nearest command."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message}\n{self.format_usage().strip()}")


def _usage(name: str) -> str:
    """Return the usage of a command, or of the whole."""
    if not name:
        return _parser().format_usage().strip()
    parser = _Parser(prog=f"penultimate {name}")
    COMMANDS[name].takes(parser)
    return parser.format_usage().strip()


def _guess(extra: Sequence[str], name: str) -> str:
    """Return the command of an option's name, or the nearest option as a question, or an empty string."""
    text = extra[0]
    if (gone := text.partition("=")[0]) in GONE:
        return f" The option {gone} is gone: {GONE[gone]}."
    if name == "evaluate" and not any(each.startswith("-") for each in extra):
        from penultimate.networks.sources import is_a_network

        options = (f"--{'model' if is_a_network(each) else 'data'} {each}" for each in extra)
        return f" Did you mean {' '.join(options)}?"
    if not name or not text.startswith("-"):
        return ""
    if text.startswith("--") and text[2:] in COMMANDS:
        return f" That is a command: penultimate {text[2:]}."
    parser = _Parser(prog=f"penultimate {name}")
    COMMANDS[name].takes(parser)
    return nearest(text.partition("=")[0], (one for one in parser._option_string_actions if one[:2] == "--"))


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
