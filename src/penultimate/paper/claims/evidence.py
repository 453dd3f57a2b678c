"""The evidence for claims: a study's numbers by objective or temperature, and the paper's own numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from penultimate.data.catalog import SHIFTS, card
from penultimate.paper import published
from penultimate.paper.arms import SWEEP
from penultimate.paper.claims.aspects import MEASURED_BY, ORIGINAL, QUANTITIES, Among, Aspect
from penultimate.paper.claims.courses import at_equal_training, below_their_peak
from penultimate.paper.claims.criteria import judged_shots
from penultimate.paper.claims.effects import BySeed, Verdict, all_of
from penultimate.paper.claims.rules import ALTERNATIVES
from penultimate.paper.claims.wording import names_of
from penultimate.paper.printed import mean_of_printed
from penultimate.report.base import MISSING, Missing
from penultimate.report.measurements import ByRun, Measurements, Seed
from penultimate.report.shapes.depth import PENULTIMATE, layers_of
from penultimate.statistics import MeanWithError, mean

BASELINE = "softmax"
PAPER_RUNS = 8
"""The number of networks behind each mean of the paper's Tables 1 and 3."""


@dataclass(frozen=True)
class Assessment:
    """What a study says about a claim: its numbers in a line, the verdict, and the reason.

    `judged` is false if too little was measured for the rule to be applied, which leaves the claim undecided
    too. `missing` says what has to be measured if nothing was.
    """

    ours: str
    verdict: Verdict
    reason: str
    judged: bool = True
    missing: Missing | None = None


def not_judged(ours: str, reason: str) -> Assessment:
    """Return the assessment for the case that the rule cannot be applied."""
    return Assessment(ours, "undecided", reason, judged=False)


def of_all_alternatives(
    ours: str, verdicts: Mapping[str, Verdict], why: Callable[[str], Mapping[Verdict, str]]
) -> Assessment:
    """Return the assessment of a claim about every alternative, from the verdicts of those that were tested.

    `why` gives the reasons, from the names of those alternatives whose verdict is that of the claim.
    """
    verdict = all_of(verdicts.values())
    absent = [slug for slug in ALTERNATIVES if slug not in verdicts]
    if verdict == "holds" and absent:
        return not_judged(ours, f"It holds of all but {names_of(absent)}: too few runs, or none.")
    names = names_of(slug for slug, one in verdicts.items() if one == verdict)
    return Assessment(ours, verdict, why(names)[verdict])


def unmeasured(what: str, command: str = f"penultimate run {MEASURED_BY}") -> Assessment:
    """Return the assessment for the case that nothing was measured."""
    missing = Missing(f"{what[0].upper()}{what[1:]}", command)
    return Assessment(MISSING, "undecided", str(missing), judged=False, missing=missing)


@dataclass(frozen=True)
class Evidence:
    """The numbers of a study that claims are judged by, with heads relearned from `shots` images per class.

    Accuracies and gaps are in per cent. If a `task` is given, transfer is to that task alone.
    """

    measurements: Measurements
    shots: int | None
    task: str = ""

    def values(self, aspect: Aspect, over: Among = "objectives") -> ByRun:
        """Return the runs of every compared objective, or of the sweep's temperatures in ascending order."""
        runs = _values(self.among(over), aspect, self.shots, self.task)
        if over == "objectives":
            return runs
        in_order = [objective.spec for _, objective in self.among(over).temperatures]
        return {spec: runs[spec] for spec in in_order if spec in runs}

    def among(self, over: Among) -> Measurements:
        """Return the measurements of the networks that are ranked: the main arm's, or the sweep's."""
        return self.measurements if over == "objectives" else self.measurements.in_arm(SWEEP)

    def on_task(self, task: str) -> Evidence:
        return dataclasses.replace(self, task=task)

    def of_seeds(self, seeds: Collection[Seed]) -> Evidence:
        """Return the evidence of some seeds only."""
        return dataclasses.replace(self, measurements=self.measurements.of_seeds(seeds))

    def alternatives(self, aspect: Aspect) -> tuple[BySeed, dict[str, BySeed]]:
        """Return the runs of softmax, and those of the paper's alternatives by their slugs.

        If a study has several objectives of one slug, the first counts.
        """
        by_slug: dict[str, BySeed] = {}
        for spec, runs in self.values(aspect).items():
            by_slug.setdefault(self.measurements.objective(spec).slug, runs)
        return by_slug.get(BASELINE, {}), {name: by_slug[name] for name in ALTERNATIVES if name in by_slug}


def _values(measurements: Measurements, aspect: Aspect, shots: int | None, task: str) -> ByRun:
    if aspect == "temperature":
        seeds = measurements.seeds
        return {objective.spec: dict.fromkeys(seeds, value) for value, objective in measurements.temperatures}
    if aspect == "gap":
        accuracies = original_heads(measurements, shots) or _values(measurements, "accuracy", shots, task)
        gaps = {
            spec: {
                seed: value - accuracies[spec][seed]
                for seed, value in runs.items()
                if seed in accuracies.get(spec, {})
            }
            for spec, runs in _values(measurements, "relearned", shots, task).items()
        }
        return {spec: runs for spec, runs in gaps.items() if runs}
    return _scaled(_measured(measurements, aspect, shots, task), QUANTITIES[aspect].scale)


def _measured(measurements: Measurements, aspect: Aspect, shots: int | None, task: str) -> ByRun:
    quantity = QUANTITIES[aspect].of_arm(measurements.arm)
    if aspect == "relearned":
        return {} if shots is None else relearned(measurements).get(shots, {})
    if aspect == "separation_before":
        layers = [runs for name, runs in layers_of(measurements, quantity).items() if name != PENULTIMATE]
        return layers[-1] if layers else {}
    if aspect in ("fall", "matched"):
        train, test = (
            {one.spec: measurements.curve(one, quantity.metric, split) for one in measurements.objectives}
            for split in ("train", "test")
        )
        return below_their_peak(train) if aspect == "fall" else at_equal_training(train, test)
    return measurements.values(dataclasses.replace(quantity, target=task) if task else quantity)


def _scaled(runs: ByRun, scale: float) -> ByRun:
    return {
        spec: {seed: scale * value for seed, value in of_seeds.items()} for spec, of_seeds in runs.items()
    }


def relearned(measurements: Measurements) -> dict[int, ByRun]:
    """Return the accuracies of relearned heads, by the number of images per class, in ascending order."""
    conditions = measurements.conditions("relearn_top1")
    by_shots = {int(setting.removeprefix("shots=")): runs for setting, runs in conditions.items() if setting}
    return dict(sorted(by_shots.items()))


def original_heads(measurements: Measurements, shots: int | None) -> ByRun:
    """Return the accuracies of original heads in per cent, if they were measured beside relearned ones.

    They are if heads are relearned from some of the test images, and scored on the others.
    """
    return _scaled(measurements.runs(ORIGINAL.metric, setting=f"shots={shots}"), ORIGINAL.scale)


def gather(measurements: Measurements) -> Evidence:
    """Return a study's evidence, with the number of images per class at which relearning is judged."""
    source = card(measurements.source)
    images = source.sizes.get("train", source.images)
    return Evidence(measurements, judged_shots(relearned(measurements), images / source.classes))


def paper(aspect: Aspect, over: Among = "objectives") -> dict[str, float]:
    """Return the paper's means by objective, or by temperature (as printed), in the same units.

    >>> paper("linear")["softmax"], paper("temperature", "temperatures")["0.05"]
    (75.95, 0.05)
    """
    if over == "temperatures":
        rows = published.printed("iclr_table4_temperature")
        return {row["temperature"]: _IN_TABLE_4[aspect](row) for row in rows}
    if aspect == "gap":
        accuracy = paper("accuracy")
        return {name: value - accuracy[name] for name, value in paper("relearned").items()}
    name, value = _IN_TABLES[aspect]
    return {row["objective"]: value(row) for row in published.printed(name)}


def paper_runs(aspect: Aspect) -> dict[str, MeanWithError]:
    """Return the paper's accuracies with standard errors (Table 3) by objective, or {} for other aspects."""
    if aspect != "accuracy":
        return {}
    return {
        row["objective"]: MeanWithError(
            float(row["imagenet_top1_percent"]), float(row["imagenet_top1_se"]), PAPER_RUNS
        )
        for row in published.printed("neurips_table3_class_separation")
    }


_Reader = Callable[[Mapping[str, str]], float]


def _column(name: str) -> _Reader:
    return lambda row: float(row[name])


def _on_shifted(row: Mapping[str, str]) -> float:
    """Return the mean of the four printed accuracies on shifted test sets."""
    return mean([float(row[f"imagenet_{shift}_percent"]) for shift in SHIFTS])


_RELEARNED = _column("imagenet_50k_relearned_top1_percent")
_IN_TABLES: dict[Aspect, tuple[str, _Reader]] = {
    "accuracy": ("neurips_table3_class_separation", _column("imagenet_top1_percent")),
    "separation": ("neurips_table3_class_separation", _column("class_separation_r2")),
    "linear": ("neurips_table1_linear", mean_of_printed),
    "knn": ("neurips_table1_knn", mean_of_printed),
    "relearned": ("iclr_table3_linear", _RELEARNED),
    "fine_tuned": ("neurips_table2_finetune", _column("avg_percent")),
    "robust": ("neurips_tableC2_robustness", _on_shifted),
    "train": ("neurips_tableC1_train_accuracy", _column("train_top1_percent")),
    "ece": ("neurips_tableC3_calibration", _column("uncalibrated_ece_fraction")),
}
_IN_TABLE_4: dict[Aspect, _Reader] = {
    "temperature": _column("temperature"),
    "accuracy": _column("imagenet_top1_percent"),
    "separation": _column("class_separation_r2"),
    "linear": mean_of_printed,
    "relearned": _RELEARNED,
}
