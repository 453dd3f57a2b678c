"""Specs: a name with literal arguments, such as "dropout(keep=0.8)", and sums of them."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penultimate.errors import RequestError

NOT_LITERAL = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)
"""Exceptions that Python's parser raises for text that is not a literal, or that is nested too deeply."""
Literal = None | bool | int | float | str | tuple[Any, ...] | list[Any]


@dataclass(frozen=True)
class Spec:
    """A name and its literal arguments; `str` sorts them, so equal specs have equal strings.

    >>> str(parse("cosine_softmax(temperature = 5e-2, scale=1)"))
    'cosine_softmax(scale=1, temperature=0.05)'
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.arguments:
            return self.name
        listed = ", ".join(f"{key}={self.arguments[key]!r}" for key in sorted(self.arguments))
        return f"{self.name}({listed})"

    def __hash__(self) -> int:
        return hash(str(self))


def literal(text: str) -> Any:
    """Return the value of a literal; raises one of NOT_LITERAL for other text and for a huge integer."""
    node = ast.parse(text.strip(), mode="eval")
    if _holds_huge(node):
        raise ValueError("an integer beyond the largest float")
    return ast.literal_eval(node)


def _holds_huge(node: ast.AST) -> bool:
    """Return whether a syntax tree holds an integer that exceeds every float; Python may not print it."""
    numbers = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return any(isinstance(value, int) and value.bit_length() > sys.float_info.max_exp for value in numbers)


def _literal(node: ast.expr, text: str) -> Literal:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError):
        raise RequestError(
            f"in '{text}': '{ast.unparse(node)}' is not a literal; arguments are numbers, strings, True,"
            " False or None, and nothing is evaluated"
        ) from None
    for part in _parts(value):
        if not isinstance(part, None | bool | int | float | str):
            raise RequestError(f"in '{text}': '{part!r}' is not a literal that a spec can hold")
        if isinstance(part, float) and not math.isfinite(part):
            raise RequestError(f"in '{text}': '{ast.unparse(node)}' is not a finite number")
    return value  # type: ignore[no-any-return]


def _parts(value: Any) -> Iterator[Any]:
    """Yield the leaves of nested tuples and lists, or the value itself if it is neither."""
    if not isinstance(value, tuple | list):
        yield value
        return
    for part in value:
        yield from _parts(part)


def _term(node: ast.expr, text: str) -> Spec:
    if isinstance(node, ast.Name):
        return Spec(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.args:
            raise RequestError(
                f"in '{text}': write the arguments of '{node.func.id}' by name: {node.func.id}(name=value)"
            )
        arguments: dict[str, Any] = {}
        for item in node.keywords:
            if item.arg is None:
                raise RequestError(f"in '{text}': '**' is not allowed; write each argument by name")
            if item.arg in arguments:
                raise RequestError(f"in '{text}': '{item.arg}' is given twice")
            arguments[item.arg] = _literal(item.value, text)
        return Spec(node.func.id, arguments)
    raise RequestError(f"'{ast.unparse(node)}' is not of the form name or name(argument=value)")


def parse_sum(text: str) -> tuple[Spec, ...]:
    """Return the terms of "a(x=1) + b" in the order written; arguments are literals, nothing is evaluated.

    >>> [str(term) for term in parse_sum("sigmoid + dropout(keep=0.8)")]
    ['sigmoid', 'dropout(keep=0.8)']
    """
    if len(text) > 2000:
        raise RequestError(f"the spec has {len(text)} characters; at most 2000 are allowed")
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except NOT_LITERAL:
        raise RequestError(f"'{text}' is not of the form name(argument=value) + name(...)") from None
    if _holds_huge(node):
        raise RequestError(f"'{text}' holds an integer beyond the largest float")
    terms: list[Spec] = []
    try:
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            terms.append(_term(node.right, text))
            node = node.left
        terms.append(_term(node, text))
    except RecursionError:  # from reading or writing a node that Python's parser accepted
        raise RequestError(
            f"'{text}' is not of the form name(argument=value) + name(...): it is nested too deeply"
        ) from None
    return tuple(reversed(terms))


def parse(text: str) -> Spec:
    """Return the only term of a spec, a name with literal arguments; raises RequestError for a sum."""
    terms = parse_sum(text)
    if len(terms) != 1:
        raise RequestError(f"'{text}' has {len(terms)} terms; one name(argument=value) is expected here")
    return terms[0]
