"""ImageNet-C's corruptions, for images of any size: fifteen of the benchmark and four more, five severities.

catalogue   their names, in words, and what AlexNet makes of each
lengths     how lengths given for 224 pixels are read at another size
apply       `corrupt`: images, a name, a severity, a seed -> images
noise, blur, weather, spatter, digital      the corruptions themselves

Definitions: Hendrycks and Dietterich, ICLR 2019, and the parameters of their released code. Frost alone is
another: a procedural texture stands in for their photographs, which are not copied here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penultimate.data.corruptions.catalogue import BENCHMARK, EXTRA, SEVERITIES, TITLES

if TYPE_CHECKING:
    from penultimate.data.corruptions.apply import corrupt

__all__ = ["BENCHMARK", "EXTRA", "SEVERITIES", "TITLES", "corrupt"]


def __getattr__(name: str) -> Any:
    if name == "corrupt":
        return importlib.import_module("penultimate.data.corruptions.apply").corrupt
    raise AttributeError(f"module 'penultimate.data.corruptions' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
