"""A loss: a measure of how wrong the logits of each example are.

    penultimate check mine.py
    penultimate run nine --plugin mine.py --only "softmax, margin, cosine_softmax + margin(margin=7)"

`logits` [n k] come from the head. The usual, linear head gives W x + b; logit_norm gives the same, scaled to
length 1 / tau; cosine_softmax gives cos(W_k, x) / tau + b_k. That one is already divided by tau, so that a
margin of 0.35 between cosines is a margin of 7 here, at tau = 0.05. `targets` [n k] are distributions,
one-hot or soft.

A file that a plug-in reads must be declared, by its path beside this one, as in
@register.loss(files=("class_weights.npz",)): results are then computed again when it changes, and only then.
"""

from penultimate import register


@register.loss(paper="Wang et al., CosFace, CVPR 2018")
def margin(logits, targets, *, margin=1.0):
    """Softmax cross-entropy after the right class's logit has been lowered by a margin."""
    return -(targets * (logits - margin * targets).log_softmax(-1)).sum(-1)
