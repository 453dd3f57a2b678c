"""A head: it turns features into logits, with a weight and a bias for each class.

    penultimate check mine.py
    penultimate run nine --plugin mine.py --only "softmax, nearness, nearness(temperature=4) + sigmoid"

It is called with features [n m], weight [k m] and bias [k], and returns logits [n k]. A head whose weight is
not trained is called with (num_classes, num_features, generator), and returns the weight [k m].

A file that it reads must be declared, by its path beside this one, as in
@register.head(files=("directions.npz",)), so that results are computed again when it changes.
"""

from penultimate import register
from penultimate.objectives.heads import starts_at


@register.head(paper="Snell et al., Prototypical Networks, NeurIPS 2017")
@starts_at(lambda num_features: num_features**-0.5)  # the initial weights' deviation; without it, 0.01
def nearness(features, weight, bias, *, temperature=1.0):
    """Minus the squared distance between features [n m] and each row of the weight [k m], plus a bias."""
    squares = features.square().sum(-1, keepdim=True) + weight.square().sum(-1)
    return (2 * features @ weight.T - squares) / temperature + bias
