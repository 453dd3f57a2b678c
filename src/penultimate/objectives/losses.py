"""Losses: pure functions from logits [n k] and target distributions [n k] to one value per example [n].

A plug-in has the same form: `f(logits, targets, *, hyperparameter=default) -> [n]`. A loss's `Reading` states
how it interprets its logits: how they become class probabilities, and where the bias starts. Without one,
probabilities are the softmax of the logits and the bias starts at zero. A loss that needs the number of
training images of each class asks for it with `@with_class_counts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from penultimate.errors import RequestError

Loss = TypeVar("Loss", bound=Callable[..., Any])


def _unchanged(logits: Tensor) -> Tensor:
    return logits


def _zero(num_classes: int) -> float:
    return 0.0


def _minus_log(num_classes: int) -> float:
    return -math.log(num_classes)


@dataclass(frozen=True)
class Reading:
    """How a loss interprets logits.

    `log_scores` turns logits into log-probabilities, up to a constant per example. `initial_bias` returns the
    bias at the start of training for a number of classes.
    """

    log_scores: Callable[[Tensor], Tensor] = _unchanged
    initial_bias: Callable[[int], float] = _zero


def reads(reading: Reading) -> Callable[[Loss], Loss]:
    """Return a decorator that attaches a reading to a loss, which stays an ordinary function.

    >>> @reads(Reading(initial_bias=lambda num_classes: -1.0))
    ... def one_sided(logits, targets):
    ...     return -(targets * logits).sum(1)
    >>> reading_of(one_sided).initial_bias(10)
    -1.0
    """

    def attach(loss: Loss) -> Loss:
        loss.reading = reading  # type: ignore[attr-defined]
        return loss

    return attach


def reading_of(loss: Callable[..., Any]) -> Reading:
    """Return the reading that a loss declares, or the softmax's if it declares none."""
    reading: Reading = getattr(loss, "reading", Reading())
    return reading


def with_class_counts(loss: Loss) -> Loss:
    """Mark a loss that needs the number of training images of each class, which is then its third argument.

    A study counts the labels of the images that it trains on; a loop of your own says `class_counts=`.

    >>> @with_class_counts
    ... def weighted(logits, targets, class_counts):
    ...     return -(targets / class_counts * logits.log_softmax(1)).sum(1)
    >>> needs_class_counts(weighted), needs_class_counts(softmax_cross_entropy)
    (True, False)
    """
    loss.needs_class_counts = True  # type: ignore[attr-defined]
    return loss


def needs_class_counts(loss: Callable[..., Any]) -> bool:
    """Return whether a loss asks for the number of training images of each class."""
    return bool(getattr(loss, "needs_class_counts", False))


def softmax_cross_entropy(
    logits: Float[Tensor, "n k"], targets: Float[Tensor, "n k"], *, smoothing: float = 0.0
) -> Float[Tensor, " n"]:
    """Return the softmax cross-entropy with label smoothing, scaled so that t itself keeps the weight 1.

    L = -1/(1 - a) sum_k ((1 - a) t_k + a/K) log softmax(z)_k,   a = smoothing

    Logits and target distributions are [n k]; the result is [n], in nats. Raise RequestError unless
    0 <= smoothing < 1.

    >>> import torch
    >>> softmax_cross_entropy(torch.zeros(1, 4), torch.tensor([[0.0, 1.0, 0.0, 0.0]]))
    tensor([1.3863])

    Kornblith et al., NeurIPS 2021, eq. 1 (smoothing 0) and eq. 2.
    """
    log_probabilities = logits.log_softmax(1)
    cross_entropy = -(targets * log_probabilities).sum(1)
    if smoothing == 0:
        return cross_entropy
    if not 0 <= smoothing < 1:
        raise RequestError(f"softmax_cross_entropy: smoothing must be a number in [0, 1), got {smoothing}")
    # ((1 - a) t + a/K) / (1 - a) = t + a / (K (1 - a)): the second term is the mean over classes.
    return cross_entropy - smoothing / (1 - smoothing) * log_probabilities.mean(1)


@reads(Reading(log_scores=F.logsigmoid, initial_bias=_minus_log))
def sigmoid_cross_entropy(logits: Float[Tensor, "n k"], targets: Float[Tensor, "n k"]) -> Float[Tensor, " n"]:
    """Return the binary cross-entropy of every class against the rest, summed over the classes.

    L = sum_k log(1 + exp(z_k)) - t_k z_k

    Logits and target distributions are [n k]; the result is [n], in nats. The bias starts at -log K, so
    probabilities are initially about 1/K. Class probabilities are the sigmoids, renormalised.

    >>> import torch
    >>> sigmoid_cross_entropy(torch.zeros(1, 4), torch.tensor([[0.0, 1.0, 0.0, 0.0]]))
    tensor([2.7726])

    Kornblith et al., NeurIPS 2021, eq. 8.
    """
    # log(1 + e^z) - t z = -t log sigmoid(z) - (1 - t) log sigmoid(-z); this form loses no digits to
    # cancellation for any class.
    return -(targets * F.logsigmoid(logits) + (1 - targets) * F.logsigmoid(-logits)).sum(1)


def weighted_squared_error(
    logits: Float[Tensor, "n k"],
    targets: Float[Tensor, "n k"],
    *,
    kappa: float = 9.0,
    target: float = 60.0,
    form: str = "text",
) -> Float[Tensor, " n"]:
    """Return the squared error against `target` for the right class, weighted by kappa, and 0 for the others.

    L = 1/K sum_k [ kappa t_k (z_k - M)^2 + (1 - t_k) z_k^2 ],   M = target;   without 1/K with
    form="released", as in the authors' code

    Logits and target distributions are [n k]; the result is [n]. With kappa = M = 1 it is the mean squared
    error for one-hot targets. The paper defines no probabilities for this loss; ours are the softmax of the
    logits.

    >>> import torch
    >>> weighted_squared_error(torch.zeros(1, 4), torch.tensor([[0.0, 1.0, 0.0, 0.0]]), kappa=1, target=2)
    tensor([1.])

    Kornblith et al., NeurIPS 2021, eq. 9; Hui & Belkin, ICLR 2021.
    """
    right = kappa * targets * (logits - target).square()
    errors = right + (1 - targets) * logits.square()
    return errors.sum(1) if form == "released" else errors.mean(1)
