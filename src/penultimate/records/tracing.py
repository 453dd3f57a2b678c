"""Where a number comes from: rows, the steps that made them, and everything those depended on."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.data.catalog import remember, shifted
from penultimate.errors import PenultimateError, RequestError, unknown
from penultimate.objectives.presets import resolve
from penultimate.records.archive import POINTING_UNIT, KeptStudy
from penultimate.records.reading import StudyFolder
from penultimate.records.table import Row, Table
from penultimate.store import Meta

if TYPE_CHECKING:
    import pandas as pd

Folder: TypeAlias = StudyFolder | KeptStudy
MOST_ROWS = 40
"""The number of rows that are listed; a figure over layers and epochs shows thousands."""


class NothingError(PenultimateError):
    """An exhibit has no number of an objective on a data set."""


def explain(
    study: Folder, exhibit: str, shown: pd.DataFrame, objective: str, target: str | None = None
) -> str:
    """Return the rows that an exhibit read about an objective on a data set (or the source), and their steps.

    `shown` are all rows that it read. Raises RequestError for an objective or a data set that the study does
    not have, and NothingError if the exhibit has no number of them.
    """
    for card in study.description.get("cards", ()):
        remember(card)
    spec, slug = _objective(study, objective)
    target = _target(study, target)
    of_it = shown["objective"].isna() | (shown["objective"] == spec) | (shown["objective_b"] == spec)
    found = shown[of_it].drop_duplicates()
    places = found["target"].astype(object).where(found["target"].notna(), study.description["source"])
    rows = list(Table.of_frame(found[places == target]))
    metas = study.metas()
    diverged = [
        f"  diverged: {step_id}: {meta.content.get('reason', '')}"
        for step_id, meta in metas.items()
        if meta.status == "diverged" and meta.content["columns"].get("objective") == spec
    ]
    others = [str(place) for place in places.unique() if place != target]
    if not rows:
        raise NothingError("\n".join([_nothing(study, exhibit, slug, target, others), *diverged]))
    lines = [f"{exhibit}: {slug} on {target}, study {study.name}", ""]
    lines += [_line(row, spec) for row in rows[:MOST_ROWS]]
    lines += [f"  and {len(rows) - MOST_ROWS:,} more rows"] if len(rows) > MOST_ROWS else []
    lines += [f"  also on: {', '.join(others)}"] if others else []
    lines += diverged
    steps: dict[str, Meta] = {}
    for row in rows:
        _collect(row.step or "", metas, steps, spec)
    for meta in steps.values():
        lines += ["", *_step_lines(meta)]
    return "\n".join([*lines, *(_kept_lines(study) if isinstance(study, KeptStudy) else ())])


def _objective(study: Folder, objective: str) -> tuple[str, str]:
    """Return the canonical spec and the short name of an objective, or the name of a given network."""
    named = {
        str(entry[name]): (str(entry["spec"]), str(entry["slug"]))
        for name in ("label", "slug", "spec")
        for entry in study.description["objectives"]
    }
    if objective not in named:
        with contextlib.suppress(RequestError):  # other texts are no spec, but may be a name
            objective = resolve(objective).canonical
    if objective not in named:
        raise unknown(f"objective of study '{study.name}'", objective, [slug for _, slug in named.values()])
    return named[objective]


def _target(study: Folder, target: str | None) -> str:
    source: str = study.description["source"]
    known = [source, *study.description["targets"], *shifted(source).values()]
    if target is not None and target not in known:
        raise unknown(f"data set of study '{study.name}'", target, known)
    return source if target is None else target


def _nothing(study: Folder, exhibit: str, objective: str, target: str, others: Sequence[str]) -> str:
    """Return that an exhibit has no number of an objective on a data set, and what there is instead."""
    text = f"{exhibit} shows nothing of {objective} on {target} in study {study.name}"
    if others:
        return f"{text}; it does on: {', '.join(others)}"
    if isinstance(study, StudyFolder) and any(done < total for done, total in study.counts().values()):
        return f"{text}; the study is continued by: {study.command_for(verify=False)}"
    return text


def _line(row: Row, spec: str) -> str:
    """Return a row as a line; of two networks that are compared, the other one is named."""
    is_first = row.objective in (spec, None)
    seed, other = (row.seed, row.objective_b) if is_first else (row.seed_b, row.objective)
    facts = [
        *(row.backbone, row.arm, None if seed is None else f"seed {seed}", row.metric),
        *(row.split, row.setting, row.layer, None if row.epoch is None else f"epoch {row.epoch}"),
        *(f"with {other}" if other else None, None if row.status == "done" else row.status),
    ]
    value = f"{row.value:g} points" if row.unit == POINTING_UNIT else f"{row.value:.6g}"
    return f"  {value:<11} {'  '.join(filter(None, facts))}"


def _collect(step_id: str, metas: Mapping[str, Meta], steps: dict[str, Meta], spec: str) -> None:
    """Collect a step after those that it depends on, without the networks of other objectives."""
    meta = None if step_id in steps else metas.get(step_id)
    if meta and meta.content["columns"].get("objective") in (None, spec):
        for parent in meta.content["parents"]:
            _collect(parent, metas, steps, spec)
        steps[step_id] = meta


def _step_lines(meta: Meta) -> Iterator[str]:
    of = meta.content
    yield meta.id
    yield f"  status   {of['status']}, {of['seconds']} s, {of['threads']} thread(s)"
    yield f"  machine  {of['processor']} on {of['host']}"
    commit = f"commit {of['commit'][:12] or 'unknown'}{' (changed since)' if of['dirty'] else ''}"
    yield f"  code     {commit}, {_versions(of['packages'])}, Python {of['python']}"
    yield f"  config   {json.dumps(of['config'], sort_keys=True)}"
    if "content_digest" in of:
        yield f"  data     sha256 {of['content_digest']}"
    yield from (f"  from     {parent}" for parent in of["parents"])
    for name, facts in of["files"].items():
        yield f"  file     {name}  sha256 {facts['sha256'][:16]}"


def _versions(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {packages[name]}" for name in ("torch", "numpy") if name in packages)


def _kept_lines(study: KeptStudy) -> list[str]:
    """Return the provenance of a kept run as lines: command, commit, machine and digest."""
    known: Mapping[str, Any] = study.provenance
    return [
        "",
        "a kept run: its steps are not here, but what they were made by and with",
        f"  command  {known['command']}",
        f"  code     commit {', '.join(commit[:12] for commit in known['commit']) or 'unknown'}",
        f"  machine  {known['processor']}, {_versions(known['packages'])}",
        f"  rows     sha256 {study.digest}",
    ]
