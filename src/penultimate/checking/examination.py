"""Examination of a plug-in, check by check: each check ends in a sentence, even if the plug-in fails."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from penultimate.errors import PenultimateError, RequestError, as_sentence
from penultimate.plugins import one_line
from penultimate.registry import Entry
from penultimate.specs import Spec, parse

ARGUMENTS = {
    "loss": ("logits", "targets"),
    "head": ("features", "weight", "bias"),
    "fixed_head": ("num_classes", "num_features", "generator"),
    "penalty": ("logits", "head"),
    "regulariser": ("features", "targets", "head"),
    "projector": ("num_features",),
    "dataset": ("draw",),
    "backbone": (),
    "measurement": ("inputs",),
}
"""The arguments of each kind of plug-in; its hyperparameters follow a star."""


class WrongError(PenultimateError):
    """What is wrong with a plug-in and what helps, in words that continue the plug-in's name."""


@dataclass
class Examined:
    """A plug-in under examination; `given` describes the arguments of the call that is made."""

    name: str
    kind: str
    function: Callable[..., Any]
    given: str = ""


Check: TypeAlias = Callable[[Any], str | None]
"""A question to a plug-in: the function raises WrongError, or its docstring (or result) is the answer."""


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check of a plug-in: whether it passed, and a sentence on what to do if not."""

    name: str
    kind: str
    check: str
    ok: bool
    sentence: str


@dataclass(frozen=True)
class Report:
    """All findings on a file, in the order of its plug-ins; `print(report)` shows them.

    >>> finding = CheckOutcome("focal", "loss", "shape", False, "focal returns [7, 5]; sum over the classes.")
    >>> print(Report(Path("focal.py"), (finding,)))
    focal.py
    <BLANKLINE>
    loss focal
      WRONG  shape  focal returns [7, 5]; sum over the classes.
    <BLANKLINE>
    1 of 1 checks found something wrong.
    """

    path: Path
    findings: tuple[CheckOutcome, ...]

    @property
    def wrong(self) -> tuple[CheckOutcome, ...]:
        """The findings on what is wrong."""
        return tuple(finding for finding in self.findings if not finding.ok)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; the command's exit code is then 0, otherwise 1."""
        return not self.wrong

    def __str__(self) -> str:
        lines = [self.path.name]
        column = max((len(finding.check) for finding in self.findings), default=0)
        for (kind, name), findings in groupby(self.findings, key=lambda each: (each.kind, each.name)):
            lines += ["", f"{kind} {name}"]
            for finding in findings:
                head = f"  {'ok' if finding.ok else 'WRONG':<5}  {finding.check:<{column}}  "
                indent = " " * len(head)
                lines += textwrap.wrap(finding.sentence, 100, initial_indent=head, subsequent_indent=indent)
        count, wrong = len(self.findings), len(self.wrong)
        verdict = (
            f"{wrong} of {count} checks found something wrong." if wrong else f"All {count} checks passed."
        )
        return "\n".join([*lines, "", verdict])


def examine(
    entry: Entry, first: Sequence[Check], then: Sequence[Check], form: type[Examined] = Examined
) -> list[CheckOutcome]:
    """Return the findings of all checks; a failure of one of the `first` ends the examination.

    What follows such a failure would only repeat it.
    """
    import torch

    findings: list[CheckOutcome] = []
    examined = form(entry.name, entry.kind, entry.resolve())
    for check in (*first, *then):
        examined.given = ""
        torch.manual_seed(0)
        try:
            ok, sentence = True, check(examined) or str(check.__doc__)
        except WrongError as wrong:
            ok, sentence = False, f"{entry.name} {wrong}"
        except PenultimateError as refused:
            ok, sentence = False, str(refused)
        except (Exception, SystemExit) as error:
            given = f" It was given {examined.given}" if examined.given else ""
            ok, sentence = False, f"{entry.name} fails: {one_line(error).rstrip('.')}.{given}"
        name = check.__name__.replace("_", " ")
        findings.append(CheckOutcome(entry.name, entry.kind, name, ok, as_sentence(sentence)))
        if not ok and check in first:
            break
    return findings


def signature(examined: Examined) -> str:
    """Check the arguments, and that hyperparameters have defaults that a spec string can hold."""
    name, kind, arguments = examined.name, examined.kind, ARGUMENTS[examined.kind]
    if getattr(examined.function, "needs_class_counts", False):
        arguments = (*arguments, "class_counts")
    form = f"{name}({', '.join(arguments)})"
    if arguments and isinstance(examined.function, type):
        raise WrongError(f"is a class; a {kind} is a function, called as {form}")
    listed = [*inspect.signature(examined.function).parameters.values()]
    fixed = [each for each in listed if each.kind is not each.KEYWORD_ONLY] if arguments else []
    are_swapped = any(
        each.name != given and each.name in arguments for each, given in zip(fixed, arguments, strict=False)
    )
    are_unnamed = any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in listed)
    if len(fixed) != len(arguments) or are_swapped or are_unnamed:
        raise WrongError(
            f"takes ({', '.join(map(str, listed))}); a {kind} is called as {form}, and its hyperparameters"
            f" follow a star: {name}({', '.join([*arguments, '*'])}, strength=1.0)"
        )
    settings = {each.name: each.default for each in listed[len(fixed) :]}
    for setting, default in settings.items():
        if default is inspect.Parameter.empty or not _can_be_written(default):
            raise WrongError(
                f"needs a default for '{setting}' that can be written in a spec string: a finite number, a"
                " string, True, False, None or a tuple of these"
            )
    return f"It is called as {form}; in a spec string {Spec(name, settings)}"


def _can_be_written(value: Any) -> bool:
    try:
        return bool(parse(str(Spec("name", {"value": value}))).arguments["value"] == value)
    except (RequestError, RuntimeError, ValueError):
        return False


def kind_of(value: object) -> str:
    """Return words for a value: "None", or its type."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
