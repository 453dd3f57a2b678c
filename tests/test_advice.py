"""Advice can be followed: each command and option that a message or the documentation names is one."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penultimate.cli import COMMANDS, GONE, _parser

PACKAGE = Path("src/penultimate")
OTHERS = (
    "results/drawing.py",
    "results/palette.py",
    "results/page.py",
    "results/escape.py",
    "engine/devices.py",
    "engine/machine.py",
    "engine/ray.py",
)
"""Where options of nvidia-smi, git and ray, and variables of CSS, are named too."""
NAMED = re.compile(r"\bpenultimate (?P<command>[a-z]+)\b(?P<rest>[^\n`;|>#]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command, and of what it can be asked to do."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for doing in action.choices.values() for option in options_of(doing)}
    return found


def parsers() -> dict[str, argparse.ArgumentParser]:
    (commands,) = (each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    return dict(commands.choices)


OPTIONS = {name: options_of(parser) for name, parser in parsers().items()}
ALL = {"--version"}.union(*OPTIONS.values())


def wrong_in(text: str) -> Iterator[str]:
    """Yield what a text names as a command, or as an option of one, and is none."""
    for match in NAMED.finditer(text):
        command, asked = match["command"], OPTION.findall(match["rest"].partition(". ")[0])
        if command in COMMANDS:
            yield from (f"{command} {option}" for option in asked if option not in OPTIONS[command])
        elif asked:
            yield f"penultimate {command}"


def texts(path: Path) -> Iterator[str]:
    """The texts in a Python file, whatever stands in braces left out."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_command_that_the_package_names_has_the_options_named() -> None:
    wrong = {
        f"{path}: {what}" for path in PACKAGE.rglob("*.py") for text in texts(path) for what in wrong_in(text)
    }
    assert wrong == set()


def test_every_option_that_the_package_names_is_one() -> None:
    wrong = {
        f"{path}: {option}"
        for path in PACKAGE.rglob("*.py")
        if not path.relative_to(PACKAGE).as_posix().startswith(OTHERS)
        for text in texts(path)
        for option in OPTION.findall(text)
        if option not in {*ALL, *GONE}
    }
    assert wrong == set()


def test_every_command_of_the_documentation_has_the_options_named() -> None:
    pages = [Path("README.md"), *Path("docs").rglob("*.md")]
    wrong = {f"{path}: {what}" for path in pages for what in wrong_in(path.read_text("utf-8"))}
    assert wrong == set()
    text = "\n".join(page.read_text("utf-8") for page in pages)
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, re.S))
    commands = re.findall(r"^penultimate (\S+)", blocks, re.M)
    assert len(commands) > 10
    assert set(commands) <= COMMANDS.keys() | {"--version"}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("try it: penultimate plan smoke --gpus 0", []),
        ("try it: penultimate plan smoke --verify", ["plan --verify"]),
        ("`penultimate data get X --root Y`; --no-such", []),
        ("penultimate data check X --wrong", ["data --wrong"]),
        ("penultimate plans smoke --seeds 3", ["penultimate plans"]),
        ("the penultimate layer", []),
    ],
)
def test_what_counts_as_wrong_advice(text: str, wrong: list[str]) -> None:
    assert list(wrong_in(text)) == wrong
