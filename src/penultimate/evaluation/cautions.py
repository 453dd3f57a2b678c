"""Warnings about single networks of an evaluation, which readers need before they trust the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penultimate.data.catalog import card
from penultimate.evaluation.baselines import shortfalls
from penultimate.evaluation.boards import board_of, tasks_of
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.text import percent as in_percent
from penultimate.report.text import plain

LAMBDAS = (1e-6, 1e5)
"""The smallest and the largest strength that the linear probe tries."""
TINY, SAME = 1e-6, 0.5
"""The root mean square below which features are tiny, and the share of constant ones that is suspicious."""


@dataclass(frozen=True)
class Caution:
    """A warning about a network on a task (or on all, if `task` is empty), in two words and in a sentence."""

    network: StudyObjective
    task: str
    short: str
    text: str

    def __str__(self) -> str:
        where = f" on {card(self.task).title}" if self.task else ""
        return f"{self.network.label}{where}: {self.text}."


def cautions(measurements: Measurements) -> tuple[Caution, ...]:
    """Return all warnings, network by network."""
    kinds = (_noted, _of_features, _below_baseline, _at_chance, _at_edge)
    found = [caution for kind in kinds for caution in kind(measurements)]
    order = [each.spec for each in measurements.objectives]
    return tuple(sorted(found, key=lambda caution: order.index(caution.network.spec)))


def _noted(measurements: Measurements) -> Iterator[Caution]:
    """Yield the warnings from loading the networks."""
    noted = measurements.results.provenance.get("noted", {})
    for network in measurements.objectives:
        for short, text in noted.get(network.spec, {}).items():
            yield Caution(network, "", plain(short), plain(text))


def _of_features(measurements: Measurements) -> Iterator[Caution]:
    for network in measurements.objectives:
        size, constant, width = (
            next((row.value for row in measurements.rows(metric) if row.objective == network.spec), None)
            for metric in ("feature_size", "constant_features", "width")
        )
        if size is None or constant is None or width is None:
            continue
        if constant == width:
            yield Caution(network, "", "constant", "its features are the same for all test images")
        elif size < TINY:
            text = (
                f"its features are tiny (root mean square {size:.0e}); the linear probe's strengths suit a"
                " size of about 1"
            )
            yield Caution(network, "", "tiny features", text)
        elif constant > SAME * width:
            text = f"{constant:,.0f} of its {width:,.0f} features are the same for all test images"
            yield Caution(network, "", "many constant", text)


def _below_baseline(measurements: Measurements) -> Iterator[Caution]:
    for found in shortfalls(measurements):
        yield Caution(found.network, found.task, f"below {found.baseline}", f"it is {found.text}")


def _at_chance(measurements: Measurements) -> Iterator[Caution]:
    for task in tasks_of(measurements):
        board = board_of((task,))
        chance = task.answers.chance()
        for standing in board.standings if board else ():
            if standing.interval.low <= chance:
                text = (
                    f"its linear probe ({in_percent(standing.interval.value)} %) is not better, beyond"
                    f" chance, than always naming one class ({in_percent(chance)} %)"
                )
                yield Caution(standing.network, task.name, "at chance", text)


def _at_edge(measurements: Measurements) -> Iterator[Caution]:
    """Yield warnings about probes that another strength might improve."""
    for target in measurements.targets:
        perfect = {
            str(row.objective)
            for row in measurements.rows("linear_validation_accuracy", "train", target)
            if row.layer is None and row.value == 1
        }
        for row in measurements.rows("linear_lambda", "train", target):
            network = next((each for each in measurements.objectives if each.spec == row.objective), None)
            if row.layer is not None or network is None or network.spec in perfect:
                continue
            if not LAMBDAS[0] * (1 + 1e-6) < row.value < LAMBDAS[1] * (1 - 1e-6):
                which = "smallest" if row.value < 1 else "largest"
                text = (
                    f"validation chose the {which} of the linear probe's 45 strengths (λ = {row.value:g});"
                    " one beyond them may be better"
                )
                yield Caution(network, target, "λ at its edge", text)
