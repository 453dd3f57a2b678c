"""ImageNet-C's corruptions for images of any size: the benchmark's fifteen, at five severities.

catalogue   their names and titles
lengths     how lengths given for 224 pixels scale to another size
apply       `corrupt`: images, a name, a severity, a seed -> images
noise, blur, weather, digital      the corruptions themselves

Definitions: Hendrycks and Dietterich, ICLR 2019, and the parameters of their released code. Only frost
differs: a procedural texture stands in for their photographs, which are not copied here.
"""

from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES, TITLES
from penultimate.lazy import attributes

__all__ = ["BENCHMARK", "SEVERITIES", "TITLES"]

__getattr__, __dir__ = attributes(__name__, {"apply": "corrupt"})
