"""A network as a classifier: its accuracy, and its calibration with and without temperature scaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.accuracy import ACCURACIES
from penultimate.measures.calibration import YIELDS, log_probabilities, measured, numbers_of
from penultimate.measures.declaration import ClassOrder, Head, LogProbabilities
from penultimate.measures.inputs import Inputs, Number, Undefined, sample
from penultimate.metrics import UndefinedError
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from penultimate.features.bank import FeatureBank


@register.measurement(
    version=3,
    per="network",
    needs=(LogProbabilities("test"), LogProbabilities("holdout", optional=True), Head(), ClassOrder()),
    yields=(*ACCURACIES, *YIELDS),
    seconds=0.3,
    paper="Guo et al., 2017, section 4.2; Kornblith et al., 2021, table C.3",
)
def classifier(inputs: Inputs) -> Iterator[Number | Undefined]:
    """Accuracy, NLL, ECE and reliability on the source's test images, also after temperature scaling.

    The temperature is fitted on the holdout. Without a holdout, each half of the test images is scaled by
    the temperature fitted on the other half, never on itself; the reported temperature is the geometric mean
    of the two. If no temperature is best, the scaled numbers are missing.
    """
    from penultimate.metrics.accuracy import top_k

    bank = inputs.features("test")
    assert bank.logits is not None
    for k in (1, 5):
        yield Number(f"top{k}", top_k(bank.logits, bank.labels, k), "fraction", "test")
    scores = log_probabilities(inputs, bank)
    yield from measured(scores, bank.labels, 1.0, "")
    try:
        yield from _scaled(inputs, scores, bank)
    except UndefinedError as error:
        yield Undefined(str(error))


def _scaled(inputs: Inputs, scores: Tensor, bank: FeatureBank) -> Iterator[Number]:
    import numpy as np

    from penultimate.metrics.calibration import CalibrationAccumulator

    seen, temperatures = CalibrationAccumulator(), []
    for part, temperature in tempered(inputs, scores, bank):
        temperatures.append(temperature)
        seen.update_logits(scores[part], bank.labels[part], temperature)
    mean = float(np.exp(np.mean(np.log(temperatures)))) if len(temperatures) > 1 else temperatures[0]
    yield Number("temperature", mean, "ratio", "test")
    yield from numbers_of(seen, "_scaled")


def tempered(
    inputs: Inputs, scores: Tensor, bank: FeatureBank
) -> list[tuple[slice | npt.NDArray[np.bool_], float]]:
    """Return the parts of the test images, each with the temperature that suits other images.

    With a holdout that is all of them, at the holdout's temperature; without one it is either half, at the
    temperature of the other half. Raise UndefinedError if no temperature is best.
    """
    import numpy as np

    from penultimate.metrics.temperature import fit_temperature

    if inputs.has_features("holdout"):
        holdout = inputs.features("holdout")
        return [(slice(None), fit_temperature(log_probabilities(inputs, holdout), holdout.labels))]
    if len(bank) < 2:
        raise UndefinedError(
            "a temperature is fitted on other images than it is tested on; there is one image"
        )
    first = np.zeros(len(bank), np.bool_)
    first[sample(len(bank), len(bank) // 2)] = True
    return [(half, fit_temperature(scores[~half], bank.labels[~half])) for half in (first, ~first)]
