"""What every exhibit must say of the study's runs: which diverged, which are missing, what a seed is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penultimate.data.catalog import shifted
from penultimate.report.base import ExhibitTable
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.networks import name_in
from penultimate.report.quantity import SWEEP, Quantity
from penultimate.report.sets import is_embedded
from penultimate.report.text import counted, in_words, listed, plain

OF_DRAWS = (
    "Here another seed is another draw of the images, other first weights and another order; in the paper it"
    " is other first weights and another order alone."
)
OF_ONE_DRAW = (
    "Here, as in the paper, another seed is other first weights and another order: all networks saw one draw"
    " of the images."
)


def remarks(measurements: Measurements, of_one_arm: bool, of_another: bool) -> tuple[str, ...]:
    """Runs that diverged, and what is not shown: other architectures, and, if it is `of_one_arm`, other arms.

    `of_another`: it is of another architecture, and says so itself. An architecture that was measured for
    Figure B.1 alone goes without saying.
    """
    said = [f"Diverged, and left out of every mean: {run}." for run in measurements.diverged]
    others = "" if of_another else ", ".join(map(plain, _measured_as_whole(measurements)))
    if others:
        said.append(
            f"Only the first architecture, {plain(measurements.backbone)}, is shown; also measured: {others}"
            " (Table B.1, Figure B.1)."
        )
    further = len(measurements.in_arm(SWEEP).objectives) if of_one_arm and not measurements.arm else 0
    if further:
        count = counted(further, "further temperature")
        said.append(f"Cosine softmax at {count} is compared in Table 4, not here.")
    return tuple(said)


def _measured_as_whole(measurements: Measurements) -> list[str]:
    """The other architectures that were measured, and have every objective that this one has."""
    arm, networks = measurements.arm, measurements.networks
    measured = set(measurements.results.table.where(arm=arm or None).column("backbone"))
    specs = networks.specs(arm, measurements.backbone)
    others = (name for name in measurements.backbones if name != measurements.backbone and name in measured)
    return [name for name in others if networks.specs(arm, name) >= specs]


def seed_in_words(measurements: Measurements) -> str:
    """What the seeds of this arm decide, where it has several in a world that is drawn; else ""."""
    every = measurements.networks.grids(measurements.arm, measurements.backbone)
    grids = [block for block in every if "seeds" in block]
    if len({seed for block in grids for seed in block["seeds"]}) < 2 or not is_embedded(measurements.source):
        return ""
    return OF_DRAWS if all(block["draws"] == "seed" for block in grids) else OF_ONE_DRAW


class _Mean(NamedTuple):
    """Over how many runs of an objective a mean is; how many the study asks for there, and has in all."""

    label: str
    over: int
    asked: int
    runs: int


def fewer(measurements: Measurements, quantities: Iterable[Quantity], tables: Iterable[ExhibitTable]) -> str:
    """Which means of these quantities and in these tables are over fewer runs than the study has; or "".

    Where runs are missing that it asks for, these; else how many it asks for, where it has more.
    """
    quantities = tuple(quantities)
    means = [mean for one in quantities for mean in _means(measurements.in_arm(one.arm), one)]
    of_cells = _in_tables(measurements, means, {one.arm for one in quantities}, tables)
    every = [mean for mean in (*means, *of_cells) if mean.asked]
    lost: dict[str, tuple[int, int]] = {}
    for label, count, asked, _ in every:
        if count < asked:
            lost[label] = min((count, asked), lost.get(label, (count, asked)))
    if len(lost) > 1 == len({*lost.values()}) and lost.keys() == {mean.label for mean in every}:
        return _of_each(*lost.popitem()[1])
    if lost:
        short = [f"{label} {count} of {asked}" for label, (count, asked) in lost.items()]
        return f"Means over fewer runs than the study asks for: {', '.join(short)}."
    if all(mean.asked == mean.runs for mean in means):
        return ""
    asked_for, runs = ({*column} - {0} for column in list(zip(*means, strict=True))[2:])
    if len(asked_for) == len(runs) == 1:
        return _of_each(asked_for.pop(), runs.pop())
    numbers = listed([in_words(count) for count in sorted(asked_for, reverse=True)], "or")
    return f"Means over as many runs of each objective as the study asks for: {numbers}."


def _of_each(count: int, runs: int) -> str:
    return f"Means over {in_words(count)} of the study's {counted(runs, 'run')} of each objective."


def _means(measurements: Measurements, quantity: Quantity) -> Iterator[_Mean]:
    """The means of a quantity of each objective, wherever it has one."""
    runs = _planned(measurements)
    for label, kind, count in _counts(measurements, quantity):
        yield _Mean(label, count, _planned(measurements, kind).get(label, 0), runs.get(label, 0))


def _in_tables(
    measurements: Measurements, means: Iterable[_Mean], arms: set[str], tables: Iterable[ExhibitTable]
) -> Iterator[_Mean]:
    """The means in cells, of which a mean over tasks counts the runs that have them all.

    A cell does not say what it holds: it is to have as many runs as some quantity of its objective.
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
    """Of how many runs of each objective the arm was to have a measurement, or any, by label."""
    every = measurements.results.description.get("measure") or ()
    seeds: dict[str, set[int]] = {}
    grids = measurements.networks.grids(measurements.arm, measurements.backbone)
    asking = [block for block in grids if kind in map(name_in, block.get("measure") or every)]
    for block in asking or grids:  # what training records by itself no grid asks for
        for spec in block.get("objectives", ()):
            seeds.setdefault(spec, set()).update(block["seeds"])
    return {each.label: len(seeds.get(each.spec, ())) for each in measurements.objectives}


def _counts(measurements: Measurements, quantity: Quantity) -> Iterator[tuple[str, str, int]]:
    """How many runs of each objective have a quantity, and from which step, wherever one of them has it."""
    places = {
        "source": (measurements.source,),
        "targets": (*measurements.targets, *measurements.several_labels),
    }
    shifts = shifted(measurements.source)
    labels = {each.spec: each.label for each in measurements.objectives}
    for target in places.get(quantity.target, (shifts.get(quantity.target, quantity.target),)):
        seeds: dict[tuple[str, str, str | None, str | None], set[Seed]] = {}
        for row in measurements.rows(quantity.metric_on(target), quantity.split, target):
            if measurements.is_own(row) and row.seed is not None and quantity.covers(row):
                setting = "" if quantity.is_of_several else row.setting
                kind = (row.step or "").partition(".")[0]
                seeds.setdefault((str(row.objective), kind, setting, row.layer), set()).add(row.seed)
        yield from ((labels.get(spec, ""), kind, len(runs)) for (spec, kind, *_), runs in seeds.items())
