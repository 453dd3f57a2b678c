"""Read what studies have left: their descriptions, their rows, where each row comes from."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import DamagedFileError, RequestError, nearest
from penultimate.store import BusyError, Meta, Store, lock
from penultimate.study.context import ROWS
from penultimate.study.running import STUDY_FILE
from penultimate.study.tuning_record import TUNING_FILE, Tuning, folder_name, from_json, read_tuning
from penultimate.table import Row, Table, read_rows

RUN_KEYS = ("objective", "seed", "backbone")


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
        return list(self.description.get("backbones", ()))

    def metas(self) -> dict[str, Meta]:
        found = {step_id: self.store.meta(step_id) for step_id in self.description["steps"]}
        return {step_id: meta for step_id, meta in found.items() if meta is not None}

    def described(self) -> dict[str, Any]:
        """The description; with the layers, the width of the last and the tuning once they are there.

        Layers and width are those of the first backbone.
        """
        contents = [
            meta.content
            for meta in self.metas().values()
            if meta.content["about"].get("backbone") in (None, *self.backbones[:1])
        ]
        widths = [content.get("num_features") for content in contents]
        known = [width for width in widths if width is not None]
        layers = next((content["layers"] for content in contents if "layers" in content), None)
        tuning = self.tuning()
        return {
            **self.description,
            **({"num_features": known[0]} if known else {}),
            **({"layers": layers} if layers else {}),
            **({"tuning": dataclasses.asdict(tuning)} if tuning else {}),
        }

    @property
    def is_tuning(self) -> bool:
        return "tunes" in self.description

    def tuning(self) -> Tuning | None:
        """The search for the hyperparameters of this study: in this store, or the package's own."""
        for name in (self.description.get("tunes", self.name), self.description.get("tuned_by")):
            found = read_tuning(self.path.with_name(folder_name(name)) / TUNING_FILE) if name else None
            if found is not None:
                return found
        return reference_tuning(self.description.get("tuned_by", ""))

    def evidence(self) -> Table:
        """The rows that exhibits read: all; of a tuning, those of the networks that were chosen."""
        tuning = self.tuning() if self.is_tuning else None
        return self.table() if tuning is None else self.table().where(step=tuning.steps())

    def table(self) -> Table:
        """All rows of the finished steps, in the order of the graph; a limited study's are marked so."""
        rows: list[Row] = []
        for step_id in self.metas():
            rows.extend(read_rows(self._file(step_id, ROWS)))
        if self.description["limited"]:
            rows = [
                dataclasses.replace(row, status="limited") if row.status == "done" else row for row in rows
            ]
        return Table(rows)

    def diverged(self) -> dict[str, str]:
        """The steps that ended as diverged, and why."""
        return {
            step_id: str(meta.content.get("reason", ""))
            for step_id, meta in self.metas().items()
            if meta.status == "diverged"
        }

    def called(self, step_id: str) -> str:
        """A finished step for people: its id, which says all but the architecture where there are several."""
        meta = self.store.meta(step_id)
        backbone = meta.content["about"].get("backbone") if meta else None
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
                return (self.store.folder(step_id) / "sheet.png").read_bytes()
        return None

    def arrays(self, step: str, metric: str) -> Mapping[str, Any]:
        """The arrays that a row of this step and metric points to."""
        import numpy as np

        with np.load(self._file(step, f"{metric}.npz"), allow_pickle=False) as archive:
            return dict(archive)

    def _file(self, step_id: str, name: str) -> Path:
        """A file of a finished step; raises DamagedFileError, with the way out, where it was changed."""
        try:
            return self.store.verified(step_id, name)
        except DamagedFileError as error:
            raise DamagedFileError(
                f"{error}; remove the folder '{self.store.folder(step_id)}', and the same command computes it"
                f" anew: {self.description['command']}"
            ) from None

    def counts(self) -> dict[str, tuple[int, int]]:
        """Of every kind of step: how many are done, of how many."""
        total = Counter(step_id.partition(".")[0] for step_id in self.description["steps"])
        done = Counter(meta.step for meta in self.metas().values())
        return {name: (done[name], count) for name, count in total.items()}

    def provenance(self) -> dict[str, Any]:
        """Where the rows come from: machine, packages, commit, data digests, durations."""
        metas = self.metas()
        first = next(iter(metas.values()), None)
        facts = first.content if first else {}
        seconds: Counter[str] = Counter()
        for meta in metas.values():
            seconds[meta.step] += meta.content["seconds"]
        return {
            "command": self.description["command"],
            "commit": sorted({meta.content["commit"] for meta in metas.values() if meta.content["commit"]}),
            "dirty": any(meta.content["dirty"] for meta in metas.values()),
            "hosts": sorted({meta.content["host"] for meta in metas.values()}),
            "processor": facts.get("processor", ""),
            "device": facts.get("device", ""),
            "threads": facts.get("threads", ""),
            "python": facts.get("python", ""),
            "packages": facts.get("packages", {}),
            "data": {
                f"{meta.content['config']['name']} (draw {meta.content['config']['draw']})": meta.content[
                    "content_digest"
                ]
                for meta in metas.values()
                if meta.step == "data"
            },
            "seconds": {name: round(value, 1) for name, value in seconds.items()},
            "steps": {name: list(pair) for name, pair in self.counts().items()},
            "diverged": self.diverged(),
            "diverged_runs": {
                step_id: [metas[step_id].content["about"].get(key) for key in RUN_KEYS]
                for step_id in self.diverged()
            },
            "undefined": {
                step_id: meta.content["undefined"]
                for step_id, meta in metas.items()
                if "undefined" in meta.content
            },
        }


def reference_tuning(study: str) -> Tuning | None:
    """The search that comes with the package as the tuning of a study, if there is one."""
    from penultimate.study.kept import read_kept, references

    kept = references().get(folder_name(study))
    return None if kept is None else from_json(read_kept(kept).description["tuning"])


def _description(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if not {"name", "steps"} <= content.keys():
            raise ValueError("it names no study and no steps")
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
    found = study_folders(path)
    if not found:
        raise RequestError(
            f"no study has been run in '{path}'; start one with: penultimate run quickstart --out {path}"
        )
    by_name = {folder.name: folder for folder in found}
    if not study:
        return next((folder for folder in found if not folder.is_tuning), found[0])
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
