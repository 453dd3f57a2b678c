"""Specs: a name with literal arguments, such as "dropout(keep=0.8)", and sums of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from penultimate.errors import RequestError, shortened

NOT_LITERAL = (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError)
"""Exceptions that Python's parser raises for text that is not a literal, or that is nested too deeply."""
LONGEST = 2000


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
    """Return the value of a literal; raises one of NOT_LITERAL for other text."""
    return ast.literal_eval(text.strip())


def _value(node: ast.expr) -> Any:
    """Return a finite number, text, True, False, None, or a tuple or list of these."""
    value = ast.literal_eval(node)
    parts = [value]
    for part in parts:
        if isinstance(part, tuple | list):
            parts.extend(part)
        elif not (
            part is None or isinstance(part, str) or (isinstance(part, int | float) and isfinite(part))
        ):
            raise TypeError(f"a spec holds no {type(part).__name__}")
    return value


def _term(node: ast.expr, text: str) -> Spec:
    if isinstance(node, ast.Name):
        return Spec(node.id)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise TypeError("neither a name nor a call of one")
    name = node.func.id
    if node.args or not all(item.arg for item in node.keywords):
        raise RequestError(f"in '{text}': write the arguments of '{name}' by name: {name}(name=value)")
    arguments: dict[str, Any] = {}
    if len({item.arg for item in node.keywords}) < len(node.keywords):
        raise RequestError(f"in '{text}': an argument of '{name}' is given twice")
    for item in node.keywords:
        try:
            arguments[str(item.arg)] = _value(item.value)
        except NOT_LITERAL:
            raise RequestError(
                f"in '{text}': the value of '{item.arg}' is not a literal; arguments are finite numbers,"
                " strings, True, False, None and tuples of these, and nothing is evaluated"
            ) from None
    return Spec(name, arguments)


def parse_sum(text: str) -> tuple[Spec, ...]:
    """Return the terms of "a(x=1) + b" in the order written; arguments are literals, nothing is evaluated.

    >>> [str(term) for term in parse_sum("sigmoid + dropout(keep=0.8)")]
    ['sigmoid', 'dropout(keep=0.8)']
    """
    try:
        if len(text) > LONGEST:
            raise ValueError("too long")
        node, terms = ast.parse(text.strip(), mode="eval").body, []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            terms.append(_term(node.right, text))
            node = node.left
        return (_term(node, text), *reversed(terms))
    except RequestError:
        raise
    except NOT_LITERAL:
        form = "name(argument=value) + name(...)"
        raise RequestError(f"'{shortened(text, 200)}' is not of the form {form}") from None


def parse(text: str) -> Spec:
    """Return the only term of a spec, a name with literal arguments; raises RequestError for a sum."""
    terms = parse_sum(text)
    if len(terms) != 1:
        raise RequestError(f"'{text}' has {len(terms)} terms; one name(argument=value) is expected here")
    return terms[0]
