"""Splits that keep groups of examples whole: drawn with every class on both sides, or looked at for leaks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penultimate.data.readers.walking import some
from penultimate.errors import RequestError, counted

STARTS, FURTHER, MANY = 8, 64, 1000
"""The searches for a split, the most of them while a class is missing, and the groups beyond which one is."""
PASSES = 20
"""The most times that every group is looked at in a search."""


def crossing(train: npt.NDArray[Any], test: npt.NDArray[Any], by: str, of: str = "image") -> str:
    """Return a sentence on the groups of test examples that are in training too, or "".

    >>> crossing(np.array(["p1", "p2"]), np.array(["p2", "p3"]), "'patient'")[:48]
    "1 of 2 groups of test images by 'patient' is in "
    """
    shared = np.intersect1d(train, test)
    if not shared.size:
        return ""
    images = [int(np.isin(each, shared).sum()) for each in (test, train)]
    named = ", ".join(map(repr, map(str, shared[:3]))) + (", ..." if len(shared) > 3 else "")
    verb = "is" if len(shared) == 1 else "are"
    return (
        f"{len(shared):,} of {counted(len(np.unique(test)), 'group')} of test {of}s by {by} {verb} in"
        f" training too ({named}): {images[0]:,} of {len(test):,} test {of}s and {images[1]:,} of"
        f" {len(train):,} training {of}s, so that accuracies may be too high"
    )


def drawn_by_group(
    groups: npt.NDArray[Any],
    labels: npt.NDArray[np.int64],
    class_names: Sequence[str],
    *,
    by: str,
    seed: int = 0,
    share: float = 0.2,
) -> npt.NDArray[np.bool_]:
    """Return which examples are tested on: whole groups, with about this share of all and of each class.

    `groups` [n] are names, `labels` [n] classes, or [n l] 1 for each label that an example shows; `by` is how
    the groups are called. Groups are taken in the order of the sha256 of (seed, name) until they hold the
    share of the examples; then a group changes sides as long as that brings the shares nearer:

    sum_c (t_c - s n_c)^2 / n_c + (t - s n)^2 / n,    t_c of n_c examples of class c tested, t of n in all,

    while no class that lies in two groups may be missing from either side. Of several such searches the best
    split counts. It depends on the names of groups, the classes and the seed, not on the order of examples.

    Raise RequestError if there is one group, if every example is a group of its own, and if a class would be
    missing from training or from test.

    >>> groups = np.array(["p1", "p2", "p3", "p4", "p5"]).repeat(4)
    >>> tested = drawn_by_group(groups, np.arange(20) % 2, ("a", "b"), by="'patient'")
    >>> int(tested.sum()), len(np.unique(groups[tested]))
    (4, 1)
    """
    names, codes = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise RequestError(
            f"everything is of one group by {by}, '{names[0]}'; two groups or more are split between training"
            " and test"
        )
    if len(names) == len(groups):
        raise RequestError(
            f"every one of {len(groups):,} is a group of its own by {by}, so that there is nothing to keep"
            " together; name a column or level whose values recur, or no group"
        )
    several = labels.ndim == 2
    rows, classes = np.nonzero(labels == 1) if several else (np.arange(len(groups)), labels)
    counts = np.zeros((len(names), len(class_names)), np.int64)
    np.add.at(counts, (codes[rows], classes), 1)
    if not several:
        _expect_two_groups(names, counts, class_names, by)
    search = _SplitSearch(counts, np.bincount(codes), share, not several)
    best: tuple[float, npt.NDArray[np.bool_]] | None = None
    for start in range(FURTHER):
        found = search.from_order(_order(names, seed, start))
        best = found if best is None or found[0] < best[0] else best
        if best[0] < search.penalty and start + 1 >= (STARTS if len(names) <= MANY else 1):
            break
    assert best is not None
    if best[0] >= search.penalty:
        lacking = [class_names[at] for at in search.missing(best[1])]
        raise RequestError(
            f"no split by {by} was found that keeps groups whole and has every class in training and in test;"
            f" in the best one {some(lacking, 'class', 'classes')} would be missing from one of them. Give"
            " more groups, or leave such classes out"
        )
    tested: npt.NDArray[np.bool_] = best[1][codes]
    return tested


def _order(names: npt.NDArray[Any], seed: int, start: int) -> npt.NDArray[np.int64]:
    """Return the places of the groups, in an order that the seed draws from their names."""
    digests = [
        hashlib.sha256(f"{seed}\0{start}\0{name}".encode(errors="surrogateescape")).hexdigest()
        for name in names
    ]
    return np.argsort(digests)


def _expect_two_groups(
    names: npt.NDArray[Any], counts: npt.NDArray[np.int64], class_names: Sequence[str], by: str
) -> None:
    """Raise RequestError for a class of two examples or more that lies in a single group."""
    alone = np.flatnonzero((counts.sum(0) > 1) & ((counts > 0).sum(0) == 1))
    if alone.size:
        label = int(alone[0])
        group, its = names[counts[:, label].argmax()], counts[:, label].sum()
        lying = f"{some([class_names[int(at)] for at in alone], 'class', 'classes')}"
        raise RequestError(
            f"{lying} {'lies' if alone.size == 1 else 'lie'} in a single group by {by}: all {its:,} of"
            f" '{class_names[label]}' in '{group}', so that the class would be missing from training or from"
            " test. Give examples of a second group, or leave the class out"
        )


@dataclass(frozen=True)
class _SplitSearch:
    """A search for the groups to test on.

    counts     examples of each class in each group [groups classes]
    sizes      examples of each group [groups]
    is_strict  whether a class that is missing from one side is worse than any shares
    """

    counts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    share: float
    is_strict: bool

    @property
    def penalty(self) -> float:
        """What a missing class adds: more than the shares of all can."""
        return 4.0 * float(self.sizes.sum() + self.counts.sum())

    def missing(self, tested: npt.NDArray[np.bool_]) -> list[int]:
        """Return the classes that are missing from a side; one of a single example is to be trained on."""
        of_test, of_all = self.counts[tested].sum(0), self.counts.sum(0)
        return np.flatnonzero(_is_missing(of_test, of_all)).tolist()

    def from_order(self, order: npt.NDArray[np.int64]) -> tuple[float, npt.NDArray[np.bool_]]:
        """Return a split to which no change of one group's side is better, and how far it is off."""
        total = float(self.sizes.sum())
        before = np.cumsum(self.sizes[order]) - self.sizes[order] / 2
        tested = np.zeros(len(self.sizes), bool)
        tested[order[before < self.share * total]] = True
        if not tested.any():
            tested[order[0]] = True
        table = np.concatenate([self.counts, self.sizes[:, None]], 1)
        there = [np.flatnonzero(row) for row in table]
        of_all = table.sum(0)
        taken = table[tested].sum(0)
        strict = np.append(np.full(self.counts.shape[1], self.is_strict), True)

        def off(at: npt.NDArray[np.int64], now: npt.NDArray[np.int64]) -> float:
            shares = ((now - self.share * of_all[at]) ** 2 / of_all[at]).sum()
            lacking = (_is_missing(now, of_all[at]) & strict[at]).sum()
            return float(shares + self.penalty * lacking)

        for _ in range(PASSES):
            changed = False
            for group in order.tolist():
                at = there[group]
                moved = taken[at] + (-1 if tested[group] else 1) * table[group, at]
                if off(at, moved) < off(at, taken[at]) - 1e-9:
                    taken[at] = moved
                    tested[group] = not tested[group]
                    changed = True
            if not changed:
                break
        every = np.flatnonzero(of_all)
        return off(every, taken[every]), tested


def _is_missing(of_test: npt.NDArray[np.int64], of_all: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    single = of_all == 1
    return np.where(single, of_test > 0, (of_all > 0) & ((of_test == 0) | (of_test == of_all)))
