"""Examination of a plug-in, check by check. Every check ends in a sentence, even if the plug-in raises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from penultimate.checking.report import CheckOutcome, WrongError, require
from penultimate.errors import PenultimateError, RequestError, as_sentence
from penultimate.plugins import raised_by
from penultimate.registry import Entry
from penultimate.specs import Spec, parse


@dataclass(frozen=True)
class Examined:
    """A plug-in under examination; `notes` pass what one check found on to later ones."""

    entry: Entry
    function: Callable[..., Any]
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the plug-in."""
        return self.entry.name

    def call(self, function: Callable[..., Any], *arguments: Any, given: str) -> Any:
        """Return the result of the plug-in, or of an object that it made; exceptions become WrongErrors."""
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise WrongError(f"{raised_by(self.name, self.function, error)} It was given {given}.") from error


@dataclass(frozen=True)
class Check:
    """One question to a plug-in: `ask` returns a sentence, or raises WrongError with one.

    If an `essential` check fails, the later checks are left out, since they would only repeat its finding.
    """

    name: str
    ask: Callable[[Examined], str]
    essential: bool = False


def examine(entry: Entry, checks: Sequence[Check]) -> list[CheckOutcome]:
    """Return the findings of a list of checks on an entry; nothing is drawn from torch's own generator."""
    findings: list[CheckOutcome] = []
    examined = Examined(entry, entry.resolve())
    for position, check in enumerate(checks):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(position)
            try:
                ok, sentence = True, check.ask(examined)
            except PenultimateError as refused:
                ok, sentence = False, str(refused)
            except (Exception, SystemExit) as error:
                ok, sentence = False, raised_by(examined.name, examined.function, error)
        sentence, waiting = as_sentence(sentence), len(checks) - position - 1
        stops = not ok and check.essential
        if stops and waiting:
            sentence += f" ({waiting} more check{'s wait' if waiting > 1 else ' waits'} for this.)"
        findings.append(CheckOutcome(entry.name, entry.kind, check.name, ok, sentence))
        if stops:
            break
    return findings


def described(tensors: dict[str, Tensor]) -> str:
    """Return the shapes and the dtype of tensors in words.

    >>> described({"logits": torch.zeros(7, 5), "targets": torch.zeros(7, 5)})
    'logits [7 5], targets [7 5], torch.float32'
    """
    parts = [f"{name} [{' '.join(map(str, tensor.shape))}]" for name, tensor in tensors.items()]
    return f"{', '.join(parts)}, {next(iter(tensors.values())).dtype}"


def kind_of(value: object) -> str:
    """Return words for a value: "None", or its type.

    >>> kind_of(None), kind_of(1.5)
    ('None', 'a value of type float')
    """
    return "None" if value is None else f"a value of type {type(value).__name__}"


def signature_of(arguments: Sequence[str], keyword_only: bool = True) -> Check:
    """Return the check of a plug-in's signature: positional arguments, then hyperparameters with defaults.

    `keyword_only` requires the hyperparameters to follow a `*`, where objectives look for them.
    """
    parameter = inspect.Parameter

    def ask(examined: Examined) -> str:
        name, kind = examined.name, examined.entry.kind
        form = f"{name}({', '.join(arguments)})"
        require(
            not (arguments and isinstance(examined.function, type)),
            f"{name} is a class; a {kind} is a function, called as {form}.",
        )
        try:
            listed = list(inspect.signature(examined.function).parameters.values())
        except (TypeError, ValueError):
            raise WrongError(f"{name} has no signature to read; register a Python function") from None
        for argument in listed:
            require(
                argument.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD),
                f"{name} takes '{argument}'; name each of its hyperparameters instead.",
            )
        positional = [argument for argument in listed if argument.kind is not parameter.KEYWORD_ONLY]
        hyperparameters = listed[len(arguments) :]
        require(
            len(positional) >= len(arguments),
            f"{name}({', '.join(each.name for each in positional)}) takes too few arguments; a {kind} is"
            f" called as {form}.",
        )
        for given, argument in zip(arguments, positional, strict=False):
            require(
                argument.name == given or argument.name not in arguments,
                f"{name}'s argument '{argument.name}' is given {given}; a {kind} is called as {form}.",
            )
        for extra in positional[len(arguments) :] if keyword_only else ():
            value = "..." if extra.default is parameter.empty else repr(extra.default)
            raise WrongError(
                f"{name} takes '{extra.name}' by position, where nothing sets it; a {kind} is called as"
                f" {form}. Write a hyperparameter after a star, with a default:"
                f" {name}({', '.join([*arguments, '*'])}, {extra.name}={value})."
            )
        for extra in hyperparameters:
            require(
                extra.default is not parameter.empty,
                f"{name}'s hyperparameter '{extra.name}' has no default; give it one, so that '{name}' alone"
                " has a meaning.",
            )
            require(
                _can_be_written(name, extra),
                f"the default of {name}'s '{extra.name}', {extra.default!r}, cannot be written in a spec"
                " string; use a finite number, a string, True, False, None or a tuple of these.",
            )
        values = {extra.name: extra.default for extra in hyperparameters}
        return f"called as {form}; in a spec string {Spec(name, values)}"

    return Check("signature", ask, essential=True)


def _can_be_written(name: str, extra: inspect.Parameter) -> bool:
    try:
        text = str(Spec(name, {extra.name: extra.default}))
        return bool(parse(text).arguments[extra.name] == extra.default)
    except (RequestError, RuntimeError, ValueError):
        return False
