"""CKA of all layers of all networks of a study."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Layers, Pixels, Yield
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Undefined
from penultimate.measures.layers import PENULTIMATE
from penultimate.metrics import UndefinedError
from penultimate.networks.key import NetworkKey
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.metrics.comparison import Comparison

FINISHED, UNTRAINED = -1, -1
"""The values in the arrays for the epoch of a finished network and the seed of an untrained one."""
SETTLING = 50_000
"""The most training images on which the batch-norm moments at initialisation are computed."""

CKA = (
    "Centred kernel alignment: whether two layers, of one network or of two, find the same images"
    " alike. X and Y are their centred activations, a row an image. 1: their similarities agree up to"
    " scale; 0: they have nothing in common. It is estimated without bias from small batches."
)


@register.measurement(
    version=1,
    per="study",
    needs=(Layers(seeds=2), Pixels("train"), Pixels("test")),
    yields=(
        Yield("cka", "ratio", words=CKA, called="CKA"),
        Yield(
            "cka_initial",
            "ratio",
            words="How alike a layer of a trained network and of one with random weights find the"
            " same images (CKA).",
            called="CKA",
        ),
        Yield(
            "layer_cka",
            "points",
            {
                **dict.fromkeys(("matrix", "standard_error"), "share layers layers"),
                **dict.fromkeys(("objectives", "layers"), "text layers"),
                **dict.fromkeys(("seeds", "epochs"), "whole layers"),
                **{"sizes": "count batches", "passes": "whole batches"},
            },
            words="How alike all layers of two networks of each objective find the same images (CKA).",
        ),
    ),
    ranges={
        "images": Interval(4, closed="left"),
        "batch_size": Interval(4, closed="left"),
        "passes": Interval(1, 1000, "both"),
    },
    seconds=12.0,
    paper="Kornblith et al., 2021, figure 2; Nguyen, Raghu & Kornblith, 2021",
)
def similarity(
    inputs: Inputs, *, images: int = 5120, batch_size: int = 256, passes: int = 1
) -> Iterator[Number | Arrays | Fact | Undefined]:
    """CKA of all layers of two networks per objective, on some test images of the first draw.

    Two further states of the first network are compared too: at initialisation, with a seed that no network
    started from, and at its first snapshot, if there is one. The numbers are those of corresponding layers.
    The whole matrix, with its standard errors and the names of its rows, is kept as arrays. Networks that
    need images on disk resized or cropped differently are not compared.
    """
    from penultimate.data.disk.listed import ListedImages
    from penultimate.layers.comparison import at_initialisation, compare_networks
    from penultimate.networks.trained import TrainedNetwork, load_network, snapshots

    folders = inputs.network_folders()
    if not folders:
        return
    networks = {key: inputs.load(key) for key in folders}
    usual = next(iter(networks.values()))
    wanted = {network.preparation.geometry for network in networks.values()}
    compared = inputs.shown("test", usual, images)
    if len(wanted) > 1 and isinstance(compared, ListedImages):
        raise UndefinedError(
            "images on disk are decoded as one network wants them, and these want them in"
            f" {len(wanted)} ways; pair_cka compares such networks"
        )
    named: dict[str, Any] = {str(key): network for key, network in networks.items()}
    states: dict[str, tuple[str, int, int]] = {
        str(key): (key.objective, UNTRAINED if key.seed is None else key.seed, FINISHED) for key in networks
    }
    initial = ""
    trained = next((key for key in networks if not key.is_given), None)
    if trained is not None:
        unused = next(seed for seed in itertools.count() if seed not in inputs.seeds)
        first = networks[trained]
        assert isinstance(first, TrainedNetwork)
        initial = f"{trained}, at initialisation"
        named[initial] = at_initialisation(first, inputs.shown("train", first, SETTLING), unused)
        states[initial] = ("", UNTRAINED, 0)
        for epoch, folder in itertools.islice(snapshots(folders[trained]).items(), 1):
            named[f"{trained}, epoch {epoch}"] = load_network(folder).to(inputs.device)
            states[f"{trained}, epoch {epoch}"] = (*states[str(trained)][:2], epoch)
    comparison = compare_networks(named, compared, passes=passes, batch_size=batch_size, output=PENULTIMATE)
    yield from _corresponding(comparison, list(networks), initial)
    yield Arrays("layer_cka", _arrays(comparison, states), "test")
    yield Fact("notes", comparison.notes)
    for note in comparison.notes:
        if "undefined" in note:
            yield Undefined(note)


def _corresponding(comparison: Comparison, keys: list[NetworkKey], initial: str) -> Iterator[Number]:
    """Yield the CKA of corresponding layers, if it is defined, for networks with equally many layers."""
    for key, other in itertools.combinations(keys, 2):
        layers, layers_b = comparison.layers(str(key)), comparison.layers(str(other))
        if len(layers) != len(layers_b):
            continue
        across = comparison.between(str(key), str(other)).diagonal()
        for layer, layer_b, value in zip(layers, layers_b, across, strict=True):
            if math.isfinite(value):
                pair: dict[str, Any] = {"network": key, "other": other, "layer_b": layer_b}
                yield Number("cka", value, "ratio", "test", layer, **pair)
    for key in keys if initial else ():
        across = comparison.between(str(key), initial)
        if across.shape[0] != across.shape[1]:
            continue
        layers, layers_b = comparison.layers(str(key)), comparison.layers(initial)
        for layer, layer_b, value in zip(layers, layers_b, across.diagonal(), strict=True):
            if math.isfinite(value):
                yield Number("cka_initial", value, "ratio", "test", layer, network=key, layer_b=layer_b)


def _arrays(comparison: Comparison, states: dict[str, tuple[str, int, int]]) -> dict[str, Any]:
    """Return the matrix [l l], its standard errors, and the objective, seed, epoch and layer of each row."""
    import numpy as np

    of_rows = [states[network] for network, _ in comparison.names]
    return {
        "matrix": comparison.matrix,
        "standard_error": comparison.standard_error,
        "objectives": np.array([objective for objective, _, _ in of_rows]),
        "seeds": np.array([seed for _, seed, _ in of_rows]),
        "epochs": np.array([epoch for _, _, epoch in of_rows]),
        "layers": np.array([layer for _, layer in comparison.names]),
        "sizes": comparison.sizes,
        "passes": comparison.passes,
    }
