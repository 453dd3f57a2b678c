"""Data sets and backbones, each with one thing wrong with it."""

import dataclasses

import numpy as np
from torch import nn

from penultimate import register
from penultimate.data import DatasetCard, ImageSet

CARD = DatasetCard("", "Noise", 2, {"train": 4, "test": 4}, "top1", "none", "none", "none")


def noise(start, draw=0, labels=(0, 1, 0, 1)):
    images = np.random.default_rng([draw, start]).integers(0, 256, (4, 8, 8, 3)).astype(np.uint8)
    return ImageSet(images, np.array(labels), np.arange(start, start + 4), ("a", "b"))


def described(**changes):
    """Registers a data set with a card that differs from CARD, as no type checker would let it."""

    def attach(function):
        function.card = dataclasses.replace(CARD, name=function.__name__)
        for field, value in changes.items():
            object.__setattr__(function.card, field, value)
        return register.dataset(function)

    return attach


@described(name="other")
def with_anothers_card(draw):
    return {"train": noise(0), "test": noise(4)}


@described(sizes={"train": 4})
def without_test(draw):
    return {"train": noise(0)}


@described()
def overlapping(draw):
    return {"train": noise(0), "test": noise(3)}


@described()
def unseeded(draw):
    fresh = int(np.random.default_rng().integers(2**31))
    return {"train": noise(0, fresh), "test": noise(4, fresh)}


class Sound(nn.Module):
    """One convolution and the mean over the image."""

    def __init__(self):
        super().__init__()
        self.num_features = 4
        self.convolution = nn.Conv2d(3, 4, 5, 4)

    def forward(self, images):
        return self.convolution(images).relu().mean((2, 3))


@register.backbone
def not_a_module():
    return lambda images: images.mean((2, 3))


@register.backbone
class Unpooled(Sound):
    def forward(self, images):
        return self.convolution(images)


@register.backbone
class WithClassifier(Sound):
    def __init__(self):
        super().__init__()
        self.classifier = nn.Linear(4, 10)


@register.backbone
class Hidden(Sound):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4)]

    def forward(self, images):
        return self.layers[0](super().forward(images))


@register.backbone
class OfTheBatch(Sound):
    def forward(self, images):
        features = super().forward(images)
        return features - features.mean(0)


@register.backbone
class Overwriting(Sound):
    def forward(self, images):
        return super().forward(images.sub_(0.5))
