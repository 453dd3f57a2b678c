"""Examination of a plug-in, check by check. Every check ends in a sentence, even if the plug-in raises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from penultimate.checking.report import CheckOutcome, WrongError
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
        return self.entry.name

    def call(self, function: Callable[..., Any], *arguments: Any, given: str) -> Any:
        """Return the result of the plug-in, or of an object that it made; exceptions become WrongErrors."""
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise WrongError(f"{self.raised(error)} It was given {given}.") from error

    def raised(self, error: BaseException) -> str:
        return raised_by(self.name, self.function, error)


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
            except WrongError as wrong:
                ok, sentence = False, str(wrong)
            except PenultimateError as refused:
                ok, sentence = False, str(refused)
            except (Exception, SystemExit) as error:
                ok, sentence = False, examined.raised(error)
        sentence = as_sentence(sentence)
        waiting = len(checks) - position - 1
        if not ok and check.essential and waiting:
            sentence += f" ({waiting} more check{'s wait' if waiting > 1 else ' waits'} for this.)"
        findings.append(CheckOutcome(entry.name, entry.kind, check.name, ok, sentence))
        if not ok and check.essential:
            break
    return findings


def described(tensors: dict[str, Tensor]) -> str:
    """Return the shapes and the dtype of tensors in words.

    >>> described({"logits": torch.zeros(7, 5), "targets": torch.zeros(7, 5)})
    'logits [7 5] and targets [7 5], torch.float32'
    """
    parts = [f"{name} [{' '.join(map(str, tensor.shape))}]" for name, tensor in tensors.items()]
    dtype = next(iter(tensors.values())).dtype
    return f"{', '.join(parts[:-1])} and {parts[-1]}, {dtype}" if parts[1:] else f"{parts[0]}, {dtype}"


GIVEN = ("features", "logits", "targets", "labels", "weight", "bias", "images")
"""Names of arguments with a fixed meaning in this package; one that receives something else is a mistake."""


def signature_of(arguments: Sequence[str], keyword_only: bool) -> Check:
    """Return the check of a plug-in's signature: positional arguments, then hyperparameters with defaults.

    `keyword_only` requires the hyperparameters to follow a `*`, where objectives look for them.
    """
    parameter = inspect.Parameter

    def ask(examined: Examined) -> str:
        try:
            listed = list(inspect.signature(examined.function).parameters.values())
        except (TypeError, ValueError):
            raise WrongError(
                f"{examined.name} has no signature to read; register a Python function"
            ) from None
        form = f"{examined.name}({', '.join(arguments)})"
        if arguments and isinstance(examined.function, type):
            raise WrongError(
                f"{examined.name} is a class; a {examined.entry.kind} is a function, called as {form}."
            )
        for argument in listed:
            if argument.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise WrongError(
                    f"{examined.name} takes '{argument}'; name each of its hyperparameters instead."
                )
        positional = [argument for argument in listed if argument.kind is not parameter.KEYWORD_ONLY]
        if len(positional) < len(arguments):
            raise WrongError(
                f"{examined.name}({', '.join(argument.name for argument in positional)}) takes too few"
                f" arguments; a {examined.entry.kind} is called as {form}."
            )
        for given, argument in zip(arguments, positional, strict=False):
            if argument.name != given and argument.name in {*arguments, *GIVEN}:
                raise WrongError(
                    f"{examined.name}'s argument '{argument.name}' is given {given}; a"
                    f" {examined.entry.kind} is called as {form}."
                )
        for argument in listed[len(arguments) :] if {*arguments} & {*GIVEN} else ():
            if argument.name in GIVEN and argument.default in (parameter.empty, None):
                only = "; of the plug-ins of an objective only heads and regularisers are given features"
                raise WrongError(
                    f"{examined.name} asks for '{argument.name}', which a {examined.entry.kind} is not given:"
                    f" it is called as {form}{only if argument.name == 'features' else ''}."
                )
        early = positional[len(arguments) :]
        if early and (keyword_only or any(extra.default is parameter.empty for extra in early)):
            first = early[0]
            value = "..." if first.default is parameter.empty else repr(first.default)
            raise WrongError(
                f"{examined.name} takes '{first.name}' by position, where nothing sets it; a"
                f" {examined.entry.kind} is called as {form}. Write a hyperparameter after a star, with a"
                f" default: {examined.name}({', '.join([*arguments, '*'])}, {first.name}={value})."
            )
        hyperparameters = listed[len(arguments) :]
        for hyperparameter in hyperparameters:
            _ask_default(examined, hyperparameter)
        values = {hyperparameter.name: hyperparameter.default for hyperparameter in hyperparameters}
        return f"called as {form}; in a spec string {Spec(examined.name, values)}"

    return Check("signature", ask, essential=True)


def _ask_default(examined: Examined, hyperparameter: inspect.Parameter) -> None:
    if hyperparameter.default is inspect.Parameter.empty:
        raise WrongError(
            f"{examined.name}'s hyperparameter '{hyperparameter.name}' has no default; give it one,"
            f" so that '{examined.name}' alone has a meaning."
        )
    try:
        text = str(Spec(examined.name, {hyperparameter.name: hyperparameter.default}))
        same = bool(parse(text).arguments[hyperparameter.name] == hyperparameter.default)
    except (RequestError, RuntimeError, ValueError):
        same = False
    if not same:
        raise WrongError(
            f"the default of {examined.name}'s '{hyperparameter.name}', {hyperparameter.default!r}, cannot"
            " be written in a spec string; use a finite number, a string, True, False, None or a tuple of"
            " these."
        )
