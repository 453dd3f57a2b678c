"""CKA of the layers of networks.

similarity   all layers of all networks of a study at once, with states of a network during training
pair_cka     the layers of two networks, from the Gram matrices that the stage `grams` leaves for each

Pairs are measured one by one, so that a further network costs only its own passes and pairs, and a network
that cannot be loaded loses only its own pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Layers, Made, Pixels, Yield
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Undefined, load_network_of, sample
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
GRAMS = "grams.npz"
"""The file that the stage `grams` leaves."""
OF_ROWS = ("objectives", "seeds", "epochs", "layers")
FOUR = Interval(4, closed="left")


@register.measurement(
    version=1,
    per="study",
    needs=(Layers(seeds=2), Pixels("train"), Pixels("test")),
    yields=(
        Yield("cka", "ratio", called="CKA"),
        Yield("cka_initial", "ratio", called="CKA"),
        Yield("layer_cka", "points", ("matrix", "standard_error", *OF_ROWS, "sizes", "passes")),
    ),
    ranges={"images": FOUR, "batch_size": FOUR, "passes": Interval(1, 1000, "both")},
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
    networks = {key: load_network_of(folder, inputs.device) for key, folder in folders.items()}
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


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Pixels("test")),
    yields=(),
    ranges={"images": FOUR},
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
        Yield("pair_cka", "ratio", called="CKA"),
        Yield("pair_layers", "points", ("matrix", "standard_error", "layers", "layers_b", "networks")),
    ),
    ranges={"images": FOUR},
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


def _corresponding(comparison: Comparison, keys: list[NetworkKey], initial: str) -> Iterator[Number]:
    """Yield the CKA of corresponding layers, if it is defined, for networks with equally many layers."""
    pairs: list[tuple[str, NetworkKey, str, dict[str, Any]]] = [
        *(("cka", key, str(other), {"other": other}) for key, other in itertools.combinations(keys, 2)),
        *(("cka_initial", key, initial, {}) for key in keys if initial),
    ]
    for metric, key, name, columns in pairs:
        layers, layers_b = comparison.layers(str(key)), comparison.layers(name)
        if len(layers) != len(layers_b):
            continue
        across = comparison.between(str(key), name).diagonal()
        for layer, layer_b, value in zip(layers, layers_b, across, strict=True):
            if math.isfinite(value):
                of_pair: dict[str, Any] = {"network": key, "layer_b": layer_b, **columns}
                yield Number(metric, value, "ratio", "test", layer, **of_pair)


def _arrays(comparison: Comparison, states: dict[str, tuple[str, int, int]]) -> dict[str, Any]:
    """Return the matrix [l l], its standard errors, and the objective, seed, epoch and layer of each row."""
    import numpy as np

    rows = [(*states[network], layer) for network, layer in comparison.names]
    return {
        "matrix": comparison.matrix,
        "standard_error": comparison.standard_error,
        **{name: np.array(column) for name, column in zip(OF_ROWS, zip(*rows, strict=True), strict=True)},
        "sizes": comparison.sizes,
        "passes": comparison.passes,
    }
