"""The input of a training run: the augmented batches of an epoch, derived from (seed, epoch, step) alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from jaxtyping import Int, UInt8
from PIL import Image
from torch import Tensor

from penultimate.data.augmentation.transforms import augment, mixup, normalise
from penultimate.data.disk.cropping import ShownCrops, box_of, cropped
from penultimate.data.disk.listed import ListedImages
from penultimate.data.disk.loading import in_order
from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.data.seeding import derived_generator
from penultimate.training.ranks import Ranks
from penultimate.training.recipe import Recipe

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
"""The dtype of the body's input, by the recipe's precision."""
PREPARED, PREPARED_VALUES = 8, 2**20
"""The most batches prepared at once, and the most values in them; this saves calls for small images."""
PIECE = 32
"""The number of images that a worker decodes before it hands them over."""
Examples: TypeAlias = ImageSet | ListedImages
"""Images in memory or on disk."""
Batch: TypeAlias = tuple[Tensor, Tensor]
"""Images [n c h w], and labels [n], or [n k] if they were mixed."""


class Feed(Protocol):
    """The batches of one run: this process's share of each, without an epoch's last, incomplete batch."""

    batch_size: int
    steps_per_epoch: int

    def batches(self, epoch: int, first: int, end: int) -> Iterator[Batch]:
        """Return the batches from `first` to before `end` of an epoch."""


def feed(
    examples: Examples,
    statistics: ChannelStatistics,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    ranks: Ranks | None = None,
) -> Feed:
    """Return the feed for images in memory or on disk.

    Raise RequestError if the processes cannot share a batch evenly.
    """
    batch = Batching(statistics, recipe, seed, len(examples.class_names), len(examples), ranks or Ranks())
    if isinstance(examples, ListedImages):
        return DiskFeed(examples, batch, device)
    return MemoryFeed(examples, batch, device)


class Batching:
    """The making of batches: their size, and the steps from bytes to the network's input.

    rows   the rows of a batch that belong to this process
    """

    def __init__(
        self,
        statistics: ChannelStatistics,
        recipe: Recipe,
        seed: int,
        num_classes: int,
        count: int,
        ranks: Ranks,
    ) -> None:
        self.statistics, self.seed, self.num_classes, self.ranks = statistics, seed, num_classes, ranks
        self.augmentation, self.dtype = recipe.augmentation, DTYPES[recipe.precision]
        self.size = min(recipe.batch_size, count)
        self.rows = ranks.rows(self.size, recipe)

    def normalised(self, images: UInt8[Tensor, "n h w c"], epoch: int, place: int) -> Tensor:
        """Return the augmented, normalised images of the batches that start at a place in the epoch.

        They are float32 if they will be mixed next.
        """
        batches = len(images) // len(self.rows)
        among = batches * self.size, self.several(batches)
        generator = derived_generator("augmentation", self.seed, epoch, place)
        images = augment(images, self.augmentation, generator, among)
        return normalise(images, self.statistics, torch.float32 if self.augmentation.mixup else self.dtype)

    def several(self, batches: int) -> Tensor:
        """Return this process's rows of several consecutive batches."""
        return (torch.arange(batches).view(-1, 1) * self.size + self.rows).view(-1)

    def mixed(self, images: Tensor, labels: Tensor, epoch: int, place: int) -> Batch:
        """Return a batch after Mixup, drawn by its place in the epoch, mixed in float32 and rounded once."""
        if not self.augmentation.mixup:
            return images, labels
        generator = derived_generator("mixup", self.seed, epoch, place)
        images = self.ranks.whole(images.permute(0, 2, 3, 1), self.rows).permute(0, 3, 1, 2)
        labels = self.ranks.whole(labels, self.rows)
        images, targets = mixup(images, labels, self.num_classes, self.augmentation.mixup, generator)
        mine = self.rows.to(images.device)
        return images[mine].to(self.dtype), targets[mine]


def epoch_order(count: int, seed: int, epoch: int) -> Tensor:
    """Return the order in which an epoch shows the images, as a permutation of their indices."""
    return torch.randperm(count, generator=derived_generator("order", seed, epoch))


class MemoryFeed:
    """The `Feed` for images that are held on the device and augmented several batches at a time."""

    def __init__(self, examples: ImageSet, batch: Batching, device: torch.device) -> None:
        self.images: Whole | Crops
        if batch.augmentation.crop is not None:
            self.images = Crops(examples.images, batch.augmentation.crop, batch.seed, device)
        else:
            self.images = Whole(torch.from_numpy(examples.images).to(device))
        self.labels = torch.from_numpy(examples.labels).to(device)
        self.batch, self.batch_size = batch, batch.size
        self.steps_per_epoch = len(examples) // self.batch_size

    def batches(self, epoch: int, first: int, end: int) -> Iterator[Batch]:
        order = epoch_order(len(self.labels), self.batch.seed, epoch)
        size, mine = self.batch_size, len(self.batch.rows)
        together = min(PREPARED, max(1, PREPARED_VALUES // (size * self.images.values)))
        for start in range(first - first % together, end, together):
            batches = min(together, end - start)
            chosen = order[start * size + self.batch.several(batches)].to(self.labels.device)
            images = self.batch.normalised(self.images.shown(epoch, chosen), epoch, start)
            for place in range(max(0, first - start), batches):
                part = slice(place * mine, (place + 1) * mine)
                yield self.batch.mixed(images[part], self.labels[chosen[part]], epoch, start + place)


@dataclass(frozen=True)
class Whole:
    """Images on a device that are shown unchanged."""

    images: UInt8[Tensor, "n h w c"]

    @property
    def values(self) -> int:
        """The number of values of each image that is shown."""
        return self.images[0].numel()

    def shown(self, epoch: int, rows: Int[Tensor, " n"]) -> UInt8[Tensor, "n h w c"]:
        """Return the images at these indices, which are the same in every epoch."""
        return self.images.index_select(0, rows)


@dataclass(frozen=True)
class Crops:
    """Images in memory that are shown as random parts, each resized to the size of the whole."""

    images: UInt8[np.ndarray, "n h w c"]
    area: tuple[float, float]
    seed: int
    device: torch.device

    @property
    def values(self) -> int:
        """The number of values of each image that is shown."""
        return int(self.images[0].size)

    def shown(self, epoch: int, rows: Int[Tensor, " n"]) -> UInt8[Tensor, "n h w c"]:
        """Return the parts that an epoch shows of the images at these indices."""
        parts = []
        for row in rows.tolist():
            image = Image.fromarray(self.images[row])
            box = box_of(*image.size, self.area, self.seed, epoch, row)
            parts.append(cropped(image, box, self.images.shape[1]))
        return torch.from_numpy(np.stack(parts)).to(self.device)


class DiskFeed:
    """The `Feed` for images on disk: worker processes decode, crop and resize, and the device does the rest.

    The workers continue into the next epoch while the loop closes this one. An image that cannot be read
    raises DamagedFileError, and a worker that is killed raises PenultimateError.
    """

    def __init__(self, examples: ListedImages, batch: Batching, device: torch.device) -> None:
        geometry = examples.preparation.geometry
        self.shown = ShownCrops(examples.listing, geometry, batch.augmentation.crop, batch.seed)
        self.labels = torch.from_numpy(examples.labels).to(device)
        self.batch, self.batch_size, self.device = batch, batch.size, device
        self.workers = examples.workers
        self.steps_per_epoch = len(examples) // self.batch_size
        self._stream: Iterator[UInt8[Tensor, "n size size 3"]] = iter(())
        self._next = -1

    def batches(self, epoch: int, first: int, end: int) -> Iterator[Batch]:
        begun = epoch * self.steps_per_epoch
        order = epoch_order(len(self.labels), self.batch.seed, epoch)
        if self._next != begun + first:
            self._stream = ahead(self._decoded(begun + first), self.device)
        for place in range(first, end):
            self._next = -1  # unknown until the batch has arrived, in case of an error
            images = next(self._stream)
            self._next = begun + place + 1
            images = self.batch.normalised(images, epoch, place)
            chosen = order[place * self.batch_size + self.batch.rows].to(self.device)
            yield self.batch.mixed(images, self.labels[chosen], epoch, place)

    def _decoded(self, step: int) -> Iterator[UInt8[Tensor, "n size size 3"]]:
        """Yield the batches from a step onwards, epoch after epoch."""
        size, length = self.shown.geometry[1], len(self.batch.rows)
        pieces = in_order(self.shown, self._pieces(step), self.workers)
        while True:
            batch = torch.empty((length, size, size, 3), dtype=torch.uint8)
            for at in range(0, length, PIECE):
                batch[at : at + PIECE] = torch.from_numpy(next(pieces))
            yield batch

    def _pieces(self, step: int) -> Iterable[tuple[int, np.ndarray]]:
        first = step % self.steps_per_epoch
        for epoch in itertools.count(step // self.steps_per_epoch):
            order = epoch_order(len(self.labels), self.batch.seed, epoch)
            for place in range(first, self.steps_per_epoch):
                batch = order[place * self.batch_size + self.batch.rows].numpy()
                for at in range(0, len(batch), PIECE):
                    yield epoch, batch[at : at + PIECE]
            first = 0


def on_device(images: Tensor, device: torch.device) -> Tensor:
    """Return images on a device, copied to a GPU without waiting for it to finish other work."""
    if device.type == "cuda":
        images = images.pin_memory()
    return images.to(device, non_blocking=True)


def ahead(batches: Iterable[Tensor], device: torch.device) -> Iterator[Tensor]:
    """Yield batches on a device in order; a GPU receives each while it computes with the previous one."""
    if device.type != "cuda":
        yield from (on_device(images, device) for images in batches)
        return
    before: list[Tensor] = []
    beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    for images in batches:
        with torch.cuda.stream(beside):
            coming, arrived = on_device(images, device), beside.record_event()
        yield from before
        torch.cuda.current_stream(device).wait_event(arrived)
        coming.record_stream(torch.cuda.current_stream(device))
        before = [coming]
    yield from before


def statistics_of(images: Examples) -> ChannelStatistics:
    """Return the channel statistics with which images are normalised."""
    return (
        images.preparation.statistics
        if isinstance(images, ListedImages)
        else ChannelStatistics.of(images.images)
    )


def shape_of(images: Examples) -> list[int]:
    """Return the number, height, width and channels of the images as the network sees them."""
    if isinstance(images, ImageSet):
        return list(images.images.shape)
    side = images.preparation.crop
    return [len(images), side, side, 3]
