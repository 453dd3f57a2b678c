"""What every exhibit must say of the study's runs: which diverged, which are missing, what a seed is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penultimate.data.catalog import shifted
from penultimate.report.base import ExhibitTable
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.quantity import SWEEP, Quantity
from penultimate.report.sets import is_embedded
from penultimate.report.text import counted, in_words, plain

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
            " (Figure B.1)."
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


def fewer(measurements: Measurements, quantities: Iterable[Quantity], tables: Iterable[ExhibitTable]) -> str:
    """Which means of these quantities and in these tables are over fewer runs than the study has; or ""."""
    quantities = tuple(quantities)
    plans = {arm: _planned(measurements.in_arm(arm)) for arm in measurements.arms}
    found = [
        (label, count, plans.get(quantity.arm, {}).get(label, 0))
        for quantity in quantities
        for label, count in _counts(measurements.in_arm(quantity.arm), quantity)
    ]
    of_exhibit = [plans[arm] for arm in plans if arm in {quantity.arm for quantity in quantities}]
    for row in (row for table in tables if table.source == "ours" for row in table.rows):
        least = min(
            (plan[row.label] for plan in of_exhibit or plans.values() if row.label in plan), default=0
        )
        found += [(row.label, cell.count, least) for cell in row.cells if cell.count and cell.of_runs]
    fewest: dict[str, tuple[int, int]] = {}
    for label, count, planned in found:
        if count < planned:
            fewest[label] = min((count, planned), fewest.get(label, (count, planned)))
    pairs = set(fewest.values())
    if len(fewest) > 1 == len(pairs) and fewest.keys() == {label for label, *_ in found}:
        ((count, planned),) = pairs
        return f"Means over {in_words(count)} of the study's {counted(planned, 'run')} of each objective."
    short = [f"{label} {count} of {planned}" for label, (count, planned) in fewest.items()]
    return f"Means over fewer runs than the study has: {', '.join(short)}." if short else ""


def _planned(measurements: Measurements) -> dict[str, int]:
    """How many runs of each objective the arm was to have, by label."""
    seeds: dict[str, set[int]] = {}
    for block in measurements.networks.grids(measurements.arm, measurements.backbone):
        for spec in block.get("objectives", ()):
            seeds.setdefault(spec, set()).update(block["seeds"])
    return {each.label: len(seeds.get(each.spec, ())) for each in measurements.objectives}


def _counts(measurements: Measurements, quantity: Quantity) -> Iterator[tuple[str, int]]:
    """How many runs of each objective have a quantity, wherever one of them has it."""
    places = {
        "source": (measurements.source,),
        "targets": (*measurements.targets, *measurements.several_labels),
    }
    shifts = shifted(measurements.source)
    labels = {each.spec: each.label for each in measurements.objectives}
    for target in places.get(quantity.target, (shifts.get(quantity.target, quantity.target),)):
        seeds: dict[tuple[str, str | None, str | None], set[Seed]] = {}
        for row in measurements.rows(quantity.metric_on(target), quantity.split, target):
            if measurements.is_own(row) and row.seed is not None and quantity.covers(row):
                setting = "" if quantity.is_of_several else row.setting
                seeds.setdefault((str(row.objective), setting, row.layer), set()).add(row.seed)
        yield from ((labels.get(spec, ""), len(of_spec)) for (spec, *_), of_spec in seeds.items())
