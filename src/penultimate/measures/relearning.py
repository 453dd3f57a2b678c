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

RELEARNED = (
    Yield(
        "relearn_top1",
        "fraction",
        better="high",
        words="The test accuracy of a head learned again from a few images of each class on the"
        " frozen features.",
        called="accuracy of relearned heads",
    ),
    Yield("relearn_lambda", "lambda", words="The strength of regularization of the relearned head."),
)


@register.measurement(
    version=2,
    per="network",
    needs=(Features("test"), Features("relearn")),
    yields=RELEARNED,
    each=("shots",),
    ranges={"shots": Interval(2, closed="left")},
    seconds=3.0,
    paper="Kornblith et al., 2021, figure 6",
)
def relearning(inputs: Inputs, *, shots: tuple[int, ...] | int = (5, 10, 40)) -> Iterator[Number]:
    """Test accuracy of a head learned again from the first `shots` fresh images of each class."""
    yield from _relearned(inputs, "relearn", shots, "relearn")


@register.measurement(
    version=2,
    per="network",
    needs=(Features("test"), Features("train")),
    yields=(
        Yield(
            "relearn_training_top1",
            "fraction",
            better="high",
            words="The test accuracy of a head learned again from a few training images of each class"
            " on the frozen features.",
            called="accuracy of relearned heads",
        ),
        Yield(
            "relearn_training_lambda", "lambda", words="The strength of regularization of the relearned head."
        ),
    ),
    each=("shots",),
    ranges={"shots": Interval(2, closed="left")},
    seconds=3.0,
    paper="Kornblith et al., ICLR 2021 version, figure 5",
)
def relearning_from_training(inputs: Inputs, *, shots: tuple[int, ...] | int = (5,)) -> Iterator[Number]:
    """Test accuracy of a head learned again from the first `shots` training images of each class."""
    yield from _relearned(inputs, "train", shots, "relearn_training")


@register.measurement(
    version=2,
    per="network",
    needs=(Logits("test"),),
    yields=(
        *RELEARNED,
        Yield(
            "relearn_original_top1",
            "fraction",
            better="high",
            words="The accuracy of the original head on the images that the relearned one is scored on.",
            called="accuracy of original heads",
        ),
    ),
    each=("shots",),
    ranges={"shots": Interval(2, closed="left")},
    seconds=3.0,
    paper="Kornblith et al., 2021, figure 6",
)
def relearning_from_test(inputs: Inputs, *, shots: tuple[int, ...] | int = (10,)) -> Iterator[Number]:
    """Accuracy of a head learned again from the first `shots` test images of each class, on the others.

    This is for a source without fresh images. On ImageNet's 50,000 validation images, 40 shots use 40,000
    for learning and leave 10,000 to score. The original head's accuracy on the same images is measured too.
    """
    assert isinstance(shots, int)
    bank = inputs.features("test")
    assert bank.logits is not None
    chosen = _firsts(bank.labels, shots, "test", bank.labels)
    rest = ~chosen
    if not rest.any():
        raise RequestError(f"{shots} test images a class are all there are; none is left to score on")
    setting = {"shots": shots}
    yield from _probed(inputs, bank, chosen, bank.features[rest], bank.labels[rest], "test", "relearn", shots)
    original = float((bank.logits[rest].argmax(1) == bank.labels[rest]).mean())
    yield Number("relearn_original_top1", original, "fraction", "test", setting=setting)


def _relearned(inputs: Inputs, split: str, shots: tuple[int, ...] | int, metric: str) -> Iterator[Number]:
    assert isinstance(shots, int)
    test, fresh = inputs.features("test"), inputs.features(split)
    chosen = _firsts(fresh.labels, shots, split, test.labels)
    yield from _probed(inputs, fresh, chosen, test.features, test.labels, split, metric, shots)


def _firsts(labels: np.ndarray, count: int, split: str, tested: np.ndarray) -> np.ndarray:
    """Return a mask of the first `count` images of each tested class.

    Raise RequestError for a class that has fewer.
    """
    import numpy as np

    firsts = {int(label): np.flatnonzero(labels == label)[:count] for label in np.unique(tested)}
    scarce = next((label for label, places in firsts.items() if len(places) < count), None)
    if scarce is not None:
        raise RequestError(
            f"{count} images a class are asked for; in the {split} split class {scarce} has"
            f" {len(firsts[scarce])}"
        )
    chosen = np.zeros(len(labels), bool)
    chosen[np.concatenate(list(firsts.values()))] = True
    return chosen


def _probed(
    inputs: Inputs,
    bank: FeatureBank,
    chosen: np.ndarray,
    features: np.ndarray,
    labels: np.ndarray,
    split: str,
    metric: str,
    shots: int,
) -> Iterator[Number]:
    """Yield the accuracy and the lambda of a head that is learned from the chosen images of a bank."""
    from penultimate.probes.linear import LinearProbe

    probe = LinearProbe(seed=inputs.seed).fit(bank.features[chosen], bank.labels[chosen])
    setting = {"shots": shots}
    yield Number(f"{metric}_top1", probe.score(features, labels), "fraction", "test", setting=setting)
    yield Number(f"{metric}_lambda", float(probe.lambda_), "lambda", split, setting=setting)
