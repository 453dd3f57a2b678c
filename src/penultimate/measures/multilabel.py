"""Transfer to images with several labels: a logistic regression and an area under the ROC curve for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.measures.declaration import ClassNames, Features, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number, Undefined
from penultimate.metrics import UndefinedError
from penultimate.objectives.hyperparameters import Interval
from penultimate.progress import Advance
from penultimate.registry import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.features.bank import FeatureBank
    from penultimate.metrics.auc import AUC
    from penultimate.probes.multilabel import MultiLabelProbe

POLICIES = ("zeros", "ignore", "ones")
"""The policies for uncertain labels: absent (U-Zeros, the paper's), ignored (U-Ignore), present (U-Ones)."""


@register.measurement(
    version=1,
    per="target",
    several_labels=True,
    needs=(Features("train"), Features("test"), Features("validation", optional=True), ClassNames()),
    yields=(
        Yield("multilabel_auc", "fraction", called="AUC"),
        Yield("multilabel_auc_low", "fraction"),
        Yield("multilabel_auc_high", "fraction"),
        Yield("multilabel_mean_auc", "fraction", called="mean AUC"),
        Yield("multilabel_lambda", "lambda"),
        Yield("multilabel_validation_auc", "fraction"),
        Yield("multilabel_certified_gap", "ratio"),
        Yield("multilabel_scores", "points", ("ids", "labels", "scores", "names")),
    ),
    each=("uncertain",),
    ranges={"uncertain": POLICIES, "thresholds": Interval(2, closed="left")},
    seconds=1.0,
    paper="Kornblith et al., 2021, appendix D.3; policies: Irvin et al., 2019",
)
def multilabel(
    inputs: Inputs,
    *,
    uncertain: tuple[str, ...] | str = ("zeros",),
    thresholds: int | None = None,
    scores: bool = False,
) -> Iterator[Number | Undefined | Arrays]:
    """AUC of each label and their mean, on the test images and on a validation split, if there is one.

    Each label's lambda is chosen by its AUC on a fifth of the training images. `uncertain` is the policy for
    uncertain labels, which is the same in training, validation and testing. The 95 % intervals are DeLong's.
    A label with fewer than two positive or two negative test images has no AUC, and then there is no mean
    either.

    With `thresholds` the area is the trapezoidal area over that many thresholds of the probability (1,000 in
    the paper); its interval remains that of the exact AUC. With `scores`, those of the test images are kept,
    by which networks are compared on the same images.
    """
    import numpy as np

    from penultimate.probes.multilabel import MultiLabelProbe

    assert isinstance(uncertain, str)
    train = inputs.features("train")
    tested = {split: inputs.features(split) for split in ("test", "validation") if inputs.has_features(split)}
    names = inputs.class_names(inputs.target)
    advance = Advance("linear probes", "labels", len(names))
    areas: dict[str, list[float]] = {split: [] for split in tested}
    kept: dict[str, npt.NDArray[np.float64]] = {}
    for place, name in enumerate(names):
        setting = {"label": name, "uncertain": uncertain}
        probe = MultiLabelProbe(seed=inputs.seed, names=(name,))
        try:
            features, labels = _counted(train, place, name, uncertain)
            with advance.one():
                probe.fit(features, labels[:, None])
        except UndefinedError as error:
            yield Undefined(f"multilabel_auc (train): {error}")
            continue
        (fitted,) = probe.probes_
        best = float(max(fitted.validation_accuracy_))
        gap = float(max(*fitted.certificates_, fitted.certificate_))
        yield Number("multilabel_lambda", float(probe.lambda_[0]), "lambda", "train", setting=setting)
        yield Number("multilabel_validation_auc", best, "fraction", "train", setting=setting)
        yield Number("multilabel_certified_gap", gap, "ratio", "train", setting=setting)
        for split, bank in tested.items():
            try:
                area = _area(probe, *_counted(bank, place, name, uncertain), thresholds)
            except UndefinedError as error:
                yield Undefined(f"multilabel_auc ({split}): label '{name}': {error}")
                continue
            areas[split].append(area.value)
            if scores and split == "test":
                kept[name] = probe.decision_function(bank.features)[:, 0]
            for suffix, value in (("", area.value), ("_low", area.low), ("_high", area.high)):
                yield Number(f"multilabel_auc{suffix}", value, "fraction", split, setting=setting)
    for split, of_labels in areas.items():
        if len(of_labels) == len(names):
            mean = sum(of_labels) / len(of_labels)
            yield Number("multilabel_mean_auc", mean, "fraction", split, setting={"uncertain": uncertain})
    if kept:
        bank, columns = tested["test"], [names.index(name) for name in kept]
        ids = np.arange(len(bank)) if bank.ids is None else bank.ids
        truth = np.stack([_truth(bank.labels[:, column], uncertain) for column in columns], 1)
        arrays = {"ids": ids, "labels": truth, "names": np.array([*kept])}
        numbers = np.stack([*kept.values()], 1).astype(np.float32)
        yield Arrays("multilabel_scores", {**arrays, "scores": numbers}, "test", {"uncertain": uncertain})


def _truth(labels: npt.NDArray[np.int64], uncertain: str) -> npt.NDArray[np.int64]:
    """Return labels as a policy counts them: 1, 0, or -1 for an image that does not count."""
    return labels if uncertain == "ignore" else abs(labels) if uncertain == "ones" else labels.clip(min=0)


def _counted(
    bank: FeatureBank, place: int, name: str, uncertain: str
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return the features and the labels, 0 or 1, of the examples that count for a label."""
    truth = _truth(bank.labels[:, place], uncertain)
    counts = truth >= 0
    if not counts.any():
        raise UndefinedError(f"label '{name}' is uncertain in all {len(bank)} examples")
    return (bank.features, truth) if counts.all() else (bank.features[counts], truth[counts])


def _area(
    probe: MultiLabelProbe,
    features: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    thresholds: int | None,
) -> AUC:
    from scipy.special import expit

    from penultimate.metrics.auc import auc, auc_interval

    scores = probe.decision_function(features)[:, 0]
    area = auc_interval(scores, labels)
    return area if thresholds is None else area._replace(value=auc(expit(scores), labels, thresholds))
