"""What the claims are judged by: a study's quantities by objective or temperature, and the paper's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penultimate import published
from penultimate.data.catalog import card
from penultimate.report.claims.effects import Verdict
from penultimate.report.claims.rules import ALTERNATIVES, Over, Quantity, judged_shots
from penultimate.report.exhibits.base import MISSING, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.figure6 import RELEARNED, ByShots, admit_relearning
from penultimate.report.exhibits.measurements import Measurements, Runs
from penultimate.report.exhibits.numbers import mean_of_printed
from penultimate.report.exhibits.table4 import MEASURED_BY
from penultimate.statistics import Summary

BASELINE = "softmax"
NAMES: dict[Quantity, str] = {
    "accuracy": "accuracy on the classes trained on",
    "separation": "class separation",
    "linear": "linear transfer",
    "knn": "kNN transfer",
    "relearned": "relearned heads",
    "gap": "relearned heads",
    "temperature": "cosine softmax at several temperatures",
}
PAPER_RUNS = 8
"""Networks behind each mean of the paper's Tables 1 and 3."""


@dataclass(frozen=True)
class Finding:
    """What a study says of a claim: its numbers in a line, the verdict, and why."""

    ours: str
    verdict: Verdict
    reason: str


def unmeasured(what: str) -> Finding:
    """The finding where there is nothing to find in."""
    return Finding(MISSING, "undecided", not_measured(f"{what[0].upper()}{what[1:]}", MEASURED_BY))


@dataclass(frozen=True)
class Study:
    """A study as the claims read it; accuracies and gaps are in per cent."""

    measurements: Measurements
    relearned: ByShots
    shots: int | None

    def values(self, quantity: Quantity, over: Over = "objectives") -> Runs:
        """The runs of every objective that is compared, or of every temperature of the sweep."""
        runs = self._all(quantity)
        if over == "objectives":
            return self.measurements.without(runs)
        return {
            one.spec: runs[one.spec] for _, one in self.measurements.temperature_sweep if one.spec in runs
        }

    def alternatives(self, quantity: Quantity) -> tuple[Mapping[int, float], dict[str, Mapping[int, float]]]:
        """The runs of softmax, and of each of the paper's alternatives by its slug (the first of several)."""
        by_slug: dict[str, Mapping[int, float]] = {}
        for spec, runs in self.values(quantity).items():
            by_slug.setdefault(self.measurements.objective(spec).slug, runs)
        return by_slug.get(BASELINE, {}), {name: by_slug[name] for name in ALTERNATIVES if name in by_slug}

    def _all(self, quantity: Quantity) -> Runs:
        measurements = self.measurements
        if quantity == "separation":
            return measurements.runs("class_separation", split="train")
        if quantity == "temperature":
            found = {}
            for temperature, objective in measurements.temperature_sweep:
                found[objective.spec] = dict.fromkeys(measurements.seeds, temperature)
            return found
        if quantity in ("linear", "knn"):
            return _percent(measurements.mean_transfer(quantity))
        accuracy = _percent(measurements.runs("top1"))
        if quantity == "accuracy":
            return accuracy
        heads = {} if self.shots is None else _percent(self.relearned[self.shots])
        if quantity == "relearned":
            return heads
        pairs = {spec: set(runs) & set(accuracy.get(spec, {})) for spec, runs in heads.items()}
        return {
            spec: {seed: heads[spec][seed] - accuracy[spec][seed] for seed in sorted(seeds)}
            for spec, seeds in pairs.items()
            if seeds
        }


def read(results: StudyResults, allow_limited: bool = False) -> Study:
    """The study; raises RequestError for a limited one unless `allow_limited`."""
    measurements, relearned = admit_relearning(results, allow_limited)
    source = card(measurements.source)
    images = source.sizes.get("train", source.images)
    return Study(measurements, relearned, judged_shots(relearned, images / source.classes))


def _percent(runs: Runs) -> Runs:
    return {spec: {seed: 100 * value for seed, value in own.items()} for spec, own in runs.items()}


def paper(quantity: Quantity, over: Over = "objectives") -> dict[str, float]:
    """The paper's means by objective, or by temperature (as printed), in the same units.

    >>> paper("linear")["softmax"], paper("temperature", "temperatures")["0.05"]
    (75.95, 0.05)
    """
    if over == "temperatures":
        rows = published.printed("iclr_table4_temperature")
        return {row["temperature"]: _IN_TABLE_4[quantity](row) for row in rows}
    if quantity == "gap":
        accuracy = paper("accuracy")
        return {name: relearned - accuracy[name] for name, relearned in paper("relearned").items()}
    name, value = _IN_TABLES[quantity]
    return {row["objective"]: value(row) for row in published.printed(name)}


def paper_runs(quantity: Quantity) -> dict[str, Summary]:
    """The paper's accuracy of each objective with its standard error (table 3); nothing for what has none."""
    if quantity != "accuracy":
        return {}
    return {
        row["objective"]: Summary(
            float(row["imagenet_top1_percent"]), float(row["imagenet_top1_se"]), PAPER_RUNS
        )
        for row in published.printed("neurips_table3_class_separation")
    }


_Reader = Callable[[Mapping[str, str]], float]


def _column(name: str) -> _Reader:
    return lambda row: float(row[name])


_IN_TABLES: dict[Quantity, tuple[str, _Reader]] = {
    "accuracy": ("neurips_table3_class_separation", _column("imagenet_top1_percent")),
    "separation": ("neurips_table3_class_separation", _column("class_separation_r2")),
    "linear": ("neurips_table1_linear", mean_of_printed),
    "knn": ("neurips_table1_knn", mean_of_printed),
    "relearned": ("iclr_table3_linear", _column(RELEARNED)),
}
_IN_TABLE_4: dict[Quantity, _Reader] = {
    "temperature": _column("temperature"),
    "accuracy": _column("imagenet_top1_percent"),
    "separation": _column("class_separation_r2"),
    "linear": mean_of_printed,
    "relearned": _column(RELEARNED),
}
