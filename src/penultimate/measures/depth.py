"""Transfer from every depth: linear and kNN probes on the pooled output of each block of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Layers, Pixels
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.measures.knn import KNN_YIELDS, knn_transfer
from penultimate.measures.layers import PENULTIMATE
from penultimate.measures.linear import LINEAR_YIELDS, linear_transfer
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank


@register.measurement(
    version=1,
    per="target",
    needs=(Layers(), Pixels("train"), Pixels("test"), Features("train"), Features("test")),
    yields=(*LINEAR_YIELDS, *KNN_YIELDS),
    seconds=4.8,
)
def depth(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Linear and kNN transfer from the pooled output of every block, and from the penultimate features.

    The probes and the validation split are those of `linear` and `knn`. If the pooled output of the last
    block equals the penultimate features, only the latter are measured. A layer that is the same for all
    images is left out.
    """
    for layer, train, test in banks_of_layers(inputs):
        yield from _transfer(inputs, train, test, layer)


def banks_of_layers(inputs: Inputs) -> Iterator[tuple[str, FeatureBank, FeatureBank]]:
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
        if layer != layers[-1] or not _is_same(test, banks["test"]):
            yield layer, train, test
    yield PENULTIMATE, banks["train"], banks["test"]


def _is_same(one: FeatureBank, other: FeatureBank) -> bool:
    """Return whether the features of two banks are the same up to rounding."""
    import numpy as np

    if one.features.shape != other.features.shape:
        return False
    return bool(np.allclose(one.features, other.features, rtol=1e-3, atol=1e-5 * abs(other.features).max()))


def _transfer(
    inputs: Inputs, train: FeatureBank, test: FeatureBank, layer: str
) -> Iterator[Number | Undefined]:
    for transfer in (linear_transfer, knn_transfer):
        try:
            yield from transfer(inputs, train, test, layer)
        except UndefinedError as error:
            yield Undefined(f"{layer}: {error}")
