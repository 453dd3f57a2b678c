"""Checks of a study's fields: they bring a value into its standard form, or say what was expected."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from penultimate import registry, specs
from penultimate.checks import is_number
from penultimate.data.catalog import DatasetCard
from penultimate.errors import RequestError, shortened, unknown
from penultimate.files import LONGEST_FILE_NAME
from penultimate.measures.catalogue import requested
from penultimate.objectives.hyperparameters import REQUIRED, bind, of_function
from penultimate.records.tuning import folder_name

MOST_SEEDS, MOST_THREADS = 10_000, 1024
LONGEST_NAME = 100
TUNING = folder_name("")
"""The beginning of the name of a tuning's study."""
MOST_BYTES = LONGEST_FILE_NAME - len(TUNING)
"""The largest number of bytes in a study's name, which is also the name of its folder."""
WORDS = f"a word or two of at most {LONGEST_NAME} printable characters, without '|', ',' and '='"
"""The rule for the names of arms, of given networks and of a user's own data sets."""


def as_tuple(owner: Any, what: str, form: type | tuple[type, ...], called: str) -> tuple[Any, ...]:
    """Return a field as a tuple of values of one type; raises RequestError for other or too many values."""
    values = getattr(owner, what)
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise RequestError(f"{what} must be a tuple, not {values!r}")
    if len(values[: MOST_SEEDS + 1]) > MOST_SEEDS:
        raise RequestError(f"{what} holds more than {MOST_SEEDS:,} values")
    for value in values:
        if not isinstance(value, form) or isinstance(value, bool):
            raise RequestError(f"{what} holds {called}, not {value!r}")
    object.__setattr__(owner, what, tuple(values))
    return tuple(values)


def canonical_backbone(text: str) -> str:
    """Return the canonical spec of an architecture; that of a plug-in leaves out default settings."""
    spec = specs.parse(str(text))
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


def check_reference(name: str) -> None:
    """Raise RequestError, with the nearest name, for a kept run that does not come with the package."""
    from penultimate.records.archive import references

    if name and name not in references():
        raise unknown("reference run", name, references())


def check_measure(owner: Any) -> None:
    """Write the measurements in their canonical form; None, which stands for those of the study, is kept."""
    if owner.measure is None:
        return
    as_tuple(owner, "measure", str, "names")
    texts = tuple(requested(text).text for text in owner.measure)
    named = [specs.parse(text).name for text in texts]
    no_repeats("measure", named)
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


def check_arm(arm: str) -> None:
    if not is_words(arm):
        raise RequestError(f"an arm is named by {WORDS}, not {arm!r}")


def expect_splits(of: DatasetCard, splits: Sequence[str], what: str) -> None:
    """Raise RequestError if a data set lacks a split that its use requires."""
    sizes = of.sizes
    missing = [split for split in splits if split not in sizes]
    if missing:
        raise RequestError(
            f"'{of.name}' cannot {what}: it has no split {', '.join(missing)} (it has {', '.join(sizes)})"
        )


def expect_classes(of: DatasetCard, what: str) -> None:
    """Raise RequestError if the images of a data set have several labels, but one class each is needed."""
    if of.has_several_labels:
        raise RequestError(
            f"'{of.name}' cannot {what}: its images have several labels each; it can be a target"
        )


def is_words(text: object) -> bool:
    """Return whether a text may name an arm or a given network (the rule is `WORDS`)."""
    if not isinstance(text, str) or len(text) > LONGEST_NAME or text.isspace():
        return False
    return text.isprintable() and not any(sign in text for sign in "|,=")


def is_correspondence(value: object) -> bool:
    """Return whether a value has the form {class: (source class, ...)}."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and isinstance(names, tuple | list)
        and all(isinstance(one, str) for one in names)
        for name, names in value.items()
    )


def check_seconds(costs: object) -> None:
    """Raise RequestError for expected costs of steps that are not {step: seconds}."""
    if not isinstance(costs, Mapping) or not all(
        isinstance(name, str) and is_number(seconds) and seconds >= 0 for name, seconds in costs.items()
    ):
        raise RequestError(f"expected_seconds is {{step: seconds}}, not {costs!r}")


def check_counterparts(told: object, targets: Sequence[str]) -> None:
    """Raise RequestError for counterparts of another form, or of a data set that is no target."""
    if not isinstance(told, Mapping) or not all(map(is_correspondence, told.values())):
        raise RequestError(f"counterparts are {{target: {{class: (source class, ...)}}}}, not {told!r}")
    for target in told:
        if target not in targets:
            raise unknown("target in counterparts", target, targets)


def check_reading(reading: object, data: Container[str]) -> None:
    """Raise RequestError for ways of reading of another form, or of data that do not lie on disk."""
    if not isinstance(reading, Mapping) or not all(map(is_reading, reading.values())):
        raise RequestError(
            f'reading is {{name: {{"class_order": names, "copies": "drop"}}}}, not {reading!r}'
        )
    for name in reading:
        if name not in data:
            raise RequestError(f"how '{name}' is read can be said of data on disk, and it is none")


def is_reading(value: object) -> bool:
    """Return whether a value is {"class_order": names, "copies": "drop"}, or a part of it.

    It says how data on disk are read.
    """
    from penultimate.data.readers.class_order import USUAL

    if not isinstance(value, Mapping) or not value.keys() <= {"class_order", "copies"}:
        return False
    order = value.get("class_order", "text")
    names = isinstance(order, (list, tuple)) and bool(order) and all(isinstance(name, str) for name in order)
    return (names or order in USUAL) and value.get("copies", "drop") == "drop"


def check_bool(owner: Any, what: str) -> None:
    if not isinstance(getattr(owner, what), bool):
        raise RequestError(f"{what} is True or False, not {getattr(owner, what)!r}")


def no_repeats(what: str, values: Sequence[Any]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise RequestError(f"{what} names {value!r} twice; name it once")
        seen.add(value)
