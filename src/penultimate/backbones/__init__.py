"""Backbones: networks from images to penultimate features, built by name."""

from penultimate.lazy import attributes
from penultimate.registry import declare

declare(
    "backbone",
    "glyphnet",
    "penultimate.backbones.glyphnet:GlyphNet",
    "Small residual net for 24 x 24 images: three stages of 3 x 3 convolutions, two bottlenecks of 1 x 1.",
)
declare(
    "backbone",
    "glyphplain",
    "penultimate.backbones.glyphplain:GlyphPlain",
    "Small plain net for 24 x 24 images: seven convolutions, 3 x 3 and then 1 x 1, and no residual sum.",
)
declare(
    "backbone",
    "glyphmobile",
    "penultimate.backbones.glyphmobile:GlyphMobile",
    "Small net for 24 x 24 images of inverted bottlenecks, whose 3 x 3 convolutions are of single channels.",
)
declare(
    "backbone",
    "glyphwide",
    "penultimate.backbones.glyphwide:GlyphWide",
    "Small wide residual net for 24 x 24 images, normalised and rectified before each convolution.",
)
declare(
    "backbone",
    "resnet50",
    "penultimate.backbones.imagenet:resnet50",
    "ResNet-50 v1.5, as the paper trains it on ImageNet (with torchvision).",
)
declare(
    "backbone",
    "inception_v3",
    "penultimate.backbones.imagenet:inception_v3",
    "Inception v3 without its auxiliary classifier (with torchvision).",
)
declare(
    "backbone",
    "allcnnc",
    "penultimate.backbones.cifar:AllCNNC",
    "All-CNN-C with batch normalisation, for CIFAR-10.",
)
declare(
    "backbone",
    "wrn16_8",
    "penultimate.backbones.cifar:wrn16_8",
    "The wide residual network WRN-16-8, for CIFAR-100.",
)

__getattr__, __dir__ = attributes(__name__, {"backbone": "Backbone build"})
