"""The form of what `kept.json` holds: checked when it is read, so that nothing else meets another type."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from penultimate.checks import is_number, is_whole
from penultimate.data.catalog import Accuracy, DatasetCard
from penultimate.errors import RequestError
from penultimate.training.recipe import Recipe

Check: TypeAlias = Callable[[Any, str], None]
"""Raises ValueError, with the place, for a value of another form."""


def expect(is_right: bool, value: Any, place: str, what: str) -> None:
    if not is_right:
        shown = repr(value)
        raise ValueError(f"{place} is {what}, not {shown if len(shown) <= 60 else shown[:59] + '…'}")


def text(value: Any, place: str) -> None:
    expect(isinstance(value, str), value, place, "a text")


def flag(value: Any, place: str) -> None:
    expect(isinstance(value, bool), value, place, "true or false")


def whole(value: Any, place: str) -> None:
    expect(is_whole(value, 0), value, place, "a whole number, 0 or more")


def amount(value: Any, place: str) -> None:
    expect(is_number(value) and value >= 0, value, place, "a number, 0 or more")


def number(value: Any, place: str) -> None:
    expect(is_number(value), value, place, "a number")


def table(value: Any, place: str) -> None:
    expect(isinstance(value, dict), value, place, "a table")


def pair(value: Any, place: str) -> None:
    is_pair = isinstance(value, list) and len(value) == 2
    expect(is_pair, value, place, "two whole numbers: how many are done, and of how many")
    for one in value:
        whole(one, place)


@dataclass(frozen=True)
class ListOf:
    """A list, every entry of which has a form."""

    of: Check

    def __call__(self, value: Any, place: str) -> None:
        expect(isinstance(value, list), value, place, "a list")
        for number, one in enumerate(value):
            self.of(one, f"{place}[{number}]")


@dataclass(frozen=True)
class TableOf:
    """A table of any keys, every value of which has a form."""

    of: Check

    def __call__(self, value: Any, place: str) -> None:
        table(value, place)
        for name, one in value.items():
            self.of(one, f"{place}.{name}")


@dataclass(frozen=True)
class Either:
    """One of several forms."""

    forms: tuple[Check, ...]

    def __call__(self, value: Any, place: str) -> None:
        for form in self.forms[:-1]:
            try:
                form(value, place)
            except ValueError:
                continue
            return
        self.forms[-1](value, place)


@dataclass(frozen=True)
class Fields:
    """A table of known keys: those that it must have, and those that it may have."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check]

    def __call__(self, value: Any, place: str) -> None:
        table(value, place)
        for name, form in {**self.required, **self.optional}.items():
            if name in value:
                form(value[name], f"{place}.{name}")
            elif name in self.required:
                raise ValueError(f"{place}.{name} is missing")


@dataclass(frozen=True)
class Entries:
    """A list with a form for each of its entries."""

    forms: tuple[Check, ...]

    def __call__(self, value: Any, place: str) -> None:
        is_long_enough = isinstance(value, list) and len(value) == len(self.forms)
        expect(is_long_enough, value, place, f"a list of {len(self.forms)}")
        for number, (form, one) in enumerate(zip(self.forms, value, strict=True)):
            form(one, f"{place}[{number}]")


def nothing(value: Any, place: str) -> None:
    expect(value is None, value, place, "null")


def form_of(kind: Any) -> Check:
    """Return the form of the JSON that values of an annotated type are written as."""
    arguments = get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        forms: tuple[dict[str, Check], dict[str, Check]] = ({}, {})
        for field in dataclasses.fields(kind):
            missing = dataclasses.MISSING
            is_optional = (field.default, field.default_factory) != (missing, missing)
            forms[is_optional][field.name] = form_of(hints[field.name])
        return Fields(*forms)
    if get_origin(kind) is tuple:
        of_each = tuple(form_of(each) for each in arguments if each is not Ellipsis)
        return ListOf(of_each[0]) if Ellipsis in arguments else Entries(of_each)
    if isinstance(kind, UnionType):
        return Either(tuple(map(form_of, arguments)))
    return {str: text, bool: flag, int: whole, float: number, NoneType: nothing}.get(kind, table)


OPTIONAL_TEXT = Either((nothing, text))
OPTIONAL_WHOLE = Either((nothing, whole))
NETWORK = Fields(
    {"objective": text},
    {"backbone": text, "arm": text, "seed": OPTIONAL_WHOLE, "draw": OPTIONAL_WHOLE},
)
TEXTS = ListOf(text)


def names(value: Any, place: str) -> None:
    """Expect one text or more."""
    TEXTS(value, place)
    expect(bool(value), value, place, "a list of one or more")


def each_seed(value: Any, place: str) -> None:
    expect(value == "seed", value, place, "'seed' or a whole number, 0 or more")


def recipe(value: Any, place: str) -> None:
    """Expect the settings of a recipe, each of its type and within its range."""
    table(value, place)
    try:
        Recipe(**value)
    except (RequestError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{place} is no recipe: {error}") from None


def data_card(value: Any, place: str) -> None:
    """Expect a data set's card."""
    CARD(value, place)
    try:
        DatasetCard(**{**value, "sizes": dict(value["sizes"])})
    except (RequestError, TypeError) as error:
        raise ValueError(f"{place} is no data set's card: {error}") from None


def size_of_split(value: Any, place: str) -> None:
    is_pair = isinstance(value, list) and len(value) == 2
    expect(is_pair, value, place, "the name of a split and how many images it has")
    text(value[0], place)
    whole(value[1], place)


def accuracy(value: Any, place: str) -> None:
    known = get_args(Accuracy)
    expect(isinstance(value, str) and value in known, value, place, f"one of {', '.join(known)}")


CARD = Fields(
    {
        **dict.fromkeys(("name", "title", "relation", "licence", "citation"), text),
        **{"classes": whole, "sizes": ListOf(size_of_split), "accuracy": accuracy},
    },
    {"note": text, "source": text},
)
MEASURE = {"measure": Either((nothing, TEXTS))}
GIVEN = Fields({"given": TableOf(text), **MEASURE}, {"classifies": flag})
GRID: dict[str, Any] = {
    **{"objectives": names, "backbones": names, "seeds": ListOf(whole), **MEASURE},
    **{"draws": Either((whole, each_seed)), "arm": text},
}
RUNS = Fields({**GRID, "recipe": recipe}, {})
EXISTING = Fields({**GRID, "checkpoints": TableOf(text)}, {})


def block(value: Any, place: str) -> None:
    """Expect a grid of networks, trained here or before, or networks that were given."""
    table(value, place)
    (GIVEN if "given" in value else EXISTING if "checkpoints" in value else RUNS)(value, place)


DESCRIPTION = Fields(
    {
        **dict.fromkeys(("name", "source"), text),
        "targets": TEXTS,
        "networks": ListOf(block),
        "objectives": ListOf(Fields(dict.fromkeys(("slug", "label", "spec"), text), {})),
        "limited": flag,
    },
    {
        **dict.fromkeys(("title", "question", "command", "tunes", "changed_from", "page"), text),
        **{"layers": TEXTS, "num_features": whole, "threads": whole, "gpus": amount},
        "measure": TEXTS,
        "cards": ListOf(data_card),
        "tuned_by": Either((text, TEXTS)),
        "tuning": Either((table, ListOf(table))),
        "data": TableOf(text),
        "source_classes": TEXTS,
        "reading": TableOf(table),
    },
)
STATISTICS = dict.fromkeys(("mean", "std"), ListOf(number))
PREPARED = Fields(
    {
        **dict.fromkeys(("resize", "crop"), whole),
        **dict.fromkeys(("interpolation", "from"), text),
        "statistics": Fields(STATISTICS, {}),
        "squash": flag,
    },
    {"floor": flag},
)
OF_STEP = dict.fromkeys(("network", "target"), OPTIONAL_TEXT)
PROVENANCE = Fields(
    {"steps": TableOf(pair)},
    {
        **dict.fromkeys(("command", "processor", "device", "python", "measured"), text),
        **dict.fromkeys(("commit", "hosts", "lacking"), TEXTS),
        **dict.fromkeys(("packages", "data", "diverged", "undefined"), TableOf(text)),
        **dict.fromkeys(("left_out", "remarks", "copies", "classes_not_validated"), TableOf(TEXTS)),
        "images": TableOf(TableOf(whole)),
        "noted": TableOf(TableOf(text)),
        "prepared": TableOf(PREPARED),
        "failed": TableOf(Fields({"why": text}, OF_STEP)),
        "undefined_of": TableOf(Fields({}, OF_STEP)),
        "diverged_networks": TableOf(Either((ListOf(NETWORK), NETWORK))),
        "dirty": flag,
        "networks": pair,
        "seconds": TableOf(amount),
        "threads": Either((text, whole)),
    },
)
KEPT = Fields(
    {
        "description": DESCRIPTION,
        "provenance": PROVENANCE,
        "networks": ListOf(NETWORK),
        "rows_sha256": text,
    },
    {"arrays_sha256": text},
)


def expect_kept(card: Any) -> None:
    """Raise ValueError, with the place and what belongs there, for what is no description of a kept study."""
    KEPT(card, "the card")
