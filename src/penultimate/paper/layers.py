"""Layers of networks: their names and order, and the layer that validation chooses for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from penultimate.data.catalog import card
from penultimate.results.rows import Run, layers, mean_of
from penultimate.results.text import plain

PENULTIMATE = "Penultimate"
LONGEST_AXIS = 70
"""The most characters of layer names on an axis; a longer axis has numbers only."""
PROBES = {"linear": "linear", "knn": "kNN"}
"""The probes of layers, and how sentences call them."""
VALIDATION = {"linear": "linear_validation_accuracy", "knn": "knn_leave_one_out"}
"""The accuracies on training images that choose a layer."""


def layers_of(run: Run, metric: str, split: str = "test", **where: object) -> dict[str, pd.DataFrame]:
    """Return `results.rows.layers`, with the penultimate features under a name for readers."""
    found = layers(run, metric, split, **where)  # type: ignore[arg-type]
    return {PENULTIMATE if name == PENULTIMATE.lower() else name: frame for name, frame in found.items()}


def numbered(names: Sequence[str]) -> str:
    """Return layers with the numbers that stand for them on axes.

    >>> numbered(["block1", "Penultimate"])
    '1 block1, 2 Penultimate'
    """
    return ", ".join(f"{number} {plain(name)}" for number, name in enumerate(names, 1))


def axis_of(names: Sequence[str]) -> str:
    """Return the label of an axis of layers."""
    axis = f"Layer: {numbered(names)}"
    return axis if names and len(axis) <= LONGEST_AXIS else "Layer, from the first block to the last"


@dataclass(frozen=True, eq=False)
class Served:
    """Transfer from the layers of an objective's networks, by one probe.

    `tasks` has for each task the test accuracy [seed, layer] in per cent, and `chosen` the layer that is best
    on validation images by the mean of runs, the later of equal ones.
    """

    tasks: Mapping[str, pd.DataFrame]
    chosen: Mapping[str, str]

    @property
    def layers(self) -> pd.DataFrame:
        """The mean over tasks [seed, layer] in the layers that all tasks have."""
        return mean_of([*self.tasks.values()])

    @property
    def last(self) -> pd.Series:
        """The mean over tasks of the penultimate features, by seed."""
        return self.layers[PENULTIMATE].dropna()

    @property
    def own(self) -> pd.Series:
        """The mean over tasks, each in its chosen layer, by seed."""
        chosen = [self.tasks[task][[layer]].set_axis([""], axis=1) for task, layer in self.chosen.items()]
        own: pd.Series = mean_of(chosen)[""]
        return own

    @property
    def gain(self) -> pd.Series:
        """The points by which the chosen layers are ahead of the penultimate features, by seed."""
        return (self.own - self.last).dropna()


def served(run: Run, probe: str) -> dict[str, Served]:
    """Return the transfer of each objective whose layers were probed on every task, by its short name."""
    tested = {
        task: layers_of(run, f"{probe}_{card(task).accuracy}", target=task, scale=100) for task in run.targets
    }
    tested = {task: of for task, of in tested.items() if of}
    validated = {task: layers_of(run, VALIDATION[probe], "train", target=task) for task in tested}
    found = {}
    for slug in run.labels():
        tasks, chosen = {}, {}
        for task in tested:
            seen = _whole(validated[task], slug)
            accuracy = _whole(tested[task], slug)
            accuracy = accuracy[[layer for layer in accuracy if layer in seen]]
            if len(accuracy.columns) > 1 and PENULTIMATE in accuracy:
                tasks[task] = accuracy
                chosen[task] = str(seen[accuracy.columns[::-1]].mean().idxmax())
        if tasks and len(tasks) == len(tested):
            found[slug] = Served(tasks, chosen)
    return {slug: one for slug, one in found.items() if len(one.gain)}


def _whole(found: Mapping[str, pd.DataFrame], slug: str) -> pd.DataFrame:
    """Return the values of an objective [seed, layer] in the layers that most of its runs have."""
    frame = pd.DataFrame({layer: values[slug] for layer, values in found.items() if slug in values})
    counts = frame.count()
    return frame[[layer for layer in frame if counts[layer] == counts.max()]]
