"""Checks of a study's fields: they bring a value into its standard form, or say what was expected."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from penultimate import registry, specs
from penultimate.checks import is_number, is_whole
from penultimate.data.catalog import DatasetCard
from penultimate.errors import RequestError, shortened, unknown
from penultimate.measures.catalogue import requested
from penultimate.objectives.hyperparameters import REQUIRED, bind, of_function
from penultimate.records.tuning import folder_name

LONGEST_NAME = 100
_hints = functools.cache(get_type_hints)


def check_types(owner: Any) -> None:
    """Give every field of a dataclass the form that its annotation says; raises RequestError for others.

    Sequences become tuples, and mappings dictionaries.
    """
    kind: Any = type(owner)
    for name, form in _hints(kind).items():
        value = getattr(owner, name)
        try:
            object.__setattr__(owner, name, _typed(value, form))
        except TypeError:
            expected = getattr(form, "__name__", "") if isinstance(form, type) else str(form)
            for module in ("collections.abc.", "typing.", "penultimate.study.blocks."):
                expected = expected.replace(module, "")
            told = shortened(repr(value), 300)
            raise RequestError(f"{name} must be of type {expected}, not {told}") from None


def _typed(value: Any, form: Any) -> Any:
    kind, parts = get_origin(form) or form, get_args(form)
    if kind in (Union, types.UnionType):
        for part in parts:
            try:
                return _typed(value, part)
            except TypeError:
                continue
    elif kind is tuple and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(_typed(item, parts[0]) for item in value)
    elif kind is Mapping and isinstance(value, Mapping):
        return {_typed(name, parts[0]): _typed(item, parts[1]) for name, item in value.items()}
    elif (
        kind is Any
        or (kind is int and is_whole(value))
        or (kind is float and is_number(value))
        or (kind not in (int, float) and isinstance(kind, type) and isinstance(value, kind))
    ):
        return value
    raise TypeError


def canonical_backbone(text: str) -> str:
    """Return the canonical spec of an architecture; that of a plug-in leaves out default settings."""
    spec = specs.parse(text)
    entry = registry.entry("backbone", spec.name)
    if not entry.is_plugin:
        return str(spec)
    settings = of_function(entry.resolve(), 0)
    values = bind(spec.name, settings, spec.arguments, "setting")
    usual = bind(spec.name, [setting for setting in settings if setting.default is not REQUIRED], {})
    changed = {key: values[key] for key in spec.arguments if repr(values[key]) != repr(usual.get(key))}
    return str(specs.Spec(spec.name, changed))


def check_measure(owner: Any) -> None:
    """Write the measurements in their canonical form; None, which stands for those of the study, is kept."""
    if owner.measure is not None:
        texts = tuple(requested(text).text for text in owner.measure)
        no_repeats("measure", [specs.parse(text).name for text in texts])
        object.__setattr__(owner, "measure", texts)


def check_study_name(name: str) -> None:
    """Raise RequestError for a name that a study cannot have, because its folder has the same."""
    own = name.removeprefix(folder_name(""))
    if len(own) > LONGEST_NAME or not name.replace("-", "_").isidentifier():
        raise RequestError(
            f"a study's name consists of at most {LONGEST_NAME} letters, digits, '_' and '-', and is not"
            f" '{shortened(name, LONGEST_NAME)}'"
        )


def check_words(what: str, text: str) -> None:
    """Raise RequestError unless a text may name an arm, a given network or a data set of one's own."""
    fits = 0 < len(text.strip()) <= LONGEST_NAME and text.isprintable()
    if not fits or any(sign in text for sign in "|,="):
        raise RequestError(
            f"{what} is named by a word or two of at most {LONGEST_NAME} printable characters, without '|',"
            f" ',' and '=', not {shortened(repr(text), LONGEST_NAME)}"
        )


def expect_splits(of: DatasetCard, splits: Sequence[str], what: str) -> None:
    """Raise RequestError for a data set that lacks a split for what it is to do."""
    missing = [split for split in splits if split not in of.sizes]
    if missing:
        raise RequestError(
            f"'{of.name}' cannot {what}: it has no split {', '.join(missing)} (it has {', '.join(of.sizes)})"
        )


def check_known(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise RequestError, with the nearest name, for a name that is not known."""
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)


def no_repeats(what: str, values: Sequence[Any]) -> None:
    """Raise RequestError for a value that is named twice."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise RequestError(f"{what} names {value!r} twice; name it once")
