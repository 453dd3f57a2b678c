"""Margins between cosines: CosFace, ArcFace, and the negative margin.

    penultimate check examples:margins
    penultimate portrait "cosface(margin=0.1, scale=16)" --plugin examples:cosface --grid scale=16,32
    penultimate portrait "arcface(margin=0.1, scale=16)" --plugin examples:arcface --grid scale=16,32
    penultimate portrait "negative_margin(margin=-0.02, scale=30)" --plugin examples:negative_margin

The three are softmax cross-entropy over the cosines of features and class weights, times a scale, after the
right class has been put at a disadvantage: its cosine is lowered by a margin (CosFace), or its angle is
widened by one (ArcFace). A negative margin puts it at an advantage. All of them bring their own head,
`scaled_cosines`, which has no bias, so they stand alone where `cosine_softmax` does. Accuracy and transfer
are measured of the logits without a margin, as in the papers.

The scale and the margin of each are those of its paper, which are for thousands of faces or for 64 classes of
few-shot learning. A search begins at the values that it is given. In the recipe of the embedded world a scale
of 64 hardly trains (at most 3 % of ArcFace's holdout images are right, whatever the margin), so that a search
that begins there compares failures: begin at a scale of 16, and with the learning rate that suits cosine
softmax (`--grid recipe.learning_rate=0.6`). With soft targets each class has its share of the margin.

Wang, Wang, Zhou, Ji, Gong, Zhou, Li and Liu, CosFace: Large Margin Cosine Loss for Deep Face Recognition,
CVPR 2018. Deng, Guo, Xue and Zafeiriou, ArcFace: Additive Angular Margin Loss for Deep Face Recognition,
CVPR 2019. Liu, Cao, Lin, Li, Zhang, Long and Hu, Negative Margin Matters: Understanding Margin in Few-Shot
Classification, ECCV 2020.
"""

import math

import torch

from penultimate import register
from penultimate.objectives.heads import direction, starts_at

SCALE = "(0, inf)"


@register.head(paper="Wang et al., CVPR 2018", ranges={"scale": SCALE})
@starts_at(lambda num_features: num_features**-0.5)
def scaled_cosines(features, weight, bias, *, scale=64.0):
    """Return the cosines of features and class weights, times a scale; the bias is not used.

    z_k = scale W_k.x / (||W_k|| ||x||);   the cosine of a zero vector is 0

    Features are [n m] and the weight is [k m]; the logits are [n k].

    >>> scaled_cosines(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]]), torch.zeros(1), scale=10)
    tensor([[8.]])
    """
    return scale * direction(features) @ direction(weight).T


@register.loss(
    paper="Wang et al., CVPR 2018, eq. 4",
    label="CosFace",
    head="scaled_cosines",
    ranges={"margin": "[0, 2]", "scale": SCALE},
    grids={"margin": (0.1, 0.2, 0.35, 0.5), "scale": (16, 32, 64)},
)
def cosface(logits, targets, *, margin=0.35, scale=64.0):
    """Return the softmax cross-entropy after the right class's cosine has been lowered by a margin.

    L = -log softmax_y(z'),   z'_y = scale (cos theta_y - margin),   z'_k = scale cos theta_k for other k

    Logits and target distributions are [n k]; the result is [n], in nats. At margin 0 it is softmax
    cross-entropy over cosines. Two cosines differ by 2 at most, and so does the margin.

    >>> cosface(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), margin=0.5, scale=2)  # log(1 + e)
    tensor([1.3133])
    """
    return _cross_entropy(logits - scale * margin * targets, targets)


@register.loss(
    paper="Deng et al., CVPR 2019, eq. 3",
    label="ArcFace",
    head="scaled_cosines",
    ranges={"margin": "[0, 1.57]", "scale": SCALE},
    grids={"margin": (0.1, 0.2, 0.35, 0.5), "scale": (16, 32, 64)},
)
def arcface(logits, targets, *, margin=0.5, scale=64.0):
    """Return the softmax cross-entropy after the right class's angle has been widened by a margin.

    L = -log softmax_y(z'),   z'_y = scale cos(theta_y + margin),   z'_k = scale cos theta_k for other k

    Logits and target distributions are [n k]; the result is [n], in nats. The margin is in radians. The
    cosine of an angle beyond pi would grow again, so from theta_y = pi - margin on z'_y is scale (cos theta_y
    - margin sin margin), as in the authors' code.

    >>> arcface(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), margin=math.pi / 6, scale=2)  # log(1 + e)
    tensor([1.3133])
    """
    cosine = (logits / scale).clamp(-1, 1)
    square = (1 - cosine) * (1 + cosine)
    sine = square.clamp_min(torch.finfo(square.dtype).tiny).sqrt()  # its slope at 0 would be infinite
    widened = torch.where(
        cosine > -math.cos(margin),
        cosine * math.cos(margin) - sine * math.sin(margin),
        cosine - margin * math.sin(margin),
    )
    return _cross_entropy(logits + scale * targets * (widened - cosine), targets)


@register.loss(
    paper="Liu et al., ECCV 2020",
    label="Negative margin",
    head="scaled_cosines",
    ranges={"margin": "[-2, 0]", "scale": SCALE},
    grids={"margin": (-0.3, -0.1, -0.05, -0.02), "scale": (15, 30, 60)},
)
def negative_margin(logits, targets, *, margin=-0.02, scale=30.0):
    """Return the softmax cross-entropy after the right class's cosine has been raised.

    L = -log softmax_y(z'),   z'_y = scale (cos theta_y - margin),   z'_k = scale cos theta_k for other k

    Logits and target distributions are [n k]; the result is [n], in nats. A margin above 0 is CosFace's.

    >>> negative_margin(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), margin=-0.5, scale=2)  # log(1 + 1/e)
    tensor([0.3133])
    """
    return _cross_entropy(logits - scale * margin * targets, targets)


def _cross_entropy(logits, targets):
    return -(targets * logits.log_softmax(-1)).sum(-1)
