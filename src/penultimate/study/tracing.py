"""Where a number comes from: rows, the steps that made them, and everything those depended on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from penultimate.errors import RequestError, nearest
from penultimate.store import Meta
from penultimate.study.reading import StudyFolder
from penultimate.study.tuning_words import accuracy_text, counted
from penultimate.table import Row


def explain(folder: StudyFolder, objective: str, target: str | None) -> str:
    """The rows of an objective on a data set (without one: on the source), and the steps behind them."""
    by_name = {one["slug"]: one["spec"] for one in folder.description["objectives"]}
    by_name.update({spec: spec for spec in by_name.values()})
    if objective not in by_name:
        raise RequestError(
            f"study '{folder.name}' has no objective '{objective}'.{nearest(objective, by_name)}"
        )
    places = [folder.description["source"], *folder.description["targets"]]
    target = target or places[0]
    if target not in places:
        raise RequestError(
            f"study '{folder.name}' has no data set '{target}'.{nearest(target, places)}"
            f" It has: {', '.join(places)}."
        )
    metas = folder.metas()
    rows = _final(folder.evidence().where(objective=by_name[objective], target=target), metas)
    if not rows:
        return f"Nothing has been measured for {objective} on {target} yet; continue the study to measure it."
    lines = [f"{objective} on {target}, study {folder.name}", ""]
    several = len(folder.backbones) > 1
    for row in rows:
        epoch = "" if row.epoch is None else f", epoch {row.epoch}"
        run = f"{row.backbone}  seed {row.seed}" if several else f"seed {row.seed}"
        lines.append(f"  {run}  {row.metric:<34} {row.split or '':<8} {row.value:.6g}  ({row.status}{epoch})")
    lines += _search(folder, by_name[objective])
    steps: dict[str, Meta] = {}
    for row in rows:
        if row.step:
            _collect(row.step, metas, steps)
    for step_id, meta in steps.items():
        lines += ["", *_describe(folder.called(step_id), meta)]
    return "\n".join(lines)


def _final(rows: Iterable[Row], metas: Mapping[str, Meta]) -> list[Row]:
    """The rows of a finished network; where only its training was measured, those of its last epoch."""
    known = list(rows)
    finals = [row for row in known if row.epoch is None]
    ends = {step_id: meta.content.get("epoch") for step_id, meta in metas.items()}
    return finals or [row for row in known if row.epoch == ends.get(row.step or "")]


def _search(folder: StudyFolder, spec: str) -> list[str]:
    """Of a tuning: among which cells this objective was chosen."""
    tuning = folder.tuning() if folder.is_tuning else None
    found = [one for one in tuning.objectives if one.best and one.best.objective == spec] if tuning else []
    lines = []
    for tuned in found:
        cells = sorted(tuned.cells, key=lambda cell: cell.mean, reverse=True)
        lines += ["", f"  chosen of {counted(len(cells), 'cell')}, by top-1 on the holdout alone, %"]
        lines += [f"    {accuracy_text(cell):>8}  {cell}  ({cell.phase})" for cell in cells]
        lines += [f"    {remark}" for remark in tuned.remarks]
    return lines


def _collect(step_id: str, metas: dict[str, Meta], steps: dict[str, Meta]) -> None:
    if step_id in steps or step_id not in metas:
        return
    for parent in metas[step_id].content["parents"]:
        _collect(parent, metas, steps)
    steps[step_id] = metas[step_id]


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
