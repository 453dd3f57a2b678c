"""Features of several networks, joined into one bank, of the same images in the same order."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.files import digest_arrays


def join_features(
    train: Mapping[str, FeatureBank], test: Mapping[str, FeatureBank]
) -> tuple[FeatureBank, FeatureBank]:
    """Return the joined training and test features of networks, each scaled by one number of its own.

    z_i = (x_i - mu) sqrt(m / v),    mu and v = E|x - mu|^2 of a network's training images, m the mean width

    A probe's penalty |W|^2 treats all weights alike, so that the network whose features are larger would
    count more. After scaling, each network has the same total variance, and the mean square of a feature is
    about 1. A single number for each network leaves its own geometry as it is. Features that are the same for
    all images become 0.

    Raise RequestError for fewer than two networks, networks without a test bank, and banks whose images are
    not the same, in the same order, by the digest of their ids and labels.

    >>> bank = lambda x: FeatureBank(np.array(x, np.float32), np.array([0, 1]), None, np.array([7, 8]))
    >>> one, other = bank([[0, 0], [200, 0]]), bank([[1, 0], [0, 0]])
    >>> join_features({"a": one, "b": other}, {"a": one, "b": other})[0].features.round().tolist()
    [[-1.0, 0.0, 1.0, 0.0], [1.0, 0.0, -1.0, 0.0]]
    """
    if len(train) < 2 or train.keys() != test.keys():
        raise RequestError("two networks or more are joined, each with features of training and test images")
    width = sum(bank.features.shape[1] for bank in train.values()) / len(train)
    scales = {name: _scale(bank.features, width) for name, bank in train.items()}
    return _joined(train, scales), _joined(test, scales)


def _scale(features: npt.NDArray[np.floating], width: float) -> tuple[npt.NDArray[np.float64], float]:
    """Return the mean of a network's features, and the factor that gives them a total variance of `width`."""
    numbers = np.asarray(features, np.float64)
    mean = numbers.mean(0)
    variance = float(np.square(numbers - mean).sum(1).mean())
    return mean, math.sqrt(width / variance) if variance > 0 else 0.0


def _joined(
    banks: Mapping[str, FeatureBank], scales: Mapping[str, tuple[npt.NDArray[np.float64], float]]
) -> FeatureBank:
    first, *others = banks
    of = {name: _digest(bank) for name, bank in banks.items()}
    for name in others:
        if of[name] != of[first]:
            raise RequestError(
                f"the features of '{first}' and '{name}' are not of the same images in the same order (the"
                " digests of their ids and labels differ), so that they cannot be joined"
            )
    parts = [(bank.features - scales[name][0]) * scales[name][1] for name, bank in banks.items()]
    whole = banks[first]
    return FeatureBank(np.concatenate(parts, 1).astype(np.float32), whole.labels, None, whole.ids)


def _digest(bank: FeatureBank) -> str:
    ids = np.arange(len(bank)) if bank.ids is None else np.asarray(bank.ids)
    return digest_arrays(ids, np.asarray(bank.labels))
