"""Losses, each with one thing wrong with it."""

import torch
import torch.nn.functional as F

from penultimate import register


def cross_entropy(logits, targets):
    return -(targets * logits.log_softmax(-1)).sum(-1)


@register.loss
def reduced(logits, targets):
    return cross_entropy(logits, targets).mean()


@register.loss
def squeezed(logits, targets):
    return -(targets * logits.log_softmax(-1)).sum(-1, keepdim=True).squeeze()


@register.loss
def in_numpy(logits, targets):
    return cross_entropy(logits, targets).detach().numpy()


@register.loss
def of_indices(logits, targets):
    log_p = logits.log_softmax(-1)
    return F.nll_loss(log_p, targets, reduction="none")


@register.loss
def single_precision(logits, targets):
    return cross_entropy(logits.float(), targets.float())


@register.loss
def on_the_cpu(logits, targets):
    return cross_entropy(logits, targets @ torch.eye(targets.shape[-1], dtype=targets.dtype))


@register.loss
def detached(logits, targets):
    return cross_entropy(logits.detach(), targets)


@register.loss
def half_detached(logits, targets):
    log_p = logits.log_softmax(-1)
    return -(targets * (1 - log_p.exp().detach()) ** 2 * log_p).sum(-1)


@register.loss
def softmax_over_the_batch(logits, targets):
    return -(targets * logits.log_softmax(0)).sum(-1)


@register.loss
def ordinal(logits, targets):
    ranks = torch.arange(logits.shape[-1], dtype=logits.dtype, device=logits.device)
    return cross_entropy(logits, targets) + ((logits.softmax(-1) - targets) @ ranks).square()


@register.loss
def in_place(logits, targets):
    logits -= logits.amax(-1, keepdim=True)
    return cross_entropy(logits, targets)


@register.loss
def noisy(logits, targets):
    return cross_entropy(logits + torch.randn_like(logits), targets)


@register.loss
def divergence(logits, targets):
    return (targets * (targets.log() - logits.log_softmax(-1))).sum(-1)


@register.loss
def of_the_largest_target(logits, targets):
    return F.cross_entropy(logits, targets.argmax(-1), reduction="none")


@register.loss
def blind(logits, targets):
    return logits.square().sum(-1)


@register.loss
def upside_down(logits, targets):
    return -cross_entropy(logits, targets)


@register.loss
def overflowing(logits, targets):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return -(targets * p.log()).sum(-1)


@register.loss
def with_an_infinite_slope(logits, targets, *, gamma=0.5):
    log_p = logits.log_softmax(-1)
    return -(targets * (1 - log_p.exp()) ** gamma * log_p).sum(-1)


@register.loss
def by_position(logits, targets, gamma=2.0):
    return gamma * cross_entropy(logits, targets)


@register.loss
def with_a_tensor(logits, targets, *, weights=torch.ones(5)):  # noqa: B008
    return cross_entropy(logits, targets * weights)


@register.loss
class Smooth(torch.nn.CrossEntropyLoss):
    def __init__(self, label_smoothing=0.1):
        super().__init__(label_smoothing=label_smoothing, reduction="none")


@register.loss
def ending_the_program(logits, targets):
    raise SystemExit(0)


@register.loss
def of_targets_first(targets, logits):
    return -(targets * logits.log_softmax(-1)).sum(-1)


@register.loss
def stepped(logits, targets):
    return -(targets * logits.sign()).sum(-1)
