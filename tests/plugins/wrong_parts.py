"""Regularisers, projectors and fixed heads, each with one thing wrong with it."""

import torch
from torch import nn

from penultimate import register


@register.regulariser
def of_lengths(features, targets, head):
    return features.square().sum(-1).sqrt()


@register.regulariser
def of_logits(logits, targets, head):
    return logits.sum(-1)


@register.projector
def forgetful(num_features):
    layer = nn.Linear(num_features, 8)
    layer.num_features = 8
    layer.register_forward_pre_hook(lambda _, given: (given[0] - given[0].mean(0),))
    return layer


@register.head
def on_its_side(num_classes, num_features, generator):
    return torch.randn(num_features, num_classes, generator=generator)
