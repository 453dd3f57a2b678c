"""Runs of a tuning in a store: its cells are training steps, and its choices have a folder among the studies.

studies/tune-NAME/study.json     its steps and the chosen objectives, as a study that can be read
                  tuning.json    every cell, the choices and how they were made
                  rows.jsonl     the holdout accuracy of every run, as tidy rows
                  chosen.py      NINE, to be imported by a study
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.engine import load_engine
from penultimate.engine.observer import Engine, Observer, Silent, Summary
from penultimate.engine.run import exclusively, expect_located
from penultimate.errors import DamagedFileError
from penultimate.files import atomic_write, digest_file
from penultimate.graph import Step
from penultimate.origin import Seen
from penultimate.records.reading import claim, write_study
from penultimate.records.table import ROWS, Row, read_rows, write_rows
from penultimate.records.tuning import (
    TUNING_FILE,
    CellRun,
    Tuned,
    Tuning,
    folder_name,
    read_tuning,
    write_tuning,
)
from penultimate.store import Meta, Store
from penultimate.study.blocks import Runs
from penultimate.study.graph import Graph
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import kind_of
from penultimate.tuning.chosen import CHOSEN_FILE, chosen_source
from penultimate.tuning.conduct import Setting, SettingOutcome, TuningPlan, conduct

KINDS = ("data", "train")
"""The kinds of a tuning's steps: it sees no test set and no transfer task."""


@dataclass(frozen=True)
class TuningResult:
    """A tuning as it is now in the store, the outcome of this command's steps, and unfinished searches."""

    tuning: Tuning
    summary: Summary
    folder: Path
    slugs: tuple[str, ...]
    unfinished: tuple[str, ...]
    made_way: Tuning | None = None


def tune(
    plan: TuningPlan,
    out: Path | str = "runs",
    processes: int | None = None,
    observer: Observer | None = None,
    command: str = "",
    engine: Engine | str = "local",
    verify: bool = False,
) -> TuningResult:
    """Train the cells that the searches request, choose, and record everything.

    A second call repeats nothing: finished cells are read, and a search continues where it stopped.
    Objectives that were tuned before with the same settings are kept; those with other settings are replaced.
    If `verify` is set, every file of every finished cell is digested first, and damaged cells are trained
    again; prepared copies of data are digested too, and a damaged one is refused. Raises RequestError if the
    place of the source is not given, if the folder cannot be used, or if another process is tuning the same
    study.
    """
    chosen = load_engine(engine, processes) if isinstance(engine, str) else engine
    expect_located(trained_only(plan.study, plan.listed, plan.study.main.recipe), verify)
    observer = observer or Silent()
    store = Store(out, thorough=verify)
    store.prepare()
    folder = store.study(folder_name(plan.study.name))
    with exclusively(store, folder):
        order = claim(store, folder.name, True, observer.noticed).order
        before = _before(folder, store, observer)
        runner = _Cells(plan, store, observer, chosen)
        command = command or f"penultimate tune all --study {plan.study.name}"
        tuned = conduct(plan, runner, command)
        tuning = _record(plan, tuned, before, store)
        if tuned:
            _write(plan.study, tuning, store, folder, command, order)
    asked = tuple(candidate.slug for candidate in plan.candidates)
    unfinished = tuple(slug for slug in asked if slug not in {search.slug for search in tuned})
    made_way = before if tuned and before is not None and before.setting != tuning.setting else None
    return TuningResult(tuning, runner.summary, folder, asked, unfinished, made_way)


def _before(folder: Path, store: Store, observer: Observer) -> Tuning | None:
    """Return the record of earlier commands; a damaged record is reported and set aside."""
    try:
        return read_tuning(folder / TUNING_FILE)
    except DamagedFileError as error:
        observer.noticed(f"{error}; it was set aside, and what other commands tuned comes back with those")
        store.keep_aside(folder / TUNING_FILE)
        return None


class _Cells:
    """Runner that trains settings as steps of a store, and reads the outcomes from the steps' rows."""

    def __init__(self, plan: TuningPlan, store: Store, observer: Observer, engine: Engine) -> None:
        self.study, self.stops = plan.study, plan.stops
        self.store, self.observer, self.engine = store, observer, engine
        self.summary = Summary()

    def __call__(self, settings: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        graph, steps = cells_graph(self.study, settings, Seen(self.store.root))
        summary = self.engine.run(graph, self.store, self.observer)
        for name in ("total", "cached", "computed", "seconds", "skipped"):
            setattr(self.summary, name, getattr(self.summary, name) + getattr(summary, name))
        self.summary.diverged.update(summary.diverged)
        self.summary.failed.update(summary.failed)
        outcomes = {}
        for setting in settings:
            trainings = [steps[setting, seed] for seed in self.study.main.seeds]
            if all(self.store.is_whole(step.id) for step in trainings):
                recipe = self.study.main.recipe.changed(dict(setting[1]))
                outcomes[setting] = self._outcome(trainings, recipe.first_stop() if self.stops else None)
        return outcomes

    def _outcome(self, steps: Sequence[Step], first_stop: float | None) -> SettingOutcome:
        """Return the runs' accuracies when they ended or, from a `first_stop` on, in their best epoch."""
        runs, curves = [], []
        for step in steps:
            meta = self.store.meta(step.id)
            assert meta is not None
            curve = holdout_curve(read_rows(self.store.verified(step.id, ROWS)))
            seed = step.columns["seed"]
            if meta.status == "diverged":
                runs.append(CellRun(seed, None, step.id, str(meta.content.get("reason", ""))))
            else:
                runs.append(CellRun(seed, curve[meta.content["epoch"]], step.id))
                curves.append(curve)
        if len(curves) < len(runs):
            return SettingOutcome(tuple(runs))
        peak = _peak(curves, first_stop or 0)
        if first_stop is not None and peak is not None:
            runs = [CellRun(run.seed, curve[peak], run.step) for run, curve in zip(runs, curves, strict=True)]
        return SettingOutcome(tuple(runs), peak)


def holdout_curve(rows: Sequence[Row]) -> dict[int, float]:
    """Return the top-1 accuracy on the holdout by epoch, the only rows that a tuning reads."""
    return {
        row.epoch: row.value
        for row in rows
        if row.metric == "top1" and row.split == "holdout" and row.epoch is not None
    }


def _peak(curves: Sequence[Mapping[int, float]], first: float = 0) -> int | None:
    """Return the earliest epoch with the highest mean, of those from the first one on in which every run was
    evaluated, or None.
    """
    shared = set.intersection(*map(set, curves)) if curves else set()
    epochs = sorted(epoch for epoch in shared if epoch >= first)
    means = {epoch: round(math.fsum(curve[epoch] for curve in curves), 12) for epoch in epochs}
    return max(epochs, key=lambda epoch: (means[epoch], -epoch), default=None)


def trained_only(study: Study, objectives: tuple[str, ...], recipe: Recipe) -> Study:
    """Return the study of a tuning: some objectives are trained, and nothing else is measured."""
    main = study.main
    return dataclasses.replace(
        study,
        name=folder_name(study.name),
        title=f"The tuning of study {study.name}",
        question="Which hyperparameters of each objective reach the highest accuracy on the holdout?",
        targets=(),
        networks=(Runs(objectives, recipe, main.backbones[:1], main.seeds, main.draws),),
        measure=(),
        counterparts={},
        data={name: where for name, where in study.data.items() if name == study.source},
    )


def cells_graph(
    study: Study, settings: Sequence[Setting], seen: Seen | None = None
) -> tuple[Graph, dict[tuple[Setting, int], Step]]:
    """Return the data and training steps of some settings with every seed, and each run's training step.

    They are the steps of a study with these objectives and this recipe: same identity, same folder.
    """
    usual = study.main.recipe
    bare = trained_only(study, tuple(dict.fromkeys(objective for objective, _ in settings)), usual)
    steps: dict[str, Step] = {}
    owner: dict[tuple[Setting, int], Step] = {}
    for changes in dict.fromkeys(changes for _, changes in settings):
        objectives = tuple(objective for objective, changed in settings if changed == changes)
        grid = trained_only(study, objectives, usual.changed(dict(changes)))
        for step in unfold(grid, seen).steps.values():
            if step.name in KINDS:
                steps.setdefault(step.id, step)
            if step.name == "train":
                owner[(step.columns["objective"], changes), step.columns["seed"]] = step
    return Graph(bare, steps), owner


def record_of(plan: TuningPlan, tuned: Sequence[Tuned]) -> Tuning:
    """Return the record of these searches alone, without anything that only a store knows about them."""
    study, main = plan.study, plan.study.main
    setting = (study.name, study.source, main.backbones[0], main.draws, main.seeds, study.threads)
    recipe = dataclasses.asdict(main.recipe)
    searched = (plan.budget, plan.expansions, study.limited, plan.listed, tuple(tuned))
    how = {name: getattr(plan, name) for name in ("refine", "product", "stops", "by_mean")}
    return Tuning(*setting, recipe, *searched, **how)


def _record(plan: TuningPlan, tuned: Sequence[Tuned], before: Tuning | None, store: Store) -> Tuning:
    """Return the record of these searches and of those of earlier commands with the same settings."""
    fresh = record_of(plan, tuned)
    earlier = before.objectives if before is not None and before.setting == fresh.setting else ()
    searches = {search.slug: search for search in (*earlier, *tuned)}.values()
    places = {kind_of(text): place for place, text in enumerate(plan.listed)}
    ordered = sorted(searches, key=lambda search: places.get(kind_of(search.start), len(places)))
    metas = _metas(searches, store)
    return dataclasses.replace(fresh, objectives=tuple(ordered), provenance=_provenance(metas))


def _metas(searches: Iterable[Tuned], store: Store) -> dict[str, Meta]:
    """Return the meta of every step behind some searches: the data first, then the trainings."""
    trained = [run.step for tuned in searches for cell in tuned.cells for run in cell.runs]
    metas = {step: meta for step in trained if (meta := store.meta(step)) is not None}
    parents = dict.fromkeys(parent for meta in metas.values() for parent in meta.content["parents"])
    return {**{step: meta for step in parents if (meta := store.meta(step)) is not None}, **metas}


def _provenance(metas: Mapping[str, Meta]) -> dict[str, Any]:
    """Return the code, packages, machine and data of the cells, and the seconds that they took."""
    contents = [meta.content for meta in metas.values()]
    return {
        "commit": sorted({content["commit"] for content in contents if content["commit"]}),
        "dirty": any(content["dirty"] for content in contents),
        "processor": sorted({content["processor"] for content in contents}),
        "torch": sorted({content["packages"]["torch"] for content in contents}),
        "data": {step: meta.content["content_digest"] for step, meta in metas.items() if meta.step == "data"},
        "seconds": round(math.fsum(content["seconds"] for content in contents), 1),
    }


def _write(study: Study, tuning: Tuning, store: Store, folder: Path, command: str, order: int) -> None:
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
        for tuned in tuning.objectives
        for cell in tuned.cells
        for run in cell.runs
    ]
    described = {
        **trained_only(study, study.objectives, study.main.recipe).describe(),
        "objectives": [
            {"slug": tuned.slug, "label": tuned.label, "spec": tuned.best.objective}
            for tuned in tuning.objectives
            if tuned.best is not None
        ],
        "tunes": tuning.study,
        "command": command,
        "steps": list(_metas(tuning.objectives, store)),
    }
    write_rows(folder / ROWS, rows)
    write_tuning(folder / TUNING_FILE, tuning)
    atomic_write(folder / CHOSEN_FILE, chosen_source(tuning).encode())
    files = {name: digest_file(folder / name) for name in (ROWS, CHOSEN_FILE)}
    write_study(store, described, order, files)
