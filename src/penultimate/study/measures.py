"""What a study may name under `metrics` and `probes`: its own steps, and the plug-ins of those kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penultimate import registry
from penultimate.errors import RequestError, unknown
from penultimate.objectives.hyperparameters import REQUIRED, bind, of_function
from penultimate.registry import Spec, parse

INPUTS = {"metric": 1, "probe": 0, "backbone": 0}
"""How many arguments are no hyperparameters: a metric is given a bank, the others nothing else."""


def canonical(kind: str, text: str, built_in: Sequence[str]) -> str:
    """A metric or probe as a study names it: a step of its own, or a plug-in with its hyperparameters.

    Hyperparameters that are what they are by default are left out, so that one measure has one name. Raises
    RequestError for a name that is neither (with the nearest), and for hyperparameters that it does not
    have.

    >>> canonical("probe", "linear", ("linear", "knn"))
    'linear'
    >>> canonical("probe", "lineal", ("linear", "knn"))
    Traceback (most recent call last):
    penultimate.errors.RequestError: unknown probe 'lineal'. Did you mean 'linear'? Known: linear, knn. ...
    """
    spec = parse(str(text))
    if spec.name in built_in:
        if spec.arguments:
            raise RequestError(f"the {kind} '{spec.name}' has no settings in a study; write '{spec.name}'")
        return spec.name
    failures = () if spec.name in _plugins(kind) else registry.open_packages()
    plugins = _plugins(kind)
    if spec.name not in plugins:
        known = unknown(kind, spec.name, [*built_in, *plugins])
        raise RequestError(" ".join([str(known), _elsewhere(kind, spec.name), *failures]))
    return str(Spec(spec.name, check_settings(kind, spec)))


def check_settings(kind: str, spec: Spec) -> dict[str, Any]:
    """The hyperparameters of a plug-in that a spec changes; those of a built-in as they stand.

    Raises RequestError for an unknown name, a hyperparameter that the plug-in does not have, and a value of
    another type than its default's.
    """
    entry = registry.entry(kind, spec.name)
    if not entry.is_plugin:
        return spec.arguments
    try:
        settings = of_function(entry.resolve(), INPUTS[kind])
    except (TypeError, ValueError):
        raise RequestError(f"the {kind} '{spec.name}' has no signature to read") from None
    values = bind(spec.name, settings, spec.arguments)
    usual = bind(spec.name, [one for one in settings if one.default is not REQUIRED], {})
    return {key: values[key] for key in spec.arguments if repr(values[key]) != repr(usual.get(key))}


def _plugins(kind: str) -> list[str]:
    return [name for name in registry.names(kind) if registry.entry(kind, name).is_plugin]


def _elsewhere(kind: str, name: str) -> str:
    """Where a name is known that a study cannot take as this kind of measure."""
    for other in ("metric", "probe"):
        if other != kind and name in registry.names(other):
            return f"There is a {other} '{name}': name it under {other}s."
    if name in registry.names(kind):
        return f"penultimate.{kind}s has '{name}' for one's own arrays, but no step of a study is called so."
    return f"A {kind} of one's own is known once its file is loaded: --plugin FILE."
