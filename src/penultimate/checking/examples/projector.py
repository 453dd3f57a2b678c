"""A projector: hidden layers between the penultimate features and the head, which training alone uses.

    penultimate check mine.py
    penultimate run quickstart --plugin mine.py --only "softmax, bottleneck, bottleneck(width=64) + sigmoid"

It is called with the number of features of the body and returns a module with `num_features`, which takes
features [n m] to what the head is given. Transfer sees the features before it. Initial weights come from
torch's default generator.

A file that it reads must be declared, by its path beside this one, as in
@register.projector(files=("start.pt",)), so that results are computed again when it changes.
"""

from torch import nn

from penultimate import register


@register.projector(paper="Sariyildiz et al., ICLR 2023")
def bottleneck(num_features, *, hidden=512, width=128):
    """One hidden layer, and a linear map to a bottleneck."""
    layers = nn.Sequential(
        nn.Linear(num_features, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.GELU(),
        nn.Linear(hidden, width),
    )
    layers.num_features = width
    return layers
