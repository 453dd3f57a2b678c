"""Accuracy on the images that the networks were trained on (section C.1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penultimate.results.exhibit import Part, exhibit
from penultimate.results.means import table_of_means, table_of_printed
from penultimate.results.rows import Run, seeds
from penultimate.results.table import Column


@exhibit("tableC1", "How well the networks know the images they were trained on", section="C.1")
def tableC1(run: Run) -> Iterator[Part]:
    """Accuracy of the finished networks on the training images of {source}, seen without augmentation, and
    on its test images. An objective can do worse on the first and better on the second: that is what
    regularization is for. ± is the standard error over runs. In the paper, most objectives know the training
    images less well than softmax and the test images better."""
    columns = {
        Column(f"{split}_top{k}_percent", f"Top-{k}, %", f"{word} images", 2, "high", with_error=True): seeds(
            run, f"top{k}", split, scale=100
        )
        for split, word in (("train", "Training"), ("test", "Test"))
        for k in (1, 5)
    }
    train = [*columns][:2]
    yield table_of_means(run, "tableC1", "Accuracy in training and test", columns, needs=train[:1])
    yield table_of_printed(
        "tableC1",
        "The paper's Table C.1: ResNet-50, ImageNet",
        "neurips_tableC1_train_accuracy",
        {replace(column, better=""): column.key for column in train},
    )
