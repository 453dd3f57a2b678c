"""The source's own classes learned anew from a few images each: fresh ones, or ones trained on."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.errors import RequestError
from penultimate.measures.declaration import Features, Yield
from penultimate.measures.inputs import Inputs, Number
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register


@register.measurement(
    version=1,
    per="network",
    needs=(Features("test"), Features("relearn")),
    yields=(Yield("relearn_top1", "fraction"), Yield("relearn_lambda", "lambda")),
    each=("shots",),
    ranges={"shots": Interval(2, closed="left")},
    seconds=3.0,
    paper="Kornblith et al., 2021, figure 6",
)
def relearning(inputs: Inputs, *, shots: tuple[int, ...] | int = (5, 10, 40)) -> Iterator[Number]:
    """Test accuracy of a head learned anew from the first `shots` fresh images of each class."""
    yield from _relearned(inputs, "relearn", shots, "relearn")


@register.measurement(
    version=1,
    per="network",
    needs=(Features("test"), Features("train")),
    yields=(Yield("relearn_training_top1", "fraction"), Yield("relearn_training_lambda", "lambda")),
    each=("shots",),
    ranges={"shots": Interval(2, closed="left")},
    seconds=3.0,
    paper="Kornblith et al., ICLR 2021 version, figure 5",
)
def relearning_from_training(inputs: Inputs, *, shots: tuple[int, ...] | int = (5,)) -> Iterator[Number]:
    """The same from the first `shots` images of each class that the network was trained on."""
    yield from _relearned(inputs, "train", shots, "relearn_training")


def _relearned(inputs: Inputs, split: str, shots: tuple[int, ...] | int, metric: str) -> Iterator[Number]:
    import numpy as np

    from penultimate.probes.linear import LinearProbe

    assert isinstance(shots, int)
    count = shots
    test, fresh = inputs.features("test"), inputs.features(split)
    firsts = [np.flatnonzero(fresh.labels == label)[:count] for label in range(int(test.labels.max()) + 1)]
    scarce = next((label for label, places in enumerate(firsts) if len(places) < count), None)
    if scarce is not None:
        raise RequestError(
            f"{count} images a class are asked for; in the {split} split class {scarce} has"
            f" {len(firsts[scarce])}"
        )
    chosen = np.sort(np.concatenate(firsts))
    probe = LinearProbe(seed=inputs.seed).fit(fresh.features[chosen], fresh.labels[chosen])
    setting = {"shots": count}
    top1 = probe.score(test.features, test.labels)
    yield Number(f"{metric}_top1", top1, "fraction", "test", setting=setting)
    yield Number(f"{metric}_lambda", float(probe.lambda_), "lambda", split, setting=setting)
