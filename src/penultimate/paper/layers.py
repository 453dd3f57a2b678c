"""Transfer from the layers of networks to tasks, each task served by the layer that validation chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penultimate.report.measurements import ByRun, Measurements, Seed, mean_of
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.depth import PENULTIMATE, layers_of
from penultimate.report.shapes.numbers import summarise


@dataclass(frozen=True)
class LayerProbe:
    """A probe of layers: its accuracy on test images, and that on training images, which chooses a layer."""

    name: str
    word: str
    tested: Quantity
    validated: Quantity


def _validated(metric: str) -> Quantity:
    return Quantity(metric, "train", TARGETS, over="layers")


def _tested(probe: str) -> Quantity:
    return Quantity(f"{probe}_{{accuracy}}", target=TARGETS, over="layers")


PROBES = (
    LayerProbe("linear", "linear", _tested("linear"), _validated("linear_validation_accuracy")),
    LayerProbe("knn", "kNN", _tested("knn"), _validated("knn_leave_one_out")),
)


@dataclass(frozen=True)
class Served:
    """Transfer from the layers of an objective's networks to the tasks, by one probe; accuracies in per cent.

    layers  the mean over tasks in each layer, by seed, from the first block to the penultimate features
    chosen  the layer of each task: the best on validation images by the mean of runs, the last of equal ones
    own     the mean over tasks, each in its chosen layer, by seed
    by_task the test accuracy of each task in each layer, as the mean over runs
    """

    layers: Mapping[str, Mapping[Seed, float]]
    chosen: Mapping[str, str]
    own: Mapping[Seed, float]
    by_task: Mapping[str, Mapping[str, float]]

    @property
    def last(self) -> Mapping[Seed, float]:
        return self.layers[PENULTIMATE]

    @property
    def gains(self) -> dict[Seed, float]:
        return {seed: value - self.last[seed] for seed, value in self.own.items() if seed in self.last}


def served(measurements: Measurements, probe: LayerProbe) -> dict[str, Served]:
    """Return the transfer of each objective that was measured on every task, by the objective's spec."""
    tested = {target: layers_of(measurements, probe.tested, target) for target in measurements.targets}
    tested = {target: layers for target, layers in tested.items() if layers}
    validated = {target: layers_of(measurements, probe.validated, target) for target in tested}
    found: dict[str, Served] = {}
    for objective in measurements.objectives:
        choices = {target: _own(layers, objective.spec) for target, layers in validated.items()}
        of_tasks = {
            target: {layer: runs for layer, runs in of_task.items() if layer in choices[target]}
            for target, layers in tested.items()
            for of_task in [_own(layers, objective.spec, probe)]
        }
        last = mean_of([{"": layers.get(PENULTIMATE, {})} for layers in of_tasks.values()])
        if last and all(len(layers) > 1 for layers in of_tasks.values()):
            one = _served(of_tasks, choices)
            found |= {objective.spec: one} if one.gains else {}
    return found


def _own(layers: Mapping[str, ByRun], spec: str, probe: LayerProbe | None = None) -> ByRun:
    """Return the runs of an objective by layer, for the layers that all of its runs have."""
    scale = probe.tested.scale if probe else 1
    most = max((len(runs.get(spec, ())) for runs in layers.values()), default=0)
    return {
        layer: {seed: scale * value for seed, value in runs[spec].items()}
        for layer, runs in layers.items()
        if most and len(runs.get(spec, ())) == most
    }


def _served(tested: Mapping[str, ByRun], validated: Mapping[str, ByRun]) -> Served:
    chosen = {}
    for target, layers in tested.items():
        means = {layer: mean_of_runs(validated[target][layer]) for layer in layers}
        chosen[target] = max(reversed(means), key=means.__getitem__)
    shared = [layer for layer in next(iter(tested.values())) if all(layer in of for of in tested.values())]
    of_layers = {layer: mean_of([{"": of[layer]} for of in tested.values()]) for layer in shared}
    by_layer = {layer: found[""] for layer, found in of_layers.items() if found}
    own = mean_of([{"": tested[target][layer]} for target, layer in chosen.items()]).get("", {})
    by_task = {
        target: {layer: mean_of_runs(runs) for layer, runs in layers.items()}
        for target, layers in tested.items()
    }
    return Served(by_layer, chosen, own, by_task)


def mean_of_runs(runs: Mapping[Seed, float]) -> float:
    """Return the mean over runs."""
    return summarise(list(runs.values())).mean
