"""The source's own classes, learned again from a few images each, either fresh or from training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.errors import RequestError
from penultimate.measures.declaration import Features, Logits, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np

    from penultimate.features.bank import FeatureBank

SHOTS = {"shots": Interval(2, closed="left")}


def _yields(stem: str) -> tuple[Yield, ...]:
    return (
        Yield(f"{stem}_top1", "fraction", called="accuracy of relearned heads"),
        Yield(f"{stem}_lambda", "lambda"),
    )


@register.measurement(
    version=2,
    per="network",
    needs=(Features("test"), Features("relearn")),
    yields=_yields("relearn"),
    each=("shots",),
    ranges=SHOTS,
    seconds=3.0,
    paper="Kornblith et al., 2021, figure 6",
)
def relearning(inputs: Inputs, *, shots: tuple[int, ...] | int = (5, 10, 40)) -> Iterator[Number]:
    """Test accuracy of a head learned again from the first `shots` fresh images of each class."""
    yield from _relearned(inputs, "relearn", "relearn", shots)


@register.measurement(
    version=2,
    per="network",
    needs=(Features("test"), Features("train")),
    yields=_yields("relearn_training"),
    each=("shots",),
    ranges=SHOTS,
    seconds=3.0,
    paper="Kornblith et al., ICLR 2021 version, figure 5",
)
def relearning_from_training(inputs: Inputs, *, shots: tuple[int, ...] | int = (5,)) -> Iterator[Number]:
    """Test accuracy of a head learned again from the first `shots` training images of each class."""
    yield from _relearned(inputs, "relearn_training", "train", shots)


@register.measurement(
    version=2,
    per="network",
    needs=(Logits("test"),),
    yields=(
        *_yields("relearn"),
        Yield("relearn_original_top1", "fraction", called="accuracy of original heads"),
    ),
    each=("shots",),
    ranges=SHOTS,
    seconds=3.0,
    paper="Kornblith et al., 2021, figure 6",
)
def relearning_from_test(inputs: Inputs, *, shots: tuple[int, ...] | int = (10,)) -> Iterator[Number]:
    """Accuracy of a head learned again from the first `shots` test images of each class, on the others.

    This is for a source without fresh images. On ImageNet's 50,000 validation images, 40 shots use 40,000
    for learning and leave 10,000 to score. The original head's accuracy on the same images is measured too.
    """
    yield from _relearned(inputs, "relearn", "test", shots)


def _relearned(inputs: Inputs, stem: str, split: str, shots: tuple[int, ...] | int) -> Iterator[Number]:
    """Yield the accuracy and the lambda of a head that is learned from the first images of a split."""
    from penultimate.probes.linear import LinearProbe

    assert isinstance(shots, int)
    test, fresh = inputs.features("test"), inputs.features(split)
    chosen = _firsts(fresh, shots, split, test.labels)
    features, labels = (test.features, test.labels)
    if split == "test":
        if chosen.all():
            raise RequestError(f"{shots} test images a class are all there are; none is left to score on")
        features, labels = features[~chosen], labels[~chosen]
    setting = {"shots": shots}
    probe = LinearProbe(seed=inputs.seed).fit(fresh.features[chosen], fresh.labels[chosen])
    yield Number(f"{stem}_top1", probe.score(features, labels), "fraction", "test", setting=setting)
    yield Number(f"{stem}_lambda", float(probe.lambda_), "lambda", split, setting=setting)
    if split == "test":
        original = float((test.predictions[~chosen] == labels).mean())
        yield Number("relearn_original_top1", original, "fraction", "test", setting=setting)


def _firsts(bank: FeatureBank, count: int, split: str, tested: np.ndarray) -> np.ndarray:
    """Return a mask of the first `count` images of each tested class."""
    import numpy as np

    chosen = np.zeros(len(bank), bool)
    for label in np.unique(tested):
        places = np.flatnonzero(bank.labels == label)[:count]
        if len(places) < count:
            raise RequestError(
                f"{count} images a class are asked for; in the {split} split class {label} has {len(places)}"
            )
        chosen[places] = True
    return chosen
