"""Where a number comes from: rows, the steps that made them, and everything those depended on."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penultimate.data.catalog import remember, shifted
from penultimate.errors import PenultimateError, RequestError, nearest
from penultimate.objectives.presets import resolve
from penultimate.records.archive import POINTING_UNIT, KeptStudy
from penultimate.records.reading import StudyFolder
from penultimate.records.table import Row, Table
from penultimate.store import Meta

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 40
"""The number of rows that are listed; a figure over layers and epochs shows thousands."""


class NothingError(PenultimateError):
    """An exhibit has no number of an objective on a data set."""


def explain(
    study: StudyFolder | KeptStudy,
    exhibit: str,
    shown: pd.DataFrame,
    objective: str,
    target: str | None = None,
) -> str:
    """Return the rows that an exhibit read about an objective on a data set (or the source), and their steps.

    `shown` are all rows that it read. Raises RequestError for an objective or a data set that the study does
    not have, and NothingError if the exhibit has no number of them.
    """
    for card in study.description.get("cards", ()):
        remember(card)
    spec, slug = _objective(study, objective)
    target = _target(study, target)
    of_both = shown["objective"].isna() | (shown["objective"] == spec) | (shown["objective_b"] == spec)
    found = shown[of_both].drop_duplicates()
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
    several = (
        len({name for block in study.description["networks"] for name in block.get("backbones", ())}) > 1
    )
    lines = [f"{exhibit}: {slug} on {target}, study {study.name}", ""]
    lines += [_line(row, spec, several) for row in rows[:MOST_ROWS]]
    lines += [f"  and {len(rows) - MOST_ROWS:,} more rows"] if len(rows) > MOST_ROWS else []
    lines += [f"  also on: {', '.join(others)}"] if others else []
    steps: dict[str, Meta] = {}
    for row in rows:
        _collect(row.step or "", metas, steps, spec)
    described = [line for meta in steps.values() for line in ("", *_describe(meta))]
    return "\n".join(
        [*lines, *diverged, *described, *(_kept_from(study) if isinstance(study, KeptStudy) else ())]
    )


def _objective(study: StudyFolder | KeptStudy, objective: str) -> tuple[str, str]:
    """Return the canonical spec and the short name of an objective, or the name of a given network."""
    named = {
        str(entry[name]): (str(entry["spec"]), str(entry["slug"]))
        for name in ("label", "slug", "spec")
        for entry in study.description["objectives"]
    }
    canonical = objective
    with contextlib.suppress(RequestError):  # other texts are no spec, but may be a name
        canonical = resolve(objective).canonical
    if objective not in named and canonical not in named:
        known = ", ".join(dict.fromkeys(slug for _, slug in named.values()))
        raise RequestError(
            f"study '{study.name}' has no objective '{objective}'.{nearest(objective, named)} It has:"
            f" {known}."
        )
    return named.get(objective) or named[canonical]


def _target(study: StudyFolder | KeptStudy, target: str | None) -> str:
    source, targets = study.description["source"], study.description["targets"]
    places = [source, *targets, *shifted(source).values()]
    if target is not None and target not in places:
        raise RequestError(
            f"study '{study.name}' has no data set '{target}'.{nearest(target, places)} It has:"
            f" {', '.join(places)}."
        )
    return str(source if target is None else target)


def _nothing(
    study: StudyFolder | KeptStudy, exhibit: str, objective: str, target: str, others: Sequence[str]
) -> str:
    """Return that an exhibit has no number of an objective on a data set, and what there is instead."""
    text = f"{exhibit} shows nothing of {objective} on {target} in study {study.name}"
    if others:
        return f"{text}; it does on: {', '.join(others)}"
    if isinstance(study, StudyFolder) and any(done < total for done, total in study.counts().values()):
        return f"{text}; the study is continued by: {study.command_for(verify=False)}"
    return text


def _line(row: Row, spec: str, several: bool) -> str:
    """Return a row as a line; the architecture is named if the study has several."""
    is_first = row.objective in (spec, None)
    seed, other = (row.seed, row.objective_b) if is_first else (row.seed_b, row.objective)
    facts = [
        *(row.backbone if several else None, row.arm, None if seed is None else f"seed {seed}", row.metric),
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


def _describe(meta: Meta) -> list[str]:
    content = meta.content
    packages = content["packages"]
    lines = [
        meta.id,
        f"  status   {content['status']}, {content['seconds']} s, {content['threads']} thread(s) of"
        f" {content['processor']} on {content['host']}",
        f"  code     commit {content['commit'][:12] or 'unknown'}"
        f"{' (changed since)' if content['dirty'] else ''}, torch {packages['torch']},"
        f" numpy {packages['numpy']}, Python {content['python']}",
        f"  config   {json.dumps(content['config'], sort_keys=True)}",
    ]
    if "content_digest" in content:
        lines.append(f"  data     sha256 {content['content_digest']}")
    lines += [f"  from     {parent}" for parent in content["parents"]]
    lines += [f"  file     {name}  sha256 {facts['sha256'][:16]}" for name, facts in content["files"].items()]
    return lines


def _kept_from(study: KeptStudy) -> list[str]:
    """Return the provenance of a kept run as lines: command, commit, machine and digest."""
    known: Mapping[str, Any] = study.provenance
    versions = (
        f"{name} {known['packages'][name]}" for name in ("torch", "numpy") if name in known["packages"]
    )
    return [
        "",
        "a kept run: its steps are not here, but what they were made by and with",
        f"  command  {known['command']}",
        f"  code     commit {', '.join(commit[:12] for commit in known['commit']) or 'unknown'}",
        f"  machine  {', '.join([str(known['processor']), *versions])}",
        f"  rows     sha256 {study.digest}",
    ]
