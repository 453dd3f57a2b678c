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
    files: dict[int, list[CheckpointRow]] = {id(block): [] for block in study.runs}
    runs: dict[NetworkKey, CheckpointRow] = {}
    weights: dict[tuple[str, str, bool], NetworkKey] = {}
    for line in read_checkpoint_table(table):
        block, row = _placed(study, line)
        key = NetworkKey(row.objective, row.backbone, row.arm, row.seed)
        if (first := runs.setdefault(key, row)) is not row:
            raise RequestError(f"{row.place}: {key} is given twice, as '{first.file}' and as '{row.file}'")
        same = weights.setdefault((row.digest, row.part, row.ema), key)
        if (same.objective, same.seed) != (key.objective, key.seed):
            raise RequestError(
                f"{row.place}: '{row.file}' holds the same bytes as '{runs[same].file}'; it cannot be {key}"
                " as well"
            )
        files[id(block)].append(row)
    blocks: list[Runs | Given] = []
    for one in study.networks:
        blocks += _filled(one, files[id(one)]) if isinstance(one, Runs) else [one]
    costs = {name: seconds for name, seconds in study.expected_seconds.items() if name != "train"}
    return dataclasses.replace(
        study, networks=tuple(blocks), tuned_by=(), search=None, expected_seconds=costs
    )


def what_is_left_out(before: Study, after: Study) -> list[str]:
    """Return sentences on what a study lacks since its networks are those of a table."""
    slugs, kept = before.slugs(), {(key.arm, key.objective) for key in after.keys()}
    lacking = dict.fromkeys(
        f"{slugs[key.objective]}{f' ({key.arm})' if key.arm else ''}"
        for key in before.keys()
        if not key.is_given and (key.arm, key.objective) not in kept
    )
    asked = {one.measurement.name: one.measurement for of in after.measured().values() for one in of}
    curves = ["the curves of training", *sorted(name for name, what in asked.items() if what.of_snapshots)]
    left_out = f"the table has no network of {', '.join(lacking)}, which the study leaves out"
    elsewhere = f"not available of networks that were trained elsewhere: {', '.join(curves)}"
    return [left_out, elsewhere] if lacking else [elsewhere]


def _placed(study: Study, row: CheckpointRow) -> tuple[Runs, CheckpointRow]:
    """Return the grid to which a row belongs, and the row with the study's own names."""
    try:
        check_known("arm", [row.arm or "(none)"], [block.arm or "(none)" for block in study.runs])
        by_slug = {slug: text for text, slug in study.slugs().items()}
        spec = by_slug.get(row.objective) or resolve(row.objective).canonical
        if resolve(spec).projector is not None:
            raise RequestError(f"'{spec}' has a projector, which files of networks do not hold: leave it out")
        of_arm = [block for block in study.runs if block.arm == row.arm]
        grids = [block for block in of_arm if spec in block.objectives]
        if not grids:
            known = [study.slugs()[text] for block in of_arm for text in block.objectives]
            raise unknown("objective of the study", row.objective, known)
        backbones = list(dict.fromkeys(name for block in grids for name in block.backbones))
        backbone = canonical_backbone(row.backbone) if row.backbone else backbones[0]
        if backbone not in backbones or (len(backbones) > 1 and not row.backbone):
            raise RequestError(
                f"study '{study.name}' trains {row.objective} with {', '.join(backbones)}; a column backbone"
                " says which is meant"
            )
    except RequestError as error:
        raise RequestError(f"{row.place}: {error}") from None
    grids = [block for block in grids if backbone in block.backbones]
    block = next((block for block in grids if row.seed in block.seeds), grids[0])
    return block, dataclasses.replace(row, objective=spec, backbone=backbone)


def _filled(block: Runs, rows: Sequence[CheckpointRow]) -> list[Runs]:
    """Return a grid's networks that exist, as one grid for each list of seeds that its objectives have."""
    seeds: dict[tuple[str, str], tuple[int, ...]] = {}
    for place in itertools.product(block.backbones, block.objectives):
        found = sorted(row.seed for row in rows if (row.backbone, row.objective) == place)
        if found:
            seeds[place] = tuple(found)
    filled = []
    for (backbone, listed), places in itertools.groupby(seeds, lambda place: (place[0], seeds[place])):
        objectives = tuple(spec for _, spec in places)
        files = tuple(row for row in rows if row.backbone == backbone and row.objective in objectives)
        changes = {"backbones": (backbone,), "seeds": listed, "checkpoints": files}
        filled.append(dataclasses.replace(block, objectives=objectives, **changes))  # type: ignore[arg-type]
    return filled
