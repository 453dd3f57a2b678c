"""The settings of a study, and changes of them by name: `--set recipe.epochs=3`."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from penultimate import specs
from penultimate.errors import RequestError, nearest, unknown
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
    further grid keeps those of its own that are among them. New measurements ("measure=linear,knn") are made
    of every network. A measurement's setting is changed wherever the study asks for the measurement:
    "fine_tuning.learning_rate=(0.01, 0.1)". The expected cost of a training is dropped if its data, recipe or
    architecture changes, unless the cost is set as well.
    """
    before = _trained(study)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise RequestError(f"--set wants setting=value, such as recipe.epochs=3; got '{assignment}'")
        study = _changed(study, path.strip().split("."), _value(text))
    if _trained(study) == before or any(text.startswith("expected_seconds") for text in assignments):
        return study
    costs = {name: seconds for name, seconds in study.expected_seconds.items() if name != "train"}
    return dataclasses.replace(study, expected_seconds=costs)


def _trained(study: Study) -> tuple[Any, ...]:
    """Return everything on which the cost of a training depends."""
    return study.source, *((block.recipe, block.backbones) for block in study.runs)


def _value(text: str) -> Any:
    """Return a literal, a name or a spec, or a tuple of several of these, separated by commas.

    >>> _value("0.5"), _value("digits"), _value("linear, nearest_mean(order=1)")
    (0.5, 'digits', ('linear', 'nearest_mean(order=1)'))
    """
    try:
        return specs.literal(text)
    except specs.NOT_LITERAL:
        pass
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


def _changed(study: Study, keys: list[str], value: Any) -> Study:
    arms = dict.fromkeys(block.arm for block in study.runs if block.arm)
    measured = dict.fromkeys(
        specs.parse(text).name for block in (study, *study.networks) for text in block.measure or ()
    )
    match keys:
        case ["measure"]:
            blocks = tuple(dataclasses.replace(block, measure=None) for block in study.networks)
            return dataclasses.replace(study, measure=_as_tuple(value), networks=blocks)
        case ["objectives"]:
            return _with_objectives(study, _as_tuple(value))
        case [name, setting] if name in measured:
            return _with_setting(study, name, setting, value)
        case ["targets"]:  # what is said of targets that are left out goes with them
            targets = _as_tuple(value)
            kept = {name: of for name, of in study.counterparts.items() if name in targets}
            return dataclasses.replace(study, targets=targets, counterparts=kept)
        case [name, *_] if name in OF_STUDY:
            return dataclasses.replace(study, **{name: _new(study, keys, value)})
    arm = keys[0] if keys[0] in arms else None
    parts = keys[1:] if arm else keys
    if not parts or parts[0] not in OF_RUNS:
        path, within = ".".join(keys), [line.partition("=")[0] for line in settings(study)]
        known = [f"{arm}.{name}" for name in OF_RUNS] if arm else [*OF_RUNS, *OF_STUDY, *arms, *measured]
        meant = [name for name in within if name.endswith(f".{path}")]
        hint = f" Did you mean '{meant[0]}'?" if meant else nearest(path, [*known, *within])
        raise RequestError(f"no setting '{path}': it is none of {', '.join(known)}.{hint}")

    def change(block: Runs) -> Runs:
        if arm is not None and block.arm != arm:
            return block
        return dataclasses.replace(block, **{parts[0]: _new(block, parts, value)})

    return study.with_runs(change)


def _new(owner: Any, keys: list[str], value: Any) -> Any:
    """Return the new value of a setting, or of a part of it, in the form of the old value."""
    known = [item.name for item in dataclasses.fields(owner)]
    if keys[0] not in known:
        raise unknown("setting", keys[0], known)
    old = getattr(owner, keys[0])
    if dataclasses.is_dataclass(old) and not isinstance(old, type):
        parts = [item.name for item in dataclasses.fields(old)]
        if len(keys) == 1:
            raise RequestError(f"'{keys[0]}' has parts; set one of {', '.join(parts)}")
        return dataclasses.replace(old, **{keys[1]: _new(old, keys[1:], value)})
    if len(keys) > 1:
        raise RequestError(f"'{keys[0]}' has no parts")
    return _as_tuple(value) if isinstance(old, tuple) else value


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return tuple(value)
    return () if value == "" else (value,)


def _with_setting(study: Study, name: str, setting: str, value: Any) -> Study:
    """Return the study with a setting of a measurement changed wherever the study asks for it."""
    known = [each.name for each in measurement(name).settings]
    if setting not in known:
        raise unknown(f"setting of '{name}'", setting, known)

    def change(texts: Iterable[str]) -> tuple[str, ...]:
        parsed = ((text, specs.parse(text)) for text in texts)
        return tuple(
            str(Spec(name, {**spec.arguments, setting: value})) if spec.name == name else text
            for text, spec in parsed
        )

    networks = tuple(
        dataclasses.replace(block, measure=block.measure and change(block.measure))
        for block in study.networks
    )
    return dataclasses.replace(study, measure=change(study.measure), networks=networks)


def _with_objectives(study: Study, objectives: Sequence[str]) -> Study:
    """Return the study with new objectives; further grids keep those of their own that are among them."""
    first, named = study.main, {resolve(text).canonical for text in objectives}

    def change(block: Runs) -> Runs | None:
        if block is first:
            return dataclasses.replace(block, objectives=tuple(objectives))
        kept = tuple(text for text in block.objectives if text in named)
        return dataclasses.replace(block, objectives=kept) if kept else None

    return study.with_runs(change)
