"""kNN transfer: nearest neighbours among the fixed features of each target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.registry import register

if TYPE_CHECKING:
    from penultimate.features.bank import FeatureBank
    from penultimate.probes.knn import KNNProbe

KNN = (
    "Transfer by a vote among the k training images nearest by cosine distance; k is chosen by leaving out"
    " one training image at a time."
)
KNN_YIELDS = (
    *(
        Yield(f"knn_{accuracy}", "fraction", better="high", words=KNN, called="kNN transfer")
        for accuracy in ("top1", "mean_per_class")
    ),
    Yield("knn_k", "count", words="The number of neighbours that vote."),
    Yield(
        "knn_leave_one_out",
        "fraction",
        better="high",
        words="The accuracy on the training images, each left out once, by which k is chosen.",
    ),
)
"""The quantities of the kNN probe, for any features that it is fitted to."""


@register.measurement(
    version=1,
    per="target",
    needs=(Features("train"), Features("test")),
    yields=KNN_YIELDS,
    seconds=0.1,
    paper="Kornblith et al., 2021, section 3.1",
)
def knn(inputs: Inputs) -> Iterator[Number]:
    """Test accuracy of k nearest neighbours on the target's features, with k chosen by leave-one-out."""
    yield from knn_transfer(inputs, inputs.features("train"), inputs.features("test"))


def knn_transfer(
    inputs: Inputs, train: FeatureBank, test: FeatureBank, layer: str | None = None
) -> Iterator[Number]:
    """Yield kNN transfer from any features of the target's images, such as those of a layer."""
    from penultimate.probes.knn import KNNProbe

    probe = KNNProbe().fit(train.features, train.labels)
    yield from knn_numbers(probe, test, inputs.accuracy, layer)


def knn_numbers(
    probe: KNNProbe, test: FeatureBank, accuracy: str, layer: str | None = None
) -> Iterator[Number]:
    """Yield the numbers of a fitted kNN probe."""
    score = probe.score(test.features, test.labels, metric=accuracy)
    yield Number(f"knn_{accuracy}", score, "fraction", "test", layer)
    yield Number("knn_k", float(probe.k_), "count", "train", layer)
    yield Number("knn_leave_one_out", float(max(probe.leave_one_out_)), "fraction", "train", layer)
