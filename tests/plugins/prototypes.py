"""A head whose weights are points among the features: the nearer, the larger the logit."""

import torch

from penultimate import register
from penultimate.objectives.heads import starts_at


@register.head(paper="Snell et al., NeurIPS 2017, eq. 2")
@starts_at(lambda num_features: 0.1)
def prototypes(features, weight, bias, *, temperature=1.0):
    """Minus the squared distance to each class's weight, divided by a temperature, plus a bias."""
    squares = features.square().sum(-1, keepdim=True) + weight.square().sum(-1)
    return (2 * features @ weight.T - squares) / temperature + bias


@register.head
def unbiased(features, weight, bias):
    """W x, without the bias."""
    return torch.einsum("nm,km->nk", features, weight)
