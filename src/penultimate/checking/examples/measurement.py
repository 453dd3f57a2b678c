"""A measurement: numbers about a network, a target or a whole study, made from the inputs that it declares.

    penultimate check mine.py
    penultimate run smoke --plugin mine.py --set "measure=accuracy, linear, lengths(order=1)"
    penultimate show plugins --allow-limited

It may need features, logits, the final layer, images, several networks or stages:
`penultimate.measures.declaration` lists it. A probe of your own is a measurement per="target".

A file that it reads must be declared, by its path beside this one, as in
@register.measurement(..., files=("reference.npz",)), so that results are computed again when it changes.
"""

import numpy as np

from penultimate import register
from penultimate.measures import Logits, Number, Undefined, Yield


@register.measurement(
    version=1,  # raised by hand when the results change for the same settings
    per="network",
    needs=(Logits("test"),),
    yields=(Yield("length_right", "length"), Yield("length_wrong", "length")),
    seconds=0.1,  # what `penultimate plan` expects of a step
)
def lengths(inputs, *, order=2.0):
    """The mean length of the features of test images that are classified right, and of the others."""
    bank = inputs.features("test")
    right = bank.logits.argmax(1) == bank.labels
    norms = np.linalg.norm(bank.features, ord=order, axis=1)
    for name, which in (("length_right", right), ("length_wrong", ~right)):
        if which.any():
            yield Number(name, float(norms[which].mean()), "length", "test")
        else:
            yield Undefined(f"{name}: there is no such image")
