"""Linear and nearest-neighbour transfer, with the predictions of each probe for every test image.

The predictions allow networks to be compared on the same images: by pairs, and by the classes they confuse.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.measures.knn import KNN_YIELDS, knn_numbers
from penultimate.measures.linear import LINEAR_YIELDS, linear_numbers
from penultimate.metrics import UndefinedError
from penultimate.registry import register

PREDICTIONS = {"ids": "id images", **dict.fromkeys(("labels", "linear", "knn"), "whole images")}
"""The arrays of the predictions: for each test image its id, its class, and the prediction of each probe."""


@register.measurement(
    version=2,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=(
        *LINEAR_YIELDS,
        *KNN_YIELDS,
        Yield(
            "probe_predictions", "points", PREDICTIONS, words="What either probe predicts of each test image."
        ),
    ),
    seconds=2.0,
    paper="Kornblith et al., 2021, section 3.1",
)
def probed(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """Linear and kNN transfer, and the predictions of both probes for each test image."""
    import numpy as np

    from penultimate.probes.knn import KNNProbe
    from penultimate.probes.linear import LinearProbe

    train, test = inputs.features("train"), inputs.features("test")
    linear, knn = LinearProbe(metric=inputs.accuracy, seed=inputs.seed), KNNProbe()
    undefined: dict[str, list[str]] = {}
    for name, probe in {"linear": linear, "kNN": knn}.items():
        try:
            probe.fit(train.features, train.labels)
        except UndefinedError as error:
            undefined.setdefault(str(error), []).append(name)
    for why, names in undefined.items():
        which = "probes" if len(names) > 1 else f"the {names[0]} probe"
        yield Undefined(f"{which} on '{inputs.target}': {why}")
    lacking = list(itertools.chain.from_iterable(undefined.values()))
    if "linear" not in lacking:
        yield from linear_numbers(linear, test, inputs.accuracy)
    if "kNN" not in lacking:
        yield from knn_numbers(knn, test, inputs.accuracy)
    if lacking:
        return
    ids = np.arange(len(test)) if test.ids is None else test.ids
    predictions = (ids, test.labels, linear.predict(test.features), knn.predict(test.features))
    yield Arrays("probe_predictions", dict(zip(PREDICTIONS, predictions, strict=True)), "test")
