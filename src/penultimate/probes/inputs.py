"""What a probe takes: features and labels, NumPy or tensors, checked once, with errors for people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import ArrayLike, as_classes, as_matrix, listed_rows
from penultimate.probes.arrays import Array, NumpyInts, at_home, blocks, library

ROWS_CHECKED = 1 << 16


class TrainingSet(NamedTuple):
    """Features [n p], the classes that occur [k], ascending, and each example's position among them [n]."""

    features: Float[Array, "n p"]
    classes: Int[np.ndarray, " k"]
    codes: Int[np.ndarray, " n"]


def as_features(values: ArrayLike, what: str = "X", columns: int | None = None) -> Float[Array, "n p"]:
    """Features [n p] in float32 or float64: NumPy if they lie on the host, a tensor if they lie on a device.

    Half precision is raised to float32, integers to float64. Raises RequestError on anything but finite
    numbers (which rows), on no rows, and when there are not as many columns as the probe was fitted on.
    """
    matrix = as_matrix(values, what, "features")
    if len(matrix) == 0:
        raise RequestError(f"{what} has no examples: shape {list(matrix.shape)}")
    if columns is not None and matrix.shape[1] != columns:
        raise RequestError(f"{what} has {matrix.shape[1]} features; this probe was fitted on {columns}")
    if matrix.dtype not in (torch.float32, torch.float64):
        matrix = matrix.float() if matrix.is_floating_point() else matrix.double()
    for block in blocks(len(matrix), ROWS_CHECKED):
        bad = ~matrix[block].isfinite().all(1)
        if bool(bad.any()):
            raise RequestError(f"{what} holds NaN or infinity in {listed_rows(bad, block.start)}")
    return at_home(matrix)


def as_labels(values: ArrayLike, examples: int, what: str = "y") -> NumpyInts:
    """Class indices [n] on the host; raises RequestError unless they are one integer >= 0 per example."""
    return np.asarray(as_classes(values, what, examples).cpu().numpy())


def training_set(features: ArrayLike, labels: ArrayLike) -> TrainingSet:
    """The checked training set; raises UndefinedError where nothing can be learnt from it.

    >>> training_set([[0.0], [1.0], [2.0]], [7, 3, 7]).codes
    array([1, 0, 1])
    """
    matrix = as_features(features)
    classes, codes = np.unique(as_labels(labels, len(matrix)), return_inverse=True)
    if len(classes) == 1:
        raise UndefinedError(
            f"y holds one class only ({classes[0]}, {len(matrix)} examples); a probe needs two or more"
        )
    ops = library(matrix)
    if bool((ops.amax(matrix, 0) == ops.amin(matrix, 0)).all()):
        raise UndefinedError(
            f"all {len(matrix)} examples of X are one point: constant features tell no class from another"
        )
    return TrainingSet(matrix, classes, codes)
