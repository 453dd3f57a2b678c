"""Images of none of the classes: how well a network's scores tell them from the source's test images."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penultimate.measures.declaration import Features, Made, Yield
from penultimate.measures.inputs import Fact, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.features.bank import FeatureBank

SCORES = ("msp", "mahalanobis", "knn")
"""The maximum softmax probability (which needs a final layer for the source's classes), the Mahalanobis
distance, and the distance from the k-th neighbour."""
STAGE, KEPT = "outside_scores", "scores.npz"
"""The stage that scores the source's test images once for all outside sets, and the file that it leaves."""
RANGES = {"k": Interval(1, closed="left")}


@register.measurement(
    version=2,
    per="network",
    needs=(Features("train"), Features("test")),
    yields=(),
    ranges=RANGES,
    stage=True,
    seconds=3.0,
    paper="Lee et al., 2018; Sun et al., 2022",
)
def outside_scores(inputs: Inputs, *, k: int = 50) -> Iterator[Fact]:
    """Scores of the source's test images, and what scores other images in the same way."""
    import numpy as np

    from penultimate.metrics.outside import within_class_whitening

    train, test = inputs.features("train"), inputs.features("test")
    made: dict[str, Any] = {}
    try:
        made = within_class_whitening(train)._asdict()
    except UndefinedError as error:
        yield Fact("mahalanobis", str(error))
    for name in SCORES:
        with contextlib.suppress(UndefinedError):  # the measurement says why
            made[name] = _scored(name, train, test, k, made)
    np.savez(inputs.folder / KEPT, **made)


@register.measurement(
    version=3,
    per="outside",
    needs=(Made(STAGE), Features("train", of_source=True), Features("test")),
    yields=(
        Yield("outside_auroc", "fraction", called="AUROC"),
        Yield("outside_fpr95", "fraction", called="FPR at 95 % TPR"),
    ),
    ranges=RANGES,
    seconds=1.0,
    paper="Hendrycks and Gimpel, 2017; Lee et al., 2018; Sun et al., 2022",
)
def outside(inputs: Inputs, *, k: int = 50) -> Iterator[Number | Undefined]:
    """AUROC and FPR at 95 % TPR by which three scores tell a data set's test images from the source's.

    Inside images are the positives. The scores are the maximum softmax probability; minus the Mahalanobis
    distance from the class means of the training images, with one covariance for all classes; and minus the
    distance from the `k`-th nearest training image, features scaled to length 1 (the furthest, if there are
    fewer).
    """
    import numpy as np

    from penultimate.metrics.auc import auc
    from penultimate.metrics.outside import false_positive_rate

    train, bank = inputs.features("train", inputs.source), inputs.features("test", inputs.target)
    made = inputs.made(STAGE)
    assert made is not None  # because the stage is not optional
    with np.load(made / KEPT) as archive:
        own = dict(archive)
    for name in SCORES:
        try:
            other = _scored(name, train, bank, k, own)
        except UndefinedError as error:
            yield Undefined(f"{name}: {error}")
            continue
        both = np.concatenate([own[name], other])
        area = auc(both, np.arange(len(both)) < len(own[name]))
        yield Number("outside_auroc", area, "fraction", "test", setting={"score": name})
        rate = false_positive_rate(own[name], other)
        yield Number("outside_fpr95", rate, "fraction", "test", setting={"score": name})


def _scored(
    name: str, train: FeatureBank, bank: FeatureBank, k: int, made: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[np.float64]:
    """Return the scores of the images of a bank, higher for those that look inside."""
    from penultimate.metrics.outside import log_max_probability, mahalanobis_squared
    from penultimate.probes.kth import KthNeighbour

    if name == "msp":
        if bank.logits is None:
            raise UndefinedError("the network has no final layer for the source's classes")
        return log_max_probability(bank.logits)
    if name == "mahalanobis":
        if "places" not in made:
            raise UndefinedError("the features of each class are constant on the training images")
        return -mahalanobis_squared(bank.features, made["whitening"], made["places"])
    return -KthNeighbour(train.features, min(k, len(train))).distances(bank.features)
