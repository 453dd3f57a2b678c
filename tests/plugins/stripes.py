"""A transfer data set of stripes, and a backbone small enough for it."""

import numpy as np
import torch
from torch import nn

from penultimate import register
from penultimate.data import DatasetCard, ImageSet

CLASSES = ("horizontal", "vertical", "rising")


@register.dataset
def stripes(draw):
    """Stripes in three directions, in random colours."""
    generator = np.random.default_rng([draw, 7])
    down, across = np.mgrid[:24, :24]
    for first, (split, size) in zip((0, 12), stripes.card.sizes.items(), strict=True):
        labels = np.arange(size) % 3
        phase = np.stack([down, across, down + across])[labels] // 3 % 2
        colours = generator.integers(0, 256, (2, size, 1, 1, 3))
        images = np.where(phase[..., None] == 1, colours[0], colours[1]).astype(np.uint8)
        yield split, ImageSet(images, labels, np.arange(first, first + size), CLASSES)


stripes.card = DatasetCard(
    name="stripes",
    title="Stripes",
    classes=3,
    sizes={"train": 12, "test": 9},
    accuracy="top1",
    relation="a factor orthogonal to the pretraining classes",
    licence="public domain",
    citation="made here",
)


@register.backbone
class Tiny(nn.Module):
    """One convolution, batch normalisation, a rectifier and the mean over the image."""

    def __init__(self, *, features=16):
        super().__init__()
        self.num_features = features
        self.body = nn.Sequential(nn.Conv2d(3, features, 5, 4), nn.BatchNorm2d(features), nn.ReLU())

    def forward(self, images):
        return torch.mean(self.body(images), (2, 3))
