"""Networks that are worse than a baseline that needs no network: they were probably shown wrong images."""

from __future__ import annotations

from dataclasses import dataclass

from penultimate.data.catalog import card
from penultimate.evaluation.boards import Predicted, arrays_of, groups_of, predictions_of
from penultimate.measures.baselines import NAMES
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.sets import official_accuracy
from penultimate.report.text import listed, p_value
from penultimate.report.text import percent as in_percent
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.paired import Answers, answers, paired_p

TITLES = {"pixels": "Pixels, 8 x 8", "colours": "Colour statistics", "convolutions": "Random convolutions"}
NAMED = 3
"""The most networks that are named one by one in the first lines."""


@dataclass(frozen=True)
class Shortfall:
    """A network that is worse on a task than a baseline, beyond chance: both accuracies, the corrected p."""

    network: StudyObjective
    task: str
    baseline: str
    value: float
    of_baseline: float
    p: float

    @property
    def text(self) -> str:
        """The comparison as a clause without its subject."""
        return (
            f"worse than a linear probe on {TITLES[self.baseline].lower()} ({in_percent(self.value)} against"
            f" {in_percent(self.of_baseline)} %, {p_value(self.p)})"
        )


def of_baselines(measurements: Measurements, target: str) -> dict[str, Predicted]:
    """Return the predictions of each baseline on a task; nothing if they were left out."""
    for row in measurements.rows("baseline_predictions", "test", target):
        arrays = arrays_of(measurements, row)
        if arrays:
            return {name: (arrays["ids"], arrays["labels"], arrays[name]) for name in NAMES}
    return {}


def beside_baselines(
    measurements: Measurements, target: str
) -> tuple[tuple[StudyObjective, ...], Answers] | None:
    """Return a task's networks and the answers to the baselines' images: of the baselines, then of these."""
    import numpy as np

    simple, made = of_baselines(measurements, target), predictions_of(measurements, target, "linear")
    if not simple or not made:
        return None
    ids, labels, _ = next(iter(simple.values()))
    predicted = {f"baseline {name}": (found, guess) for name, (found, _, guess) in simple.items()}
    for network, (found, _, guess) in made.items():
        shared = np.isin(found, ids)
        predicted[f"network {network.spec}"] = (found[shared], guess[shared])
    truth = dict(zip(ids.tolist(), labels.tolist(), strict=True))
    per_class = official_accuracy(target) == "mean_per_class"
    return (*made,), answers(predicted, truth, per_class, groups_of(measurements, target))


def shortfalls(measurements: Measurements) -> tuple[Shortfall, ...]:
    """Return the networks that are worse than a baseline, beyond chance: on each task the worst comparison.

    The tests are those of the ranking (paired, on the same images, two-sided), corrected for all networks and
    baselines of a task (Holm).
    """
    return tuple(found for target in measurements.targets for found in _on_task(measurements, target))


def _on_task(measurements: Measurements, target: str) -> list[Shortfall]:
    made = beside_baselines(measurements, target)
    if made is None:
        return []
    networks, of_all = made
    values = of_all.accuracies()
    pairs = [(row, len(NAMES) + each) for each in range(len(networks)) for row in range(len(NAMES))]
    corrected = dict(zip(pairs, holm([paired_p([of_all], *pair) for pair in pairs]), strict=True))
    found: dict[int, Shortfall] = {}
    for (row, other), p in corrected.items():
        if p > LEVEL or values[other] >= values[row]:
            continue
        known = found.get(other)
        if known is None or values[row] > known.of_baseline:
            network = networks[other - len(NAMES)]
            numbers = float(values[other]), float(values[row]), p
            found[other] = Shortfall(network, target, NAMES[row], *numbers)
    return list(found.values())


def first_lines(found: tuple[Shortfall, ...]) -> list[str]:
    """Return what stands before everything else: a sentence for each network below a baseline."""
    of_network: dict[StudyObjective, list[Shortfall]] = {}
    for each in found:
        of_network.setdefault(each.network, []).append(each)
    told = []
    for network, fallen in [*of_network.items()][:NAMED]:
        worst = max(fallen, key=lambda each: each.of_baseline - each.value)
        more = [card(each.task).title for each in fallen if each != worst]
        also = f", and below a baseline on {listed(more)} too" if more else ""
        told.append(
            f"{network.label} is {worst.text} on {card(worst.task).title}{also}: check how its images are"
            " prepared, and its weights."
        )
    if len(of_network) > NAMED:
        others = [each.label for each in [*of_network][NAMED:]]
        told.append(f"Below a baseline {'is' if len(others) == 1 else 'are'} also {listed(others)}.")
    return told
