"""Profiles: measurements of every layer of one network, from the first block to the output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from penultimate.backbones.taps import flattened, tapped
from penultimate.checks import whole_number
from penultimate.data.images import Images, one_class_each
from penultimate.errors import RequestError
from penultimate.layers.observed import (
    LABELS,
    AnyNetwork,
    ObservedNetwork,
    evaluating,
    expect_batches,
    expect_one_row_each,
    in_context,
)
from penultimate.metrics import UndefinedError
from penultimate.metrics.activations import nonzero_share
from penultimate.metrics.inputs import as_classes
from penultimate.metrics.separation import SeparationAccumulator

PENULTIMATE = "penultimate"
"""The name of the layer of penultimate features, unless a layer of the network has that name."""


@dataclass(frozen=True)
class LayerProfile:
    """One layer: the share of its activations that are not zero, and the class separation R^2 of its output.

    `class_separation` is None if it is undefined, and `undefined` then holds the reason. `dimensions` is the
    length of one example's flattened output.
    """

    layer: str
    dimensions: int
    nonzero_share: float
    class_separation: float | None
    undefined: str = ""


def profile_layers(
    network: AnyNetwork,
    loader: Images | Iterable[Any],
    layers: str | Sequence[str] | None = None,
    *,
    by_class: bool = False,
    batch_size: int = 256,
) -> list[LayerProfile]:
    """Return the non-zero activations and class separation of all layers, in running order.

    nonzero_share: mean_i #{j: x_ij != 0} / m;   class separation: R^2 of the outputs, flattened over space

    There is one pass over the data.

    - `loader`: batches (inputs, labels), or mappings with the key "labels"; or, for a trained Network, an
      ImageSet. An ImageSet is read class by class, so the state is O(m) per layer. The same holds with
      `by_class`, which promises that the loader yields examples class by class. Otherwise it is O(K m) for K
      classes.
    - `layers`: patterns of names (see `backbones.taps.taps`), and "penultimate" for the penultimate features,
      which come last: the input of the final linear layer, or the output of a network without one. The
      default is every residual block or stage, and the penultimate features. These are left out if the
      output is not a tensor, or if it may be class scores that no known final layer gives.

    No activation is kept. The network runs on its own device, in evaluation mode and without gradients. Raise
    RequestError for patterns that match nothing, activations that are not finite (the error names the layer
    and the batch), and batches without labels.

    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.ReLU())
    >>> _ = net[0].weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
    >>> batches = [(torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([0, 1]))]
    >>> [(one.layer, one.nonzero_share, one.class_separation) for one in profile_layers(net, batches)]
    [('1', 0.75, 1.0), ('penultimate', 0.75, 1.0)]

    Kornblith et al., 2021, figures 3 and 4, eq. 11.
    """
    whole_number(batch_size, "batch_size", 1)
    watched, wanted = _watched(network, layers)
    ordered = by_class or isinstance(loader, Images)
    gauges: dict[str, _Gauge] = {}
    with torch.no_grad(), evaluating(watched.module):
        for number, (batch, labels) in enumerate(_labelled(loader, watched, batch_size)):

            def observe(layer: str, activations: Tensor, labels: Any = labels) -> None:
                try:
                    gauges.setdefault(layer, _Gauge(ordered)).update(activations, labels)
                except RequestError as error:
                    raise RequestError(f"layer '{layer}': {error}") from None

            try:
                if wanted:
                    watched.prove(batch)
                with tapped(watched.layers, observe):
                    features = watched.penultimate(batch) if wanted else watched.run(batch)
                if wanted and features is not None:
                    observe(PENULTIMATE, features)
            except RequestError as error:
                raise in_context(error, f"batch {number}") from None
    if not gauges:
        raise RequestError(
            "nothing to measure: no batch, or no penultimate features (the output is not a tensor, or it"
            " may be class scores that no known final layer gives)"
        )
    return [gauge.profile(layer) for layer, gauge in gauges.items()]


def _watched(network: AnyNetwork, layers: str | Sequence[str] | None) -> tuple[ObservedNetwork, bool]:
    """Return the network with the requested layers, and whether the penultimate features are requested."""
    listed = [layers] if isinstance(layers, str) else layers
    if listed is not None and PENULTIMATE not in listed:
        return ObservedNetwork.of("0", network, listed), False
    others = None if listed is None else tuple(name for name in listed if name != PENULTIMATE)
    watched = ObservedNetwork.of("0", network, others)
    if PENULTIMATE in watched.layers:
        raise RequestError(
            f"the network has a layer '{PENULTIMATE}', as its penultimate features are called here: leave it"
            " out of the patterns"
        )
    return watched, True


class _Gauge:
    """The running measurements of one layer."""

    def __init__(self, by_class: bool) -> None:
        self.separation = SeparationAccumulator(by_class=by_class)
        self.examples = self.dimensions = 0
        self.nonzero = 0.0

    def update(self, activations: Shaped[Tensor, "n ..."], labels: Any) -> None:
        expect_one_row_each(activations, len(labels))
        matrix = flattened(activations)
        self.separation.update(matrix, labels)
        self.nonzero += len(matrix) * nonzero_share(matrix)
        self.examples += len(matrix)
        self.dimensions = matrix.shape[1]

    def profile(self, layer: str) -> LayerProfile:
        share = self.nonzero / self.examples
        try:
            return LayerProfile(layer, self.dimensions, share, self.separation.compute())
        except UndefinedError as error:
            return LayerProfile(layer, self.dimensions, share, None, str(error))


def _labelled(
    loader: Images | Iterable[Any], watched: ObservedNetwork, batch_size: int
) -> Iterator[tuple[Any, Any]]:
    """Yield batches with their labels; an ImageSet is read class by class, each class in its stored order."""
    if isinstance(loader, Images):
        if watched.prepare is None:
            raise RequestError(
                "an ImageSet goes with a trained Network, which normalises it; give a bare module batches of"
                " (inputs, labels)"
            )
        order = np.argsort(one_class_each(loader, "layers are profiled on"), kind="stable")
        for batch, rows in loader.batches(batch_size, order):
            yield batch, torch.from_numpy(loader.labels[rows])
        return
    expect_batches(loader)
    for number, batch in enumerate(loader):
        if isinstance(batch, Mapping):
            labels = next((batch[key] for key in LABELS if key in batch), None)
        else:
            labels = batch[1] if isinstance(batch, tuple | list) and len(batch) > 1 else None
        if labels is None:
            raise RequestError(
                f"batch {number} has no labels, which class separation needs: give (inputs, labels)"
            )
        yield batch, as_classes(labels, f"labels of batch {number}")
