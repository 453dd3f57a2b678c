"""How features are organised: how far apart and how predictable the classes of each column of labels are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penultimate.banks.files import ForeignBank
from penultimate.checks import whole_number
from penultimate.data.readers.splitting import drawn_by_group
from penultimate.errors import RequestError, unknown
from penultimate.metrics import UndefinedError
from penultimate.metrics.separation import class_separation
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe
from penultimate.probes.validation import split_off

EXAMPLES = 10_000
"""The most examples that the probes are trained and tested on; R^2 uses all examples."""
TESTED = 0.2
"""The share of the examples that are tested on, if nothing says which."""


@dataclass(frozen=True)
class Organised:
    """How the features are organised by one column of labels; a missing value is None, with the reason.

    r2          class separation by cosine distance, without the pairs of an example with itself: 0 by chance
    linear      accuracy of the linear probe on a fifth of the examples, trained on the rest
    knn         accuracy of nearest neighbours on the same examples
    majority    the share of the largest class among them, which a guess without features reaches
    undefined   the reason for a missing value
    """

    column: str
    classes: int
    examples: int
    r2: float | None = None
    linear: float | None = None
    knn: float | None = None
    majority: float | None = None
    undefined: str = ""


def organisation(
    bank: ForeignBank,
    columns: Sequence[str] = (),
    *,
    examples: int = EXAMPLES,
    group: str = "",
    seed: int = 0,
) -> list[Organised]:
    """Return R^2 and the accuracies of the probes for each column of labels, in order.

    The columns are all of the bank's, or the named ones. If the bank has more than `examples`, the probes use
    that many, drawn at random. The probes are tested on a fifth, of whole groups where `group` names a column
    of them. A column without a result (a single class, or a class for each example) gives the reason. Raise
    RequestError for a column that the bank lacks.

    >>> from penultimate.banks.files import LabelColumn
    >>> generator = np.random.default_rng(0)
    >>> kind, site = np.arange(200) % 2, np.arange(200) // 100
    >>> features = generator.normal(size=(200, 4)) + 5 * np.eye(2, 4)[kind]
    >>> columns = {"kind": LabelColumn(kind, ("a", "b")), "site": LabelColumn(site, ("c", "d"))}
    >>> found = organisation(ForeignBank(features, kind, columns=columns))
    >>> [(one.column, one.r2 > 0.5, one.linear > 0.9) for one in found]
    [('kind', True, True), ('site', False, False)]
    """
    whole_number(examples, "examples", 10)
    for name in (*columns, *([group] if group else [])):
        if name not in bank.columns:
            raise unknown("column of labels", name, bank.columns)
    few = len(bank) <= examples
    drawn = np.random.default_rng(seed).choice(len(bank), min(examples, len(bank)), replace=False)
    rows = np.arange(len(bank)) if few else np.sort(drawn)
    asked = [name for name in columns or bank.columns if name != group]
    return [_organised(bank, name, rows, seed, group) for name in asked]


def tested_rows(codes: np.ndarray, seed: int, groups: np.ndarray | None) -> np.ndarray:
    """Return which examples are tested on: a fifth, stratified, or whole groups that make about a fifth."""
    if groups is None:
        return split_off(codes, TESTED, seed)
    return drawn_by_group(groups, codes, by="its groups", seed=seed, share=TESTED)


def _organised(bank: ForeignBank, name: str, rows: np.ndarray, seed: int, group: str) -> Organised:
    column = bank.columns[name]
    size = name, len(column.classes), len(bank)
    if len(column.classes) in (1, len(bank)):
        one = len(column.classes) == 1
        why = "one class alone: there is nothing to tell apart" if one else "every label is of one example"
        return Organised(*size, undefined=why)
    r2: float | None = None
    reasons = []
    try:
        _, places, counts = np.unique(column.codes, return_inverse=True, return_counts=True)
        several = counts[places] > 1  # a class of one example has no pairs
        r2 = class_separation(bank.features[several], column.codes[several], unbiased=True)
    except UndefinedError as error:
        reasons.append(str(error))
    features, codes = bank.features[rows], np.unique(column.codes[rows], return_inverse=True)[1]
    try:
        if np.bincount(codes).max() < 2:
            raise UndefinedError("every class has a single example here: none can be tested")
        tested = tested_rows(codes, seed, bank.columns[group].names[rows] if group else None)
        if np.bincount(codes[~tested]).max() < 2:
            raise UndefinedError("every class has a single example to learn from")
        linear, knn = (
            float(probe.fit(features[~tested], codes[~tested]).score(features[tested], codes[tested]))
            for probe in (LinearProbe(seed=seed), KNNProbe())
        )
    except (UndefinedError, RequestError) as error:
        return Organised(*size, r2, undefined="; ".join([*reasons, str(error)]))
    majority = float(np.bincount(codes[tested]).max() / tested.sum())
    return Organised(*size, r2, linear, knn, majority, "; ".join(reasons))
