"""CKA between the layers of any networks on any data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from penultimate.backbones.backbone import device_of
from penultimate.backbones.taps import flattened, tapped
from penultimate.checks import one_of
from penultimate.data.images import Images
from penultimate.errors import RequestError
from penultimate.layers.observed import (
    AnyNetwork,
    Layers,
    ObservedNetwork,
    batches_at,
    batches_of,
    draws,
    evaluating,
    examples,
    expect_one_row_each,
    in_context,
    observed,
)
from penultimate.metrics.comparison import Comparison, Doubles
from penultimate.metrics.similarity import PIECE_ELEMENTS, expect_enough, products, u_vector
from penultimate.networks.trained import TrainedNetwork, build

BatchProducts: TypeAlias = tuple[Doubles, int, int]

TOKENS: dict[str, Callable[[Tensor], Tensor]] = {
    "flatten": lambda tokens: tokens,
    "mean": lambda tokens: tokens.mean(1),
    "first": lambda tokens: tokens[:, 0],
}


def compare_networks(
    networks: Sequence[AnyNetwork] | Mapping[str, AnyNetwork],
    loader: Images | Iterable[Any],
    layers: Layers = None,
    *,
    passes: int = 1,
    tokens: str = "flatten",
    output: str = "",
    batch_size: int = 256,
    seed: int = 0,
) -> Comparison:
    """Return the linear CKA between all tapped layers of all networks, in a single sweep over the data.

    CKA = mean_i HSIC_1(A_i, B_i) / sqrt( mean_i HSIC_1(A_i, A_i) mean_i HSIC_1(B_i, B_i) ) over batches i

    - `networks`: modules or trained Networks; a mapping names them, otherwise they are "0", "1", ...
    - `loader`: an iterable of batches. A batch is a tensor, a tuple or list that begins with one, or a
      mapping of keyword arguments (labels are dropped, and so are ids unless the network takes them). Trained
      Networks also accept an ImageSet, whose batches `seed` draws differently in every pass.
    - `layers`: patterns of names (see `backbones.taps.taps`), the same for all networks or a mapping by
      network; by default every residual block or stage. Networks may differ in their numbers of layers.
    - `passes`: the number of passes over the data, useful if batches differ each time (a DataLoader that
      shuffles); the paper makes 10.
    - `tokens`, for outputs [n t d]: "flatten" (as for maps), "mean" over tokens, "first" (the class token).
    - `output`: a name for the output of the whole network (a trained Network's penultimate features), which
      is then compared too, as its last layer.

    The result has `.matrix` [l l] (CKA), `.names` [(network, layer)] in the order in which layers run,
    `.standard_error` [l l] by jackknife over batches, `.notes`, and `.merge`, which joins comparisons of
    other batches made elsewhere. Batches are weighted by their number of examples; a short last batch is kept
    and mentioned in the notes.

    A layer's Gram matrix is computed as soon as the layer has run, before an in-place operation can change
    its output, and no activation is kept: the memory is l n (n-1) / 2 float64 for n examples per batch.
    Networks run on their own devices, in evaluation mode and without gradients; their modes are restored
    afterwards, and autocast is left to the caller.

    Raise RequestError for patterns that match nothing, batches of fewer than 4 examples (before anything runs
    if the loader announces them), layers that run twice or never, and activations that are not finite (the
    error names the network and the batch).

    >>> nets = {name: nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)) for name in "ab"}
    >>> batches = [torch.randn(16, 3) for _ in range(4)]
    >>> comparison = compare_networks(nets, batches, layers=["1", "2"])
    >>> comparison.names
    [('a', '1'), ('a', '2'), ('b', '1'), ('b', '2')]
    >>> comparison.between("a", "b").shape, bool((comparison.standard_error[0, 1:] > 0).all())
    ((2, 2), True)

    Nguyen, Raghu & Kornblith, 2021, eq. 3; Kornblith et al., 2021, eq. 10 and figure 2 (batches of 1500).
    """
    one_of(tokens, "treatment of tokens", TOKENS)
    watched = observed(networks, layers, output)
    batch_products: list[BatchProducts] = []
    rows: list[tuple[str, str]] = []
    for pass_number, sheet in _sheets(watched, loader, passes, batch_size, seed, tokens):
        batch_products.append((products(sheet.vectors, sheet.examples), sheet.examples, pass_number))
        rows = list(sheet.rows)
    return _comparison(rows, batch_products)


@dataclass(frozen=True, eq=False)
class LayerGrams:
    """The Gram matrices of a network's layers on a few batches, which suffice to compare it with others.

    `batches` holds for each batch the entries above the diagonal of the U-centred Gram matrices, by layer:
    float32 [l n(n-1)/2]. `sizes` holds the numbers of examples.
    """

    layers: tuple[str, ...]
    batches: tuple[npt.NDArray[np.float32], ...]
    sizes: tuple[int, ...]


def layer_grams(
    network: AnyNetwork,
    loader: Images | Iterable[Any],
    layers: str | Sequence[str] | None = None,
    *,
    output: str = "",
    batch_size: int = 256,
    seed: int = 0,
) -> LayerGrams:
    """Return the Gram matrices of a network's layers, which `compare_grams` compares.

    The settings are those of `compare_networks`, with a single pass. If `layers` is (), only the output is
    used.
    """
    watched = observed({"network": network}, layers, output)
    found = [
        (
            tuple(layer for _, layer in sheet.rows),
            sheet.vectors.cpu().numpy().astype(np.float32),
            sheet.examples,
        )
        for _, sheet in _sheets(watched, loader, 1, batch_size, seed, "flatten")
    ]
    names, batches, sizes = zip(*found, strict=True)
    return LayerGrams(names[0], batches, sizes)


def compare_grams(networks: Mapping[str, LayerGrams]) -> Comparison:
    """Return the linear CKA between all layers of networks whose Gram matrices come from the same batches.

    Raise RequestError if the numbers of examples differ.

    >>> batches = [torch.randn(16, 3) for _ in range(4)]
    >>> nets = {name: nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)) for name in "ab"}
    >>> grams = {name: layer_grams(net, batches, output="top") for name, net in nets.items()}
    >>> whole = compare_networks(nets, batches, output="top")
    >>> bool(np.allclose(compare_grams(grams).matrix, whole.matrix, atol=1e-5))
    True
    """
    sizes = {grams.sizes for grams in networks.values()}
    if len(sizes) != 1:
        raise RequestError("networks are compared on the same batches; these have seen others")
    names = [(name, layer) for name, grams in networks.items() for layer in grams.layers]
    batch_products = [
        (products(torch.from_numpy(np.concatenate(vectors)).double(), size), size, 0)
        for size, *vectors in zip(*sizes, *(grams.batches for grams in networks.values()), strict=True)
    ]
    return _comparison(names, batch_products)


def _sheets(
    watched: Sequence[ObservedNetwork],
    loader: Images | Iterable[Any],
    passes: int,
    batch_size: int,
    seed: int,
    tokens: str,
) -> Iterator[tuple[int, _Sheet]]:
    """Yield the pass number and the Gram matrices of every batch; the next batch overwrites the matrices."""
    sheet = _Sheet(sum(len(network.layers) for network in watched), watched[0].device, TOKENS[tokens])
    with torch.no_grad(), ExitStack() as modes:
        for network in watched:
            modes.enter_context(evaluating(network.module))
        for pass_number, number, batch in batches_of(loader, watched, passes, batch_size, seed):
            where = f"batch {number} of pass {pass_number}"
            try:
                sheet.start(examples(batch))
                for network in watched:
                    where = f"batch {number} of pass {pass_number}, network '{network.name}'"
                    with tapped(network.layers, partial(sheet.add, network.name)):
                        network.run(batch)
            except RequestError as error:
                raise in_context(error, where) from None
            yield pass_number, sheet
    if not sheet.examples:
        raise RequestError("no batch to compare on")


def settle_batch_norm(
    module: nn.Module, batches: Iterable[Any], prepare: Callable[[Tensor], Tensor] | None = None
) -> nn.Module:
    """Set the running moments of all batch-norm layers to the batches' mean moments; return the module.

    This makes a network at initialisation a fair control: with its initial moments (0 and 1), activations
    grow or vanish from layer to layer. While the batches run, everything but batch norm is in evaluation
    mode; modes and momenta are restored afterwards. Raise RequestError if there are no batches.

    >>> net = nn.Sequential(nn.BatchNorm1d(2))
    >>> _ = settle_batch_norm(net, [torch.tensor([[0.0, 4.0], [2.0, 8.0]])])
    >>> net[0].running_mean, net[0].running_var
    (tensor([1., 6.]), tensor([2., 8.]))

    Kornblith et al., 2021, section 3.2: the control at initialisation.
    """
    network, rest = ObservedNetwork("0", module, {}, prepare), iter(batches)
    first = next(rest, None)
    if first is None:
        raise RequestError("no batch to set the moments of batch normalisation on")
    norms = [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    with torch.no_grad(), evaluating(module):
        try:
            for norm in norms:
                norm.reset_running_stats()
                norm.momentum = None  # the plain average over batches
                norm.train()
            for batch in itertools.chain([first], rest):
                network.run(batch)
        finally:
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum
    return module


def at_initialisation(
    network: TrainedNetwork, images: Images, seed: int = 0, batch_size: int = 256
) -> TrainedNetwork:
    """Return the network as it was before training, with batch-norm moments set on `images`.

    Its weights are drawn from `seed`. Networks that were trained with the same seed share their initial
    weights; another seed gives a separate control. Raise RequestError for fewer than 4 images.

    >>> from penultimate.data.images import ChannelStatistics, ImageSet
    >>> images = ImageSet(np.zeros((4, 8, 8, 3), np.uint8), np.zeros(4, int), np.arange(4), ("a", "b"))
    >>> card = {"objective": "softmax", "backbone": "glyphnet(width=2, features=4)", "num_classes": 2}
    >>> body, head = build(card["objective"], card["backbone"], 2, seed=0)
    >>> network = TrainedNetwork(body, head, ChannelStatistics((0.5,) * 3, (0.2,) * 3), ("a", "b"), card)
    >>> at_initialisation(network, images, seed=1).backbone.num_features
    4
    """
    card = network.card
    body, head = build(card["objective"], card["backbone"], card["num_classes"], seed)
    device = device_of(network.backbone)
    body, head = body.to(device), head.to(device)
    batches = batches_at(images, [rows for _, _, rows in draws(len(images), 1, batch_size, seed)])
    settle_batch_norm(body, batches, network.prepared)
    return TrainedNetwork(body.eval(), head.eval(), network.statistics, network.class_names, card)


class _Sheet:
    """The U-centred Gram matrices of one batch, with a row for each layer in the order of their first run."""

    def __init__(self, layers: int, device: torch.device, pool: Callable[[Tensor], Tensor]) -> None:
        self.layers, self.pool = layers, pool
        self.device = device if device.type in PIECE_ELEMENTS else torch.device("cpu")
        self.rows: dict[tuple[str, str], int] = {}
        self.vectors = torch.empty(0, 0)
        self.examples = 0

    def start(self, examples: int) -> None:
        expect_enough(examples)
        pairs = examples * (examples - 1) // 2
        if self.vectors.shape[1] != pairs:
            self.vectors = torch.empty(self.layers, pairs, dtype=torch.float64, device=self.device)
        self.examples = examples

    def add(self, network: str, layer: str, output: Shaped[Tensor, "..."]) -> None:
        output = self.pool(output) if output.ndim == 3 else output
        try:
            expect_one_row_each(output, self.examples)
            vector = u_vector(flattened(output))
        except RequestError as error:
            raise RequestError(f"layer '{layer}': {error}") from None
        self.vectors[self.rows.setdefault((network, layer), len(self.rows))] = vector


def _comparison(names: list[tuple[str, str]], batch_products: list[BatchProducts]) -> Comparison:
    hsic, sizes, passes = zip(*batch_products, strict=True)
    return Comparison(names, np.stack(hsic), np.array(sizes), np.array(passes))
