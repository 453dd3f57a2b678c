"""Focal loss: cross-entropy that goes easy on what is right already."""

from penultimate import register


@register.loss(paper="Lin et al., ICCV 2017, eq. 4")
def focal(logits, targets, *, gamma=2.0):
    """Softmax cross-entropy, each class's term weighted by (1 - p)^gamma."""
    log_p = logits.log_softmax(-1)
    return -(targets * (1 - log_p.exp()) ** gamma * log_p).sum(-1)
