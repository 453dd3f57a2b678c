"""The geometry of a network's features on test images, for which no training image of the source is read."""

from __future__ import annotations

import math
from collections.abc import Iterator

from penultimate.measures.class_separation import SEPARATION, UNBIASED
from penultimate.measures.declaration import Features, Layers, Pixels, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined, measured
from penultimate.measures.layers import NONZERO
from penultimate.registry import register


@register.measurement(
    version=3,
    per="network",
    needs=(Layers(), Pixels("test"), Features("test")),
    yields=(
        SEPARATION,
        UNBIASED,
        NONZERO,
        Yield("effective_rank", "dimensions", decimals=1),
        Yield("width", "count"),
        Yield("constant_features", "count"),
        Yield("feature_size", "length"),
        Yield("input_side", "pixels"),
        Yield("parameters", "count"),
        Yield("feature_spectrum", "points", ("singular_values",)),
    ),
    seconds=1.0,
    paper="Kornblith et al., 2021, eq. 11; Roy & Vetterli, 2007",
)
def geometry(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """Class separation, non-zero activations and effective rank of the features; the network's sizes.

    `feature_size` is the root mean square of the features. The effective rank is exp(-sum_i p_i log p_i),
    where p_i is the share of the variance along the i-th axis.
    """
    import numpy as np

    from penultimate.metrics.activations import nonzero_share, singular_values
    from penultimate.metrics.separation import class_separation

    bank, network = inputs.features("test"), inputs.network
    for unbiased, what in ((False, SEPARATION), (True, UNBIASED)):
        yield measured(what.metric, "ratio", "test", class_separation, bank, unbiased=unbiased)
    yield Number("nonzero_share", nonzero_share(bank), "fraction", "test")
    spectrum = singular_values(bank, centred=True)
    shares = np.asarray(spectrum) ** 2
    if shares.sum() > 0:
        shares = shares[shares > 0] / shares.sum()
        yield Number("effective_rank", math.exp(-float(shares @ np.log(shares))), "dimensions", "test")
    else:
        yield Undefined("effective_rank: the features are the same for all images")
    yield Number("width", bank.features.shape[1], "count", "test")
    yield Number("constant_features", int((np.ptp(bank.features, 0) == 0).sum()), "count", "test")
    size = math.sqrt(float(np.square(bank.features, dtype=np.float64).mean()))
    yield Number("feature_size", size, "length", "test")
    ((first, _), *_) = inputs.shown("test").subset(slice(1)).batches(1)
    yield Number("input_side", network.prepared(first).shape[-1], "pixels", "test")
    counted = sum(each.numel() for each in network.body.parameters())
    parameters = getattr(network.body, "parameter_count", counted)
    yield Number("parameters", parameters, "count", "test")
    yield Arrays("feature_spectrum", {"singular_values": spectrum}, "test")
