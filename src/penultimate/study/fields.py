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
from penultimate.files import LONGEST_FILE_NAME
from penultimate.measures.catalogue import requested
from penultimate.objectives.hyperparameters import REQUIRED, bind, of_function
from penultimate.records.tuning import folder_name

MOST_SEEDS, MOST_THREADS = 10_000, 1024
LONGEST_NAME = 100
TUNING = folder_name("")
"""The beginning of the name of a search's study."""
MOST_BYTES = LONGEST_FILE_NAME - len(TUNING)
"""The largest number of bytes in a study's name, which is also the name of its folder."""
WORDS = f"a word or two of at most {LONGEST_NAME} printable characters, without '|', ',' and '='"
"""The rule for the names of arms, of given networks and of a user's own data sets."""
PLAIN = {
    str: "text",
    bool: "True or False",
    int: "an integer",
    float: "a number",
    types.NoneType: "None",
    Any: "anything",
}
SEVERAL = {str: "names", int: "integers", float: "numbers"}
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
            told = shortened(repr(value), 300)
            raise RequestError(f"{name} must be {_in_words(form)}, not {told}") from None


def _typed(value: Any, form: Any) -> Any:
    kind, parts = get_origin(form) or form, get_args(form)
    if kind in (Union, types.UnionType):
        for part in parts:
            try:
                return _typed(value, part)
            except TypeError:
                continue
    elif kind is tuple and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if len(value[: MOST_SEEDS + 1]) <= MOST_SEEDS:
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


def _in_words(form: Any) -> str:
    kind, parts = get_origin(form) or form, get_args(form)
    if kind in (Union, types.UnionType):
        return " or ".join(map(_in_words, parts))
    if kind is tuple:
        return f"a tuple of {SEVERAL.get(parts[0]) or _in_words(parts[0])}"
    if kind is Mapping:
        return f"{{{_in_words(parts[0])}: {_in_words(parts[1])}}}"
    return PLAIN.get(kind) or f"{kind.__name__}(...)"


def canonical_backbone(text: str) -> str:
    """Return the canonical spec of an architecture; that of a plug-in leaves out default settings."""
    spec = specs.parse(text)
    entry = registry.entry("backbone", spec.name)
    if not entry.is_plugin:
        return str(spec)
    try:
        settings = of_function(entry.resolve(), 0)
    except (TypeError, ValueError):
        raise RequestError(f"the backbone '{spec.name}' has no signature to read") from None
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
    own = name.removeprefix(TUNING)
    is_long = len(own) > LONGEST_NAME or len(own.encode(errors="replace")) > MOST_BYTES
    if is_long or not name.replace("-", "_").isidentifier():
        raise RequestError(
            f"a study's name consists of at most {LONGEST_NAME} letters ({MOST_BYTES} bytes), digits,"
            f" '_' and '-', and is not '{shortened(repr(name)[1:-1], LONGEST_NAME)}'"
        )


def check_words(what: str, text: str) -> None:
    """Raise RequestError unless a text may name an arm, a given network or a data set (`WORDS`)."""
    fits = 0 < len(text) <= LONGEST_NAME and text.isprintable() and not text.isspace()
    if not fits or any(sign in text for sign in "|,="):
        raise RequestError(f"{what} is named by {WORDS}, not {shortened(repr(text), LONGEST_NAME)}")


def check_reading(reading: Mapping[str, Mapping[str, Any]], data: Mapping[str, str]) -> None:
    """Raise RequestError for ways of reading of another form, or of data that do not lie on disk."""
    from penultimate.data.readers.class_order import USUAL

    for name, how in reading.items():
        if name not in data:
            raise RequestError(f"how '{name}' is read can be said of data on disk, and it is none")
        order = how.get("class_order", "text")
        listed = isinstance(order, list | tuple) and order and all(isinstance(one, str) for one in order)
        fits = (listed or order in USUAL) and how.get("copies", "drop") == "drop"
        if not fits or not how.keys() <= {"class_order", "copies"}:
            raise RequestError(
                f'reading is {{name: {{"class_order": names, "copies": "drop"}}}}, not {how!r}'
            )
        if how.get("copies", "drop") != "drop":
            raise RequestError(f"copies of '{name}' can be dropped: \"drop\"; got {how['copies']!r}")


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
    seen = set()
    for value in values:
        if value in seen:
            raise RequestError(f"{what} names {value!r} twice; name it once")
        seen.add(value)
