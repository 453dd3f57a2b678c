"""The measurements of a study: one file for each, which holds a function under its declaration.

Every module of this folder is imported when measurements are first requested, and registers itself by
`@register.measurement`, so a new measurement takes only a new file. None of them imports a tensor library.
"""

from __future__ import annotations

import importlib
import pkgutil

from penultimate.measures.catalogue import measurement, names, requested
from penultimate.measures.declaration import (
    ClassNames,
    ClassOrder,
    Features,
    Head,
    Layers,
    Logits,
    LogProbabilities,
    Made,
    Measurement,
    Pixels,
    Shifted,
    Shown,
    Snapshots,
    Trained,
    Weights,
    Yield,
)
from penultimate.measures.inputs import Arrays, Fact, Inputs, Number, Undefined

__all__ = [
    "Arrays",
    "ClassNames",
    "ClassOrder",
    "Fact",
    "Features",
    "Head",
    "Inputs",
    "Layers",
    "LogProbabilities",
    "Logits",
    "Made",
    "Measurement",
    "Number",
    "Pixels",
    "Shifted",
    "Shown",
    "Snapshots",
    "Trained",
    "Undefined",
    "Weights",
    "Yield",
    "measurement",
    "names",
    "requested",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
