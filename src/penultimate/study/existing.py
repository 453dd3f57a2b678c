"""Studies whose networks exist already: their trainings are replaced by the files of a table."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from penultimate.errors import RequestError, unknown
from penultimate.measures.catalogue import measurement
from penultimate.networks.checkpoint_table import CheckpointRow, read_checkpoint_table
from penultimate.networks.key import NetworkKey
from penultimate.objectives.presets import resolve
from penultimate.study.blocks import Runs
from penultimate.study.fields import canonical_backbone
from penultimate.study.spec import Study


def with_networks(study: Study, table: Path | str) -> Study:
    """Return a study whose networks are those that a table lists, so that none is trained.

    The table (`networks.checkpoint_table`) says of each file which objective, seed and arm of the study it is
    a run of. Each network is measured as the study's own run would be, and its rows have the same names.
    Objectives without a file are left out. Seeds that the study does not have take the places of those of its
    seeds that the table lacks.

    Raises RequestError for a table that is not valid, for an objective, arm or architecture that the study
    does not have, and for two files that are the same run or hold the same weights.

    >>> from penultimate.study import load_study
    >>> with_networks(load_study("smoke"), "no-such-table.csv")
    Traceback (most recent call last):
    penultimate.errors.RequestError: there is no table of networks at 'no-such-table.csv'
    """
    return with_rows(study, read_checkpoint_table(table))


def with_rows(study: Study, rows: Sequence[CheckpointRow]) -> Study:
    """Return a study whose networks are those of the rows of a table (`with_networks`)."""
    if not study.runs:
        raise RequestError(f"study '{study.name}' trains no networks that a table could replace")
    rows = [_placed(study, row) for row in rows]
    _expect_once(rows)
    listed = {id(block): _listed(study, block, rows) for block in study.runs}
    blocks = [
        part
        for block in study.networks
        for part in (_filled(block, listed[id(block)]) if isinstance(block, Runs) else (block,))
    ]
    costs = {name: seconds for name, seconds in study.expected_seconds.items() if name != "train"}
    return dataclasses.replace(
        study, networks=tuple(blocks), tuned_by=(), search=None, expected_seconds=costs
    )


def what_is_left_out(before: Study, after: Study) -> list[str]:
    """Return sentences on what a study lacks since its networks are those of a table."""
    said = []
    for arm in dict.fromkeys(block.arm for block in before.runs):
        there, here = (_objectives_of(study, arm) for study in (before, after))
        lacking = [before.slugs()[text] for text in there if text not in here]
        if lacking:
            place = f" in the arm '{arm}'" if arm else ""
            said.append(f"no network is given of {', '.join(lacking)}{place}, which the study leaves out")
    asked = {one.measurement.name for requests in after.measured().values() for one in requests}
    of_training = [name for name in sorted(asked) if measurement(name).of_snapshots]
    curves = ["the curves of training", *of_training]
    said.append(f"not available of networks that were trained elsewhere: {', '.join(curves)}")
    return said


def _objectives_of(study: Study, arm: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for block in study.runs if block.arm == arm for text in block.objectives))


def _placed(study: Study, row: CheckpointRow) -> CheckpointRow:
    """Return a row with the study's own names of its objective and architecture."""
    try:
        spec = {slug: text for text, slug in study.slugs().items()}.get(row.objective)
        spec = spec or resolve(row.objective).canonical
        backbone = canonical_backbone(row.backbone) if row.backbone else ""
        _expect_no_projector(spec)
    except RequestError as error:
        raise RequestError(f"{row.place}: {error}") from None
    arms = dict.fromkeys(block.arm for block in study.runs)
    if row.arm not in arms:
        raise RequestError(f"{row.place}: {unknown('arm', row.arm, [arm or '(none)' for arm in arms])}")
    objectives = _objectives_of(study, row.arm)
    if spec not in objectives:
        slugs = study.slugs()
        known = [slugs[text] for text in objectives]
        raise RequestError(f"{row.place}: {unknown('objective of the study', row.objective, known)}")
    having = [block for block in study.runs if block.arm == row.arm and spec in block.objectives]
    backbones = list(dict.fromkeys(name for block in having for name in block.backbones))
    if (backbone and backbone not in backbones) or (not backbone and len(backbones) > 1):
        raise RequestError(
            f"{row.place}: study '{study.name}' trains {row.objective} with {', '.join(backbones)}, not"
            f" '{backbone}'; a column backbone says which"
        )
    return dataclasses.replace(row, objective=spec, backbone=backbone or backbones[0])


def _expect_no_projector(spec: str) -> None:
    """Raise RequestError for a projector, whose weights no file of a network from elsewhere holds."""
    if resolve(spec).projector is not None:
        raise RequestError(f"'{spec}' has a projector, which files of networks do not hold: leave it out")


def _expect_once(rows: Sequence[CheckpointRow]) -> None:
    """Raise RequestError for one run with two files, and for one network that is given as two runs."""
    runs: dict[NetworkKey, CheckpointRow] = {}
    weights: dict[tuple[str, str, bool], CheckpointRow] = {}
    for row in rows:
        key = NetworkKey(row.objective, row.backbone, row.arm, row.seed)
        first = runs.setdefault(key, row)
        if first is not row:
            raise RequestError(
                f"{row.place}: {key} is given twice, as '{first.file}' and as '{row.file}'; each row is"
                " a run with a seed of its own"
            )
        same = weights.setdefault((row.digest, row.part, row.ema), row)
        if (same.objective, same.seed) != (row.objective, row.seed):
            raise RequestError(
                f"{row.place}: '{row.file}' holds the same bytes as '{same.file}'; it cannot be {key} as well"
            )


def _listed(study: Study, block: Runs, rows: Iterable[CheckpointRow]) -> list[CheckpointRow]:
    """Return the rows that are networks of a grid.

    Several grids may train an objective with different seeds: seeds that none of them has are shared out in
    order, and further ones belong to the last grid.
    """
    found = []
    for spec, backbone in itertools.product(block.objectives, block.backbones):
        grids = [
            other
            for other in study.runs
            if other.arm == block.arm and spec in other.objectives and backbone in other.backbones
        ]
        named = [row for row in rows if (row.objective, row.backbone, row.arm) == (spec, backbone, block.arm)]
        seeds = sorted(row.seed for row in named)
        places = {seed: grid for grid in reversed(grids) for seed in grid.seeds}
        free = iter([grid for grid in grids for seed in grid.seeds if seed not in seeds])
        home = {seed: places.get(seed) or next(free, grids[-1]) for seed in seeds}
        found += sorted((row for row in named if home[row.seed] is block), key=lambda row: row.seed)
    return found


def _filled(block: Runs, rows: Sequence[CheckpointRow]) -> list[Runs]:
    """Return a grid's networks that exist, as one grid for each list of seeds that its objectives have."""
    seeds: dict[tuple[str, str], tuple[int, ...]] = {}
    for row in rows:
        place = row.backbone, row.objective
        seeds[place] = (*seeds.get(place, ()), row.seed)
    ordered = [
        (backbone, spec)
        for backbone in block.backbones
        for spec in block.objectives
        if (backbone, spec) in seeds
    ]
    filled = []
    for (backbone, of_all), places in itertools.groupby(ordered, lambda place: (place[0], seeds[place])):
        objectives = tuple(spec for _, spec in places)
        filled.append(
            dataclasses.replace(
                block,
                objectives=objectives,
                backbones=(backbone,),
                seeds=of_all,
                checkpoints=tuple(
                    row for row in rows if row.backbone == backbone and row.objective in objectives
                ),
            )
        )
    return filled
