"""Accuracy on the published test sets with ImageNet's classes: -V2, -A, -R, -Sketch, and -C."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penultimate.measures.accuracy import TOP1
from penultimate.measures.declaration import Head, Layers, Shifted
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.measures.robustness import CORRUPTION_ERROR
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.data.images import Images

SETS = ("v2", "a", "r", "sketch")
OF_SOME_CLASSES = ("a", "r")
CORRUPTED = "c"


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Head(), *(Shifted(name) for name in (*SETS, CORRUPTED))),
    yields=(CORRUPTION_ERROR, TOP1),
    paper="Kornblith et al., 2021, table C.2",
)
def published_robustness(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Top-1 accuracy on each available set (among 200 classes on -A and -R), and errors on -C.

    The images of -C, published at 224 x 224 pixels, are shown whole. Only a batch of images is in memory,
    however large a set is. Missing sets are named.
    """
    import numpy as np

    from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
    from penultimate.data.disk.listed import LISTING, ListedSplits
    from penultimate.data.images import load_images
    from penultimate.features.extraction import predicted
    from penultimate.metrics.accuracy import accuracy

    network, there = inputs.network, inputs.shifted()
    names = {name: f"{inputs.source}_{name}" for name in (*SETS, CORRUPTED)}
    missing = [name for name in names.values() if name not in there]
    if len(missing) == len(names):
        raise UndefinedError(f"none of {', '.join(missing)} is there")

    def top1_on(shift: str) -> Callable[[str], float]:
        """Return the function that measures the accuracy on a split of a set; the files are listed once."""
        folder = there[names[shift]]
        listed = ListedSplits.of(folder) if (folder / LISTING).is_file() else None

        def top1(split: str) -> float:
            images: Images = (
                listed.images(split, network.preparation, inputs.workers)
                if listed
                else load_images(folder, split)
            )
            among = np.unique(images.labels) if shift in OF_SOME_CLASSES else None
            return accuracy(predicted(network, images, among=among), images.labels)

        return top1

    for shift in SETS:
        if names[shift] in there:
            yield Number("top1", top1_on(shift)("test"), "fraction", "test", target=names[shift])
    if names[CORRUPTED] in there:
        top1 = top1_on(CORRUPTED)
        for corruption, severity in itertools.product(BENCHMARK, SEVERITIES):
            error = 1 - top1(f"{corruption}/{severity}")
            setting: dict[str, str | int] = {"corruption": corruption, "severity": severity}
            yield Number("corruption_error", error, "fraction", "test", setting=setting)
    if missing:
        yield Undefined(f"no {', no '.join(missing)}")
