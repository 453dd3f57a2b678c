"""Penalties: pure functions from the head's output logits [n k] and the head to one value per example [n].

A plug-in has the same form: `f(logits, head, *, hyperparameter=default) -> [n]`; `head.weight` is [k m] and
`head.bias` [k].
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from penultimate.objectives.heads import Head


def squared_logits(
    logits: Float[Tensor, "n k"], head: Head, *, strength: float = 6e-4, form: str = "text"
) -> Float[Tensor, " n"]:
    """Return the squared norm of the head's output logits (with temperature and dropout), times `strength`.

    P = strength ||z||^2;   half of it with form="released", as in the authors' code

    Logits are [n k]; the result is [n].

    >>> import torch
    >>> from penultimate.objectives.objective import objective
    >>> head = objective("softmax", num_features=2, num_classes=3).head
    >>> squared_logits(torch.tensor([[1.0, 2.0, 2.0]]), head, strength=0.5)
    tensor([4.5000])

    Kornblith et al., NeurIPS 2021, eq. 5; Dauphin & Cubuk, ICLR 2021.
    """
    return _factor(strength, form) * logits.square().sum(1)


def squared_weight(
    logits: Float[Tensor, "n k"], head: Head, *, strength: float = 8e-4, form: str = "text"
) -> Float[Tensor, " n"]:
    """Return the squared Frobenius norm of the final layer's weight, times `strength`, for every example.

    P = strength ||W||_F^2;   half of it with form="released", as in the authors' code

    The result is [n] for logits [n k], so the mean over any batch contains the penalty once. The penalty adds
    to the optimiser's own weight decay, and it leaves the bias out.

    >>> import torch
    >>> from penultimate.objectives.objective import objective
    >>> head = objective("softmax", num_features=2, num_classes=3).head
    >>> _ = torch.nn.init.ones_(head.weight)
    >>> squared_weight(torch.zeros(2, 3), head, strength=0.5)
    tensor([3., 3.], grad_fn=...)

    Kornblith et al., NeurIPS 2021, eq. 4.
    """
    return (_factor(strength, form) * head.weight.to(logits.dtype).square().sum()).expand(len(logits))


def _factor(strength: float, form: str) -> float:
    return strength / 2 if form == "released" else strength
