"""The layer to read: chosen on validation images, and tested beside the penultimate features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Layers, Pixels, Yield
from penultimate.measures.depth import banks_of_layers
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.measures.layers import PENULTIMATE
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe

WORDS = (
    "Linear transfer from the layer that does best on the validation images, among all blocks and the"
    " penultimate features."
)
PREDICTIONS = {"ids": "id images", **dict.fromkeys(("labels", "chosen", "last"), "whole images")}


@register.measurement(
    version=1,
    per="target",
    needs=(Layers(), Pixels("train"), Pixels("test"), Features("train"), Features("test")),
    yields=(
        *(
            Yield(f"readout_{accuracy}", "fraction", better="high", words=WORDS, called="transfer")
            for accuracy in ("top1", "mean_per_class")
        ),
        Yield(
            "readout_predictions",
            "points",
            PREDICTIONS,
            words="What linear probes on the chosen layer and on the penultimate features predict of each"
            " test image.",
        ),
    ),
    seconds=4.8,
)
def readout(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """Linear transfer from the layer of the best validation accuracy, and both probes' predictions.

    The probe and its validation images are those of `linear`; of equal layers the later one is chosen. Test
    images are seen by the chosen layer and by the penultimate features alone.
    """
    import numpy as np

    from penultimate.probes.linear import LinearProbe

    best: tuple[str, LinearProbe, FeatureBank] | None = None
    highest = -1.0
    for layer, train, test in banks_of_layers(inputs):
        probe = LinearProbe(metric=inputs.accuracy, seed=inputs.seed)
        try:
            probe.fit(train.features, train.labels)
        except UndefinedError as error:
            yield Undefined(f"{layer}: {error}")
            continue
        validated = float(max(probe.validation_accuracy_))
        if best is None or validated >= highest:
            best, highest = (layer, probe, test), validated
        last = layer, probe, test
    if best is None or last[0] != PENULTIMATE:
        return
    layer, probe, test = best
    score = probe.score(test.features, test.labels)
    yield Number(f"readout_{inputs.accuracy}", score, "fraction", "test", layer)
    ids = np.arange(len(last[2])) if last[2].ids is None else last[2].ids
    predicted = (of.predict(bank.features) for _, of, bank in (best, last))
    yield Arrays(
        "readout_predictions", dict(zip(PREDICTIONS, (ids, test.labels, *predicted), strict=True)), "test"
    )
