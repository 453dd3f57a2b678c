"""Do two networks make the same mistakes? Three measures of agreement, and ensembles by majority vote.

For models i and j, let s_ij be the number of examples on which both predict the same class, r_ij the number
that both get right, and r_ii the number that model i gets right. Two right predictions are equal, so
everything else follows:

    both wrong: w_ij = n - r_ii - r_jj + r_ij,    both wrong in the same way: s_ij - r_ij.

Two counts for each pair are therefore enough: one pass over the examples serves all pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from penultimate.errors import RequestError
from penultimate.metrics.inputs import ArrayLike, Names, as_classes, items, numbered

BLOCK = 1 << 16
"""The number of examples compared at once; it limits the memory and keeps counts in float32 exact."""

Predictions = Iterable[ArrayLike]
"""The class indices that models predict: one array [models, examples], or an array [examples] for each."""


class Agreement(NamedTuple):
    """How similar the predictions of two models are, as shares of all examples.

    `same_when_both_wrong` is a share of the examples that both get wrong. It is None if there are none.
    """

    same: float
    both_right_or_wrong: float
    same_when_both_wrong: float | None
    examples: int
    both_wrong: int


def agreement(predictions_a: Names, predictions_b: Names, labels: Names) -> Agreement:
    """Return how often two models predict the same class, are both right or both wrong, and err the same way.

    same = #{a = b} / n,    both_right_or_wrong = #{(a = y) = (b = y)} / n,
    same_when_both_wrong = #{a = b, a != y, b != y} / #{a != y, b != y}

    The three arguments are class indices [n] for the same examples in the same order, or all are names. Raise
    RequestError if the lengths differ, if the arguments are neither, or if there are no examples.

    >>> agreement([0, 1, 1, 2], [0, 1, 2, 2], [0, 0, 0, 0])
    Agreement(same=0.75, both_right_or_wrong=1.0, same_when_both_wrong=0.666..., examples=4, both_wrong=3)
    >>> agreement([0, 1], [0, 0], [0, 1]).same_when_both_wrong is None  # no example that both get wrong
    True

    Kornblith et al., 2021, figures C.4 and C.5.
    """
    return pairwise_agreement([predictions_a, predictions_b], labels).pair(0, 1)


def pairwise_agreement(predictions: Predictions, labels: ArrayLike) -> PairwiseAgreement:
    """Return the `agreement` of all pairs of m models, computed at once.

    Predictions are an array [m n] or m arrays [n], and labels are [n]. Raise RequestError as `agreement` does
    (it names the model), or if there is no model.

    >>> pairwise_agreement([[0, 1], [0, 0], [1, 1]], [0, 1]).same
    array([[1. , 0.5, 0.5],
           [0.5, 1. , 0. ],
           [0.5, 0. , 1. ]])

    Kornblith et al., 2021, figure C.5.
    """
    *rows, truth = numbered(*items(predictions, "predictions"), labels)
    votes = _stacked(rows)
    examples = votes.shape[1]
    labelled = as_classes(truth, "labels", examples).numpy()
    if max(int(votes.max()), int(labelled.max())) < 2**15:  # short integers are faster to compare
        votes, labelled = votes.astype(np.int16), labelled.astype(np.int16)
    same, right = (np.zeros((len(votes), len(votes)), np.int64) for _ in range(2))
    for start in range(0, examples, BLOCK):
        block = votes[:, start : start + BLOCK]
        hits = (block == labelled[start : start + BLOCK]).astype(np.float32)
        right += (hits @ hits.T).astype(np.int64)
        for model, row in enumerate(block):
            equal = np.count_nonzero(row == block[model:], axis=1)
            same[model, model:] += equal
            same[model + 1 :, model] += equal[1:]
    right_alone = right.diagonal()
    wrong = examples - right_alone[:, None] - right_alone[None, :] + right
    alike = np.full(same.shape, np.nan)
    np.divide(same - right, wrong, out=alike, where=wrong > 0)
    return PairwiseAgreement(
        same=same / examples,
        both_right_or_wrong=(right + wrong) / examples,
        same_when_both_wrong=alike,
        both_wrong=wrong,
        accuracy=right_alone / examples,
        examples=examples,
    )


@dataclass(frozen=True, eq=False)
class PairwiseAgreement:
    """The `Agreement` of all pairs of m models, as symmetric matrices [m m].

    `same_when_both_wrong` is NaN exactly where `both_wrong` is 0. `accuracy` [m] holds each model's accuracy.
    """

    same: Float[np.ndarray, "m m"]
    both_right_or_wrong: Float[np.ndarray, "m m"]
    same_when_both_wrong: Float[np.ndarray, "m m"]
    both_wrong: Int[np.ndarray, "m m"]
    accuracy: Float[np.ndarray, " m"]
    examples: int

    def pair(self, first: int, second: int) -> Agreement:
        """Return the agreement of two of the models."""
        wrong = int(self.both_wrong[first, second])
        return Agreement(
            float(self.same[first, second]),
            float(self.both_right_or_wrong[first, second]),
            float(self.same_when_both_wrong[first, second]) if wrong else None,
            self.examples,
            wrong,
        )


def ensemble(predictions: Predictions) -> Int[np.ndarray, " n"]:
    """Return the class that most of m models predict for each example.

    Among classes with equally many votes the smallest label wins. This is the rule for every vote in this
    package; the paper does not say how it breaks ties. `predictions` are an array [m n] or m arrays [n].
    Raise RequestError as `agreement` does.

    >>> ensemble([[0, 2, 5], [1, 2, 4], [1, 0, 3]])
    array([1, 2, 3])

    Kornblith et al., 2021, figure C.6.
    """
    votes = np.sort(_stacked(predictions), axis=0)
    chosen: Int[np.ndarray, " n"] = votes[0].copy()
    run, most = np.ones_like(chosen), np.ones_like(chosen)
    for lower, vote in itertools.pairwise(votes):
        # Votes ascend, so a class with only as many votes as a smaller class does not displace it.
        run = np.where(vote == lower, run + 1, 1)
        better = run > most
        chosen[better], most[better] = vote[better], run[better]
    return chosen


def half_and_half(
    predictions_a: Predictions, predictions_b: Predictions
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Return the predictions of two ensembles of m models, half from one objective and half from another.

    The first ensemble takes the first m/2 models of a and the last m/2 of b, and the second takes the others.
    If a and b list models by seed, no ensemble holds a seed twice, as in ensembles of a single objective. The
    paper does not say which models it takes. Both arguments are [m n]; if m is odd, the last model is left
    out. Raise RequestError as `ensemble` does, and if m differs between the two or is below 2.

    >>> half_and_half([[0, 0], [1, 1]], [[0, 3], [0, 4]])
    (array([0, 0]), array([0, 1]))

    Kornblith et al., 2021, figure C.7.
    """
    a, b = _stacked(predictions_a), _stacked(predictions_b)
    if a.shape != b.shape:
        raise RequestError(f"half of each: predictions are {list(a.shape)} and {list(b.shape)}, not alike")
    half = len(a) // 2
    if half == 0:
        raise RequestError("half and half takes two models of each objective or more; got one")
    return (
        ensemble([*a[:half], *b[half : 2 * half]]),
        ensemble([*b[:half], *a[half : 2 * half]]),
    )


def _stacked(predictions: Predictions) -> Int[np.ndarray, "m n"]:
    rows: list[np.ndarray] = []
    for model, row in enumerate(items(predictions, "predictions")):
        examples = len(rows[0]) if rows else None
        rows.append(as_classes(row, f"predictions of model {model}", examples).numpy())
    if not rows or not len(rows[0]):
        raise RequestError("agreement takes predictions of one model or more for one example or more")
    return np.stack(rows)
