"""Read what studies have left in a store: their descriptions, their rows, and what is finished."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from penultimate.errors import DamagedFileError, RequestError, nearest
from penultimate.files import (
    atomic_write,
    canonical_json,
    digest_bytes,
    file_name,
    read_sealed,
    write_sealed,
)
from penultimate.locks import is_locked
from penultimate.records.choice import choose
from penultimate.records.references import reference_card, references
from penultimate.records.table import COLUMNS, ROWS, Table, frame_of, read_cells
from penultimate.records.tuning import Network, Tuning, folder_name, from_json, searches_held, searches_named
from penultimate.store import SCHEMA, Meta, Store

if TYPE_CHECKING:
    import pandas as pd

STUDY_FILE, PAGE, PAGE_STATE = "study.json", "report.html", "report.state"
IN_PYTHON = " in Python"
"""The end of a study's command if the study was run by a call in Python."""
CACHED, CACHED_STATE = "rows.parquet", "rows.state"
LARGE = 20_000
"""The number of rows from which a cache pays: PyArrow's import alone takes as long as reading fewer."""
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class StudyFolder:
    """One study in a store: its description, and the metas of its finished steps."""

    store: Store
    path: Path
    description: dict[str, Any]

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.description["name"])

    @property
    def backbones(self) -> list[str]:
        """The architectures that were trained, the main one first."""
        blocks = self.description["networks"]
        return list(dict.fromkeys(name for block in blocks for name in block.get("backbones", ())))

    @property
    def is_search(self) -> bool:
        """Whether it is the search for the hyperparameters of another study."""
        return "tunes" in self.description

    def command_for(self, verify: bool = True) -> str:
        """Return the command that continues the study; with `verify`, it also repairs a damaged step."""
        command = str(self.description["command"])
        if command.endswith(IN_PYTHON):
            return command.replace("(...)", "(..., verify=True)") if verify else command
        return f"{command}{' --verify' if verify else ''}{out_option(self.store.root)}"

    # -- steps ----------------------------------------------------------------------------------------------

    def metas(self) -> dict[str, Meta]:
        """Return the metas of the finished steps; raises DamagedFileError, with the remedy."""
        metas = {step_id: self._intact(self.store.meta, step_id) for step_id in self.description["steps"]}
        return {step_id: meta for step_id, meta in metas.items() if meta is not None}

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of finished and of all steps of each kind, without reading a step's files.

        Steps that need the result of a training that diverged cannot be done, and are not counted.
        """
        left_out = frozenset(self.description.get("left_out", ()))
        steps = [step_id for step_id in self.description["steps"] if step_id not in left_out]
        total, done = Counter(map(_kind, steps)), Counter(map(_kind, filter(self.store.holds, steps)))
        return {name: (done[name], count) for name, count in total.items()}

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

    def is_running(self) -> bool:
        """Return whether a process is working on the study."""
        return is_locked(self.path / ".lock")

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

    # -- what they hold -------------------------------------------------------------------------------------

    def file(self, step_id: str, name: str) -> Path:
        """Return a file of a finished step; raises DamagedFileError, with the remedy, if it was changed."""
        return self._intact(self.store.verified, step_id, name)

    def _intact(self, read: Callable[..., _Read], *of: str) -> _Read:
        try:
            return read(*of)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; it is computed again by: {self.command_for()}") from None

    def arrays(self, step: str, metric: str) -> Mapping[str, Any]:
        """Return the arrays that a row of this step and metric points to."""
        import numpy as np

        with np.load(self.file(step, f"{file_name(metric)}.npz"), allow_pickle=False) as archive:
            return dict(archive)

    def contact_sheet(self) -> bytes | None:
        """Return the picture of the study's image world that its data steps left, if they are done."""
        sheets = (step_id for step_id, meta in self.metas().items() if meta.step == "sheet")
        return next((self.file(step_id, "sheet.png").read_bytes() for step_id in sheets), None)

    def table(self) -> Table:
        """Return all rows of the finished steps, in the order of the graph.

        The rows of a large study are kept as Parquet beside it, which is read much faster.
        """
        steps = [step_id for step_id in self.description["steps"] if self.store.holds(step_id)]
        read = [[step, self.arms(step), self.store.digest(step)] for step in steps]
        state = digest_bytes(canonical_json([COLUMNS, self.description["limited"], *read]).encode())
        frame = self._cached(state)
        if frame is None:
            frame = frame_of(self._rows(steps))
            self._cache(state, frame)
        return Table.of_frame(frame)

    def _rows(self, steps: list[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of steps with their arms in this study; those of a limited study are marked."""
        for step_id in steps:
            rows = read_cells(self.file(step_id, ROWS))
            for arm in self.arms(step_id):
                for row in rows:
                    is_limited = self.description["limited"] and row["status"] == "done"
                    yield {**row, "arm": arm or None, **({"status": "limited"} if is_limited else {})}

    def _cached(self, state: str) -> pd.DataFrame | None:
        """Return the rows that `_cache` left for this state, if they are as they were written."""
        try:
            content = (self.path / CACHED).read_bytes()
            if (self.path / CACHED_STATE).read_text() != f"{state} {digest_bytes(content)}\n":
                return None
            import pandas as pd

            return pd.read_parquet(io.BytesIO(content), engine="pyarrow")
        except (OSError, ValueError, ImportError):
            return None

    def _cache(self, state: str, frame: pd.DataFrame) -> None:
        """Leave the rows of a large study in its folder, if that can be done."""
        if len(frame) < LARGE:
            return
        with contextlib.suppress(OSError, ImportError):
            content: bytes = frame.to_parquet(engine="pyarrow", index=False)
            atomic_write(self.path / CACHED, content, durable=False)
            signed = f"{state} {digest_bytes(content)}\n".encode()
            atomic_write(self.path / CACHED_STATE, signed, durable=False)

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

    # -- searches for hyperparameters -----------------------------------------------------------------------

    def search(self) -> Tuning | None:
        """Return, for a search, what its finished networks reached and what is chosen; else None.

        Only objectives of which every network is trained are in it.
        """
        if "search" not in self.description:
            return None
        lost: dict[Network, str] = {}
        for step_id, reason in self.diverged().items():
            meta = self.store.meta(step_id)
            assert meta is not None
            columns = meta.content["columns"]
            lost |= {(columns["objective"], arm, columns["seed"]): reason for arm in self.arms(step_id)}
        found = choose(from_json(self.description["search"]), self.table(), lost)
        seconds = sum(meta.content["seconds"] for meta in self.metas().values())
        return dataclasses.replace(found, provenance={"seconds": round(seconds, 1)})

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
        found = read_study(self.store, path).search() if (path / STUDY_FILE).is_file() else None
        return found if found and found.objectives else None


def out_option(root: Path) -> str:
    """Return the option that names a folder of results, if it is not the usual one."""
    return "" if str(root) == "runs" else f" --out {shlex.quote(str(root))}"


def _kind(step_id: str) -> str:
    return step_id.partition(".")[0]


def reference_tuning(study: str) -> Tuning | None:
    """Return the search that comes with the package as the tuning of a study, if there is one."""
    name = folder_name(study)
    held = searches_held(reference_card(name)["description"]) if name in references() else ()
    return next(iter(held), None)


def write_study(store: Store, description: Mapping[str, Any]) -> None:
    """Leave the description of a study in its folder."""
    write_sealed(store.root / "studies" / description["name"] / STUDY_FILE, description, SCHEMA)


def read_study(store: Store, path: Path) -> StudyFolder:
    """Return the study of a folder; raises DamagedFileError, with the remedy, if its file is not whole."""
    again = "run the study again: finished steps are kept, and the file is written again"
    try:
        content = read_sealed(path / STUDY_FILE, SCHEMA)
    except FileNotFoundError:
        raise DamagedFileError(f"'{path / STUDY_FILE}' is missing; {again}") from None
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; {again}") from None
    return StudyFolder(store, path, content)


def study_folders(
    root: Path | str = "runs", damaged: Callable[[str], None] | None = None
) -> list[StudyFolder]:
    """Return the studies of a store, the one run last first.

    What is damaged is passed to `damaged` if it is given, and else raised as DamagedFileError.
    """
    store, found = Store(root), []
    paths = [path.parent for path in store.root.glob(f"studies/*/{STUDY_FILE}")]
    for path in sorted(paths, key=lambda path: -(path / STUDY_FILE).stat().st_mtime_ns):
        try:
            found.append(read_study(store, path))
        except DamagedFileError as error:
            if damaged is None:
                raise
            damaged(str(error))
    return found


def study_folder(path: Path | str = "runs", study: str = "") -> StudyFolder:
    """Return a study by its own folder, or the named one of a store (by default, the one run last).

    Raises RequestError, with the nearest name, if it was not run.
    """
    path = Store(path).root
    if (path / STUDY_FILE).is_file():
        return read_study(Store(path.resolve().parent.parent), path.resolve())
    if study and (path / "studies" / study).is_dir():
        return read_study(Store(path), path / "studies" / study)
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
