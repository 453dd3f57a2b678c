"""Run a tuning in a store: its cells are training steps, its choices a folder beside those of the studies.

studies/tune-NAME/study.json     its steps, and the chosen objectives: a study that can be read
                  tuning.json    every cell, what was chosen and how
                  rows.jsonl     the holdout accuracy of every run, as tidy rows
                  chosen.py      NINE, to be imported by a study
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.store import Meta, Store, atomic_write
from penultimate.study.context import ROWS
from penultimate.study.graph import Graph, Step, unfold
from penultimate.study.local import Observer, Summary, run_graph
from penultimate.study.running import STUDY_FILE, Silent, exclusively
from penultimate.study.spec import Study
from penultimate.study.tuning import Outcome, Setting, TuningPlan, conduct
from penultimate.study.tuning_axes import recipe_with
from penultimate.study.tuning_record import TUNING_FILE, Run, Tuned, Tuning, folder_name, read_tuning
from penultimate.study.tuning_words import CHOSEN_FILE, chosen_source, kind_of
from penultimate.table import Row, read_rows, write_rows

KINDS = ("data", "train")
"""The steps of a tuning: it sees no test set and no transfer task."""


@dataclass(frozen=True)
class TuningResult:
    """A tuning as the store holds it now, what became of this command's steps, and what is not finished."""

    tuning: Tuning
    summary: Summary
    folder: Path
    slugs: tuple[str, ...]
    unfinished: tuple[str, ...]
    made_way: Tuning | None = None

    @property
    def without_choice(self) -> tuple[str, ...]:
        """The objectives of this command of which every cell diverged."""
        own = [one for one in self.tuning.objectives if one.slug in self.slugs]
        return tuple(one.slug for one in own if one.best is None)


def tune(
    plan: TuningPlan,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    command: str = "",
) -> TuningResult:
    """Train the cells that the searches ask for, choose, and write down all of it.

    Called again, it repeats nothing: done cells are read, and a search goes on where it was left. Objectives
    that were tuned before in the same setting keep their place; those of another setting make way. Raises
    RequestError when the folder cannot be used, or when another process tunes the same study.
    """
    store = Store(out)
    store.prepare()
    folder = store.root / "studies" / folder_name(plan.study.name)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusively(folder, folder.name, out):
        runner = _Cells(plan.study, store, observer or Silent(), processes)
        command = command or f"penultimate tune all --study {plan.study.name}"
        tuned = conduct(plan, runner, command)
        before = read_tuning(folder / TUNING_FILE)
        tuning = _record(plan, tuned, before, store)
        if tuned:
            _write(plan.study, tuning, store, folder, command)
    asked = tuple(one.slug for one in plan.candidates)
    done = {one.slug for one in tuned}
    unfinished = tuple(slug for slug in asked if slug not in done)
    made_way = before if tuned and before is not None and before.setting != tuning.setting else None
    return TuningResult(tuning, runner.summary, folder, asked, unfinished, made_way)


class _Cells:
    """The runner of a store: settings as training steps, their outcomes from the rows that these leave."""

    def __init__(self, study: Study, store: Store, observer: Observer, processes: int | None) -> None:
        self.study, self.store, self.observer, self.processes = study, store, observer, processes
        self.summary = Summary()

    def __call__(self, settings: Sequence[Setting]) -> dict[Setting, Outcome]:
        graph, steps = cells_graph(self.study, settings)
        self._count(run_graph(self.store, graph, self.observer, self.processes))
        found = {}
        for setting in settings:
            own = [steps[setting, seed] for seed in self.study.seeds]
            if all(self.store.is_whole(step.id) for step in own):
                found[setting] = self._outcome(own)
        return found

    def _outcome(self, steps: Sequence[Step]) -> Outcome:
        runs, curves = [], []
        for step in steps:
            meta = self.store.meta(step.id)
            assert meta is not None
            curve = holdout_curve(read_rows(self.store.verified(step.id, ROWS)))
            seed = step.about["seed"]
            if meta.status == "diverged":
                runs.append(Run(seed, None, step.id, str(meta.content.get("reason", ""))))
            else:
                runs.append(Run(seed, curve[meta.content["epoch"]], step.id))
                curves.append(curve)
        return Outcome(tuple(runs), _peak(curves) if len(curves) == len(runs) else None)

    def _count(self, summary: Summary) -> None:
        for name in ("total", "cached", "computed", "seconds"):
            setattr(self.summary, name, getattr(self.summary, name) + getattr(summary, name))
        self.summary.diverged.update(summary.diverged)
        self.summary.failed.update(summary.failed)
        self.summary.skipped.extend(summary.skipped)


def holdout_curve(rows: Sequence[Row]) -> dict[int, float]:
    """Top-1 on the holdout by epoch: the only rows that a tuning reads."""
    return {
        row.epoch: row.value
        for row in rows
        if row.metric == "top1" and row.split == "holdout" and row.epoch is not None
    }


def _peak(curves: Sequence[Mapping[int, float]]) -> int | None:
    """The first epoch of the highest mean, of those that every run was evaluated in."""
    epochs = sorted(set.intersection(*map(set, curves))) if curves else []
    means = {epoch: round(math.fsum(curve[epoch] for curve in curves), 12) for epoch in epochs}
    return max(epochs, key=lambda epoch: (means[epoch], -epoch), default=None)


def trained_only(study: Study, objectives: tuple[str, ...]) -> Study:
    """The study of a tuning: networks of some objectives, on which nothing is measured but their training."""
    return dataclasses.replace(
        study,
        name=folder_name(study.name),
        title=f"The tuning of study {study.name}",
        question="Which hyperparameters of each objective reach the highest accuracy on the holdout?",
        objectives=objectives,
        adjustments={},
        seeds_of={},
        objectives_of={},
        targets=(),
        backbones=study.backbones[:1],
        probes=(),
        metrics=(),
        instruments=(),
        relearning=(),
    )


def cells_graph(study: Study, settings: Sequence[Setting]) -> tuple[Graph, dict[tuple[Setting, int], Step]]:
    """The data and training steps of some settings with every seed, and which step is whose.

    They are the steps that a study with these objectives and this recipe has: same identity, same folder.
    """
    bare = trained_only(study, tuple(dict.fromkeys(objective for objective, _ in settings)))
    steps: dict[str, Step] = {}
    owner: dict[tuple[Setting, int], Step] = {}
    for changes in dict.fromkeys(changes for _, changes in settings):
        objectives = tuple(objective for objective, of in settings if of == changes)
        recipe = recipe_with(study.recipe, changes)
        own = unfold(dataclasses.replace(bare, objectives=objectives, recipe=recipe)).steps.values()
        for step in own:
            if step.name in KINDS:
                steps.setdefault(step.id, step)
            if step.name == "train":
                owner[(step.about["objective"], changes), step.about["seed"]] = step
    return Graph(bare, steps), owner


def record_of(plan: TuningPlan, tuned: Sequence[Tuned]) -> Tuning:
    """The record of these searches alone, without what only a store knows of them."""
    study = plan.study
    return Tuning(
        study.name,
        study.source,
        study.backbones[0],
        study.draw,
        study.seeds,
        study.threads,
        dataclasses.asdict(study.recipe),
        plan.budget,
        plan.expansions,
        study.limited,
        plan.listed,
        tuple(tuned),
    )


def _record(plan: TuningPlan, tuned: Sequence[Tuned], before: Tuning | None, store: Store) -> Tuning:
    """The record: these searches, and those of earlier commands in the same setting."""
    fresh = record_of(plan, tuned)
    if before is not None and before.setting == fresh.setting:
        by_slug = {one.slug: one for one in (*before.objectives, *tuned)}
        fresh = dataclasses.replace(fresh, objectives=tuple(by_slug.values()))
    kinds = [kind_of(text) for text in plan.listed]
    places = {one.slug: kind_of(one.start) for one in fresh.objectives}
    ordered = sorted(
        fresh.objectives,
        key=lambda one: kinds.index(places[one.slug]) if places[one.slug] in kinds else len(kinds),
    )
    return dataclasses.replace(fresh, objectives=tuple(ordered), provenance=_provenance(fresh, store))


def _metas(tuning: Tuning, store: Store) -> dict[str, Meta]:
    """Every step behind a record: the data first, then the trainings."""
    trained = [run.step for one in tuning.objectives for cell in one.cells for run in cell.runs]
    metas = {step: meta for step in trained if (meta := store.meta(step)) is not None}
    parents = dict.fromkeys(parent for meta in metas.values() for parent in meta.content["parents"])
    return {**{step: meta for step in parents if (meta := store.meta(step)) is not None}, **metas}


def _provenance(tuning: Tuning, store: Store) -> dict[str, Any]:
    """Code, packages, machine and data behind the cells, and the seconds that they took."""
    metas = _metas(tuning, store)
    contents = [meta.content for meta in metas.values()]
    return {
        "commit": sorted({content["commit"] for content in contents if content["commit"]}),
        "dirty": any(content["dirty"] for content in contents),
        "processor": sorted({content["processor"] for content in contents}),
        "torch": sorted({content["packages"]["torch"] for content in contents}),
        "data": {step: meta.content["content_digest"] for step, meta in metas.items() if meta.step == "data"},
        "seconds": round(math.fsum(content["seconds"] for content in contents), 1),
    }


def _write(study: Study, tuning: Tuning, store: Store, folder: Path, command: str) -> None:
    rows = [
        Row(
            step=run.step,
            objective=cell.objective,
            backbone=tuning.backbone,
            source=tuning.source,
            seed=run.seed,
            target=tuning.source,
            split="holdout",
            metric="top1",
            value=math.nan if run.accuracy is None else run.accuracy,
            unit="fraction",
            status="diverged" if run.accuracy is None else "limited" if tuning.limited else "done",
        )
        for one in tuning.objectives
        for cell in one.cells
        for run in cell.runs
    ]
    described = {
        **trained_only(study, study.objectives).describe(),
        "objectives": [
            {"slug": one.slug, "label": one.label, "spec": one.best.objective}
            for one in tuning.objectives
            if one.best is not None
        ],
        "tunes": tuning.study,
        "command": command,
        "steps": list(_metas(tuning, store)),
    }
    write_rows(folder / "rows.jsonl", rows)
    atomic_write(folder / TUNING_FILE, tuning.to_json().encode())
    atomic_write(folder / CHOSEN_FILE, chosen_source(tuning).encode())
    text = json.dumps(described, indent=1, sort_keys=True) + "\n"
    atomic_write(folder / STUDY_FILE, text.encode())
