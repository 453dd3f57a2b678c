"""Penalties on confident predictions, and on the rows of W."""

from penultimate import register


@register.regulariser(paper="Pereyra et al., ICLR workshop 2017, eq. 2")
def confidence(logits, head, *, beta=0.1):
    """Minus beta times the entropy of the prediction."""
    log_p = logits.log_softmax(-1)
    return beta * (log_p.exp() * log_p).sum(-1)


@register.regulariser
def unit_rows(logits, head, *, strength=1e-3):
    """strength times how far the rows of W are from unit length, the same for every example."""
    lengths = head.weight.to(logits.dtype).square().sum(-1)
    return (strength * (lengths - 1).square().mean()).expand(len(logits))
