"""The source's own classes learned anew from a few fresh images each."""

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
    import numpy as np

    from penultimate.probes.linear import LinearProbe

    assert isinstance(shots, int)
    count = shots
    test, fresh = inputs.features("test"), inputs.features("relearn")
    firsts = [np.flatnonzero(fresh.labels == label)[:count] for label in range(int(test.labels.max()) + 1)]
    scarce = next((label for label, places in enumerate(firsts) if len(places) < count), None)
    if scarce is not None:
        raise RequestError(
            f"{count} images a class are asked for; in the relearn split class {scarce} has"
            f" {len(firsts[scarce])}"
        )
    chosen = np.sort(np.concatenate(firsts))
    probe = LinearProbe(seed=inputs.seed).fit(fresh.features[chosen], fresh.labels[chosen])
    setting = {"shots": count}
    top1 = probe.score(test.features, test.labels)
    yield Number("relearn_top1", top1, "fraction", "test", setting=setting)
    yield Number("relearn_lambda", float(probe.lambda_), "lambda", "relearn", setting=setting)
