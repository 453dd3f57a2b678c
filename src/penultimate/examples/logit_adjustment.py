"""Logit adjustment: softmax cross-entropy that makes up for rare classes.

    penultimate check examples:logit_adjustment
    penultimate portrait logit_adjustment --plugin examples:logit_adjustment

In training, the logarithm of each class's frequency is added to its logit, times `tau`. The network learns to
do without it, so that its own logits suit classes that are equally frequent. The frequencies are those of the
training images' labels, which a study counts itself. In a loop of your own:

    pu.objective("logit_adjustment", num_features=512, num_classes=3, class_counts=[5000, 500, 50])

Where all classes have the same number of images, the loss is softmax cross-entropy. The paper has tau = 1, at
which it is consistent for the mean accuracy over classes, and tunes it as well.

Menon, Jayasumana, Rawat, Jain, Veit and Kumar, Long-Tail Learning via Logit Adjustment, ICLR 2021.
"""

from penultimate import register
from penultimate.objectives.losses import with_class_counts


@register.loss(
    paper="Menon et al., ICLR 2021, eq. 10",
    label="Logit adjustment",
    ranges={"tau": "[0, inf)"},
    grids={"tau": (0.5, 1, 1.5, 2)},
)
@with_class_counts
def logit_adjustment(logits, targets, class_counts, *, tau=1.0):
    """Return the softmax cross-entropy of logits to which the log frequency of each class is added.

    L = -sum_k t_k log softmax_k(z + tau log pi),   pi_k = n_k / sum_j n_j

    Logits and target distributions are [n k], and `class_counts` n is [k]; the result is [n], in nats.

    >>> import torch
    >>> logit_adjustment(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.tensor([3.0, 1.0]))  # log 4
    tensor([1.3863])
    """
    frequencies = class_counts / class_counts.sum()
    return -(targets * (logits + tau * frequencies.log()).log_softmax(-1)).sum(-1)
