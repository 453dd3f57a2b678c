"""Heads and penalties, each with one thing wrong with it."""

from penultimate import register


@register.head
def transposed(features, weight, bias):
    return weight @ features.T + bias[:, None]


@register.head
def without_weight(features, weight, bias):
    return features.sum(-1, keepdim=True) + bias


@register.head
def of_directions(features, weight, bias):
    return features / features.norm(dim=-1, keepdim=True) @ weight.T + bias


@register.head
def exponential(features, weight, bias):
    return (features @ weight.T + bias).exp()


@register.regulariser
def once_for_the_batch(logits, head, *, strength=1e-3):
    return strength * head.weight.square().sum()


@register.regulariser
def norm_of_logits(logits, head, *, strength=1e-3):
    return strength * logits.square().sum(-1).sqrt()
