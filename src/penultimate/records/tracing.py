"""Where a number comes from: rows, the steps that made them, and everything those depended on."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penultimate.data.catalog import card, remember, shifted
from penultimate.errors import PenultimateError, RequestError, counted, nearest
from penultimate.objectives.presets import resolve
from penultimate.records.archive import KeptStudy
from penultimate.records.reading import StudyFolder
from penultimate.records.table import Row, Table
from penultimate.records.tuning import Tuning, accuracy_text
from penultimate.store import Meta


class Showing(Protocol):
    """What names rows as its own: an exhibit, for which no room below the report has a name."""

    @property
    def name(self) -> str:
        """Its name, as it is asked for."""
        ...

    @property
    def quantities(self) -> Sequence[object]:
        """The quantities that it names; none where it is made from a study's settings."""
        ...

    def shows(self, row: Row, backbone: str) -> bool:
        """Return whether it shows a row of a study with this main architecture."""
        ...


class NothingError(PenultimateError):
    """An exhibit has no number of an objective on a data set."""


@dataclass(frozen=True)
class KeptFolder:
    """A kept study, as far as its numbers can be traced without its steps: to its machine, code and data."""

    kept: KeptStudy
    is_search = False

    @property
    def name(self) -> str:
        return str(self.description["name"])

    @property
    def description(self) -> Mapping[str, Any]:
        return self.kept.description

    @property
    def backbones(self) -> list[str]:
        blocks = self.description["networks"]
        return list(dict.fromkeys(name for block in blocks for name in block.get("backbones", ())))

    def metas(self) -> dict[str, Meta]:
        return {}

    def table(self) -> Table:
        return self.kept.table

    def called(self, step_id: str) -> str:
        return step_id

    def diverged(self) -> dict[str, str]:
        return {}

    def counts(self) -> dict[str, tuple[int, int]]:
        return {}

    def search(self) -> Tuning | None:
        return None

    def command_for(self, step_id: str, verify: bool = True) -> str:
        return str(self.description.get("command", f"penultimate run {self.name}"))

    def origin(self) -> list[str]:
        """Return what is kept of where its rows come from."""
        known = self.kept.provenance
        packages = known.get("packages", {})
        versions = (f"{name} {packages[name]}" for name in ("torch", "numpy") if name in packages)
        lines = {
            "command": known.get("command", ""),
            "code": f"commit {', '.join(commit[:12] for commit in known.get('commit', ())) or 'unknown'}",
            "machine": ", ".join([str(known.get("processor", "")), *versions]),
            "rows": f"sha256 {self.kept.digest}",
        }
        told = [f"  {what:<8} {text}" for what, text in lines.items()]
        return ["", "a kept run: its steps are not here, but what they were made by and with", *told]


def explain(
    folder: StudyFolder | KeptFolder, exhibit: Showing, objective: str, target: str | None = None
) -> str:
    """Return the rows of an exhibit about an objective on a data set (or the source), and their steps.

    Raises RequestError for an objective or a data set that the study does not have, and NothingError where
    the exhibit has no number of them.
    """
    for kept in folder.description.get("cards", ()):
        remember(kept)
    spec, objective = _objective(folder, objective)
    source = folder.description["source"]
    target = _place(folder, target or source)
    metas = folder.metas()
    by_target: dict[str, list[Row]] = {}
    for row in folder.table():
        is_about = row.objective is None or spec in (row.objective, row.objective_b)
        if is_about and _shows(folder, exhibit, row):
            by_target.setdefault(row.target or source, []).append(row)
    rows = by_target.pop(target, [])
    elsewhere = ", ".join(by_target)
    diverged = [
        f"  diverged: {folder.called(step_id)}: {reason}"
        for step_id, reason in folder.diverged().items()
        if metas[step_id].content["columns"].get("objective") == spec
    ]
    if not rows:
        raise NothingError("\n".join([_nothing(folder, exhibit, objective, target, elsewhere), *diverged]))
    lines = [f"{exhibit.name}: {objective} on {target}, study {folder.name}", ""]
    lines += _lines_of(rows, spec, several=len(folder.backbones) > 1)
    lines += [f"  also on: {elsewhere}"] if elsewhere else []
    lines += [*diverged, *_search(folder, spec)]
    steps: dict[str, Meta] = {}
    for row in rows:
        _collect(row.step or "", metas, steps, spec)
    for step_id, meta in steps.items():
        lines += ["", *_describe(folder.called(step_id), meta)]
    lines += folder.origin() if isinstance(folder, KeptFolder) else []
    return "\n".join(lines)


def _shows(folder: StudyFolder | KeptFolder, exhibit: Showing, row: Row) -> bool:
    """Return whether an exhibit shows a row; one that names no quantities shows of a search what it
    chooses by.
    """
    if folder.is_search and not exhibit.quantities:
        return (row.metric, row.split) == ("top1", "holdout")
    return exhibit.shows(row, next(iter(folder.backbones), ""))


def _objective(folder: StudyFolder | KeptFolder, objective: str) -> tuple[str, str]:
    """Return the canonical spec of an objective, or the name of a network that was given;
    and its short name.
    """
    listed = folder.description["objectives"]
    meanings = [
        (str(entry[name]), str(entry["spec"])) for name in ("label", "slug", "spec") for entry in listed
    ]
    if objective not in (text for text, _ in meanings):
        with contextlib.suppress(RequestError):  # what is no spec is a name, or the beginning of one
            canonical = resolve(objective).canonical
            objective = next((text for text, _ in meanings if text == canonical), objective)
    spec = _meant(folder, "objective", objective, meanings)
    return spec, next(str(entry["slug"]) for entry in listed if entry["spec"] == spec)


def _place(folder: StudyFolder | KeptFolder, target: str) -> str:
    source, targets = folder.description["source"], folder.description["targets"]
    places = [source, *targets, *shifted(source).values()]
    meanings = [(card(place).title, place) for place in places] + [(place, place) for place in places]
    return _meant(folder, "data set", target, meanings)


def _meant(
    folder: StudyFolder | KeptFolder, what: str, name: str, meanings: Sequence[tuple[str, str]]
) -> str:
    """Return what a name means: one of them, or the beginning of what is one thing alone.

    `meanings` pairs what may be said with what it means; the latter is also said of itself.
    """
    known = list(dict.fromkeys(meaning for _, meaning in meanings))
    if name in known:
        return name
    short = _plain(name)
    begun = [(text, meaning) for text, meaning in meanings if short and _plain(text).startswith(short)]
    exact = {meaning for text, meaning in meanings if text == name}
    whole = {meaning for text, meaning in begun if _plain(text) == short}
    meant = exact or whole or {meaning for _, meaning in begun}
    if len(meant) == 1:
        return meant.pop()
    if meant:
        fitting = " or ".join(f"'{each}'" for each in known if each in meant)
        raise RequestError(f"study '{folder.name}' has several {what}s called '{name}': is it {fitting}?")
    texts = dict.fromkeys(text for text, _ in meanings)
    raise RequestError(
        f"study '{folder.name}' has no {what} '{name}'.{nearest(name, texts)} It has: {', '.join(known)}."
    )


def _plain(text: str) -> str:
    """Return a name without what people write differently.

    >>> _plain("Label smoothing"), _plain("focal(gamma = 1)")
    ('label_smoothing', 'focal(gamma=1)')
    """
    return re.sub(r"[\s_-]+", "_", re.sub(r"\s*([=(),])\s*", r"\1", text.strip().lower()))


def _nothing(
    folder: StudyFolder | KeptFolder, exhibit: Showing, objective: str, target: str, elsewhere: str
) -> str:
    """That an exhibit has no number of an objective on a data set, and what there is instead."""
    if elsewhere:
        return f"{exhibit.name} shows nothing of {objective} on {target}; it does on: {elsewhere}"
    if not exhibit.quantities:
        return f"{exhibit.name} is made of settings, or of many numbers at once: it has none to be traced"
    unfinished = any(done < total for done, total in folder.counts().values())
    way = f"what it measures is continued by: {folder.command_for('', verify=False)}"
    return (
        f"Nothing that {exhibit.name} shows of {objective} has been measured in study {folder.name};"
        f" {way if unfinished else 'the study is complete: no further run would measure it'}"
    )


def _lines_of(rows: Iterable[Row], spec: str, several: bool) -> list[str]:
    """Return a line for each number; one for several that differ in the other network, condition,
    layer or epoch.
    """
    together: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        line = (_network(row, spec, several), row.metric, row.split or "", row.status)
        together.setdefault(line, []).append(row)
    width, longest = (max(len(line[place]) for line in together) for place in (0, 1))
    lines = []
    for (network, metric, split, status), group in together.items():
        value, under = _values(group, spec)
        facts = f"({', '.join(filter(None, (status, under)))})"
        lines.append(f"  {network:<{width}}  {metric:<{longest}}  {split:<8} {value}  {facts}")
    return lines


def _network(row: Row, spec: str, several: bool) -> str:
    """Return which of an objective's networks a row is of, as far as the study has several of the kind."""
    seed = row.seed if row.objective == spec else row.seed_b
    run = "all networks" if row.objective is None else "" if seed is None else f"seed {seed}"
    return "  ".join(part for part in (row.backbone if several else "", row.arm, run) if part)


def _values(rows: list[Row], spec: str) -> tuple[str, str]:
    """Return a value, and under which condition it was taken; of several how they range,
    or the last over epochs.
    """
    first, *others = rows
    if first.epoch is not None:
        last = max(rows, key=lambda row: row.epoch or 0)
        return f"{last.value:.6g}", f"epoch {last.epoch}" + (f", the last of {len(rows)}" if others else "")
    if not others:
        value = f"{first.value:g} points" if first.unit == "points" else f"{first.value:.6g}"
        other = first.objective if first.objective_b == spec else first.objective_b
        beside = f"with {other}" if first.objective_b else None
        return value, ", ".join(filter(None, (first.setting, first.layer, beside)))
    values = [row.value for row in rows if not math.isnan(row.value)] or [math.nan]
    lacking = sum(math.isnan(row.value) for row in rows)
    kinds = {"layers": "layer", "conditions": "setting", "pairs": "objective_b"}
    kind = next((kind for kind, column in kinds.items() if getattr(first, column)), "values")
    count = f"{len(rows)} {kind}" + (f", {lacking} without a value" if lacking else "")
    return f"{min(values):.6g} to {max(values):.6g}", count


def _search(folder: StudyFolder | KeptFolder, spec: str) -> list[str]:
    """Return, for a search, the cells among which this objective was."""
    search = folder.search()
    lines = []
    for tuned in search.objectives if search else ():
        if spec in (cell.objective for cell in tuned.cells):
            cells = sorted(tuned.cells, key=lambda cell: cell.mean, reverse=True)
            choice = f"{tuned.best} is chosen of" if tuned.best else "nothing is chosen of"
            lines += ["", f"  {choice} {counted(len(cells), 'cell')}, by top-1 on the holdout alone, %"]
            lines += [f"    {accuracy_text(cell):>8}  {cell}" for cell in cells]
            lines += [f"    {remark}" for remark in tuned.remarks]
    return lines


def _collect(step_id: str, metas: Mapping[str, Meta], steps: dict[str, Meta], spec: str) -> None:
    """Collect a step after those that it depends on, without the networks of other objectives."""
    meta = None if step_id in steps else metas.get(step_id)
    if meta and meta.content["columns"].get("objective") in (None, spec):
        for parent in meta.content["parents"]:
            _collect(parent, metas, steps, spec)
        steps[step_id] = meta


def _describe(name: str, meta: Meta) -> list[str]:
    content = meta.content
    packages = content["packages"]
    code = content["commit"][:12] or "unknown"
    lines = [
        name,
        f"  status   {content['status']}, {content['seconds']} s, {content['threads']} thread(s) of"
        f" {content['processor']} on {content['host']}",
        f"  code     commit {code}{' (changed since)' if content['dirty'] else ''},"
        f" torch {packages['torch']}, numpy {packages['numpy']}, Python {content['python']}",
        f"  config   {json.dumps(content['config'], sort_keys=True)}",
    ]
    if "content_digest" in content:
        lines.append(f"  data     sha256 {content['content_digest']}")
    lines += [f"  from     {parent}" for parent in content["parents"]]
    lines += [f"  file     {name}  sha256 {facts['sha256'][:16]}" for name, facts in content["files"].items()]
    return lines
