"""All numbers on which a verdict depends, with their reasons.

Margins are shares or ranks, never points, so that the same numbers serve the embedded world and ImageNet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penultimate.statistics.comparison import LEAST_RUNS, LEVEL


@dataclass(frozen=True)
class Criterion:
    """A number of the rules, with the reason for its value."""

    value: float
    reason: str


@dataclass(frozen=True)
class Criteria:
    """All numbers on which a verdict of the first set of rules depends.

    >>> CRITERIA.one_sided
    0.025
    """

    level: Criterion = Criterion(
        LEVEL,
        "The level is 0.05, two-sided, as in the paper; a verdict looks to one side, so that each of the"
        " two decided ones is wrong with a probability of at most 0.025.",
    )
    least_gain: Criterion = Criterion(
        0.01,
        "A difference in accuracy counts from one in a hundred of softmax's errors: less than half of the"
        " smallest gain that the paper calls significant (dropout: 0.5 points of the 23.0 % that softmax"
        " gets wrong, 2.2 in a hundred). The same share of what softmax lacks to 1 counts for R², and of"
        " what networks of different objectives lack to agreement for that.",
    )
    least_correlation: Criterion = Criterion(
        0.5,
        "A rank correlation counts from 0.5, where one ranking explains a quarter of the variance of the"
        " other: Cohen's 'large' effect, and well below the paper's 0.93. Two quantities are unrelated only"
        " where 0.5 is excluded on both sides, which takes 16 objectives or more: of fewer, the claim can be"
        " refuted, not shown.",
    )
    least_contrast: Criterion = Criterion(
        0.1,
        "A difference between two rank correlations counts from 0.1, a third of the paper's (Pets -0.62, the"
        " mean of the other seven tasks -0.94).",
    )
    least_runs: Criterion = Criterion(
        LEAST_RUNS,
        "Three runs of each objective are needed, as many as the paper has of Inception v3: one run shows"
        " no spread, and two leave a t-test one degree of freedom.",
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
class FurtherCriteria:
    """The further numbers on which a verdict of the second set of rules depends."""

    far: Criterion = Criterion(
        0.25,
        "'Far below' and 'little' are a quarter: what varies a quarter as much has a sixteenth of the"
        " variance. In the paper the objectives' means are spread 0.06 times as much fine-tuned as with"
        " linear classifiers, and on shifted test sets 0.07 times (standard deviations of the printed means;"
        " without squared error 0.16 and 0.20). A change of R² counts from a quarter of the objectives' own"
        " spread, too; in the paper AutoAugment moves none by more than 0.07 of it.",
    )
    little: Criterion = Criterion(
        0.04,
        "Fine-tuned, a difference counts from four in a hundred of softmax's errors: the paper calls its"
        " largest gain small beside 0.9 points of the 23.0 % that softmax gets wrong on ImageNet, 3.9 in a"
        " hundred. Its own Table 2 has three objectives farther than that below softmax (by 0.6, 1.0 and 1.1"
        " points of 13.8 %), printed without standard errors: it bears out that fine-tuning erases most of"
        " the spread, not that it leaves no difference. The two are two claims here.",
    )
    least_tasks: Criterion = Criterion(
        8,
        "Eight tasks are needed, as many as the paper has: with four on both sides the interval of a ratio"
        " misses a true one of a quarter on one side in 6 to 9 % of 600 simulated studies.",
    )
    least_sets: Criterion = Criterion(
        4,
        "Of shifted test sets four are needed, as many as the paper has; beside eight tasks they are enough.",
    )
    tail: Criterion = Criterion(
        0.2,
        "A bootstrap of so few seeds and tasks errs more often than it says: with eight tasks, or four"
        " shifted test sets beside them, three or five seeds and a true ratio of just a quarter, its 95 %"
        " interval misses it on one side in 3 to 8 % of 500 simulated studies instead of 2.5, its 99 %"
        " interval in 1 to 3 %. So the 99 % interval is used: a tail counts a fifth of what it seems to.",
    )
    resamples: Criterion = Criterion(
        10_000,
        "Seeds and tasks are resampled 10,000 times: 50 resamples lie beyond each end of a 99 % interval.",
    )


FURTHER = FurtherCriteria()


@dataclass(frozen=True)
class DoseCriteria:
    """The further numbers on which a verdict of the third set of rules depends."""

    least_price: Criterion = Criterion(
        0.5,
        "A price counts from half a point for each .1 of R²: the least difference in linear transfer that"
        " counts, .19 points, over .04 of R², a typical step from one strength to the next.",
    )
    equal: Criterion = Criterion(
        0.75,
        "Two strengths are equally accurate if their test accuracies are shown to differ by less than .75"
        " points (two one-sided tests at the level .05 each, as is usual): less than a quarter of the 3.3"
        " points that squared error loses to softmax in the reference run.",
    )
    one_place: Criterion = Criterion(
        0.4,
        "Families are compared where R² is .40, which the pilot expects within the range of all but squared"
        " error's. A family's line is read there only if its strengths lie on both sides of it.",
    )
    least_range: Criterion = Criterion(
        0.5,
        "Families differ in a way that counts from half a point between the highest and the lowest, at one"
        " R² or in the price, as a price counts from half a point.",
    )
    span: Criterion = Criterion(
        0.07,
        "A family says something at equal accuracy if its strengths in the window span .07 of R²: over less,"
        " half a point for each .1 comes to less than .35 points, and networks vary by .45 within a seed.",
    )
    least_families: Criterion = Criterion(
        4,
        "Four families with that span are needed, more than half of the seven: from fewer a price for"
        " objectives at large is not confirmed.",
    )


DOSES = DoseCriteria()


@dataclass(frozen=True)
class FiledCriteria:
    """The further numbers on which a verdict of the fourth set of rules depends."""

    most_edges: Criterion = Criterion(
        0.1,
        "What fine-tuning reaches is judged only where at most a tenth of the best cells of its grids lie on"
        " the edge: beyond an edge a learning rate or decay may be better, for some objectives more than for"
        " others.",
    )


FOURTH = FiledCriteria()


def judged_shots(shots: Iterable[int], images_per_class: float) -> int | None:
    """Return the number of images per class at which relearning is judged, or None if there is none.

    >>> judged_shots([5, 10, 40], images_per_class=100), judged_shots([40, 100], images_per_class=1281)
    (5, 40)
    """
    wanted = CRITERIA.limited_data.value * images_per_class
    # Two numbers that are as far from the wanted one differ in rounding alone: then the smaller one is taken.
    return min(shots, key=lambda count: (round(abs(math.log(count / wanted)), 9), count), default=None)
