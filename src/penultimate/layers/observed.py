"""Networks with observed layers: which layers, how a batch is run, and the batches of all passes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from penultimate.backbones.backbone import device_of
from penultimate.backbones.ending import Final, NoHeadError, final_of, read
from penultimate.backbones.passes import plainly
from penultimate.backbones.taps import UnobservableError, taps, unwrapped
from penultimate.checks import whole_number
from penultimate.data.images import Images
from penultimate.data.seeding import derived_generator
from penultimate.errors import RequestError, unknown
from penultimate.metrics.inputs import as_tensor, items
from penultimate.metrics.similarity import FEWEST, expect_enough
from penultimate.networks.batches import preparer
from penultimate.networks.given import network_of
from penultimate.networks.model import Model
from penultimate.networks.protocol import Network

AnyNetwork: TypeAlias = Network | nn.Module | Model
Layers: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str] | None] | None

LABELS = ("label", "labels")
"""Keys of a batch that are never passed to a network."""
IDS = ("id", "ids", "index", "indices", "path", "paths", "key", "__key__")
"""Keys that are passed to a network only if its forward pass takes them."""
AT_ONCE = 64
"""The number of images requested at once; on disk, several such stretches are decoded in parallel."""
MOST_PASSES = 10_000
"""The largest number of passes allowed, since more would take forever; the paper makes 10."""


@dataclass(frozen=True)
class ObservedNetwork:
    """A named network and its tapped layers; `prepare` turns images into the input of a `Network`."""

    name: str
    module: nn.Module
    layers: dict[str, nn.Module]
    prepare: Callable[[Tensor], Tensor] | None
    ends: list[Final | str] = field(default_factory=list)
    """The final layers, once a batch has shown them."""

    @classmethod
    def of(
        cls, name: str, network: AnyNetwork, patterns: str | Sequence[str] | None, output: str = ""
    ) -> ObservedNetwork:
        """Return a network with the layers that match the patterns; without patterns, (), it has none.

        `output` names the output of the whole module, which then counts as its last layer. Raise RequestError
        for anything but a network, and for patterns that match none of its layers.
        """
        prepare = None
        if isinstance(network, Model):
            prepare, network = preparer(network), network_of(network)
        elif isinstance(network, Network):
            prepare = network.prepared
        module = unwrapped(network.body if isinstance(network, Network) else network)
        if not isinstance(module, nn.Module):
            what = type(network).__name__
            raise RequestError(f"network '{name}' is a {what}, not a Network or an nn.Module")
        try:
            layers = {} if patterns == () else taps(module, patterns)
        except RequestError as error:
            raise in_context(error, f"network '{name}'") from None
        if output in layers:
            raise RequestError(f"network '{name}' has a layer '{output}': call its output something else")
        return cls(name, module, {**layers, **({output: module} if output else {})}, prepare)

    @property
    def device(self) -> torch.device:
        """The device on which the network runs."""
        return device_of(self.module)

    def penultimate(self, batch: Any) -> Tensor | None:
        """Return the penultimate features of a batch.

        Return None if the output is not a tensor, or if it cannot be proved which layer is the final one.
        """
        if self.prepare is not None:  # the body of a Network returns its penultimate features
            output = self.run(batch)
            return output if isinstance(output, Tensor) else None
        self.prove(batch)
        if not (end := self.ends[0]):
            self.run(batch)
            return None
        return read(self.module, end, lambda: self.run(batch))[0]

    def prove(self, batch: Any) -> None:
        """Find the final layers in a pass over a batch, once; it is no pass that layers are observed in."""
        if self.prepare is None and not self.ends:
            try:
                with plainly(self.device):
                    self.ends.append(final_of(self.module, lambda: self.run(batch)))
            except NoHeadError:
                self.ends.append("")

    def run(self, batch: Any) -> Any:
        """Return the output of a forward pass on a batch, given as the loader yields it.

        The only tensor of a mapping, besides labels and ids, is taken to be the image, whatever its name.
        Raise RequestError for a mapping with keys that the forward pass does not take.
        """
        values = inputs(batch)
        if not isinstance(values, dict):
            return self.module(self._prepared(values.to(self.device)))
        taken = inspect.signature(self.module.forward).parameters
        tensors = {
            key: as_tensor(value, key).to(self.device)
            for key, value in values.items()
            if key in taken or key not in IDS
        }
        if len(tensors) == 1 and not {*tensors} & {*taken}:
            return self.module(self._prepared(next(iter(tensors.values()))))
        try:
            return self.module(**tensors)
        except TypeError as error:
            raise RequestError(f"the batch has the keys {', '.join(map(repr, values))}: {error}") from None

    def _prepared(self, images: Tensor) -> Tensor:
        return images if self.prepare is None else self.prepare(images)


def observed(
    networks: Sequence[AnyNetwork] | Mapping[str, AnyNetwork], layers: Layers, output: str = ""
) -> list[ObservedNetwork]:
    """Return the networks of a list (named "0", "1", ...) or of a mapping, with their observed layers.

    `layers` holds the patterns for all networks, or a mapping from networks to their patterns.
    """
    if isinstance(networks, nn.Module | Network | Model):
        raise RequestError("networks are a list or a mapping of networks; for a single one, pass [network]")
    if not isinstance(networks, Mapping):
        networks = {str(number): network for number, network in enumerate(items(networks, "networks"))}
    if not networks:
        raise RequestError("no network to observe")
    patterns = layers if isinstance(layers, Mapping) else dict.fromkeys(networks, layers)
    for name in patterns:
        if name not in networks:
            raise unknown("network in layers", name, networks)
    return [ObservedNetwork.of(name, each, patterns.get(name), output) for name, each in networks.items()]


def in_context(error: RequestError, where: str) -> RequestError:
    """Return the error with the place where it was raised added to its message.

    An UnobservableError keeps its type, so that it can be told apart from a wrong request.
    """
    kind = UnobservableError if isinstance(error, UnobservableError) else RequestError
    return kind(f"{where}: {error}")


def inputs(batch: Any) -> Tensor | dict[str, Any]:
    """Return the part of a batch that goes into a network: keyword arguments, or the first (or only) tensor.

    >>> inputs({"pixel_values": [[1.0]], "labels": [3]})
    {'pixel_values': [[1.0]]}
    >>> inputs((np.zeros((4, 2)), np.zeros(4))).shape
    torch.Size([4, 2])
    """
    if isinstance(batch, Mapping):
        return {key: value for key, value in batch.items() if key not in LABELS}
    return as_tensor(batch[0] if isinstance(batch, tuple | list) and len(batch) else batch, "the inputs")


def examples(batch: Any) -> int:
    """Return the number of examples in a batch."""
    values = inputs(batch)
    return len(next(iter(values.values()), ()) if isinstance(values, dict) else values)


def expect_one_row_each(output: Tensor, examples: int) -> None:
    """Raise RequestError unless the first dimension of a layer's output is the examples."""
    if output.ndim == 0 or len(output) != examples:
        raise RequestError(
            f"it gives {list(output.shape)} for {examples} examples; their number is expected as the first"
            " dimension"
        )


def batches_of(
    loader: Images | Iterable[Any],
    networks: Sequence[ObservedNetwork],
    passes: int,
    batch_size: int,
    seed: int,
) -> Iterator[tuple[int, int, Any]]:
    """Yield (pass, number in the pass, batch); the batches of an ImageSet are drawn again in every pass.

    Raise RequestError, before anything runs, for an ImageSet with a network that does not prepare it, several
    passes over an iterator and anything that does not yield batches; and later for a loader that yields
    nothing in a further pass.
    """
    whole_number(passes, "passes", 1, MOST_PASSES)
    if isinstance(loader, Images):
        bare = next((network.name for network in networks if network.prepare is None), None)
        if bare is not None:
            raise RequestError(
                f"an ImageSet goes with trained Networks, which normalise it; '{bare}' is a bare module:"
                " give batches that it takes instead"
            )
        drawn = draws(len(loader), passes, batch_size, seed)
        for pass_number, group in itertools.groupby(drawn, lambda each: each[0]):
            shown = batches_at(loader, [rows for _, _, rows in group])
            for number, batch in enumerate(shown):
                yield pass_number, number, batch
        return
    if passes > 1 and isinstance(loader, Iterator):
        raise RequestError(f"{passes} passes over an iterator, which allows one: give a list or a DataLoader")
    expect_batches(loader)
    for pass_number in range(passes):
        number = -1
        for number, batch in enumerate(loader):
            yield pass_number, number, batch
        if pass_number and number < 0:
            raise RequestError(
                f"the loader gave no batch in pass {pass_number}: it can be read only once; give a list or a"
                " DataLoader"
            )


def batches_at(images: Images, groups: Sequence[npt.NDArray[np.int64]]) -> Iterator[Tensor]:
    """Yield the images at the indices of each group, in one pass, with one group in memory at a time.

    >>> from penultimate.data.images import ImageSet
    >>> images = ImageSet(np.zeros((9, 2, 2, 3), np.uint8), np.zeros(9, int), np.arange(9), ("a",))
    >>> [len(batch) for batch in batches_at(images, [np.arange(5), np.arange(5, 9)])]
    [5, 4]
    """
    pieces = images.batches(AT_ONCE, np.concatenate(groups))
    ahead: list[Tensor] = []
    for rows in groups:
        while sum(map(len, ahead)) < len(rows):
            ahead.append(next(pieces)[0])
        joined = torch.cat(ahead)
        ahead = [joined[len(rows) :].clone()]
        yield joined[: len(rows)]


def expect_batches(loader: Any) -> None:
    """Raise RequestError unless a loader is an iterable of batches, rather than one batch or single examples.

    >>> expect_batches(torch.zeros(8, 3))
    Traceback (most recent call last):
    penultimate.errors.RequestError: batches are expected, not a Tensor; for a single batch, pass [batch]
    """
    kind = type(loader).__name__
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise RequestError(
            f"batches are expected, but {kind} gives single examples: pass DataLoader(images, batch_size=256)"
        )
    if isinstance(loader, Tensor | np.ndarray | Mapping):
        raise RequestError(f"batches are expected, not a {kind}; for a single batch, pass [batch]")
    if isinstance(loader, str) or not isinstance(loader, Iterable):
        raise RequestError(f"batches are expected, not a {kind}: give a list of batches or a DataLoader")


def draws(
    total: int, passes: int, batch_size: int, seed: int
) -> Iterator[tuple[int, int, npt.NDArray[np.int64]]]:
    """Yield (pass, number in the pass, rows); every pass is a permutation of all rows.

    The sizes of batches differ by at most one.

    >>> [(pass_number, len(rows)) for pass_number, _, rows in draws(10, passes=2, batch_size=8, seed=0)]
    [(0, 5), (0, 5), (1, 5), (1, 5)]
    """
    expect_enough(total)
    expect_enough(whole_number(batch_size, "batch_size", 1))
    count = max(1, min(-(-total // batch_size), total // FEWEST))
    for pass_number in range(passes):
        order = torch.randperm(total, generator=derived_generator("batches", seed, pass_number)).numpy()
        for number, rows in enumerate(np.array_split(order, count)):
            yield pass_number, number, np.sort(rows)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode, and restore the mode of each part afterwards."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training
