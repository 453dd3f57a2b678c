"""A penalty: a term that is added to the loss of each example, from its logits and the final layer.

    penultimate check mine.py
    penultimate run quickstart --plugin mine.py --only "softmax, confidence, sigmoid + confidence"

`logits` are [n k]; `head` is the final layer, with `head.weight` [k m] and `head.bias` [k]. A penalty on the
weight alone is the same value for every example: value.expand(len(logits)).
"""

from penultimate import register


@register.penalty(paper="Pereyra et al., ICLR workshop 2017")
def confidence(logits, head, *, strength=0.1):
    """Minus the entropy of the prediction, times a strength."""
    log_p = logits.log_softmax(-1)
    return strength * (log_p.exp() * log_p).sum(-1)
