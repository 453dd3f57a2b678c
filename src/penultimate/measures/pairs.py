"""Comparisons of two networks: how similar their layers and their predictions of the source's classes are.

grams            the Gram matrices of one network's layers on some test images
pair_cka         the CKA of all layers of two networks, and of their penultimate features
pair_agreement   the similarity of two networks' predictions of the source's classes

Pairs are measured one by one, so that a further network costs only its own passes and pairs, and a network
that cannot be loaded loses only its own pairs. `similarity` and `agreement` measure all networks of a study
at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from penultimate.measures.agreement import AGREEMENTS, alike
from penultimate.measures.declaration import ClassOrder, Layers, Logits, Made, Pixels, Yield
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Undefined, sample
from penultimate.measures.layers import PENULTIMATE
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

GRAMS = "grams.npz"
"""The file that the stage `grams` leaves."""


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Pixels("test")),
    yields=(),
    ranges={"images": Interval(4, closed="left")},
    stage=True,
    seconds=4.0,
)
def grams(inputs: Inputs, *, images: int = 1024) -> Iterator[Fact | Undefined]:
    """The Gram matrices of every layer on some test images, which are the same for all networks.

    For a network whose layers cannot be observed (an ONNX file), only the penultimate features are used.
    """
    import numpy as np

    from penultimate.backbones.taps import UnobservableError
    from penultimate.layers.comparison import layer_grams
    from penultimate.metrics.similarity import FEWEST

    shown = inputs.shown("test")
    if len(shown) < FEWEST:
        raise UndefinedError(f"CKA needs {FEWEST} test images; '{inputs.target}' has {len(shown)}")
    shown = shown.subset(sample(len(shown), images))
    try:
        made = layer_grams(inputs.network, shown, output=PENULTIMATE)
    except UnobservableError as error:
        yield Undefined(f"only its penultimate features are compared: {error}")
        made = layer_grams(inputs.network, shown, (), output=PENULTIMATE)
    batches = {f"batch_{number}": batch for number, batch in enumerate(made.batches)}
    np.savez(inputs.folder / GRAMS, layers=np.array(made.layers), sizes=np.array(made.sizes), **batches)  # type: ignore[arg-type]
    yield Fact("images", int(sum(made.sizes)))


@register.measurement(
    version=2,
    per="pair",
    needs=(Made("grams"),),
    yields=(
        Yield(
            "pair_cka",
            "ratio",
            words="How alike the penultimate features of two networks find the same images (CKA),"
            " from 0 to 1.",
            called="CKA",
        ),
        Yield(
            "pair_layers",
            "points",
            {
                **dict.fromkeys(("matrix", "standard_error"), "share layers layers_b"),
                **{"layers": "text layers", "layers_b": "text layers_b", "networks": "text 2"},
            },
            words="How alike every layer of one network and every layer of another find the same"
            " images (CKA).",
        ),
    ),
    ranges={"images": Interval(4, closed="left")},
    seconds=0.5,
    paper="Kornblith et al., 2019; Nguyen, Raghu & Kornblith, 2021",
)
def pair_cka(inputs: Inputs, *, images: int = 1024) -> Iterator[Number | Arrays | Undefined]:
    """Linear CKA between the penultimate features of two networks, and between all their layers."""
    import numpy as np

    from penultimate.layers.comparison import LayerGrams, compare_grams

    (one, first), (other, second) = inputs.all_made("grams")
    both = {}
    for key, folder in ((one.network, first), (other.network, second)):
        if not (folder / GRAMS).is_file():
            yield Undefined(f"{key}: fewer test images than CKA needs")
            return
        with np.load(folder / GRAMS, allow_pickle=False) as archive:
            sizes = tuple(archive["sizes"].tolist())
            batches = tuple(archive[f"batch_{number}"] for number in range(len(sizes)))
            both[str(key)] = LayerGrams(tuple(archive["layers"].tolist()), batches, sizes)
    names = list(both)
    comparison = compare_grams(both)
    matrix = comparison.between(*names)
    rows, columns = (both[name].layers for name in names)
    value = float(matrix[rows.index(PENULTIMATE), columns.index(PENULTIMATE)])
    if math.isfinite(value):
        yield Number("pair_cka", value, "ratio", "test", network=one.network, other=other.network)
    else:
        yield Undefined(f"{names[0]} and {names[1]}: features are the same for all images")
    error = comparison.standard_error[: len(rows), len(rows) :]
    layers = {"layers": rows, "layers_b": columns, "networks": names}
    arrays = {"matrix": matrix, "standard_error": error, **layers}
    yield Arrays("pair_layers", arrays, "test", network=one.network, other=other.network)


@register.measurement(
    version=1,
    per="pair",
    needs=(Logits("test", common=True), ClassOrder()),
    yields=AGREEMENTS,
    seconds=0.1,
    paper="Kornblith et al., 2021, figures C.4 and C.5",
)
def pair_agreement(inputs: Inputs) -> Iterator[Number | Undefined]:
    """How similar two networks' predictions of the source's classes are, on the same test images."""
    banks = inputs.all_features("test")
    yield from alike(banks)
