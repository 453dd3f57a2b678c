"""Which study is meant: by its name or its file, with settings changed, with some of its runs."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penultimate import registry
from penultimate.errors import RequestError, nearest
from penultimate.objectives.presets import resolve
from penultimate.study.spec import Study


def load_study(name: str) -> Study:
    """A study by its name, or by the path of a Python file that defines STUDY."""
    if name.endswith(".py") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise RequestError(f"no study file at '{name}'")
        spec = importlib.util.spec_from_file_location(f"penultimate_study_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except RequestError:
            raise
        except Exception as error:
            raise RequestError(f"the study file '{name}' fails: {type(error).__name__}: {error}") from error
        study = getattr(module, "STUDY", None)
        if not isinstance(study, Study):
            raise RequestError(f"the study file '{name}' must define STUDY = Study(...)")
        return study
    study = registry.entry("study", name).resolve()
    assert isinstance(study, Study)
    return study


def override(study: Study, assignments: Sequence[str]) -> Study:
    """The study with settings changed: "recipe.epochs=3", "threads=2", "targets=('digits',)".

    With other backbones or objectives, what the study says of those that it no longer has is left out.
    """
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise RequestError(f"--set wants setting=value, such as recipe.epochs=3; got '{assignment}'")
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = _listed(text)
        study = _replace(study, path.strip().split("."), value, path.strip())
    return study


def _listed(text: str) -> str | tuple[str, ...]:
    """What is no literal: a name or a spec, or several with commas between them.

    >>> _listed("digits"), _listed("linear, nearest_mean(order=1)")
    ('digits', ('linear', 'nearest_mean(order=1)'))
    """
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (ValueError, SyntaxError):
        return text
    return tuple(map(ast.unparse, found.elts)) if isinstance(found, ast.Tuple) else text


def _replace(owner: Any, keys: list[str], value: Any, path: str) -> Any:
    known = {item.name: item for item in dataclasses.fields(owner)}
    if keys[0] not in known:
        raise RequestError(
            f"no setting '{path}': '{keys[0]}' is not one of {', '.join(known)}.{nearest(keys[0], known)}"
        )
    old = getattr(owner, keys[0])
    if len(keys) > 1:
        if not dataclasses.is_dataclass(old):
            raise RequestError(f"no setting '{path}': '{keys[0]}' has no parts")
        new = _replace(old, keys[1:], value, path)
    elif dataclasses.is_dataclass(old):
        parts = ", ".join(f"{path}.{item.name}" for item in dataclasses.fields(old))
        raise RequestError(f"'{path}' has parts; set one of {parts}")
    else:
        new = tuple(value) if isinstance(old, tuple) and isinstance(value, list | tuple) else value
        if isinstance(old, tuple) and not isinstance(new, tuple):
            new = (new,) if new != "" else ()
    if isinstance(owner, Study) and keys[0] in ("backbones", "objectives") and new:
        return getattr(owner, f"with_{keys[0]}")(new)
    return dataclasses.replace(owner, **{keys[0]: new})


def restrict(study: Study, only: Sequence[str], seeds: Sequence[int]) -> Study:
    """The study with some of its objectives (by slug or spec) and other seeds.

    Objectives and backbones that have fewer seeds keep those of them that are asked for; where none is, the
    first few. A backbone with which none of the objectives is trained is left out.
    """
    if seeds:
        fewer = {
            key: tuple(seed for seed in own if seed in seeds) or tuple(seeds[: len(own)])
            for key, own in study.seeds_of.items()
        }
        study = dataclasses.replace(study, seeds=tuple(seeds), seeds_of=fewer)
    if only:
        by_slug = {slug: text for text, slug in study.slugs().items()}
        chosen = []
        for name in only:
            found = by_slug.get(name, resolve(name).canonical)
            if found not in study.objectives:
                raise RequestError(
                    f"study '{study.name}' has no objective '{name}'.{nearest(name, by_slug)}"
                    f" It has: {', '.join(by_slug)}."
                )
            chosen.append(found)
        study = study.with_objectives(tuple(dict.fromkeys(chosen)))
    return study
