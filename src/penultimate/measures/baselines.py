"""Baselines of a task: linear probes on features that need no network, once for all networks.

A network that is worse than one of them was probably shown images that it was not trained for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import Pixels, Yield, accuracies
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined, sample
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LAMBDAS = (1.0, 10.0, 100.0, 1000.0)
"""The strengths that are tried on standardised features; far fewer than the linear probe's 45."""
TOLERANCE = 1e-3
MOST = 10_000
"""The most training images, and test images, that are used; which ones is the same for all baselines."""
BATCH = 512
NAMES = ("pixels", "colours", "convolutions")
"""The baselines, as in `features.baselines.BASELINES`, which loads a tensor library."""


@register.measurement(
    version=1,
    per="study_target",
    needs=(Pixels("train"), Pixels("test")),
    yields=(
        *accuracies("baseline", "a baseline"),
        Yield("baseline_predictions", "points", ("ids", "labels", *NAMES)),
    ),
    seconds=1.0,
)
def baselines(inputs: Inputs) -> Iterator[Number | Arrays | Undefined]:
    """Accuracy of linear probes on features that need no network, and their predictions of test images.

    Features are standardised by the training images. Of images on disk the small pictures are used that were
    made when the data were read, so that nothing is decoded again, and at most `MOST` of a split.
    """
    from penultimate.features.baselines import BASELINES
    from penultimate.probes.estimator import accuracy_of
    from penultimate.probes.linear import LinearProbe

    features, labels, ids = {}, {}, {}
    for split in ("train", "test"):
        images = inputs.pictures(split)
        rows = sample(len(images), MOST)
        features[split] = _features(images.batches(BATCH, rows))
        labels[split], ids[split] = images.labels[rows], images.ids[rows]
    predicted: dict[str, npt.NDArray[np.int64]] = {}
    for name in BASELINES:
        probe = LinearProbe(LAMBDAS, metric=inputs.accuracy, tolerance=TOLERANCE, seed=0)
        train, test = _standardised(features["train"][name], features["test"][name])
        try:
            predicted[name] = probe.fit(train, labels["train"]).predict(test)
        except UndefinedError as error:
            yield Undefined(f"baselines on '{inputs.target}': {error}")
            return
        value = accuracy_of(inputs.accuracy)(predicted[name], labels["test"])
        yield Number(f"baseline_{inputs.accuracy}", value, "fraction", "test", setting={"baseline": name})
    arrays = {"ids": ids["test"], "labels": labels["test"], **predicted}
    yield Arrays("baseline_predictions", arrays, "test")


def _features(batches: Iterator[tuple[object, object]]) -> dict[str, npt.NDArray[np.float32]]:
    """Return all baselines' features of images, which are gone through once."""
    import torch

    from penultimate.features.baselines import BASELINES

    parts: dict[str, list[torch.Tensor]] = {name: [] for name in BASELINES}
    for images, _ in batches:
        assert isinstance(images, torch.Tensor)
        for name, function in BASELINES.items():
            parts[name].append(function(images))
    return {name: torch.cat(of).numpy() for name, of in parts.items()}


def _standardised(
    train: npt.NDArray[np.float32], test: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return features with mean 0 and deviation 1 over the training images; constant ones become 0."""
    mean, spread = train.mean(0), train.std(0)
    spread[spread < 1e-6] = float("inf")
    return (train - mean) / spread, (test - mean) / spread
