"""A fixed head: a final layer whose weight is constructed, and not trained; the logits are W x + b.

    penultimate check mine.py
    penultimate run quickstart --plugin mine.py --only "softmax, orthogonal, sigmoid + orthogonal(length=2)"

It is called with the number of classes, the number of features that the head is given and a generator, from
which all that it draws must come, and returns the weight [k m].
"""

import torch

from penultimate import register


@register.fixed_head(paper="Hoffer et al., Fix your classifier, ICLR 2018")
def orthogonal(num_classes, num_features, generator, *, length=1.0):
    """Orthogonal rows of one length, or columns, where there are fewer features than classes."""
    drawn = torch.randn(max(num_classes, num_features), min(num_classes, num_features), generator=generator)
    basis = torch.linalg.qr(drawn)[0]
    return length * (basis if num_classes >= num_features else basis.T).contiguous()
