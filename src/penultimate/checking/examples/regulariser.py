"""A regulariser: a term that is added to the loss of each example, from its features.

    penultimate check mine.py
    penultimate run quickstart --plugin mine.py --only "softmax, spread, sigmoid + spread(weight=1)"

`features` [n m] are the body's, which transfer sees too; `targets` [n k] are distributions, one-hot or soft;
`head` is the final layer, with `head.weight` and `head.bias`. It may compare the examples of a batch.
A function of `logits` [n k] and `head` is a regulariser too: def confidence(logits, head, *, strength=0.1).

A file that it reads must be declared, by its path beside this one, as in
@register.regulariser(files=("centres.npz",)), so that results are computed again when it changes.
"""

from penultimate import register


@register.regulariser(paper="Bardes et al., VICReg, ICLR 2022")
def spread(features, targets, head, *, weight=0.1, least=1.0):
    """How far the standard deviation of a feature over the batch is below the least, in the mean."""
    deviation = (features.var(0, unbiased=False) + 1e-4).sqrt()
    return (weight * (least - deviation).relu().mean()).expand(len(features))
