"""The runs behind an exhibit's means: which have all of its numbers, and where runs are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penultimate.data.catalog import shifted
from penultimate.report.base import ExhibitTable
from penultimate.report.measurements import Measurements
from penultimate.report.networks import name_in
from penultimate.report.quantity import Quantity
from penultimate.report.text import counted, in_words, listed


def shared_seeds(measurements: Measurements, quantities: Iterable[Quantity]) -> frozenset[int]:
    """Return the seeds for which no objective lacks any of these quantities that it was measured for.

    The set may be empty. Rows without an objective, such as training from scratch, count as one more.
    """
    every = [seeds for one in quantities for *_, seeds in _seeds_behind(measurements.in_arm(one.arm), one)]
    return frozenset(set.intersection(*every)) if every else frozenset()


class _Mean(NamedTuple):
    """The number of runs behind a mean of an objective, and how many the study asks for and has."""

    label: str
    over: int
    asked: int
    runs: int


def fewer(
    measurements: Measurements,
    quantities: Iterable[Quantity],
    tables: Iterable[ExhibitTable],
    shared: int | None = None,
) -> str:
    """Return a sentence on means over fewer runs than the study has, or an empty string.

    It names the missing runs if the study asked for them, and otherwise how many runs it asks for. `shared`
    is the number of runs that have every number, if all means must be over the same runs; it may be 0.
    """
    quantities = tuple(quantities)
    means = [mean for one in quantities for mean in _means(measurements.in_arm(one.arm), one)]
    arms = {one.arm for one in quantities}
    of_cells = () if shared is not None else _in_tables(measurements, means, arms, tables)
    every = [mean for mean in (*means, *of_cells) if mean.asked]
    lost: dict[str, tuple[int, int]] = {}
    for label, count, asked, _ in every:
        if count < asked:
            lost[label] = min((count, asked), lost.get(label, (count, asked)))
    runs = max((mean.runs for mean in means), default=0)
    if shared == 0 and runs > 1 and len({mean.label for mean in means if mean.runs}) > 1:
        return "No run has all of these numbers: the means are of different runs."
    if shared and (not lost or shared >= min(mean.asked for mean in every)):
        return _means_over(shared, runs) if shared < runs else ""
    if len(lost) > 1 == len({*lost.values()}) and lost.keys() == {mean.label for mean in every}:
        return _means_over(*lost.popitem()[1])
    if lost:
        short = [f"{label} {count} of {asked}" for label, (count, asked) in lost.items()]
        said = f"Means over fewer runs than the study asks for: {', '.join(short)}."
        nothing = f"{counted(shared or 0, 'run')} that {'lacks' if shared == 1 else 'lack'} nothing"
        return f"{said} Here all are over the {nothing}." if shared else said
    if all(mean.asked == mean.runs for mean in means):
        return ""
    asked_for, of_study = ({*column} - {0} for column in list(zip(*means, strict=True))[2:])
    if len(asked_for) == len(of_study) == 1:
        return _means_over(asked_for.pop(), of_study.pop())
    numbers = listed([in_words(count) for count in sorted(asked_for, reverse=True)], "or")
    return f"Means over as many runs of each objective as the study asks for: {numbers}."


def _means_over(count: int, runs: int) -> str:
    of_runs = f"{in_words(count)} of the study's {counted(runs, 'run')} of each objective."
    return f"Means over {of_runs}" if count > 1 else of_runs.capitalize()


def _means(measurements: Measurements, quantity: Quantity) -> Iterator[_Mean]:
    """Yield the mean of a quantity for each objective that has one."""
    runs = _planned(measurements)
    for label, kind, seeds in _seeds_behind(measurements, quantity):
        yield _Mean(label, len(seeds), _planned(measurements, kind).get(label, 0), runs.get(label, 0))


def _in_tables(
    measurements: Measurements, means: Iterable[_Mean], arms: set[str], tables: Iterable[ExhibitTable]
) -> Iterator[_Mean]:
    """Yield the means in the cells of tables; a mean over tasks counts the runs that have all tasks.

    A cell does not name its quantity, so it should have as many runs as some quantity of its objective.
    """
    asked: dict[str, set[int]] = {}
    for mean in means:
        asked.setdefault(mean.label, set()).add(mean.asked)
    plans = [_planned(measurements.in_arm(arm)) for arm in arms or measurements.arms]
    for row in (row for table in tables if table.source == "ours" for row in table.rows):
        counts = asked.get(row.label) or {
            min((plan[row.label] for plan in plans if row.label in plan), default=0)
        }
        for cell in row.cells:
            if cell.count and cell.of_runs:
                least = min((count for count in counts if count >= cell.count), default=0)
                yield _Mean(row.label, cell.count, least, least)


def _planned(measurements: Measurements, kind: str = "") -> dict[str, int]:
    """Return how many runs of each objective were planned for a measurement, or for any, by label."""
    every = measurements.results.description.get("measure") or ()
    seeds: dict[str, set[int]] = {}
    grids = measurements.networks.grids(measurements.arm, measurements.backbone)
    asking = [block for block in grids if kind in map(name_in, block.get("measure") or every)]
    for block in asking or grids:  # no grid asks for what training itself records
        for spec in block.get("objectives", ()):
            seeds.setdefault(spec, set()).update(block["seeds"])
    return {each.label: len(seeds.get(each.spec, ())) for each in measurements.objectives}


def _seeds_behind(measurements: Measurements, quantity: Quantity) -> Iterator[tuple[str, str, set[int]]]:
    """Yield the seeds of each objective that have a quantity, and the step that it comes from.

    The objective "" stands for rows without one.
    """
    places = {
        "source": (measurements.source,),
        "targets": (*measurements.targets, *measurements.several_labels),
    }
    shifts = shifted(measurements.source)
    labels = {each.spec: each.label for each in measurements.objectives}
    for target in places.get(quantity.target, (shifts.get(quantity.target, quantity.target),)):
        seeds: dict[tuple[str, str, str | None, str | None], set[int]] = {}
        for row in measurements.rows(quantity.metric_on(target), quantity.split, target):
            is_one = row.objective is None or measurements.is_own(row)
            if is_one and row.seed is not None and quantity.covers(row):
                setting = "" if quantity.is_of_several else row.setting
                kind = (row.step or "").partition(".")[0]
                seeds.setdefault((str(row.objective), kind, setting, row.layer), set()).add(row.seed)
        yield from ((labels.get(spec, ""), kind, runs) for (spec, kind, *_), runs in seeds.items())
