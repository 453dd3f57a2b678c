"""Docstrings say what a function does, and the worst habits of style do not grow back."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "penultimate"
FILES = sorted(SOURCE.rglob("*.py"))
NO_VERBS = {
    *("The", "A", "An", "All", "Every", "Each", "What", "Whether", "How", "Where", "Which", "Who", "Why"),
    *("Its", "Those", "Of", "One", "Two"),
}
"""Words that begin no sentence about what a function does."""
VAGUE = {"told", "said", "of", "under", "otherwise", "doings", "asked", "known"}
"""Names of functions that do not say what they return; a constructor may be called `of`."""
PLUG_INS = {"Head"}
"""What a measurement needs and what an objective has: both names are those that plug-ins use."""
NOUNS = ("property", "register")
"""Decorators of what is named by its value: properties, and what a registry lists."""
TICS = re.compile(
    r"\b(anew|one's own|so many|such as it is|thereof)\b"
    r"|\ba (row|line|column|file|folder|network|page|step|seed|class|run|point|label|task|image|value) a \w",
    re.IGNORECASE,
)
"""Turns of phrase that a reader stumbles over, such as those that are tested below."""


def is_named_by_its_value(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = map(ast.unparse, function.decorator_list)
    return any(word in decorator for decorator in decorators for word in NOUNS)


def test_a_docstring_of_a_function_begins_with_a_verb() -> None:
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_named_by_its_value(node):
                told = (ast.get_docstring(node) or "").partition("\n")[0]
                if told.split(" ")[0].rstrip(",") in NO_VERBS:
                    wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {told}")
    assert not wrong


def test_no_sentence_has_a_turn_of_phrase_that_readers_stumble_over() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if TICS.search(line)
    ]
    assert not wrong


def test_the_turns_of_phrase_are_found() -> None:
    assert TICS.search("networks of one's own")
    assert TICS.search("draws a row a network")
    assert not TICS.search("a row for each network, in a second pass")


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in PLUG_INS} == {}


def test_a_helper_is_named_by_what_it_returns() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {node.name}"
        for path in FILES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") in VAGUE
    ]
    assert wrong == []
