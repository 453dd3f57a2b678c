"""One step of a measurement on parents made by hand, without a study and a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penultimate.engine.execute import Outcome, measure
from penultimate.features.bank import FeatureBank
from penultimate.graph import Step, Supply
from penultimate.measures.catalogue import measurement
from penultimate.measures.declaration import Measurement
from penultimate.measures.inputs import Inputs, Progress
from penultimate.networks.key import NetworkKey
from penultimate.records.table import Row

KEY = NetworkKey("softmax", "glyphnet(features=8, width=2)", seed=0, draw=0)


class Parents:
    """What the parents of a step have left: banks, images, networks, stages."""

    def __init__(self, root: Path, source: str = "glyphs", target: str = "") -> None:
        self.root, self.source, self.target = root, source, target or source
        self.supplies: list[Supply] = []
        self.folders: dict[str, Path] = {}

    def __copy__(self) -> Parents:
        copied = Parents(self.root, self.source, self.target)
        copied.supplies, copied.folders = list(self.supplies), dict(self.folders)
        return copied

    def add(self, supply: Supply, folder: Path) -> Parents:
        self.supplies.append(supply)
        self.folders[supply.parent] = folder
        return self

    def bank(self, split: str, bank: FeatureBank, key: NetworkKey = KEY) -> Parents:
        parent = f"extract.{len(self.supplies)}"
        folder = self.root / parent
        folder.mkdir(parents=True)
        bank.save(folder / f"{split}.npz")
        return self.add(Supply("features", parent, split, self.target, key), folder)

    def images(self, split: str, folder: Path, of: str = "") -> Parents:
        return self.add(Supply("images", f"data.{len(self.supplies)}", split, of or self.target), folder)

    def network(self, folder: Path, key: NetworkKey = KEY) -> Parents:
        return self.add(Supply("network", f"train.{len(self.supplies)}", network=key), folder)

    def made(self, stage: str, folder: Path) -> Parents:
        return self.add(Supply("made", f"{stage}.{len(self.supplies)}", stage, self.source), folder)


def measured(
    what: str | Measurement,
    parents: Parents,
    settings: Mapping[str, Any] | None = None,
    key: NetworkKey | None = KEY,
    absent: Sequence[NetworkKey] = (),
    progress: Progress = lambda news: None,
    **config: Any,
) -> Outcome:
    """What a measurement comes to; without a `key` it is of several networks, some of them `absent`."""
    declared = measurement(what) if isinstance(what, str) else what
    gone = tuple(supply.parent for supply in parents.supplies if supply.network in absent)
    common = {"source": parents.source, "target": parents.target}
    step = Step(
        declared.name,
        declared.version,
        {**declared.bound(settings or {}), **config},
        {},
        tuple(parents.folders),
        tuple(parents.supplies),
        {**(key.columns() if key else {}), **common},
        absent=gone,
    )
    folder = parents.root / "out"
    folder.mkdir(parents=True, exist_ok=True)
    there = {parent: path for parent, path in parents.folders.items() if parent not in gone}
    return measure(declared, Inputs(step, folder, there, progress))


def value(rows: Sequence[Row], metric: str, **columns: Any) -> float:
    """The one value of a metric in rows with these columns."""
    (found,) = (
        row.value
        for row in rows
        if row.metric == metric and all(getattr(row, key) == one for key, one in columns.items())
    )
    return found
