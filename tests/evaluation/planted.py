"""An evaluation that is made up: networks that were given, their predictions, and further steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.records.stores import described, finished, prepared

from penultimate.results.rows import Run, read_run

TASK = "digits_smoke"
IMAGES = 12
OF_TASK = {"source": TASK, "target": TASK}


def guesses(right: int, images: int = IMAGES, first: int = 0) -> Any:
    """Return predictions of three classes of which that many are right, from the first one on."""
    labels = np.arange(images) % 3
    return np.where((np.arange(images) - first) % images < right, labels, (labels + 1) % 3)


def given(
    root: Path,
    predicted: Mapping[str, Any] | Sequence[str],
    further: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> Run:
    """Return a study of networks with their predictions; by names alone, each errs once more than the last.

    `further` are more steps: {step, rows, columns, arrays} and facts.
    """
    if not isinstance(predicted, Mapping):
        predicted = {name: guesses(IMAGES - number) for number, name in enumerate(predicted)}
    store, steps = prepared(root), []
    for number, (name, predictions) in enumerate(predicted.items()):
        labels = np.arange(len(predictions)) % 3
        arrays = {"ids": np.arange(len(labels)), "labels": labels, "linear": predictions, "knn": predictions}
        rows = [
            {"metric": "linear_top1", "value": float((predictions == labels).mean())},
            {"metric": "probe_predictions", "value": len(labels), "unit": "points"},
        ]
        of = {"objective": name, **OF_TASK}
        held = {"probe_predictions": arrays}
        steps.append(finished(store, f"probed.net{number}-{TASK}.0", of, rows, arrays=held))
    for each in further:
        left = {**each}
        columns = {**OF_TASK, **left.pop("columns", {})}
        steps.append(finished(store, left.pop("step"), columns, left.pop("rows", ()), **left))
    networks = [{"given": dict.fromkeys(predicted, "timm:resnet18"), "measure": None}]
    objectives = [{"slug": name, "label": name, "spec": name} for name in predicted]
    whole = {"source": TASK, "targets": [TASK], "measure": ["probed"], "networks": networks}
    told = {"objectives": objectives, "title": "", "question": "", **settings}
    described(store, "mine", steps, **{**whole, **told})
    return read_run(root, "mine")
