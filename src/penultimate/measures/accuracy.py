"""Top-1 and top-5 accuracy on the source's training and test images."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import ClassOrder, Logits, Shown, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register

FURTHER_TEST = "further_test"
"""The split of additional test images, for sources that have them, which makes the accuracy more precise."""

TOP1 = Yield("top1", "fraction", called="accuracy")
ACCURACIES = (TOP1, Yield("top5", "fraction", called="top-5 accuracy"))


@register.measurement(
    version=1,
    per="network",
    needs=(Logits("train"), Logits("test"), Shown(FURTHER_TEST), ClassOrder()),
    yields=ACCURACIES,
    first=True,
    seconds=0.13,
)
def accuracy(inputs: Inputs) -> Iterator[Number]:
    """Top-1 and top-5 accuracy on the training images, shown without augmentation, and on the test images.

    The test images are those of the split "test" and, if it exists, the split "further_test".
    """
    from penultimate.features.extraction import extract
    from penultimate.metrics.accuracy import top_k

    banks = {split: [inputs.features(split)] for split in ("train", "test")}
    if inputs.has_images(FURTHER_TEST):
        banks["test"].append(extract(inputs.network, inputs.shown(FURTHER_TEST)))
    for split, parts in banks.items():
        for k in (1, 5):
            right = sum(round(top_k(bank, k=k) * len(bank)) for bank in parts)
            yield Number(f"top{k}", right / sum(map(len, parts)), "fraction", split)
