"""ELogitNorm: logits divided by how far the features lie from the boundaries between the classes.

    penultimate check examples:elogitnorm
    penultimate portrait elogitnorm --plugin examples:elogitnorm

`logit_norm` divides logits by their norm, which pulls features towards the origin. Here they are divided by
the mean distance of the features to the hyperplanes that separate the predicted class from the others. There
are no hyperparameters, and so there is nothing to search for.

The paper uses the divided logits in training, and the others to tell unusual images apart. Here they are what
the head gives, in tests as well, which changes no prediction. As in the authors' code, the mean counts the
predicted class, whose distance is 0.

Ding, Liu, Unger and Eilertsen, Enhancing Out-of-Distribution Detection with Extended Logit Normalization,
arXiv 2504.11434, 2025; CVPR 2026.
"""

import torch

from penultimate import register


@register.head(paper="Ding et al., 2025", label="ELogitNorm")
def elogitnorm(features, weight, bias):
    """Return logits divided by the mean distance of the features to the predicted class's boundaries.

    z = f / D,   f = W x + b,   D = 1/K sum_k (f_c - f_k) / ||W_c - W_k||,   c = argmax f

    Features are [n m] and the weight is [k m]; the logits are [n k]. They are 0 where D is 0, and a class
    with the weight of the predicted one counts as at distance 0.

    >>> elogitnorm(torch.tensor([[3.0]]), torch.tensor([[1.0], [-1.0]]), torch.zeros(2))  # D = (6 / 2) / 2
    tensor([[ 2., -2.]])
    """
    plain = torch.nn.functional.linear(features, weight, bias)
    highest, predicted = plain.max(-1, keepdim=True)
    apart = torch.cdist(weight, weight, compute_mode="donot_use_mm_for_euclid_dist")[predicted.squeeze(-1)]
    distance = ((highest - plain) / apart.masked_fill(apart == 0, torch.inf)).mean(-1, keepdim=True)
    return plain / distance.masked_fill(distance == 0, torch.inf)
