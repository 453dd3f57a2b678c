"""Focal loss: examples that are classified well count less than in softmax cross-entropy.

    penultimate check examples:focal
    penultimate portrait "focal(gamma=2)" --plugin examples:focal

`gamma` is 2 in the paper, which tries 0 to 5. At 0 the loss is softmax cross-entropy. The paper also weights
the two classes of a detector by alpha. Here all classes are treated alike, so alpha would only scale the
loss, and it is left out.

Lin, Goyal, Girshick, He and Dollár, Focal Loss for Dense Object Detection, ICCV 2017.
"""

import torch

from penultimate import register


@register.loss(
    paper="Lin et al., ICCV 2017, eq. 4",
    ranges={"gamma": "[0, inf)"},
    grids={"gamma": (0.2, 0.5, 1, 2, 5)},
)
def focal(logits, targets, *, gamma=2.0):
    """Return the softmax cross-entropy, weighted by how wrong the prediction is.

    L = -sum_k t_k (1 - p_k)^gamma log p_k,   p = softmax(z)

    Logits and target distributions are [n k]; the result is [n], in nats.

    >>> focal(torch.zeros(1, 4), torch.tensor([[0.0, 1.0, 0.0, 0.0]]))  # (3/4)^2 log 4
    tensor([0.7798])
    """
    log_p = logits.log_softmax(-1)
    # 1 - p loses all its digits where p is near 1, and a power of it has no finite slope at 0. Its logarithm
    # has neither fault: for the likeliest class it is that of the sum of the others.
    likeliest = torch.zeros_like(log_p, dtype=torch.bool).scatter(-1, log_p.argmax(-1, keepdim=True), True)
    rest = log_p.masked_fill(likeliest, -torch.inf)
    log_wrong = torch.where(likeliest, rest.logsumexp(-1, keepdim=True), torch.log1p(-rest.exp()))
    return -(targets * (gamma * log_wrong).exp() * log_p).sum(-1)
