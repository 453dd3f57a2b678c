"""Studies whose networks exist already: their trainings are replaced by the files of a table."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

from penultimate.errors import RequestError, unknown
from penultimate.networks.checkpoint_table import CheckpointRow, read_checkpoint_table
from penultimate.networks.key import NetworkKey
from penultimate.objectives.presets import resolve
from penultimate.study.blocks import Given, Runs
from penultimate.study.fields import canonical_backbone, check_known
from penultimate.study.spec import Study


def with_networks(study: Study, table: Path | str) -> Study:
    """Return a study whose networks are those that a table lists, so that none is trained.

    The table (`networks.checkpoint_table`) says of each file which objective, seed and arm of the study it is
    a run of. Each network is measured as the study's own run would be, and its rows have the same names.
    Objectives without a file are left out. If several grids train an objective, a seed that none of them has
    belongs to the first.

    Raises RequestError for a table that is not valid, for an objective, arm or architecture that the study
    does not have, and for two files that are the same run or hold the same weights.

    >>> from penultimate.study import load_study
    >>> with_networks(load_study("smoke"), "no-such-table.csv")
    Traceback (most recent call last):
    penultimate.errors.RequestError: there is no table of networks at 'no-such-table.csv'
    """
    rows = read_checkpoint_table(table)
    if not study.runs:
        raise RequestError(f"study '{study.name}' trains no networks that a table could replace")
    placed: dict[int, list[CheckpointRow]] = {id(block): [] for block in study.runs}
    runs: dict[NetworkKey, CheckpointRow] = {}
    weights: dict[tuple[str, str, bool], CheckpointRow] = {}
    for row in rows:
        home, row = _placed(study, row)
        key = NetworkKey(row.objective, row.backbone, row.arm, row.seed)
        if (first := runs.setdefault(key, row)) is not row:
            raise RequestError(
                f"{row.place}: {key} is given twice, as '{first.file}' and as '{row.file}'; each row is"
                " a run with a seed of its own"
            )
        same = weights.setdefault((row.digest, row.part, row.ema), row)
        if (same.objective, same.seed) != (row.objective, row.seed):
            raise RequestError(
                f"{row.place}: '{row.file}' holds the same bytes as '{same.file}'; it cannot be {key} as well"
            )
        placed[id(home)].append(row)
    blocks: list[Runs | Given] = []
    for block in study.networks:
        blocks += _filled(block, placed[id(block)]) if isinstance(block, Runs) else [block]
    costs = {name: seconds for name, seconds in study.expected_seconds.items() if name != "train"}
    return dataclasses.replace(
        study, networks=tuple(blocks), tuned_by=(), search=None, expected_seconds=costs
    )


def what_is_left_out(before: Study, after: Study) -> list[str]:
    """Return sentences on what a study lacks since its networks are those of a table."""
    told = []
    for arm in dict.fromkeys(block.arm for block in before.runs):
        kept = _objectives_of(after, arm)
        lacking = [before.slugs()[text] for text in _objectives_of(before, arm) if text not in kept]
        if lacking:
            place = f" in the arm '{arm}'" if arm else ""
            told.append(f"no network is given of {', '.join(lacking)}{place}, which the study leaves out")
    asked = {one.measurement.name: one.measurement for of in after.measured().values() for one in of}
    curves = ["the curves of training", *sorted(name for name, what in asked.items() if what.of_snapshots)]
    return [*told, f"not available of networks that were trained elsewhere: {', '.join(curves)}"]


def _objectives_of(study: Study, arm: str) -> list[str]:
    return list(dict.fromkeys(text for block in study.runs if block.arm == arm for text in block.objectives))


def _placed(study: Study, row: CheckpointRow) -> tuple[Runs, CheckpointRow]:
    """Return the grid to which a row belongs, and the row with the study's own names."""
    slugs = study.slugs()
    try:
        arms = dict.fromkeys(block.arm or "(none)" for block in study.runs)
        check_known("arm", [row.arm or "(none)"], [*arms])
        spec = {slug: text for text, slug in slugs.items()}.get(row.objective)
        spec = spec or resolve(row.objective).canonical
        backbone = canonical_backbone(row.backbone) if row.backbone else ""
        if resolve(spec).projector is not None:
            raise RequestError(f"'{spec}' has a projector, which files of networks do not hold: leave it out")
        if spec not in (known := _objectives_of(study, row.arm)):
            raise unknown("objective of the study", row.objective, [slugs[text] for text in known])
        grids = [block for block in study.runs if block.arm == row.arm and spec in block.objectives]
        backbones = list(dict.fromkeys(name for block in grids for name in block.backbones))
        if backbone not in backbones and (backbone or len(backbones) > 1):
            raise RequestError(
                f"study '{study.name}' trains {row.objective} with {', '.join(backbones)}, not '{backbone}';"
                " a column backbone says which"
            )
    except RequestError as error:
        raise RequestError(f"{row.place}: {error}") from None
    row = dataclasses.replace(row, objective=spec, backbone=backbone or backbones[0])
    grids = [block for block in grids if row.backbone in block.backbones]
    return next((block for block in grids if row.seed in block.seeds), grids[0]), row


def _filled(block: Runs, rows: Sequence[CheckpointRow]) -> list[Runs]:
    """Return a grid's networks that exist, as one grid for each list of seeds that its objectives have."""

    def seeds_of(place: tuple[str, str]) -> tuple[int, ...]:
        return tuple(sorted(row.seed for row in rows if (row.backbone, row.objective) == place))

    places = [place for place in itertools.product(block.backbones, block.objectives) if seeds_of(place)]
    filled = []
    for (backbone, seeds), group in itertools.groupby(places, lambda place: (place[0], seeds_of(place))):
        objectives = tuple(spec for _, spec in group)
        files = tuple(row for row in rows if row.backbone == backbone and row.objective in objectives)
        filled.append(
            dataclasses.replace(
                block, objectives=objectives, backbones=(backbone,), seeds=seeds, checkpoints=files
            )
        )
    return filled
