"""Labels, read in one place for metrics, probes and banks; an error for invalid labels suggests the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from penultimate.errors import RequestError, counted
from penultimate.metrics.inputs import ArrayLike, Bank, Names, as_tensor, dense, expect_dense, listed_rows

EXACT = 2.0**53
"""From this size on, a float may stand for several whole numbers."""
NUMBERS = (int, float, np.bool_, np.integer, np.floating)
WRITTEN = (str, bytes, Decimal, Fraction, date, time, timedelta, UUID)
"""Types that are read as text, in the form in which they are written."""
KINDS = "whole numbers, booleans or text"
SEVERAL = "several labels of an example go to MultiLabelProbe, as 0 and 1"
ONCE = "number names once, for all batches alike"


def read_labels(values: Any, what: str = "labels") -> Tensor | npt.NDArray[Any]:
    """Return labels of any shape as a tensor or an array of whole numbers, booleans, floats or text.

    Raise RequestError, which lists the first wrong rows and the nearest fix, for a value that is no array of
    labels (None, a set), for missing labels (None, NaN, a masked value, an empty name), for names mixed with
    numbers, for values that cannot be classes (records, lists), and for numbers too large for their type.

    >>> read_labels([b"dog", b"cat"]), read_labels(np.array([1, 0], object))
    (array(['dog', 'cat'], dtype='<U3'), array([1, 0]))
    """
    if isinstance(values, Bank):
        raise RequestError(f"{what} must be an array, not a bank: pass its .features, .labels or .logits")
    if isinstance(values, Tensor):
        tensor = dense(values.detach(), what)
        if not tensor.is_floating_point():
            return tensor
        tensor = tensor if tensor.element_size() > 2 else tensor.float()
        _expect_exact(tensor, what)
        return tensor
    expect_dense(values, what)
    if isinstance(values, str | bytes | Mapping | Set) or not (
        hasattr(values, "__len__") or hasattr(values, "__array__")
    ):
        came = "None" if values is None else f"a {type(values).__name__}"
        raise RequestError(
            f"{what} should be a 1d array or a list of labels, one for each example; got {came}"
        )
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists; lists of tensors
        raise RequestError(
            f"{what} must be one rectangular array, with a label for each example ({SEVERAL}): {error}"
        ) from None
    if array.dtype.names:
        first, *_ = fields = array.dtype.names
        raise RequestError(
            f"{what}: records of {', '.join(fields)} are no labels; pass one field, {what}['{first}']"
        )
    if array.dtype.kind in "mM":
        _expect_present(np.isnat(array), what, "NaT")
        array = array.astype(str)
    elif array.dtype.kind in "OS":
        array = _of_objects(array, what)
    elif array.ndim == 1 and array.dtype.kind in "Uf" and isinstance(values, list | tuple):
        # NumPy turns numbers mixed with text into text, and whole numbers beyond 64 bits into floats.
        array = _of_objects(np.fromiter(values, object, len(values)), what)
    elif array.dtype.kind == "U":
        _expect_names(array, what)
    if array.dtype.kind not in "biufU":
        raise RequestError(f"{what}: labels are {KINDS}; got {array.dtype}: pass them as text")
    if array.dtype.kind == "f":
        array = array if array.dtype.itemsize <= 8 else array.astype(np.float64)
        _expect_exact(array, what)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def is_text(labels: Tensor | npt.NDArray[Any]) -> bool:
    """Return whether labels, as returned by `read_labels`, are names."""
    return isinstance(labels, np.ndarray) and labels.dtype.kind == "U"


def as_numbers(values: Any, what: str) -> Tensor:
    """Return numeric labels as a tensor of any shape; raise RequestError for names."""
    read = read_labels(values, what)
    if is_text(read):
        raise RequestError(f"{what} must be integer class indices; got {read.dtype}: {ONCE}")
    return as_tensor(read, what)


def expect_column(labels: Tensor | npt.NDArray[Any], what: str) -> None:
    """Raise RequestError, which suggests a fix, unless labels are one-dimensional: one for each example."""
    if labels.ndim == 1:
        return
    called = what.split()[0]
    fix = ""
    if labels.ndim == 2 and 1 in labels.shape:
        fix = f" (for a single column or row pass numpy.ravel({called}))"
    elif labels.ndim == 2 and not is_text(labels):
        binary = called != "predictions" and bool(((labels == 0) | (labels == 1)).all())
        several = binary and bool((labels.sum(1) != 1).any())
        fix = f" ({SEVERAL})" if several else " (for one-hot rows pass their argmax(1))"
    raise RequestError(f"{what} must be a 1d array [examples]; got shape {list(labels.shape)}{fix}")


def as_classes(
    values: ArrayLike,
    what: str,
    examples: int | None = None,
    num_classes: int | None = None,
    device: torch.device | None = None,
) -> Int[Tensor, " n"]:
    """Return class indices [n] as int64 on `device`.

    Raise RequestError unless there is one for each of `examples`, each in 0..num_classes-1.
    """
    classes = as_numbers(values, what)
    expect_column(classes, what)
    if examples is not None and len(classes) != examples:
        raise RequestError(
            f"{counted(examples, 'example')}, but {len(classes)} {what}; each example needs one"
        )
    if len(classes) and (classes.is_floating_point() or classes.dtype == torch.bool):
        called = what.split()[0]
        fix = f"{called}.long()" if isinstance(values, Tensor) else f"numpy.asarray({called}).astype(int)"
        broken = (
            classes != classes.trunc() if classes.is_floating_point() else torch.zeros(1, dtype=torch.bool)
        )
        advice = f"{listed_rows(broken)} hold fractions" if bool(broken.any()) else f"pass {fix}"
        raise RequestError(f"{what} must be integer class indices; got {classes.dtype}: {advice}")
    classes = classes.to(device=device, dtype=torch.int64)
    outside = classes < 0 if num_classes is None else (classes < 0) | (classes >= num_classes)
    if bool(outside.any()):
        first = int(outside.nonzero()[0, 0])
        allowed = "0 or more" if num_classes is None else f"0..{num_classes - 1}"
        raise RequestError(
            f"{what} must be {allowed}; not so in {listed_rows(outside)} (the first is {int(classes[first])})"
        )
    return classes


def numbered(*labels: Names, columns: int | None = None, called: Sequence[str] = ()) -> list[ArrayLike]:
    """Return labels as class indices: indices unchanged, and names by their rank among all sorted names.

    With `columns`, names stand for the columns of logits (or the rows of weights) in sorted order, as in
    scikit-learn, so all names must occur. `called` are the arguments' names in errors, by default "labels".
    Raise RequestError if some labels are names and others are not, and for whatever `read_labels` refuses.

    >>> [codes.tolist() for codes in numbered(["dog", "cat"], ["ant", "dog"])]
    [[2, 1], [0, 2]]
    """
    read = [
        read_labels(values, what)
        for values, what in zip(labels, called or ["labels"] * len(labels), strict=True)
    ]
    if not any(map(is_text, read)):
        return list(read)
    names = [np.array([], str) if len(values) == 0 else values for values in read]
    if not all(map(is_text, names)):
        raise RequestError("labels are of one kind: some are names and others are not")
    for values in names:
        expect_column(values, "labels")
    known, codes = np.unique(np.concatenate(names), return_inverse=True)
    if columns is not None and len(known) != columns:
        raise RequestError(
            f"labels hold {len(known)} names for {columns} classes; which is whose column is known only where"
            " every name occurs (they are then sorted): pass class indices"
        )
    return list(np.split(codes, np.cumsum([len(values) for values in names])[:-1]))


def _of_objects(array: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Return an array of objects as an array of text or of numbers; raise RequestError if they are mixed."""
    rows = array.ravel().tolist() if array.dtype.kind == "S" else list(array.flat)
    width = array.size // len(array) if array.ndim > 1 and len(array) else 1
    _expect_present(np.array([_is_missing(one) for one in rows], bool).reshape(array.shape), what)
    if any(isinstance(one, WRITTEN) for one in rows):
        rows = [
            one if isinstance(one, bytes) else str(one) if isinstance(one, WRITTEN) else one for one in rows
        ]
        for place, one in enumerate(rows):
            if not isinstance(one, str | bytes):
                raise RequestError(f"{what}: row {place // width} holds {one!r} where others hold names")
        text = [_text(one, place // width, what) for place, one in enumerate(rows)]
        if any(one.endswith("\0") for one in text):
            raise RequestError(f"{what}: some end in the character 0, which NumPy's text drops: strip it")
        found = np.array(text).reshape(array.shape)
        _expect_names(found, what)
        return found
    for place, one in enumerate(rows):
        if not isinstance(one, NUMBERS) and not (hasattr(one, "ndim") and one.ndim == 0):
            fix = SEVERAL if isinstance(one, Sequence | Set | np.ndarray) else "pass its name or number"
            raise RequestError(
                f"{what}: labels are {KINDS}; row {place // width} holds a {type(one).__name__}: {fix}"
            )
    numbers = np.array(rows)
    whole = all(isinstance(one, int | np.integer) for one in rows)
    if rows and (numbers.dtype.kind == "O" or (whole and numbers.dtype.kind == "f")):
        raise RequestError(
            f"{what}: whole numbers have 64 bits at most; got {max(rows, key=abs)}: pass them as text"
        )
    return numbers.reshape(array.shape)


def _text(name: Any, row: int, what: str) -> str:
    if not isinstance(name, WRITTEN):
        raise RequestError(f"{what}: row {row} holds {name!r} where others hold names; pass all as text")
    try:
        return name.decode() if isinstance(name, bytes) else str(name)
    except UnicodeDecodeError:
        raise RequestError(f"{what}: row {row} holds bytes that are no UTF-8 text: {name!r}") from None


def _is_missing(one: object) -> bool:
    """Return whether an object marks a missing value: None, NaN, or NA and NaT of pandas."""
    if one is None or type(one).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(one, float | np.floating) and bool(np.isnan(one))


def _expect_names(names: npt.NDArray[Any], what: str) -> None:
    if (names == "").any():
        _expect_present(names == "", what, "an empty name")


def _expect_exact(values: Any, what: str) -> None:
    """Raise RequestError for NaN, infinity, and floats so large that they may stand for several labels."""
    _expect_present(values != values, what)
    wrong = abs(values) >= EXACT
    if bool(wrong.any()):
        rows = _by_row(wrong)
        holds = "infinity" if bool((abs(values) == np.inf).any()) else "floats from 2^53 up"
        raise RequestError(
            f"{what}: {holds} in {listed_rows(rows)} may stand for several whole numbers: pass"
            " whole numbers or text"
        )


def _expect_present(missing: Any, what: str, how: str = "None or NaN") -> None:
    if bool(missing.any()):
        fix = (
            "leave those examples out" if missing.ndim < 2 else "say first what an uncertain label counts as"
        )
        rows = _by_row(missing)
        raise RequestError(
            f"{what}: no label for {int(rows.sum())} of {len(rows)} examples ({how} in {listed_rows(rows)});"
            f" {fix}"
        )


def _by_row(wrong: Any) -> Tensor:
    rows: Tensor = torch.as_tensor(wrong)
    return rows.reshape(rows.shape[0] if rows.ndim else 1, -1).any(1)
