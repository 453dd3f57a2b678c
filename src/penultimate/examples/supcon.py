"""Supervised contrastive learning on one view of each image.

    penultimate check examples:supcon
    penultimate portrait supcon --plugin examples:supcon
    penultimate portrait "detached + supcon" --plugin examples:supcon

Features of one class attract each other, and those of other classes repel each other, within a batch. The
paper shows each image twice, under two augmentations, and trains a projection that is dropped afterwards.
Here an image is shown once, so that its only positives are other images of its class, and the loss is on the
penultimate features themselves.

`supcon` is added to softmax cross-entropy. `detached + supcon` is closer to the paper: it trains the body by
the contrastive loss alone, and the final layer on features that pass no gradient back. The temperature is the
paper's. The weight is ours, because the paper has no sum.

Batches have to be larger than the number of classes: with 128 images of 128 classes in a batch, as in the
embedded world, the contrastive loss alone (`detached + supcon`) reaches 7 to 15 % on test images. An image
without another one of its class in the batch has the value 0, and a batch without any pair gives a warning.

Khosla, Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu and Krishnan, Supervised Contrastive Learning,
NeurIPS 2020.
"""

import warnings

import torch

from penultimate import register
from penultimate.objectives.heads import direction

NO_PAIR = (
    "supcon: no two images of a batch of {} are of one class, so that the batch teaches it nothing; use"
    " batches that are larger than the number of classes"
)


@register.regulariser(
    paper="Khosla et al., NeurIPS 2020, eq. 2",
    label="SupCon",
    ranges={"weight": "[0, inf)", "temperature": "(0, inf)"},
    grids={"weight": (0.25, 0.5, 1, 2), "temperature": (0.05, 0.1, 0.2)},
)
def supcon(features, targets, head, *, weight=1.0, temperature=0.1):
    """Return how much less alike an example is to others of its class than to all others of the batch.

    R_i = -weight / |P_i| sum_(p in P_i) log [exp(s_ip) / sum_(a != i) exp(s_ia)]
    s_ij = x_i.x_j / (||x_i|| ||x_j|| temperature)

    Features are [n m] and target distributions [n k]; P_i are the other examples of i's class. The result is
    [n], in nats. With soft targets a pair counts by the product t_i.t_p.

    >>> one = torch.tensor([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> supcon(one, torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), None, temperature=1.0)
    tensor([0.3133, 0.3133, 0.0000])
    """
    n = len(features)
    if n < 2:
        return 0 * features.sum(-1)
    itself = torch.eye(n, dtype=torch.bool, device=features.device)
    pairs = (targets @ targets.T).masked_fill(itself, 0)
    if torch.is_grad_enabled() and not pairs.any():
        warnings.warn(NO_PAIR.format(n), stacklevel=2)
    unit = direction(features)
    cost = -(unit @ unit.T / temperature).masked_fill(itself, -torch.inf).log_softmax(-1)
    count = pairs.sum(-1)
    total = (pairs * cost.masked_fill(itself, 0)).sum(-1)
    return weight * total / count.masked_fill(count == 0, 1)


class Detached(torch.nn.Module):
    """Features as they are, through which no gradient passes back."""

    def __init__(self, num_features):
        super().__init__()
        self.num_features = num_features

    def forward(self, features):
        return features.detach()


@register.projector(label="Detached", paper="Khosla et al., NeurIPS 2020, section 3")
def detached(num_features):
    """Return what passes features on to the head unchanged, and no gradient back to the body.

    >>> detached(4).num_features
    4
    """
    return Detached(num_features)
