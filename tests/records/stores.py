"""Stores in which steps have left rows and studies say which steps are theirs, without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.records.reading import StudyFolder, study_folder, write_study
from penultimate.records.table import ROWS, Row, encode_rows
from penultimate.store import Store

SOFTMAX = {"objective": "softmax", "backbone": "net", "seed": 0, "draw": 0}
MACHINE = {
    "commit": "",
    "dirty": False,
    "host": "here",
    "processor": "",
    "seconds": 1.0,
    "threads": 1,
    "python": "3",
    "packages": {"torch": "2", "numpy": "2"},
    "config": {},
}


def finished(
    store: Store,
    step_id: str,
    columns: dict[str, Any],
    rows: Sequence[dict[str, Any]] = (),
    parents: Sequence[str] = (),
    arrays: Mapping[str, Mapping[str, Any]] | None = None,
    **facts: Any,
) -> str:
    """Leave a finished step with these rows and arrays; the columns that they share come from the step."""
    folder = store.begin(step_id)
    for metric, values in (arrays or {}).items():
        np.savez(folder / f"{metric}.npz", **values)
    made = [Row(**{"step": step_id, **columns, **row}) for row in rows]
    (folder / ROWS).write_bytes(encode_rows(made))
    content = {"step": step_id.partition(".")[0], "status": "done", "columns": columns, "parents": [*parents]}
    store.finish(step_id, {**content, **MACHINE, **facts})
    return step_id


def described(store: Store, name: str, steps: Sequence[str], **settings: Any) -> StudyFolder:
    """Leave the description of a study of these steps."""
    path = store.root / "studies" / name
    path.mkdir(exist_ok=True)
    description = {
        "name": name,
        "command": f"penultimate run {name}",
        "source": "glyphs",
        "targets": [],
        "networks": [],
        "objectives": [{"slug": "softmax", "label": "Softmax", "spec": "softmax"}],
        "limited": False,
        "steps": [*steps],
    }
    write_study(store, {**description, **settings})
    return study_folder(path)


def prepared(root: Path) -> Store:
    store = Store(root)
    store.prepare()
    return store
