"""The claims of the paper and how each is judged: data, written down before any run, with reasons.

The same rules serve the embedded world and ImageNet: margins are shares or ranks, never points. When they
were written, the paper's numbers were known, and a prototype's of the embedded world; none of this package.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from penultimate.objectives.presets import PRESETS
from penultimate.report.claims.aspects import Among, Aspect


@dataclass(frozen=True)
class Criterion:
    """A number of the rules, and why it is this one."""

    value: float
    reason: str


@dataclass(frozen=True)
class Criteria:
    """Every number that a verdict depends on.

    >>> CRITERIA.one_sided
    0.025
    """

    level: Criterion = Criterion(
        0.05,
        "The level is 0.05, two-sided, as in the paper; a verdict looks to one side, so that each of the"
        " two decided ones is wrong with a probability of at most 0.025.",
    )
    least_gain: Criterion = Criterion(
        0.01,
        "A difference in accuracy counts from one in a hundred of softmax's errors: less than half of the"
        " smallest gain that the paper calls significant (dropout: 0.5 points of the 23.0 % that softmax"
        " gets wrong, 2.2 in a hundred).",
    )
    least_correlation: Criterion = Criterion(
        0.5,
        "A rank correlation counts from 0.5, where one ranking explains a quarter of the variance of the"
        " other: Cohen's 'large' effect, and well below the paper's 0.93.",
    )
    least_runs: Criterion = Criterion(
        3,
        "Three runs of each objective are needed, as many as the paper has of Inception v3: one run shows"
        " no spread, and two leave a t-test one or two degrees of freedom.",
    )
    least_objectives: Criterion = Criterion(
        6,
        "Six objectives are needed: the fewest whose order stays significant when two neighbours of a"
        " perfect one are exchanged (ρ = 0.94, p = 0.02; of five: ρ = 0.90, p = 0.08).",
    )
    least_temperatures: Criterion = Criterion(
        5,
        "Five temperatures are needed: the fewest whose perfect order is significant (p = 0.02). A"
        " temperature is set, not sampled, so that no exchange has to be allowed for.",
    )
    plateau: Criterion = Criterion(
        0.25,
        "Accuracy has levelled off where it moves, above the middle temperature, by less than a quarter of"
        " what it gained from the lowest to the middle one (the paper: by 0.1 points after a gain of 2.7).",
    )
    limited_data: Criterion = Criterion(
        40 / 1281.167,
        "Relearning is judged at that measured number of images per class whose share of the training"
        " images is nearest, by ratio, to the paper's 40 of 1,281; the others are told and not judged.",
    )
    resamples: Criterion = Criterion(
        2000,
        "The seeds are resampled 2,000 times: 50 resamples lie beyond each end of a 95 % interval, so that"
        " each tail is known to a seventh of itself.",
    )

    @property
    def one_sided(self) -> float:
        """The probability with which each of the two decided verdicts may be wrong."""
        return self.level.value / 2


CRITERIA = Criteria()


@dataclass(frozen=True)
class Better:
    """The objective's mean is above softmax's (Welch; Holm over all alternatives)."""

    aspect: Aspect
    objective: str


@dataclass(frozen=True)
class BestOfAll:
    """Softmax's mean is above that of every alternative."""

    aspect: Aspect


@dataclass(frozen=True)
class Unbeaten:
    """No alternative's mean is above softmax's."""

    aspect: Aspect


@dataclass(frozen=True)
class Ranked:
    """x and y rank the objectives (or temperatures) alike (sign +1) or oppositely (sign -1)."""

    x: Aspect
    y: Aspect
    sign: Literal[-1, 1]
    over: Among = "objectives"


@dataclass(frozen=True)
class Levels:
    """The mean rises up to the middle temperature and is level above it."""

    aspect: Aspect


Rule: TypeAlias = Better | BestOfAll | Unbeaten | Ranked | Levels


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in our words, where it stands, and the rule that judges it."""

    key: str
    says: str
    where: str
    rule: Rule


ALTERNATIVES = tuple(name for name in PRESETS if name != "softmax")

CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            f"accuracy_{name}",
            f"{PRESETS[name].label} is more accurate than softmax on the classes trained on",
            "section 3.1, table 1" + (", not called significant" if name == "squared_error" else ""),
            Better("accuracy", name),
        )
        for name in ALTERNATIVES
    ),
    Claim(
        "softmax_best",
        "Softmax's features transfer best (linear classifiers, mean of the tasks)",
        "section 3.1, table 1",
        BestOfAll("linear"),
    ),
    Claim(
        "softmax_unbeaten",
        "No alternative's features transfer better than softmax's (linear classifiers, mean of the tasks)",
        "section 3.1, table 1",
        Unbeaten("linear"),
    ),
    Claim(
        "separation_linear",
        "The further an objective separates the classes, the worse its features transfer (linear"
        " classifiers)",
        "section 3.4, figure 5a",
        Ranked("separation", "linear", -1),
    ),
    Claim(
        "separation_knn",
        "The same holds for kNN classifiers",
        "section 3.1, tables 1 and 3",
        Ranked("separation", "knn", -1),
    ),
    Claim(
        "separation_relearned",
        "The further an objective separates the classes, the better its head is relearned from limited data",
        "section 3.4, figure 6",
        Ranked("separation", "relearned", 1),
    ),
    Claim(
        "separation_gap",
        "The further an objective separates the classes, the less the relearned head falls behind the"
        " original",
        "figure 6",
        Ranked("separation", "gap", 1),
    ),
    Claim(
        "temperature_separation",
        "A higher temperature of cosine softmax separates the classes further",
        "section 3.4, table 4",
        Ranked("temperature", "separation", 1, "temperatures"),
    ),
    Claim(
        "temperature_transfer",
        "A higher temperature of cosine softmax transfers worse (linear classifiers)",
        "section 3.4, figure 5b",
        Ranked("temperature", "linear", -1, "temperatures"),
    ),
    Claim(
        "temperature_accuracy",
        "A higher temperature of cosine softmax raises the accuracy on the classes trained on, then levels"
        " off",
        "section 3.4, table 4",
        Levels("accuracy"),
    ),
)


def judged_shots(shots: Iterable[int], images_per_class: float, criteria: Criteria = CRITERIA) -> int | None:
    """The number of images per class at which relearning is judged; None of none.

    >>> judged_shots([5, 10, 40], images_per_class=100), judged_shots([40, 100], images_per_class=1281)
    (5, 40)
    """
    wanted = criteria.limited_data.value * images_per_class
    return min(shots, key=lambda count: (abs(math.log(count / wanted)), count), default=None)


def spoken(criteria: Criteria = CRITERIA) -> tuple[str, ...]:
    """The rules in sentences, for the notes under the verdicts."""
    return (
        "Holds: the effect has the claimed sign beyond chance, and is at least as large as the smallest"
        " effect that counts. Does not hold: so large an effect is excluded. Undecided: neither. The rules"
        " were written down before this package's first run; what a prototype of its embedded world had given"
        " was known.",
        "Means are compared by Welch's t over the runs. Several alternatives are several chances to err, so"
        " that their p values are corrected by Holm's method; an interval is that of each by itself. p is"
        " twice the one-sided one. Runs of one seed share their draw of the data, which is left unused: that"
        " widens intervals, if anything.",
        "A rank correlation has its exact p, and at either end the wider of two intervals: over objectives"
        " (Fisher; Bonett and Wright) and over seeds (bootstrap). A seed is a draw of the world: where enough"
        " seeds are common to all that are ranked, the means are of those (a rule added before the reference"
        " run of `glyphs`; where all have the same seeds it changes nothing).",
        *(getattr(criteria, field.name).reason for field in dataclasses.fields(criteria)),
    )
