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

__getattr__, __dir__ = attributes(__name__, {"backbone": "Backbone build"})
