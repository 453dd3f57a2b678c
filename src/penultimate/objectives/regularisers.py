"""Regularisers: functions from penultimate features [n m], targets [n k] and the head to a value per example.

A plug-in has the same form: `f(features, targets, head, *, hyperparameter=default) -> [n]`. The features are
those that transfer sees, the body's output before any projector and without dropout; targets are
distributions; `head.weight` is [k m] (of the projector's units, if there is one) and `head.bias` [k]. Unlike
a loss, a regulariser may compare the examples of a batch. One that needs class centres asks for them with
`@with_centres`, and finds them in `head.centres` [k m].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.objectives.heads import Head, direction

RegulariserFunction = TypeVar("RegulariserFunction", bound=Callable[..., Any])
TINY = 1e-16
"""What is added to squared distances, so that copies of an image neither divide by zero nor end in it."""


def with_centres(function: RegulariserFunction) -> RegulariserFunction:
    """Mark a regulariser that needs a centre for each class: `head.centres` [k m] is then learnt.

    The centres start at 0, move by their gradient like weights, and do not decay.

    >>> @with_centres
    ... def pull(features, targets, head):
    ...     return (features - targets @ head.centres).abs().sum(-1)
    >>> needs_centres(pull), needs_centres(koleo)
    (True, False)
    """
    function.needs_centres = True  # type: ignore[attr-defined]
    return function


def needs_centres(function: Callable[..., Any]) -> bool:
    """Return whether a regulariser asks for class centres."""
    return bool(getattr(function, "needs_centres", False))


@with_centres
def center_loss(
    features: Float[Tensor, "n m"], targets: Float[Tensor, "n k"], head: Head, *, weight: float = 0.01
) -> Float[Tensor, " n"]:
    """Return half the squared distance of the features to their class's centre, times `weight`.

    R = weight/2 sum_k t_k ||x - c_k||^2

    The centres c are learnt by gradient with everything else, where Wen et al. move them by a rate of their
    own.

    >>> head = Head(direction, {}, torch.zeros(2, 2), torch.zeros(2), centres=torch.zeros(2, 2))
    >>> center_loss(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]]), head, weight=0.1)
    tensor([1.2500], grad_fn=...)

    Wen et al., ECCV 2016.
    """
    centres = head.centres.to(features.dtype)
    mean = targets @ centres
    # For soft targets: sum_k t_k ||x - c_k||^2 = ||x - mean||^2 + sum_k t_k ||c_k||^2 - ||mean||^2.
    spread = targets @ centres.square().sum(1) - mean.square().sum(1)
    return weight / 2 * ((features - mean).square().sum(1) + spread)


def koleo(
    features: Float[Tensor, "n m"], targets: Float[Tensor, "n k"], head: Head, *, weight: float = 0.1
) -> Float[Tensor, " n"]:
    """Return minus the logarithm of the distance to the nearest other example on the unit sphere.

    R_i = -weight log min_(j != i) ||x_i/||x_i|| - x_j/||x_j|| ||

    The value is 0 for an example that is alone.

    >>> head = Head(direction, {}, torch.zeros(2, 2), torch.zeros(2))
    >>> koleo(torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.eye(2), head, weight=1.0)
    tensor([-0.3466, -0.3466])

    Sablayrolles et al., ICLR 2019; Oquab et al., TMLR 2024.
    """
    return -weight * _log_nearest(direction(features))


def entropy(
    features: Float[Tensor, "n m"], targets: Float[Tensor, "n k"], head: Head, *, weight: float = 0.05
) -> Float[Tensor, " n"]:
    """Return minus the logarithm of the distance to the features of the nearest other example.

    R_i = -weight log min_(j != i) ||x_i - x_j||

    Its mean over a batch is, up to constants, minus weight/M times the estimate of the features' entropy by
    Kozachenko and Leonenko. The value is 0 for an example that is alone.

    >>> head = Head(direction, {}, torch.zeros(2, 2), torch.zeros(2))
    >>> entropy(torch.tensor([[0.0, 0.0], [0.0, 2.0]]), torch.eye(2), head, weight=1.0)
    tensor([-0.6931, -0.6931])

    Harun et al., ICML 2025; Kozachenko and Leonenko, 1987.
    """
    return -weight * _log_nearest(features)


def _log_nearest(points: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Return the logarithm of each point's distance to the nearest other one, or 0 for a single point."""
    if len(points) < 2:
        return points.new_zeros(len(points))
    with torch.no_grad():
        distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
        nearest = distances.fill_diagonal_(torch.inf).argmin(1)
    squares = (points - points[nearest]).square().sum(1)
    return (squares + TINY).log() / 2
