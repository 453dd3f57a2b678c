"""Accuracy on the published test sets with ImageNet's classes: -V2, -A, -R, -Sketch, and -C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Head, Layers, Shifted, Yield
from penultimate.measures.inputs import Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.data.images import Images

SETS = ("v2", "a", "r", "sketch")
CORRUPTED = "c"


@register.measurement(
    version=1,
    per="network",
    needs=(Layers(), Head(), *(Shifted(name) for name in (*SETS, CORRUPTED))),
    yields=(Yield("corruption_error", "fraction"), Yield("top1", "fraction")),
    paper="Kornblith et al., 2021, table C.2",
)
def published_robustness(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Top-1 accuracy on each set that is there, -A and -R among the classes that occur in them; errors on -C.

    Images of -C, 224 x 224 as they are published, are shown whole. Images are decoded as they are needed; the
    features of one set are in memory at a time. A set that is not there is named.
    """
    import numpy as np

    from penultimate.data.corruptions.catalogue import BENCHMARK, SEVERITIES
    from penultimate.data.images import load_images
    from penultimate.data.listed import LISTING, listed_images
    from penultimate.features.extraction import extract
    from penultimate.metrics.accuracy import subset_accuracy

    network, there = inputs.network, inputs.shifted()
    names = {name: f"{inputs.source}_{name}" for name in (*SETS, CORRUPTED)}
    missing = [name for name in names.values() if name not in there]
    if len(missing) == len(names):
        raise UndefinedError(f"none of {', '.join(missing)} is there")

    def accuracy(name: str, split: str) -> float:
        folder, on_disk = there[name], (there[name] / LISTING).is_file()
        images: Images = (
            listed_images(folder, split, network.preparation, inputs.workers)
            if on_disk
            else load_images(folder, split)
        )
        bank = extract(network, images)
        assert bank.logits is not None
        return subset_accuracy(bank.logits, bank.labels, np.unique(bank.labels))

    for name in (names[shift] for shift in SETS if names[shift] in there):
        yield Number("top1", accuracy(name, "test"), "fraction", "test", target=name)
    corrupted = names[CORRUPTED]
    for corruption in BENCHMARK if corrupted in there else ():
        for severity in SEVERITIES:
            error = 1 - accuracy(corrupted, f"{corruption}/{severity}")
            setting: dict[str, str | int] = {"corruption": corruption, "severity": severity}
            yield Number("corruption_error", error, "fraction", "test", setting=setting)
    if missing:
        yield Undefined(f"no {', no '.join(missing)}")
