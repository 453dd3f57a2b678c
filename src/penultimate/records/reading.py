"""Read what studies have left: their descriptions, their rows, where each row comes from."""

from __future__ import annotations

import dataclasses
import json
from collections import ChainMap, Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from penultimate.errors import DamagedFileError, RequestError, nearest
from penultimate.networks.key import NetworkKey
from penultimate.records.table import ROWS, Row, Table, read_rows
from penultimate.records.tuning import TUNING_FILE, Tuning, folder_name, from_json, read_tuning
from penultimate.store import BusyError, Meta, Store, lock

STUDY_FILE = "study.json"
DIVERGING = "train"
"""The only kind of step that can end as diverged."""
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class StudyFolder:
    """One study in a store: its description, and the metas of its finished steps."""

    store: Store
    path: Path
    description: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.description["name"])

    @property
    def backbones(self) -> list[str]:
        """The architectures that were trained, the main one first."""
        blocks = self.description["networks"]
        return list(dict.fromkeys(name for block in blocks for name in block.get("backbones", ())))

    def metas(self) -> dict[str, Meta]:
        """The metas of the finished steps; raises DamagedFileError, with the way out, for a changed one."""
        metas = {step_id: self._intact(self.store.meta, step_id) for step_id in self.description["steps"]}
        return {step_id: meta for step_id, meta in metas.items() if meta is not None}

    def described(self) -> dict[str, Any]:
        """The description; with the layers, the width of the last and the tuning once they are there.

        Layers and width are those of the main architecture.
        """
        contents = [meta.content for meta in self.metas().values()]
        of_main = [
            facts for facts in contents if facts["columns"].get("backbone") in (None, *self.backbones[:1])
        ]
        of_main.sort(key=lambda facts: facts["columns"].get("backbone") is None)  # networks that were given
        tuning = self.tuning()
        facts = ChainMap({"tuning": dataclasses.asdict(tuning) if tuning else None}, *of_main)
        known = {name: facts[name] for name in ("num_features", "layers", "tuning") if facts.get(name)}
        return {**self.description, **known}

    @property
    def is_tuning(self) -> bool:
        return "tunes" in self.description

    def tuning(self) -> Tuning | None:
        """The search for the hyperparameters of this study: in this store, or the package's own."""
        for name in (self.description.get("tunes", self.name), self.description.get("tuned_by")):
            tuning = read_tuning(self.path.with_name(folder_name(name)) / TUNING_FILE) if name else None
            if tuning is not None:
                return tuning
        return reference_tuning(self.description.get("tuned_by", ""))

    def evidence(self) -> Table:
        """The rows that exhibits read: all; of a tuning, those of the networks that were chosen."""
        tuning = self.tuning() if self.is_tuning else None
        return self.table() if tuning is None else self.table().where(step=tuning.steps())

    def table(self) -> Table:
        """All rows of the finished steps, in the order of the graph; a limited study's are marked so.

        Rows on disk name no arm, for another study may have the same network in another arm.
        """
        rows: list[Row] = []
        arms: dict[str, str] = self.description.get("arms", {})
        for step_id in self.metas():
            rows += read_rows(self._file(step_id, ROWS), arms.get(step_id), self.description["limited"])
        return Table(rows)

    def diverged(self) -> dict[str, str]:
        """The steps that ended as diverged, and why."""
        trained = [step_id for step_id in self.description["steps"] if _kind(step_id) == DIVERGING]
        metas = {step_id: self._intact(self.store.meta, step_id) for step_id in trained}
        return {
            step_id: str(meta.content.get("reason", ""))
            for step_id, meta in metas.items()
            if meta is not None and meta.status == "diverged"
        }

    def called(self, step_id: str) -> str:
        """A finished step for people: its id, which says all but the architecture where there are several."""
        meta = self.store.meta(step_id)
        backbone = meta.content["columns"].get("backbone") if meta else None
        return f"{step_id} ({backbone})" if backbone and len(self.backbones) > 1 else step_id

    def is_running(self) -> bool:
        try:
            with lock(self.path / ".lock"):
                return False
        except BusyError:
            return True
        except OSError:
            return False

    def contact_sheet(self) -> bytes | None:
        """The picture of the study's image world that its data steps left, if they are done."""
        for step_id, meta in self.metas().items():
            if meta.step == "sheet":
                return self._file(step_id, "sheet.png").read_bytes()
        return None

    def arrays(self, step: str, metric: str) -> Mapping[str, Any]:
        """The arrays that a row of this step and metric points to."""
        import numpy as np

        with np.load(self._file(step, f"{metric}.npz"), allow_pickle=False) as archive:
            return dict(archive)

    def _file(self, step_id: str, name: str) -> Path:
        """A file of a finished step; raises DamagedFileError, with the way out, where it was changed."""
        return self._intact(self.store.verified, step_id, name)

    def _intact(self, read: Callable[..., _Read], *of: str) -> _Read:
        try:
            return read(*of)
        except DamagedFileError as error:
            command = self.description["command"]
            raise DamagedFileError(f"{error}; the same command computes it anew: {command}") from None

    def _network(self, step_id: str, meta: Meta) -> NetworkKey:
        """The network that a finished step belongs to."""
        columns = meta.content["columns"]
        names = (columns.get("objective") or "", columns.get("backbone") or "")
        arm = self.description.get("arms", {}).get(step_id, "")
        return NetworkKey(*names, arm, columns.get("seed"), columns.get("draw"))

    def counts(self) -> dict[str, tuple[int, int]]:
        """Of every kind of step: how many are done, of how many. No step's files are read."""
        steps = self.description["steps"]
        total, done = Counter(map(_kind, steps)), Counter(map(_kind, filter(self.store.holds, steps)))
        return {name: (done[name], count) for name, count in total.items()}

    def provenance(self) -> dict[str, Any]:
        """Where the rows come from: machine, packages, commit, data digests, durations."""
        metas = self.metas()
        contents = {step_id: meta.content for step_id, meta in metas.items()}
        first = next(iter(contents.values()), {})
        seconds: Counter[str] = Counter()
        for meta in metas.values():
            seconds[meta.step] += meta.content["seconds"]
        data = [meta.content for meta in metas.values() if meta.step == "data"]
        diverged = self.diverged()
        undefined = {step_id: facts.get("undefined") for step_id, facts in contents.items()}
        return {
            "command": self.description["command"],
            "commit": sorted({content["commit"] for content in contents.values() if content["commit"]}),
            "dirty": any(content["dirty"] for content in contents.values()),
            "hosts": sorted({content["host"] for content in contents.values()}),
            **{name: first.get(name, "") for name in ("processor", "device", "threads", "python")},
            "packages": first.get("packages", {}),
            "data": {"{name} (draw {draw})".format_map(of["config"]): of["content_digest"] for of in data},
            "seconds": {name: round(value, 1) for name, value in seconds.items()},
            "steps": {name: list(pair) for name, pair in self.counts().items()},
            "diverged": diverged,
            "diverged_networks": {
                step_id: vars(self._network(step_id, metas[step_id])) for step_id in diverged
            },
            "undefined": {step_id: reason for step_id, reason in undefined.items() if reason is not None},
        }


def _kind(step_id: str) -> str:
    return step_id.partition(".")[0]


def reference_tuning(study: str) -> Tuning | None:
    """The search that comes with the package as the tuning of a study, if there is one."""
    from penultimate.records.archive import read_kept, references

    folder = references().get(folder_name(study))
    return None if folder is None else from_json(read_kept(folder).description["tuning"])


def _description(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if not {"name", "steps", "networks"} <= content.keys():
            raise ValueError("it names no study, no networks or no steps")
    except (ValueError, AttributeError) as error:
        raise DamagedFileError(
            f"'{file}' does not describe a study ({error}); run the study again: finished steps are kept, and"
            " the file is written anew"
        ) from None
    return content


def study_folders(root: Path | str = "runs") -> list[StudyFolder]:
    """The studies of a store, the one touched last first."""
    store = Store(root)
    files = sorted(
        (store.root / "studies").glob(f"*/{STUDY_FILE}"), key=lambda file: file.stat().st_mtime, reverse=True
    )
    return [StudyFolder(store, file.parent, _description(file)) for file in files]


def study_folder(path: Path | str = "runs", study: str = "") -> StudyFolder:
    """A study by its own folder, or the named (else the last touched) one of a store; raises RequestError."""
    path = Path(path)
    if (path / STUDY_FILE).is_file():
        return StudyFolder(Store(path.parent.parent), path, _description(path / STUDY_FILE))
    folders = study_folders(path)
    if not folders:
        raise RequestError(
            f"no study has been run in '{path}'; start one with: penultimate run quickstart --out {path}"
        )
    if not study:
        return min(folders, key=lambda folder: folder.is_tuning)
    by_name = {folder.name: folder for folder in folders}
    if study not in by_name:
        raise RequestError(
            f"study '{study}' has not been run in '{path}'.{nearest(study, by_name)}"
            f" Run there: {', '.join(by_name)}."
        )
    return by_name[study]


def results(path: Path | str = "runs", study: str = "") -> Table:
    """The tidy table of a study: one row a measured number.

    `path` is the store (`runs`) or one study's folder in it. Raises RequestError when nothing was run there.
    """
    return study_folder(path, study).table()
