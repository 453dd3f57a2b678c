"""Top-1 and top-5 accuracy on the source's training and test images."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register


@register.measurement(
    version=1,
    per="network",
    needs=(Logits("train"), Logits("test")),
    yields=(Yield("top1", "fraction"), Yield("top5", "fraction")),
    first=True,
    seconds=0.13,
)
def accuracy(inputs: Inputs) -> Iterator[Number]:
    """Top-1 and top-5 accuracy on the training images, seen without augmentation, and on the test images."""
    from penultimate.metrics.accuracy import top_k

    for split in ("train", "test"):
        bank = inputs.features(split)
        assert bank.logits is not None
        for k in (1, 5):
            yield Number(f"top{k}", top_k(bank.logits, bank.labels, k), "fraction", split)
