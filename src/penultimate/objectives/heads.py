"""Heads: pure functions from features [n m], weight [k m] and bias [k] to logits [n k], and their module.

A plug-in has the same form: `f(features, weight, bias, *, hyperparameter=default) -> [n k]`. The standard
deviation of its initial weights is 0.01 unless it declares another with `@starts_at`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.errors import RequestError

HeadFunction = TypeVar("HeadFunction", bound=Callable[..., Any])


def starts_at(deviation: Callable[[int], float]) -> Callable[[HeadFunction], HeadFunction]:
    """Return a decorator that sets the standard deviation of a head's initial weights.

    `deviation` computes it from the number of features.

    >>> @starts_at(lambda num_features: 0.5)
    ... def halved(features, weight, bias):
    ...     return features @ weight.T / 2 + bias
    >>> initial_deviation(halved, num_features=64)
    0.5
    """

    def attach(head: HeadFunction) -> HeadFunction:
        head.initial_deviation = deviation  # type: ignore[attr-defined]
        return head

    return attach


def initial_deviation(head: Callable[..., Any], num_features: int) -> float:
    """Return the standard deviation of a head's initial weights, which the paper does not state."""
    rule = getattr(head, "initial_deviation", None)
    return float(rule(num_features)) if rule is not None else 0.01


def direction(vectors: Float[Tensor, "rows d"]) -> Float[Tensor, "rows d"]:
    """Return every row divided by its Euclidean norm; a zero row stays zero and passes no gradient.

    A zero vector has no direction, and the limit of the gradient there is infinite: zero is the only value
    that cannot ruin an update when a single example of the batch has dead features.

    >>> direction(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    norm: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / norm.masked_fill(norm == 0, math.inf)


def linear(
    features: Float[Tensor, "n m"], weight: Float[Tensor, "k m"], bias: Float[Tensor, " k"]
) -> Float[Tensor, "n k"]:
    """Return the logits of the ordinary final layer.

    z = W x + b

    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([0.5]))
    tensor([[11.5000]])

    Kornblith et al., NeurIPS 2021, section 2.
    """
    return F.linear(features, weight, bias)


def normalised_logits(
    features: Float[Tensor, "n m"],
    weight: Float[Tensor, "k m"],
    bias: Float[Tensor, " k"],
    *,
    temperature: float = 0.04,
    form: str = "text",
) -> Float[Tensor, "n k"]:
    """Return logits of norm 1/temperature: the ordinary logits (bias included), rescaled.

    z = y / (temperature ||y||),   y = W x + b;   z = 0 if y = 0

    With form="released" a background class that no image has counts in the norm, as in the authors' networks
    (`has_background`).

    Raise RequestError unless temperature > 0.

    >>> normalised_logits(torch.ones(1, 1), torch.tensor([[3.0], [4.0]]), torch.zeros(2), temperature=0.1)
    tensor([[6., 8.]])

    Kornblith et al., NeurIPS 2021, eq. 6.
    """
    _check_temperature("normalised_logits", temperature)
    return direction(F.linear(features, weight, bias)) / temperature


# The rows of W start with a norm of about 1. It does not affect the logits, but it divides the gradient of W.
@starts_at(lambda num_features: num_features**-0.5)
def cosine(
    features: Float[Tensor, "n m"],
    weight: Float[Tensor, "k m"],
    bias: Float[Tensor, " k"],
    *,
    temperature: float = 0.05,
    form: str = "text",
) -> Float[Tensor, "n k"]:
    """Return the cosines of features and class weights, divided by a temperature, plus each class's bias.

    z_k = W_k.x / (temperature ||W_k|| ||x||) + b_k;   the cosine of a zero vector is 0

    With form="released" the features are not normalised, and the temperature divides the bias too, as in the
    authors' code: z_k = (W_k.x / ||W_k|| + b_k) / temperature.

    Raise RequestError unless temperature > 0.

    >>> cosine(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]]), torch.tensor([1.0]), temperature=0.1)
    tensor([[9.]])

    Kornblith et al., NeurIPS 2021, eq. 7.
    """
    _check_temperature("cosine", temperature)
    if form == "released":
        return F.linear(features, direction(weight), bias) / temperature
    return torch.addmm(bias, direction(features), direction(weight).T, alpha=1 / temperature)


def has_background(function: Callable[..., Any], hyperparameters: Mapping[str, Any]) -> bool:
    """Return whether a head has one output more, of a class that no image has.

    The authors' networks have 1,001 outputs for 1,000 classes. Dropping the first changes the logits of other
    classes in one head alone, whose norm it is part of.
    """
    return function is normalised_logits and hyperparameters.get("form") == "released"


def _check_temperature(head: str, temperature: float) -> None:
    if not temperature > 0:
        raise RequestError(f"{head}: temperature must be a number in (0, inf), got {temperature!r}")


class Head(nn.Module):
    """A head function with its weight [k m] and bias [k], computed in the dtype of the features.

    A head that is not `trained` keeps both as they are given. `centres` [k d] are the classes' centres among
    the penultimate features, which some regularisers learn; they serve no logit. `background` [m + 1] is the
    weight and the bias of an output for a class that no image has, which is computed and dropped.
    """

    def __init__(
        self,
        function: Callable[..., Tensor],
        hyperparameters: Mapping[str, Any],
        weight: Float[Tensor, "k m"],
        bias: Float[Tensor, " k"],
        trained: bool = True,
        centres: Float[Tensor, "k d"] | None = None,
        background: Float[Tensor, " m+1"] | None = None,
    ) -> None:
        super().__init__()
        self.function = function
        self.hyperparameters = dict(hyperparameters)
        self.weight = nn.Parameter(weight, requires_grad=trained)
        self.bias = nn.Parameter(bias, requires_grad=trained)
        if centres is not None:
            self.centres = nn.Parameter(centres)
        self.background = None if background is None else nn.Parameter(background)

    def forward(self, features: Float[Tensor, "n m"]) -> Float[Tensor, "n k"]:
        weight, bias = self.weight.to(features.dtype), self.bias.to(features.dtype)
        if self.background is None:
            return self.function(features, weight, bias, **self.hyperparameters)
        background = self.background.to(features.dtype)
        weight, bias = torch.vstack([background[:-1], weight]), torch.hstack([background[-1], bias])
        return self.function(features, weight, bias, **self.hyperparameters)[:, 1:]

    @property
    def applied_weight(self) -> Float[Tensor, "k m"]:
        """The weight that the logits use; for the head `cosine` its rows are scaled to length 1.

        >>> Head(cosine, {}, torch.tensor([[3.0, 4.0]]), torch.zeros(1)).applied_weight.tolist()
        [[0.6000..., 0.8000...]]
        """
        weight = self.weight.detach()
        return direction(weight) if self.function is cosine else weight

    def extra_repr(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.hyperparameters.items())
        return f"{getattr(self.function, '__name__', 'head')}, [k m] = {list(self.weight.shape)}{settings}"
