"""Write the reference pages: every command with its options, every registered name, every public name.

    python docs/reference.py FOLDER

The pages are Markdown, made of what the code says of itself, so that nothing can be documented twice or
forgotten: whatever lacks its words is refused. `tests/test_documented.py` writes them.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import penultimate
from penultimate.cli import COMMANDS
from penultimate.registry import entry, names

KINDS: Mapping[str, str] = {
    "objective": "Objectives",
    "loss": "Losses",
    "head": "Heads",
    "fixed_head": "Fixed heads",
    "penalty": "Penalties",
    "projector": "Projectors",
    "regulariser": "Regularisers",
    "measurement": "Measurements",
    "metric": "Metrics",
    "probe": "Probes",
    "exhibit": "Exhibits",
    "study": "Studies",
    "dataset": "Data sets",
    "backbone": "Backbones",
}
"""The kinds of registered names that have a page, with its title."""


class UndocumentedError(Exception):
    """Something that a user can name has no words of its own."""


def said(words: str | None, of: str) -> str:
    """Return words as one line of Markdown; raise UndocumentedError where there are none."""
    line = " ".join((words or "").split())
    if not line or line == argparse.SUPPRESS:
        raise UndocumentedError(f"{of} is documented nowhere: say what it is in its docstring, title or help")
    return line.replace("|", "\\|").replace("<", "&lt;")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    head = list(head)
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def spelling(action: argparse.Action) -> str:
    """Return how an argument is written: `--out FOLDER`, or `STUDY` for one without dashes."""
    value = action.metavar or action.dest
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return f"`{value.upper()}`"
    listed = ", ".join(action.option_strings)
    return f"`{listed}`" if action.nargs == 0 else f"`{listed} {value.upper()}`"


def command(name: str, words: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the section of a command, and those of the commands below it, such as `data check`."""
    rows = [
        (spelling(action), said(action.help, f"{spelling(action)} of the command {name}"))
        for action in parser._actions
        if action.dest != "help"
    ]
    lines = ["", f"## penultimate {name}", "", said(words, f"the command {name}"), ""]
    lines += table(("argument", "what it does"), rows) if rows else ["It takes no arguments."]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below, its_parser in action.choices.items():
                lines += command(f"{name} {below}", its_parser.description or "", its_parser)
    return lines


def commands() -> list[str]:
    """Return the page of all commands with all of their options."""
    lines = ["# Commands"]
    for name, each in COMMANDS.items():
        parser = argparse.ArgumentParser()
        each.takes(parser)
        lines += command(name, each.text, parser)
    return lines


def registered(kind: str, title: str) -> list[str]:
    """Return the page of the registered names of one kind."""
    entries = [entry(kind, name) for name in names(kind)]
    rows = [(f"`{each.name}`", said(each.summary, f"the {kind} {each.name}"), each.paper) for each in entries]
    return [f"# {title}", "", *table(("name", "what it is", "source"), rows)]


def public() -> list[str]:
    """Return the page of the names of `import penultimate as pu`, with their signatures and docstrings."""
    lines = ["# Python"]
    for name in sorted(penultimate.__all__):
        if name.startswith("__"):
            continue
        value = getattr(penultimate, name)
        is_error = isinstance(value, type) and issubclass(value, Exception)
        signature = str(inspect.signature(value)) if callable(value) and not is_error else ""
        said(inspect.getdoc(value), f"pu.{name}")
        lines += ["", f"## pu.{name}", "", "```text", f"{name}{signature}", "", inspect.getdoc(value) or ""]
        lines += ["```"]
    return lines


def pages() -> dict[str, list[str]]:
    """Return the lines of every page, by its file name."""
    listed = {
        f"{title.lower().replace(' ', '-')}.md": registered(kind, title) for kind, title in KINDS.items()
    }
    return {"commands.md": commands(), "python.md": public(), **listed}


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in pages().items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
