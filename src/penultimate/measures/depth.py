"""Transfer from every depth: probes on the pooled output of each block of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Layers, Pixels, Yield, accuracies
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.measures.layers import PENULTIMATE
from penultimate.measures.transfer import KNN_YIELDS, LINEAR_YIELDS, knn_numbers, linear_numbers, linear_probe
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.features.bank import FeatureBank
    from penultimate.probes.linear import LinearProbe

NEEDS = (Layers(), Pixels("train"), Pixels("test"), Features("train"), Features("test"))
PREDICTIONS = ("ids", "labels", "chosen", "last")


@register.measurement(version=1, per="target", needs=NEEDS, yields=(*LINEAR_YIELDS, *KNN_YIELDS), seconds=4.8)
def depth(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Linear and kNN transfer from the pooled output of every block, and from the penultimate features.

    The probes and the validation split are those of `linear` and `knn`. If the pooled output of the last
    block equals the penultimate features, only the latter are measured. A layer that is the same for all
    images is left out.
    """
    from penultimate.probes.knn import KNNProbe

    for layer, train, test in _banks_of_layers(inputs):
        try:
            yield from linear_numbers(linear_probe(inputs, train), test, inputs.accuracy, layer)
            probe = KNNProbe().fit(train.features, train.labels)
            yield from knn_numbers(probe, test, inputs.accuracy, layer)
        except UndefinedError as error:
            yield Undefined(f"{layer}: {error}")


@register.measurement(
    version=1,
    per="target",
    needs=NEEDS,
    yields=(*accuracies("readout", "transfer"), Yield("readout_predictions", "points", PREDICTIONS)),
    seconds=4.8,
)
def readout(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """Linear transfer from the layer of the best validation accuracy, and both probes' predictions.

    The probe and its validation images are those of `linear`; of equal layers the later one is chosen. Test
    images are seen by the chosen layer and by the penultimate features alone.
    """
    import numpy as np

    found: list[tuple[float, str, LinearProbe, FeatureBank]] = []
    for layer, train, test in _banks_of_layers(inputs):
        try:
            probe = linear_probe(inputs, train)
        except UndefinedError as error:
            yield Undefined(f"{layer}: {error}")
            continue
        found.append((float(max(probe.validation_accuracy_)), layer, probe, test))
    if not found or found[-1][1] != PENULTIMATE:
        return
    best = max(reversed(found), key=lambda each: each[0])
    score = best[2].score(best[3].features, best[3].labels)
    yield Number(f"readout_{inputs.accuracy}", score, "fraction", "test", best[1])
    own = found[-1][3]
    ids = np.arange(len(own)) if own.ids is None else own.ids
    predicted = (probe.predict(bank.features) for _, _, probe, bank in (best, found[-1]))
    arrays = dict(zip(PREDICTIONS, (ids, own.labels, *predicted), strict=True))
    yield Arrays("readout_predictions", arrays, "test")


def _banks_of_layers(inputs: Inputs) -> Iterator[tuple[str, FeatureBank, FeatureBank]]:
    """Yield each layer's name and pooled outputs for the training and the test images, and the features last.

    If the pooled output of the last block equals the penultimate features, only the latter are there.
    """
    import numpy as np

    from penultimate.features.bank import FeatureBank
    from penultimate.layers.pooling import pooled_layers

    banks = {split: inputs.features(split) for split in ("train", "test")}
    files = {
        split: pooled_layers(inputs.network, inputs.shown(split), inputs.folder / split) for split in banks
    }
    layers = list(files["train"])
    for layer in layers:
        train, test = (
            FeatureBank(np.load(files[split][layer], "r"), bank.labels) for split, bank in banks.items()
        )
        if layer != layers[-1] or not _is_same(test.features, banks["test"].features):
            yield layer, train, test
    yield PENULTIMATE, banks["train"], banks["test"]


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether features are the same up to rounding."""
    import numpy as np

    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-3, atol=1e-5 * abs(other).max()))
