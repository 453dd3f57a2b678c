"""The input of a probe: features and labels, NumPy arrays or tensors, checked once with readable errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int, Shaped
from sklearn.utils import check_array, column_or_1d

from penultimate.errors import RequestError, counted
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import Bank, as_matrix, expect_column, listed_rows, read_labels
from penultimate.probes.arrays import Array, NumpyInts, at_home, blocks, to_numpy
from penultimate.probes.rows import Rows

NUMBERS_CHECKED = 1 << 22
"""The number of feature values that are checked for NaN and infinity at once."""

Data: TypeAlias = Any
"""Anything that scikit-learn accepts (arrays, lists, tables), a tensor on any device, or a feature bank."""

Labels: TypeAlias = npt.NDArray[Any]
"""Classes as the caller names them: whole numbers, strings, booleans."""


def examples_of(X: Data, y: Data) -> tuple[Data, Data]:
    """Return features and labels; a bank given as X supplies both, unless y is given as well."""
    return (X.features, X.labels if y is None else y) if isinstance(X, Bank) else (X, y)


class WrongTypeError(RequestError, TypeError):
    """Error for data of a type that no probe accepts."""


class TrainingSet(NamedTuple):
    """Features [n p], the distinct classes in ascending order [k], and each example's index into them [n]."""

    features: Rows
    classes: Shaped[np.ndarray, " k"]
    codes: Int[np.ndarray, " n"]


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Turn scikit-learn's errors into RequestErrors that name the refused argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = WrongTypeError if isinstance(error, TypeError) else RequestError
        message = str(error)
        raise kind(message if message.startswith(what) else f"{what}: {message}") from None


def as_features(values: Data, what: str = "X") -> Float[Array, "n p"]:
    """Return features [n p] in floating point: a NumPy array on the host, a tensor on a device.

    Memory-mapped features stay memory-mapped, also in half precision. On the host bfloat16 is converted to
    float32, and whole numbers become float64. Raise RequestError, which lists the rows, for anything but
    finite numbers; raise it also if there are no rows or no columns.
    """
    if not isinstance(values, torch.Tensor):
        if np.ma.is_masked(values):
            raise RequestError(f"{what} has masked places, which hold no number: leave those examples out")
        with naming(what):
            values = check_array(
                values, ensure_all_finite=False, ensure_2d=False, allow_nd=True, ensure_min_samples=0
            )
    if values.ndim == 1:
        are_labels = not torch.as_tensor(values[:1]).is_floating_point()
        swapped = ". Whole numbers look like labels: X comes before y" if are_labels else ""
        raise RequestError(
            f"{what} must be [examples, features]; got shape {list(values.shape)}{swapped}. Reshape your"
            f" data: {what}.reshape(-1, 1) if it is one feature, {what}.reshape(1, -1) if it is one example"
        )
    matrix = as_matrix(values, what, "features")
    if len(matrix) == 0:
        raise RequestError(f"{what} has no examples: shape {list(matrix.shape)}")
    if matrix.dtype not in (torch.float16, torch.float32, torch.float64):
        matrix = matrix.float() if matrix.is_floating_point() else matrix.double()
    for block in blocks(len(matrix), max(1, NUMBERS_CHECKED // matrix.shape[1])):
        bad = ~matrix[block].isfinite().all(1)
        if bool(bad.any()):
            raise RequestError(f"{what} holds NaN or infinity in {listed_rows(bad, block.start)}")
    return at_home(matrix)


def as_labels(values: Data, examples: int, what: str = "y") -> Labels:
    """Return labels [n] on the host: whole numbers (also as floats), booleans or text; see `read_labels`."""
    if values is None:
        raise RequestError(f"a probe requires {what} to be passed, but the target {what} is None")
    given = to_numpy(read_labels(values, what))
    if given.ndim == 2 and given.shape[1] == 1:
        given = column_or_1d(given, warn=True)
    expect_column(given, what)
    if given.dtype.kind == "f" and (broken := given != np.trunc(given)).any():
        rows = listed_rows(torch.from_numpy(broken))
        raise RequestError(
            f"Unknown label type: continuous. {what} holds fractions in {rows}; labels are whole or text"
        )
    if len(given) != examples:
        raise RequestError(
            f"{counted(examples, 'example')}, but {what} has {counted(len(given), 'label')};"
            " each example needs one"
        )
    return given


def encoded(first: Labels, second: Labels) -> tuple[NumpyInts, NumpyInts]:
    """Return two arrays of labels as indices into the ascending values that occur in either of them.

    Raise RequestError if one holds numbers and the other does not.

    >>> encoded(np.array(["dog", "cat"]), np.array(["ant", "dog"]))
    (array([2, 1]), array([0, 2]))
    """
    if (first.dtype.kind in "biuf") != (second.dtype.kind in "biuf"):
        raise RequestError(f"labels must be of one kind; got both {first[0]!r} and {second[0]!r}")
    codes = np.unique(np.concatenate([first, second]), return_inverse=True)[1]
    return codes[: len(first)], codes[len(first) :]


def training_set(features: Rows, labels: Labels) -> TrainingSet:
    """Return the training set of checked examples; raise UndefinedError if nothing can be learnt from it.

    >>> training_set(Rows(np.array([[0.0], [1.0], [2.0]])), np.array(["b", "a", "b"])).codes
    array([1, 0, 1])
    """
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        raise UndefinedError(
            f"y holds one class only ({classes[0]}, {len(features)} examples); a probe needs two or more"
        )
    first = features.float64(slice(0, 1))
    size = max(1, NUMBERS_CHECKED // features.shape[1])
    if all(bool((features.float64(block) == first).all()) for block in blocks(len(features), size)):
        raise UndefinedError(
            f"all {len(features)} examples of X are one point: constant features tell no class from another"
        )
    return TrainingSet(features, classes, codes)
