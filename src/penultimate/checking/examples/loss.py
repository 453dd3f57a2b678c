"""A loss: how wrong the logits of each example are.

    penultimate check mine.py
    penultimate run quickstart --plugin mine.py --only "softmax, margin, cosine_softmax + margin(margin=7)"

`logits` [n k] are what the head gives: W x + b from the usual, linear one; from logit_norm the same at length
1 / tau; from cosine_softmax cos(W_k, x) / tau + b_k, already divided by tau, so that a margin of 0.35 between
cosines is here, at tau = 0.05, a margin of 7. `targets` [n k] are distributions, one-hot or soft.
"""

from penultimate import register


@register.loss(paper="Wang et al., CosFace, CVPR 2018")
def margin(logits, targets, *, margin=1.0):
    """Softmax cross-entropy after the right class's logit has been lowered by a margin."""
    return -(targets * (logits - margin * targets).log_softmax(-1)).sum(-1)
