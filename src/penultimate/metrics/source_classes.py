"""How a network's source classes relate to the classes of a task: LEEP, NCE, and their overlap.

Source classes are the classes that the network was trained on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from penultimate.errors import RequestError, unknown
from penultimate.metrics.calibration import expect_distributions
from penultimate.metrics.inputs import (
    ArrayLike,
    Names,
    as_classes,
    as_logits,
    float64_blocks,
    numbered,
    read_classes,
)

_WITH_ID = re.compile(r"(n\d{8}) (.+)")


def leep(probabilities: ArrayLike, labels: Names) -> float:
    """Return the log likelihood per example of the labels, predicted from the source classes alone.

    LEEP = (1/n) sum_i log sum_z P(y_i | z) p_iz,    P(y | z) = sum_{i: y_i = y} p_iz / sum_i p_iz

    `probabilities` [n k] are distributions over the source classes, and `labels` [n] are the task's classes.
    The result is in nats and at most 0. A source class whose probability is 0 everywhere does not contribute.
    Rows are scaled to sum to 1 in float64. Raise RequestError for rows that are not distributions (it lists
    them), labels that are not class indices, unequal lengths, or no examples.

    >>> round(leep([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.1, 0.9, 0.0]], [0, 0, 1]), 4)
    -0.2449

    Nguyen et al., ICML 2020, eq. 2.
    """
    matrix = as_logits(probabilities, "probabilities")
    labelled = _some(read_classes(labels, len(matrix), device=matrix.device))
    classes, truth = torch.unique(labelled, return_inverse=True)
    joint = matrix.new_zeros(len(classes), matrix.shape[1], dtype=torch.float64)
    for start, block in float64_blocks(matrix):
        expect_distributions(block, start, matrix.dtype)
        joint.index_add_(0, truth[start : start + len(block)], block.div_(block.sum(1, keepdim=True)))
    overall = joint.sum(0)
    given = joint / overall.masked_fill(overall == 0, 1)
    total = 0.0
    for start, block in float64_blocks(matrix, matrix.shape[1]):
        block /= block.sum(1, keepdim=True)
        total += float((given[truth[start : start + len(block)]] * block).sum(1).log().sum())
    return total / len(matrix)


def nce(predictions: ArrayLike, labels: Names) -> float:
    """Return the negative conditional entropy of the labels, given the predicted source classes.

    NCE = -H(Y | Z) = sum_{y, z} P(y, z) log P(y | z)

    `predictions` [n] are source classes, and `labels` [n] are the task's classes. The result is in nats and
    at most 0, which it reaches if each prediction determines the label. Raise RequestError for values that
    are not class indices, unequal lengths, or no examples.

    >>> round(nce([5, 5, 7, 7], [0, 1, 2, 2]), 4)  # half a bit is unknown
    -0.3466

    Tran et al., ICCV 2019, eq. 3.
    """
    predicted = as_classes(predictions, "predictions")
    truth = _some(read_classes(labels, len(predicted)))
    classes, row = torch.unique(predicted, return_inverse=True)
    pairs = row + len(classes) * torch.unique(truth, return_inverse=True)[1]
    both, one = (torch.unique(of, return_counts=True)[1].double() for of in (pairs, row))
    return float((torch.xlogy(both, both).sum() - torch.xlogy(one, one).sum()) / len(truth))


class ClassAssignment(NamedTuple):
    """A map from source classes [s] to the task's classes [s], and its accuracy on the examples behind it.

    `copies` is the largest number of source classes that stand for the same class.
    """

    source: Int[Tensor, " s"]
    target: Int[Tensor, " s"]
    copies: int
    accuracy: float

    def score(self, predictions: ArrayLike, labels: ArrayLike) -> float:
        """Return the accuracy on examples [n]; a prediction outside the map counts as wrong."""
        predicted = as_classes(predictions, "predictions")
        truth = _some(as_classes(labels, "labels", len(predicted)))
        places = torch.searchsorted(self.source, predicted).clamp_max(len(self.source) - 1)
        right = (self.source[places] == predicted) & (self.target[places] == truth)
        return int(right.sum()) / len(truth)


def class_assignment(predictions: ArrayLike, labels: ArrayLike) -> ClassAssignment:
    """Return the map from source classes to a task's classes that makes the most predictions right.

    max over maps of sum_i C_{i, map(i)},    C_ij = |{examples of class j that are predicted as i}|

    At most `copies` source classes may map to the same class of the task, where `copies` is the smallest
    number beyond which the maximum no longer grows. The maximum is concave in that number, as for every
    assignment problem in its capacities. So where it stops growing, it has reached sum_i max_j C_ij: every
    source class maps to the class with which it occurs most, and only ties are left to an assignment. A
    source class that is never predicted is not in the map.

    `predictions` [n] and `labels` [n] are class indices. Raise RequestError as `nce` does, and for names
    (whose numbering could differ for other examples).

    >>> class_assignment([5, 5, 6, 7, 7], [0, 0, 0, 1, 0])
    ClassAssignment(source=tensor([5, 6, 7]), target=tensor([0, 0, 1]), copies=2, accuracy=0.8)

    Kornblith et al., 2021, appendix F.
    """
    from scipy.optimize import linear_sum_assignment

    predicted = as_classes(predictions, "predictions")
    source, row = torch.unique(predicted, return_inverse=True)
    labelled = _some(as_classes(labels, "labels", len(predicted)))
    target, column = torch.unique(labelled, return_inverse=True)
    size = len(source) * len(target)
    counts = torch.bincount(row * len(target) + column, minlength=size).reshape(len(source), -1)
    most = counts.amax(1)
    ties = counts == most[:, None]
    is_tied = ties.sum(1) > 1
    chosen = counts.argmax(1)
    load = torch.bincount(chosen[~is_tied], minlength=counts.shape[1])
    copies = max(int(load.max()), 1)
    while bool(is_tied.any()):
        columns = torch.arange(len(load)).repeat_interleave(copies - load)
        allowed = ties[is_tied][:, columns]
        rows, places = linear_sum_assignment(allowed.numpy(), maximize=True)
        if len(rows) == len(allowed) and bool(allowed[rows, places].all()):
            chosen[is_tied] = columns[places]
            break
        copies += 1
    return ClassAssignment(source, target[chosen], copies, int(most.sum()) / len(row))


def assignment_accuracy(
    train_predictions: ArrayLike,
    train_labels: Names,
    test_predictions: ArrayLike,
    test_labels: Names,
) -> float:
    """Return a network's accuracy on a task when its source classes are mapped to the task's classes.

    sum_i 1[map(p_i) = y_i] / n,    over the test examples, with `class_assignment` of the training examples

    Predictions [n] are source classes; labels [n] are the task's classes or their names. The paper does not
    say on which examples it measures; here they are the test examples, with equal weight. A prediction that
    no training example had counts as wrong. Raise RequestError as `nce` does.

    >>> assignment_accuracy([5, 5, 6, 7], [0, 0, 0, 1], [5, 6, 7, 8], [0, 0, 0, 1])
    0.5

    Kornblith et al., 2021, table F.1.
    """
    known, asked = numbered(train_labels, test_labels)
    return class_assignment(train_predictions, known).score(test_predictions, asked)


def semantic_overlap(
    classes: Sequence[str],
    source_classes: Sequence[str],
    counterparts: Mapping[str, Sequence[str]] | None = None,
) -> int:
    """Return how many of a task's classes are also source classes, judging by their names.

    A class counts if it has the same name as a source class (ignoring case, and reading an underscore as a
    space), or if `counterparts` lists source classes for it: those that it corresponds to or is a superclass
    of. An empty list in `counterparts` means that a class shares only its name with a source class. A WordNet
    id that stands before a name ("n02088364 beagle") is no part of the name, and may stand for it in
    `counterparts`. Raise RequestError for a name in `counterparts` that no class has.

    >>> semantic_overlap(["dog", "Tiger_Cat", "crane"], ["n02123159 tiger cat", "n02088364 beagle", "crane"],
    ...                  {"dog": ["n02088364"], "crane": []})
    2

    Kornblith et al., 2021, table F.1.
    """
    told = counterparts or {}
    for name in told:
        if name not in classes:
            raise unknown("class of the task", name, classes)
    ids = {found[1] for name in source_classes if (found := _WITH_ID.fullmatch(name))}
    for name in (name for names in told.values() for name in names):
        if name not in source_classes and name not in ids:
            raise unknown("class of the source", name, source_classes)
    known = {_plain(_WITH_ID.sub(r"\2", name)) for name in source_classes}
    return sum(bool(told[name]) if name in told else _plain(name) in known for name in classes)


def _some(labels: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    if len(labels) == 0:
        raise RequestError("there are no examples: the labels are empty")
    return labels


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold() or name
