"""Backbones: networks from images to penultimate features, built by name."""

from penultimate.backbones.size import Size, glyphnet_size
from penultimate.lazy import attributes
from penultimate.registry import declare

declare(
    "backbone",
    "glyphnet",
    "penultimate.backbones.glyphnet:GlyphNet",
    "Small residual net for 24 x 24 images: three stages of 3 x 3 convolutions, two bottlenecks of 1 x 1.",
    size=glyphnet_size,
)
declare(
    "backbone",
    "glyphplain",
    "penultimate.backbones.glyphplain:GlyphPlain",
    "Small plain net for 24 x 24 images: seven convolutions, 3 x 3 and then 1 x 1, and no residual sum.",
    size=Size(154_359, 256),
)
declare(
    "backbone",
    "glyphmobile",
    "penultimate.backbones.glyphmobile:GlyphMobile",
    "Small net for 24 x 24 images of inverted bottlenecks, whose 3 x 3 convolutions are of single channels.",
    size=Size(68_270, 256),
)
declare(
    "backbone",
    "glyphwide",
    "penultimate.backbones.glyphwide:GlyphWide",
    "Small wide residual net for 24 x 24 images, normalised and rectified before each convolution.",
    size=Size(207_999, 128),
)
declare(
    "backbone",
    "resnet50",
    "penultimate.backbones.imagenet:resnet50",
    "ResNet-50 v1.5, as the paper trains it on ImageNet (with torchvision).",
    size=Size(23_561_205, 2048),
)
declare(
    "backbone",
    "inception_v3",
    "penultimate.backbones.imagenet:inception_v3",
    "Inception v3 without its auxiliary classifier (with torchvision).",
    size=Size(21_820_094, 2048),
)
declare(
    "backbone",
    "allcnnc",
    "penultimate.backbones.cifar:AllCNNC",
    "All-CNN-C with batch normalisation, for CIFAR-10.",
    size=Size(1_371_560, 192),
)
declare(
    "backbone",
    "wrn16_8",
    "penultimate.backbones.cifar:wrn16_8",
    "The wide residual network WRN-16-8, for CIFAR-100.",
    size=Size(10_963_453, 512),
)

__getattr__, __dir__ = attributes(__name__, {"backbone": "Backbone build"}, "Size")
