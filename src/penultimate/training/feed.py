"""What a training run is fed: the batches of an epoch, augmented, derived from (seed, epoch, step) alone."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from penultimate.data.images import ChannelStatistics, ImageSet
from penultimate.data.seeding import derived_generator
from penultimate.data.transforms import augment, mixup, normalise
from penultimate.training.recipe import Recipe

PREPARED, PREPARED_VALUES = 8, 2**20
"""How many batches are prepared at once, and of how many values at most; small images save on calls."""


class Feed:
    """Batches of images in memory for one run; an epoch's last, incomplete one is left out."""

    def __init__(
        self,
        examples: ImageSet,
        statistics: ChannelStatistics,
        recipe: Recipe,
        seed: int,
        device: torch.device,
    ) -> None:
        self.images = torch.from_numpy(examples.images).to(device)
        self.labels = torch.from_numpy(examples.labels).to(device)
        self.num_classes = examples.num_classes
        self.statistics, self.augmentation, self.seed = statistics, recipe.augmentation, seed
        self.dtype = torch.bfloat16 if recipe.precision == "bfloat16" else torch.float32
        self.batch_size = min(recipe.batch_size, len(examples))
        self.steps_per_epoch = len(examples) // self.batch_size

    def batches(self, epoch: int, first: int, end: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches `first` to `end` of an epoch: images [n c h w], labels [n] or, mixed, [n k]."""
        generator = derived_generator("order", self.seed, epoch)
        order = torch.randperm(len(self.images), generator=generator).to(self.images.device)
        size, alpha = self.batch_size, self.augmentation.mixup
        together = min(PREPARED, max(1, PREPARED_VALUES // (size * self.images[0].numel())))
        for start in range(first - first % together, end, together):
            chosen = order[start * size : min(start + together, end) * size]
            generator = derived_generator("augmentation", self.seed, epoch, start)
            images = augment(self.images.index_select(0, chosen), self.augmentation, generator)
            images = normalise(images, self.statistics, torch.float32 if alpha else self.dtype)
            for place in range(max(0, first - start), len(chosen) // size):
                part = slice(place * size, (place + 1) * size)
                batch = images[part], self.labels[chosen[part]]
                yield self._mixed(*batch, epoch, start + place) if alpha else batch

    def _mixed(self, images: Tensor, labels: Tensor, epoch: int, place: int) -> tuple[Tensor, Tensor]:
        """A batch under Mixup, by its place in the epoch; mixed in float32 and rounded once."""
        generator = derived_generator("mixup", self.seed, epoch, place)
        images, targets = mixup(images, labels, self.num_classes, self.augmentation.mixup, generator)
        return images.to(self.dtype), targets
