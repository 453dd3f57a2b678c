"""Measurements by name: those that a study can request, and what a request means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from penultimate import registry
from penultimate.errors import RequestError, unknown
from penultimate.measures.declaration import PER, Features, Made, Measurement, Need, Pixels, Yield
from penultimate.objectives.hyperparameters import Hyperparameter, of_function
from penultimate.specs import Spec, parse


@dataclass(frozen=True)
class Requested:
    """A measurement as a study requests it, with its settings.

    >>> requested("similarity(passes=10)").text, requested("similarity(passes=1)").text
    ('similarity(passes=10)', 'similarity')
    """

    measurement: Measurement
    settings: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        """The canonical spec, without settings that have their default value."""
        return str(Spec(self.measurement.name, self.measurement.changed(self.settings)))


def names() -> list[str]:
    """Return the name of every measurement that a study can request, plug-ins included."""
    return [name for name in registry.names("measurement") if not _declaration(name).get("stage")]


@cache
def built_in_yields() -> Mapping[str, Yield]:
    """Return the declaration of each metric that the package's own measurements yield."""
    entries = [registry.entry("measurement", name) for name in registry.names("measurement")]
    built_in = [measurement(entry.name) for entry in entries if not entry.is_plugin]
    return {item.metric: item for what in built_in for item in what.yields}


def declared_yield(metric: str) -> Yield:
    """Return the declaration of a metric, a plug-in's too; one that nothing declares has no unit."""
    if metric in built_in_yields():
        return built_in_yields()[metric]
    plugins = (
        name for name in registry.names("measurement") if registry.entry("measurement", name).is_plugin
    )
    yields = (item for name in plugins for item in measurement(name).yields)
    return next((item for item in yields if item.metric == metric), Yield(metric, ""))


def measurement(name: str) -> Measurement:
    """Return a measurement by its name; raise RequestError, with the nearest name, for an unknown one."""
    if name not in registry.names("measurement"):
        registry.open_packages()
    if name not in registry.names("measurement"):
        raise RequestError(
            f"{unknown('measurement', name, names())} Your own is known once its file is loaded: --plugin"
            " FILE."
        )
    return _declared(name, registry.entry("measurement", name).resolve())


def requested(text: str) -> Requested:
    """Return the measurement that a spec string requests; raise RequestError for an unknown name or setting.

    >>> requested("colapse")
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown measurement 'colapse'. Did you mean 'collapse'? ...
    """
    spec = parse(str(text))
    declaration = measurement(spec.name)
    if declaration.stage:
        raise RequestError(f"'{spec.name}' is a stage of other measurements; name one of them instead")
    settings = declaration.bound(spec.arguments)
    repeated = {name: several(spec.name, name, settings[name]) for name in declaration.several}
    return Requested(declaration, {**settings, **repeated})


def splits_of_source(what: Measurement) -> set[str]:
    """Return the splits of the source that a measurement uses, directly or through the stages it needs.

    >>> splits_of_source(measurement("pair_cka")), splits_of_source(measurement("linear"))
    ({'test'}, set())
    """
    own = {
        need.split
        for need in what.needs
        if isinstance(need, Features | Pixels) and (need.of_source or not what.of_targets)
    }
    stages = (measurement(need.stage) for need in what.needs if isinstance(need, Made))
    return own.union(*map(splits_of_source, stages))


def several(owner: str, name: str, values: Any) -> tuple[Any, ...]:
    """Return the values of a setting for which a measurement is repeated; a single value becomes a tuple.

    Raise RequestError if there is no value or a value is repeated.

    >>> requested("relearning(shots=5)").text
    'relearning(shots=(5,))'
    """
    listed = tuple(values) if isinstance(values, tuple | list) else (values,)
    if not listed:
        raise RequestError(f"{owner}: {name} is empty; at least one value is needed")
    for value in listed:
        if listed.count(value) > 1:
            raise RequestError(f"{owner}: {name} names {value!r} twice; name it once")
    return listed


def _declaration(name: str) -> Mapping[str, Any]:
    """Return the unchecked declaration of a measurement, which is empty if it declares nothing."""
    declared: Mapping[str, Any] = getattr(registry.entry("measurement", name).resolve(), "declared", {})
    return declared


def _declared(name: str, function: Callable[..., Any]) -> Measurement:
    declared: Mapping[str, Any] | None = getattr(function, "declared", None)
    if declared is None:
        raise RequestError(
            f"the measurement '{name}' is not declared: write @register.measurement(version=1, per='network',"
            " needs=(...)) above it"
        )
    try:
        made = Measurement(name, settings=_settings(name, function), function=function, **declared)
    except TypeError as error:
        raise RequestError(f"the measurement '{name}' is declared wrongly: {error}") from None
    if made.per not in PER:
        raise unknown(f"per of the measurement '{name}'", made.per, PER)
    for need in made.needs:
        if not isinstance(need, Need):
            raise RequestError(
                f"the measurement '{name}' needs {need!r}; see penultimate.measures for what it can"
            )
    for setting in made.each:
        if setting not in [known.name for known in made.settings]:
            raise unknown(f"setting of '{name}' in each", setting, [known.name for known in made.settings])
    return made


def _settings(name: str, function: Callable[..., Any]) -> tuple[Hyperparameter, ...]:
    try:
        return of_function(function)
    except (TypeError, ValueError):
        raise RequestError(f"the measurement '{name}' has no signature to read") from None
