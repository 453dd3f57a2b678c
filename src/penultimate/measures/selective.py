"""Selective classification: the errors that remain if a network answers only where it is sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from penultimate.measures.declaration import ClassOrder, Logits, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.features.bank import FeatureBank

SCORES: Mapping[str, str] = {
    "msp": "maximum softmax probability",
    "max_logit": "maximum logit",
    "energy": "energy",
    "normalised_logit": "normalised logit",
}
"""The scores of confidence from logits, with their names in words; `metrics.confidence` computes them."""
NORMS = tuple(range(1, 11))
"""The norms among which the holdout chooses the one that divides a normalised logit."""
POINTS = 100
"""The number of coverages at which a curve is kept."""
CURVE = {"coverage": "number points", **dict.fromkeys(SCORES, "share points")}


@register.measurement(
    version=1,
    per="network",
    needs=(Logits("test"), Logits("holdout", optional=True), ClassOrder()),
    yields=(
        Yield(
            "aurc",
            "fraction",
            better="low",
            words="The area under the risk-coverage curve: the share of errors among the images that a"
            " network is surest of, in the mean over every number of them.",
            called="AURC",
        ),
        Yield(
            "aurc_excess",
            "fraction",
            better="low",
            words="By how much the AURC exceeds that of a ranking that puts every error last.",
            called="excess AURC",
        ),
        Yield(
            "augrc",
            "fraction",
            better="low",
            words="The area under the generalised risk-coverage curve: how often an image is answered and"
            " wrong, in the mean over every number of images that are answered.",
            called="AUGRC",
        ),
        Yield(
            "logit_norm",
            "count",
            words="The p of the norm that divides a normalised logit, chosen on held-out images.",
        ),
        Yield(
            "risk_coverage",
            "points",
            CURVE,
            words="The share of errors among the surest images, by the share of images that are answered.",
        ),
    ),
    ranges={"norm": Interval(1, closed="left")},
    seconds=0.1,
    paper="Geifman and El-Yaniv, 2017; Traub et al., 2024; Xia et al., 2025",
)
def selective(inputs: Inputs, *, norm: int | None = None) -> Iterator[Number | Arrays | Undefined]:
    """AURC, AUGRC and risk-coverage curves on the test images, ranked by four scores of confidence.

    The scores are those of the softmax of the logits, whatever objective trained them. The p-norm of the
    normalised logit is `norm`; if that is None, it is the one of 1 to 10 with the smallest AURC on the
    holdout, and without a holdout 4. Images of equal confidence count as the mean over their orders.
    """
    import numpy as np

    from penultimate.metrics import selective as metrics
    from penultimate.metrics.confidence import CONFIDENCES, NORM, normalised_logit

    bank = inputs.features("test")
    right = _right(bank)
    assert bank.logits is not None  # because it has predictions
    counts = np.unique(np.maximum(1, np.round(np.linspace(0, 1, POINTS + 1)[1:] * len(bank)).astype(int)))
    curve = {"coverage": (counts / len(bank)).astype(np.float32)}
    for name in SCORES:
        score = CONFIDENCES[name]
        curve[name] = np.full(len(counts), np.nan, np.float32)
        try:
            if name == "normalised_logit":
                holdout = inputs.features("holdout") if inputs.has_features("holdout") else None
                power = norm or (best_norm(holdout) if holdout is not None else int(NORM))
                score = partial(normalised_logit, p=power)
            confidence = score(bank.logits)
        except UndefinedError as error:
            yield Undefined(f"{SCORES[name]}: {error}")
            continue
        curve[name] = metrics.risk_coverage(confidence, right).risk[counts - 1].astype(np.float32)
        setting = {"score": name}
        yield Number("aurc", metrics.aurc(confidence, right), "fraction", "test", setting=setting)
        excess = metrics.excess_aurc(confidence, right)
        yield Number("aurc_excess", excess, "fraction", "test", setting=setting)
        yield Number("augrc", metrics.augrc(confidence, right), "fraction", "test", setting=setting)
        if name == "normalised_logit":
            yield Number("logit_norm", float(power), "count", "test")
    yield Arrays("risk_coverage", curve, "test")


def best_norm(bank: FeatureBank) -> int:
    """Return the p of 1 to 10 by which the normalised logits of a bank have the smallest AURC.

    The smallest p counts among equals.
    """
    from penultimate.metrics.confidence import normalised_logit
    from penultimate.metrics.selective import aurc

    right = _right(bank)
    logits = bank.logits
    assert logits is not None  # because it has predictions
    return min(NORMS, key=lambda p: aurc(normalised_logit(logits, p), right))


def _right(bank: FeatureBank) -> npt.NDArray[np.bool_]:
    """Return for each image of a bank whether the network predicts its class."""
    right: npt.NDArray[np.bool_] = bank.predictions == bank.labels
    return right
