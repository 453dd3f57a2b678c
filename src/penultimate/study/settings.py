"""The settings of a study, and changes of them by name: `--set recipe.epochs=3`."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

from penultimate import specs
from penultimate.errors import RequestError, nearest
from penultimate.measures.catalogue import measurement
from penultimate.objectives.presets import resolve
from penultimate.specs import Spec
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study

OF_STUDY = tuple(
    item.name
    for item in dataclasses.fields(Study)
    if item.name not in ("networks", "search", "tunes", "changed_from", "data")
)
OF_RUNS = tuple(
    item.name
    for item in dataclasses.fields(Runs)
    if item.name not in ("arm", "measure", "swept", "checkpoints")
)


def override(study: Study, assignments: Sequence[str]) -> Study:
    """Return the study with settings changed: "threads=2", "targets=digits", "recipe.epochs=3".

    A setting of a grid of runs (objectives, recipe, backbones, seeds, draws) is changed in every grid, or in
    the grids of one arm: "temperature.recipe.epochs=3". New objectives replace those of the first grid; every
    further grid keeps those of its own that are among them. New measurements ("measure=linear,knn") are those
    of every grid without a list of its own. A grid with its own list keeps those that it has of them, takes
    those that no grid had before, and is left out if nothing remains. A measurement's setting is changed
    wherever the study asks for the measurement: "fine_tuning.learning_rate=(0.01, 0.1)". The expected cost of
    a training is dropped if its data, recipe or architecture changes, unless the cost is set as well.
    """
    before = _trained(study)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise RequestError(f"--set wants setting=value, such as recipe.epochs=3; got '{assignment}'")
        try:
            value = specs.literal(text)
        except specs.NOT_LITERAL:
            value = _listed(text)
        study = _changed(study, path.strip().split("."), value, path.strip())
    said = any(assignment.startswith("expected_seconds") for assignment in assignments)
    if said or _trained(study) == before:
        return study
    costs = {name: seconds for name, seconds in study.expected_seconds.items() if name != "train"}
    return dataclasses.replace(study, expected_seconds=costs)


def _trained(study: Study) -> tuple[Any, ...]:
    """Return everything on which the cost of a training depends."""
    return study.source, *((block.recipe, block.backbones) for block in study.runs)


def _listed(text: str) -> str | tuple[str, ...]:
    """Return a value that is not a literal: a name or a spec, or a tuple of several, separated by commas.

    >>> _listed("digits"), _listed("linear, nearest_mean(order=1)")
    ('digits', ('linear', 'nearest_mean(order=1)'))
    """
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
        return tuple(map(ast.unparse, parsed.elts)) if isinstance(parsed, ast.Tuple) else text
    except specs.NOT_LITERAL:
        return text


def settings(study: Study) -> list[str]:
    """Return every setting that `override` can change, with its present value in the study's first grid.

    >>> from penultimate.study import load_study
    >>> [line for line in settings(load_study("smoke")) if "epochs" in line or "threads" in line]
    ['threads=1', 'recipe.epochs=3']
    """
    of_study = [(name, getattr(study, name)) for name in OF_STUDY]
    of_runs = [(name, getattr(block, name)) for block in study.runs[:1] for name in OF_RUNS]
    return [line for name, value in (*of_study, *of_runs) for line in _lines(name, value)]


def _lines(name: str, value: Any) -> list[str]:
    if dataclasses.is_dataclass(value):
        parts = [(f"{name}.{item.name}", getattr(value, item.name)) for item in dataclasses.fields(value)]
        return [line for part in parts for line in _lines(*part)]
    of_names = isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    return [f"{name}={','.join(value) if of_names else value}"]


def _changed(study: Study, keys: list[str], value: Any, path: str) -> Study:
    if keys == ["measure"]:
        return _with_measure(study, _as_tuple(value))
    if keys[0] in OF_STUDY:
        changes = {keys[0]: _new(study, keys, value, path)}
        if keys == ["targets"]:  # what is said of targets that are left out goes with them
            told = study.counterparts.items()
            changes["counterparts"] = {name: of for name, of in told if name in changes["targets"]}
        return dataclasses.replace(study, **changes)
    if keys == ["objectives"]:
        return _with_objectives(study, _as_tuple(value))
    arms = [block.arm for block in study.runs]
    arm = keys.pop(0) if len(keys) > 1 and keys[0] in arms and keys[0] else None
    if len(keys) == 1 and keys[0] and keys[0] in arms:
        raise RequestError(
            f"'{path}' is an arm; set one of {', '.join(f'{path}.{name}' for name in OF_RUNS)}"
        )
    measured = dict.fromkeys(specs.parse(text).name for text in _measurements(study))
    if keys[0] in measured:
        return _measured_under(study, keys, value, path)
    if arm is not None and (keys[0] in OF_STUDY or keys[0] == "measure"):
        raise RequestError(
            f"'{keys[0]}' cannot be set for one arm; of the whole study: {'.'.join(keys)}=VALUE"
        )
    if keys[0] not in OF_RUNS:
        known = [*OF_RUNS, *OF_STUDY, *(name for name in dict.fromkeys(arms) if name), *measured]
        parts = [line.partition("=")[0] for line in settings(study)]
        meant = [part for part in parts if part.endswith(f".{keys[0]}")] if len(keys) == 1 else []
        hint = f" Did you mean '{meant[0]}'?" if meant else nearest(keys[0], known)
        raise RequestError(f"no setting '{path}': '{keys[0]}' is not one of {', '.join(known)}.{hint}")

    def change(block: Runs) -> Runs:
        if arm is not None and block.arm != arm:
            return block
        return dataclasses.replace(block, **{keys[0]: _new(block, keys, value, path)})

    return study.with_runs(change)


def _measurements(study: Study) -> list[str]:
    """Return every measurement that a study makes, on any of its networks."""
    return [*study.measure, *(text for block in study.networks for text in block.measure or ())]


def _measured_under(study: Study, keys: list[str], value: Any, path: str) -> Study:
    """Return the study with a setting of a measurement changed wherever the study asks for it."""
    name, *parts = keys
    known = [setting.name for setting in measurement(name).settings]
    if len(parts) != 1 or parts[0] not in known:
        settings = ", ".join(f"{name}.{setting}" for setting in known) or "nothing: it has no settings"
        raise RequestError(f"no setting '{path}'; '{name}' is a measurement: set {settings}")

    def change(text: str) -> str:
        spec = specs.parse(text)
        return text if spec.name != name else str(Spec(name, {**spec.arguments, parts[0]: value}))

    networks = tuple(
        dataclasses.replace(block, measure=block.measure and tuple(map(change, block.measure)))
        for block in study.networks
    )
    return dataclasses.replace(study, measure=tuple(map(change, study.measure)), networks=networks)


def _new(owner: Any, keys: list[str], value: Any, path: str) -> Any:
    """Return the new value of a setting, or of a part of it, in the form of the old value."""
    known = {item.name: item for item in dataclasses.fields(owner)}
    if keys[0] not in known:
        raise RequestError(
            f"no setting '{path}': '{keys[0]}' is not one of {', '.join(known)}.{nearest(keys[0], known)}"
        )
    old = getattr(owner, keys[0])
    if len(keys) > 1:
        if not dataclasses.is_dataclass(old) or isinstance(old, type):
            raise RequestError(f"no setting '{path}': '{keys[0]}' has no parts")
        return dataclasses.replace(old, **{keys[1]: _new(old, keys[1:], value, path)})
    if dataclasses.is_dataclass(old):
        parts = ", ".join(f"{path}.{item.name}" for item in dataclasses.fields(old))
        raise RequestError(f"'{path}' has parts; set one of {parts}")
    return _as_tuple(value) if isinstance(old, tuple) else value


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return tuple(value)
    return () if value == "" else (value,)


def _with_objectives(study: Study, objectives: Sequence[str]) -> Study:
    """Return the study with new objectives; further grids keep those of their own that are among them."""
    first, named = study.main, {resolve(text).canonical for text in objectives}
    return study.with_runs(
        lambda block: (
            dataclasses.replace(block, objectives=tuple(objectives)) if block is first else block.among(named)
        )
    )


def _with_measure(study: Study, measure: Sequence[str]) -> Study:
    """Return the study with new measurements.

    Networks with their own keep those that are among them, and take those that no network had before.
    """
    texts = {specs.parse(text).name: text for text in measure if isinstance(text, str)}
    before = {
        specs.parse(text).name
        for block in study.networks
        for text in (study.measure if block.measure is None else block.measure)
    }
    added = tuple(text for name, text in texts.items() if name not in before)
    blocks = []
    for block in study.networks:
        own = None if block.measure is None else [specs.parse(text).name for text in block.measure]
        kept = None if own is None else (*(texts[name] for name in own if name in texts), *added)
        if kept or not own:
            blocks.append(dataclasses.replace(block, measure=kept))
    return dataclasses.replace(study, measure=tuple(measure), networks=tuple(blocks))
