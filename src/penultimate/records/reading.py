"""Read what studies have left in a store: their descriptions, their rows, and what is finished."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penultimate.errors import DamagedFileError, RequestError, nearest
from penultimate.files import canonical_json, digest_bytes, file_name, read_sealed, write_sealed
from penultimate.locks import is_locked
from penultimate.records.cache import read_frame, write_frame
from penultimate.records.choice import Network, choose
from penultimate.records.table import COLUMNS, ROWS, Table, frame_of, read_cells
from penultimate.records.tuning import Tuning, folder_name, from_json, searches_held, searches_named
from penultimate.store import SCHEMA, Meta, Store

if TYPE_CHECKING:
    import pandas as pd

STUDY_FILE, PAGE, PAGE_STATE = "study.json", "report.html", "report.state"
SEARCH_FILE, SEARCH_SCHEMA = "tuning.json", 2
"""The file in which earlier versions kept the record of a search."""
IN_PYTHON = " in Python"
"""The end of a study's command if the study was run by a call in Python."""
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class StudyFolder:
    """One study in a store: its description, and the metas of its finished steps.

    `order` is its position among the studies of the store in the order in which they were last run.
    """

    store: Store
    path: Path
    description: dict[str, Any]
    order: int = 0

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.description["name"])

    @property
    def backbones(self) -> list[str]:
        """The architectures that were trained, the main one first."""
        blocks = self.description["networks"]
        return list(dict.fromkeys(name for block in blocks for name in block.get("backbones", ())))

    def command_for(self, verify: bool = True) -> str:
        """Return the command that continues the study; with `verify`, it also repairs a damaged step."""
        command = str(self.description["command"])
        if command.endswith(IN_PYTHON):
            return command.replace("(...)", "(..., verify=True)") if verify else command
        return f"{command}{' --verify' if verify else ''}{out_option(self.store.root)}"

    def metas(self) -> dict[str, Meta]:
        """Return the metas of the finished steps; raises DamagedFileError, with the remedy."""
        metas = {step_id: self._intact(self.store.meta, step_id) for step_id in self.description["steps"]}
        return {step_id: meta for step_id, meta in metas.items() if meta is not None}

    def described(self) -> dict[str, Any]:
        """Return the description with what its steps have shown: layers, width of the last one, searches.

        Layers and width are those of the main architecture, or of the first given network.
        """
        contents = [meta.content for meta in self.metas().values()]
        main = (*self.backbones[:1], None)  # given networks have no architecture
        own = [
            facts for backbone in main for facts in contents if facts["columns"].get("backbone") == backbone
        ]
        shown: dict[str, Any] = {
            name: next((facts[name] for facts in own if facts.get(name)), None)
            for name in ("num_features", "layers")
        }
        shown["tuning"] = list(map(dataclasses.asdict, self.searches()))
        return {**self.description, **{name: fact for name, fact in shown.items() if fact}}

    @property
    def is_search(self) -> bool:
        """Whether it is the search for the hyperparameters of another study."""
        return "tunes" in self.description

    def search(self) -> Tuning | None:
        """Return, for a search, what its finished networks reached and what is chosen, or None.

        Only objectives of which every network is trained are in it.
        """
        if "search" not in self.description:
            return self._earlier_search()
        lost: dict[Network, str] = {}
        seconds = 0.0
        for step_id, meta in self.metas().items():
            seconds += meta.content["seconds"]
            if meta.status == "diverged":
                columns, reason = meta.content["columns"], str(meta.content.get("reason", ""))
                lost |= {(columns["objective"], arm, columns["seed"]): reason for arm in self.arms(step_id)}
        found = choose(from_json(self.description["search"]), self.table(), lost)
        return dataclasses.replace(found, provenance={"seconds": round(seconds, 1)})

    def _earlier_search(self) -> Tuning | None:
        try:
            return from_json(read_sealed(self.path / SEARCH_FILE, SEARCH_SCHEMA))
        except FileNotFoundError:
            return None

    def searches(self) -> tuple[Tuning, ...]:
        """Return the searches for the hyperparameters of this study: its own, else those that it is tuned by.

        They are those of this store, else the package's own.
        """
        for name in (self.description.get("tunes", self.name), self.description.get("changed_from")):
            own = self._search_of(name) if name else None
            if own is not None:
                return (own,)
        named = searches_named(self.description)
        found = (self._search_of(name) or reference_tuning(name) for name in named)
        return tuple(tuning for tuning in found if tuning is not None)

    def _search_of(self, study: str) -> Tuning | None:
        path = self.path.with_name(folder_name(study))
        found = _read(self.store, path).search() if (path / STUDY_FILE).is_file() else None
        return found if found and found.objectives else None

    def table(self) -> Table:
        """Return all rows of the finished steps, in the order of the graph; a limited study's are marked so.

        Rows on disk name no arm, because another study may have the same network in another arm.
        """
        steps = [step_id for step_id in self.description["steps"] if self.store.holds(step_id)]
        read = [
            self.description["limited"],
            *([step, self.arms(step), self.store.digest(step)] for step in steps),
        ]
        state = digest_bytes(canonical_json([COLUMNS, read]).encode())
        frame = read_frame(self.path, state)
        if frame is None:
            frame = frame_of(self._rows(steps))
            write_frame(self.path, state, frame)
        return Table.of_frame(frame)

    def _rows(self, steps: list[str]) -> Iterator[list[dict[str, Any]]]:
        for step_id in steps:
            rows = read_cells(self.file(step_id, ROWS))
            for arm in self.arms(step_id):
                changes = {"arm": arm} if arm else {}
                yield [
                    {**row, **changes, "status": "limited"}
                    if self.description["limited"] and row["status"] == "done"
                    else {**row, **changes}
                    for row in rows
                ]

    def arms(self, step_id: str) -> list[str]:
        """Return the arms to which a step belongs: several, if these train the same network."""
        arms: list[str] = self.description.get("arms", {}).get(step_id, [""])
        return arms

    def diverged(self) -> dict[str, str]:
        """Return the trainings that ended as diverged, and why."""
        trained = [step_id for step_id in self.description["steps"] if _kind(step_id) == "train"]
        metas = {step_id: self._intact(self.store.meta, step_id) for step_id in trained}
        return {
            step_id: str(meta.content.get("reason", ""))
            for step_id, meta in metas.items()
            if meta is not None and meta.status == "diverged"
        }

    def called(self, step_id: str) -> str:
        """Return a finished step's id, with its architecture if the study has several."""
        meta = self.store.meta(step_id)
        backbone = meta.content["columns"].get("backbone") if meta else None
        return f"{step_id} ({backbone})" if backbone and len(self.backbones) > 1 else step_id

    def is_running(self) -> bool:
        """Return whether a process is working on the study."""
        return is_locked(self.path / ".lock")

    def contact_sheet(self) -> bytes | None:
        """Return the picture of the study's image world that its data steps left, if they are done."""
        for step_id, meta in self.metas().items():
            if meta.step == "sheet":
                return self.file(step_id, "sheet.png").read_bytes()
        return None

    def arrays(self, step: str, metric: str) -> Mapping[str, Any]:
        """Return the arrays that a row of this step and metric points to."""
        import numpy as np

        with np.load(self.file(step, f"{file_name(metric)}.npz"), allow_pickle=False) as archive:
            return dict(archive)

    def file(self, step_id: str, name: str) -> Path:
        """Return a file of a finished step; raises DamagedFileError, with the remedy, if it was changed."""
        return self._intact(self.store.verified, step_id, name)

    def _intact(self, read: Callable[..., _Read], *of: str) -> _Read:
        try:
            return read(*of)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; it is computed again by: {self.command_for()}") from None

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of finished and of all steps of each kind, without reading a step's files.

        Steps that need the result of a training that diverged cannot be done, and are not counted.
        """
        left_out = frozenset(self.description.get("left_out", ()))
        steps = [step_id for step_id in self.description["steps"] if step_id not in left_out]
        total, done = Counter(map(_kind, steps)), Counter(map(_kind, filter(self.store.holds, steps)))
        return {name: (done[name], count) for name, count in total.items()}

    def measured(self) -> str:
        """Return the day, in UTC, on which the last of the finished steps was written."""
        last = max(map(self.store.written, filter(self.store.holds, self.description["steps"])), default=0.0)
        return str(datetime.fromtimestamp(last, UTC).date())

    def state(self) -> bytes:
        """Return a digest of what a study's page shows: description (not its command), searches, steps."""
        described = {name: value for name, value in self.description.items() if name != "command"}
        searches = list(map(dataclasses.asdict, self.searches()))
        steps = list(map(self.store.digest, self.description["steps"]))
        return digest_bytes(canonical_json([described, searches, steps]).encode()).encode()


def out_option(root: Path) -> str:
    """Return the option that names a folder of results, if it is not the usual one."""
    return "" if str(root) == "runs" else f" --out {shlex.quote(str(root))}"


def _kind(step_id: str) -> str:
    return step_id.partition(".")[0]


def reference_tuning(study: str) -> Tuning | None:
    """Return the search that comes with the package as the tuning of a study, if there is one."""
    from penultimate.records.archive import read_kept, references

    folder = references().get(folder_name(study))
    return next(iter(searches_held(read_kept(folder).description)), None) if folder else None


def write_study(store: Store, description: Mapping[str, Any], order: int = 0) -> None:
    """Leave the description of a study in its folder."""
    content = {**description, "order": order}
    write_sealed(store.root / "studies" / description["name"] / STUDY_FILE, content, SCHEMA)


def read_study(store: Store, path: Path) -> StudyFolder:
    """Return the study of a folder; raises FileNotFoundError, and DamagedFileError for a changed file."""
    content = read_sealed(path / STUDY_FILE, SCHEMA)
    order = content.pop("order")
    content.pop("files", None)  # earlier versions listed the files of a search
    return StudyFolder(store, path, content, order)


def claim(store: Store, name: str, noticed: Callable[[str], None]) -> StudyFolder:
    """Return the folder of a study that is about to be run: what it describes, and its place in the order.

    A damaged description is reported, and counts as none. Raises RequestError for a store of another version.
    """
    own = StudyFolder(store, store.root / "studies" / name, {"steps": []})
    orders = [0]
    for path in _inner(store.root / "studies"):
        try:
            found = read_study(store, path)
        except FileNotFoundError:
            continue
        except DamagedFileError as error:
            if path.name == name:
                noticed(f"{error}; it is written again")
            continue
        if found.name == name:
            own = found
        else:
            orders.append(found.order)
    return dataclasses.replace(own, order=max(orders) + 1)


def _read(store: Store, path: Path) -> StudyFolder:
    again = "run the study again: finished steps are kept, and the file is written again"
    try:
        return read_study(store, path)
    except FileNotFoundError:
        raise DamagedFileError(f"'{path / STUDY_FILE}' is missing; {again}") from None
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; {again}") from None


def study_folders(
    root: Path | str = "runs", damaged: Callable[[str], None] | None = None
) -> list[StudyFolder]:
    """Return the studies of a store, the one run last first.

    What is damaged is passed to `damaged` if it is given, and else raised as DamagedFileError.
    """
    store, found = Store(root), []
    for path in _inner(store.root / "studies"):
        try:
            found.append(_read(store, path))
        except (DamagedFileError, PermissionError) as error:
            if damaged is None:
                raise
            told = str(error)
            if isinstance(error, PermissionError):
                told = f"'{path / STUDY_FILE}' cannot be read ({error.strerror})"
            damaged(told)
    return sorted(found, key=lambda folder: (-folder.order, folder.name))


def _inner(studies: Path) -> list[Path]:
    """Return the folders of studies: those that have a description, or a page without one."""
    found: list[Path] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found += studies.iterdir()
    return [path for path in found if any((path / name).is_file() for name in (STUDY_FILE, PAGE))]


def study_folder(path: Path | str = "runs", study: str = "") -> StudyFolder:
    """Return a study by its own folder, or the named one of a store (by default, the one run last).

    Raises RequestError, with the nearest name, if it was not run.
    """
    path = Store(path).root
    if (path / STUDY_FILE).is_file():
        return _read(Store(path.resolve().parent.parent), path.resolve())
    is_plain = bool(study) and file_name(study) == study  # other texts may be no name of a file
    if is_plain and (path / "studies" / study).is_dir():
        return _read(Store(path), path / "studies" / study)
    folders = study_folders(path)
    if not folders:
        raise RequestError(
            f"no study has been run in '{path}'; start one with: penultimate run quickstart --out {path};"
            " the run that comes with the package is read with --reference"
        )
    if not study:
        return min(folders, key=lambda folder: folder.is_search)
    by_name = {folder.name: folder for folder in folders}
    if study not in by_name:
        raise RequestError(
            f"study '{study}' has not been run in '{path}'.{nearest(study, by_name)}"
            f" Run there: {', '.join(by_name)}."
        )
    return by_name[study]


def results(path: Path | str = "runs", study: str = "") -> pd.DataFrame:
    """Return the rows of a study as a pandas DataFrame: one row for each measured number.

    `path` is the store (`runs`) or one study's folder in it. Raises RequestError if nothing was run there.
    """
    return study_folder(path, study).table().to_pandas()
