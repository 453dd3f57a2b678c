"""Poly-1: softmax cross-entropy whose first polynomial term has a weight of its own.

    penultimate check examples:poly1
    penultimate portrait "poly1(epsilon=2)" --plugin examples:poly1

Cross-entropy is the sum of (1 - p)^j / j over all j from 1 on, for the probability p of the right class. The
loss adds `epsilon` to the weight of the first term. It is 2 in the paper for ImageNet, and -1 for detection,
the least value at which the weight is not negative. At 0 the loss is softmax cross-entropy.

Leng, Tan, Liu, Cubuk, Shi, Cheng and Anguelov, PolyLoss: A Polynomial Expansion Perspective of Classification
Loss Functions, ICLR 2022.
"""

from penultimate import register


@register.loss(
    paper="Leng et al., ICLR 2022",
    label="Poly-1",
    ranges={"epsilon": "[-1, inf)"},
    grids={"epsilon": (-1, 0.5, 1, 2, 5)},
)
def poly1(logits, targets, *, epsilon=2.0):
    """Return the softmax cross-entropy plus a multiple of the probability of the wrong classes.

    L = -sum_k t_k log p_k + epsilon (1 - sum_k t_k p_k),   p = softmax(z)

    Logits and target distributions are [n k]; the result is [n], in nats.

    >>> import torch
    >>> poly1(torch.zeros(1, 4), torch.tensor([[0.0, 1.0, 0.0, 0.0]]))  # log 4 + 2 (3/4)
    tensor([2.8863])
    """
    log_p = logits.log_softmax(-1)
    return -(targets * log_p).sum(-1) + epsilon * (1 - (targets * log_p.exp()).sum(-1))
