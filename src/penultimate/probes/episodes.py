"""Episodes: which training images a probe of few labels learns from, the same for every network.

An episode puts the images of each class in a random order, which depends on the data set, the seed and the
number of the episode, and on nothing of a network. Its smallest training set is the first image of each
class, and every larger one contains the smaller ones, so that curves are paired over networks and over sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from penultimate.checks import whole_number
from penultimate.data.seeding import derived_generator
from penultimate.errors import RequestError
from penultimate.probes.arrays import NumpyInts


@dataclass(frozen=True)
class TrainingSize:
    """The images of each class that an episode gives: a number of `shots`, or `percent` of all.

    >>> sizes = TrainingSize("shots", 5), TrainingSize("percent", 10)
    >>> [size.of(np.array([3, 40, 100])).tolist() for size in sizes]
    [[3, 5, 5], [1, 4, 10]]
    """

    kind: str
    value: int

    @property
    def setting(self) -> dict[str, int]:
        """The condition under which its numbers stand in rows."""
        return {self.kind: self.value}

    def of(self, counts: Int[np.ndarray, " k"]) -> NumpyInts:
        """Return the number of images for classes with `counts` images: all if a class has fewer.

        A share is rounded to the nearest number, a half upwards, and is at least one image.
        """
        if self.kind == "shots":
            return np.asarray(np.minimum(counts, self.value), np.int64)
        nearest = (2 * self.value * counts + 100) // 200
        return np.asarray(np.minimum(counts, np.maximum(nearest, 1)), np.int64)


def episode_order(
    labels: Int[np.ndarray, " n"],
    data: str,
    seed: int,
    episode: int,
    ids: Int[np.ndarray, " n"] | None = None,
) -> NumpyInts:
    """Return the place of each example [n] among those of its class, from 0, in one episode.

    An example belongs to the training set of k images a class if its place is below k. `ids` identify the
    examples, so that another order of the rows changes nothing; without them, their order does. Raise
    RequestError for a seed or an episode that is not a whole number from 0 up, and for ids of another number.

    >>> episode_order(np.array([0, 1, 0, 1]), "digits", 0, 0).tolist() in ([0, 0, 1, 1], [1, 0, 0, 1])
    True
    >>> order = [episode_order(np.zeros(9, int), "digits", seed, 0).tolist() for seed in (0, 0, 1)]
    >>> order[0] == order[1], order[0] == order[2]
    (True, False)
    """
    whole_number(seed, "seed", 0)
    whole_number(episode, "episode", 0)
    if ids is not None and len(ids) != len(labels):
        raise RequestError(f"{len(labels)} labels, but {len(ids)} ids")
    generator = derived_generator("few labels", data, seed, episode)
    drawn = torch.randperm(len(labels), generator=generator).numpy()
    if ids is not None:
        placed = np.empty_like(drawn)
        placed[np.argsort(ids, kind="stable")] = drawn
        drawn = placed
    order = np.lexsort((drawn, labels))
    by_class = labels[order]
    firsts = np.r_[0, np.flatnonzero(np.diff(by_class)) + 1]
    starts = np.repeat(firsts, np.diff(np.r_[firsts, len(labels)]))
    places = np.empty(len(labels), np.int64)
    places[order] = np.arange(len(labels)) - starts
    return places


def sizes_of(
    shots: Sequence[int], percent: Sequence[int], counts: Int[np.ndarray, " k"]
) -> tuple[list[TrainingSize], list[str]]:
    """Return the sizes that can be measured in ascending order, and notes on those that cannot.

    `counts` [k] are the training images of each class. A size that takes all images of every class is
    measured as 100 percent alone.

    >>> sizes, notes = sizes_of((2, 5, 9), (100,), np.array([4, 8]))
    >>> [(size.kind, size.value) for size in sizes], notes[0]
    ([('shots', 2), ('shots', 5), ('percent', 100)], 'shots=5: 1 of 2 classes have fewer, and give all')
    """
    sizes, notes = [], []
    for size in (
        *(TrainingSize("shots", each) for each in sorted(shots)),
        *(TrainingSize("percent", each) for each in sorted(percent)),
    ):
        is_whole = bool(size.of(counts).sum() == counts.sum())
        if is_whole and (size.kind, size.value) != ("percent", 100):
            notes.append(
                f"{size.kind}={size.value} takes all {counts.sum()} training images: see percent=100"
            )
            continue
        short = int((counts < size.value).sum()) if size.kind == "shots" else 0
        if short:
            notes.append(
                f"{size.kind}={size.value}: {short} of {len(counts)} classes have fewer, and give all"
            )
        sizes.append(size)
    return sizes, notes


def digest_of(orders: Sequence[Int[np.ndarray, " n"]], labels: Int[np.ndarray, " n"]) -> str:
    """Return the sha256 of episodes and labels; networks whose digests are equal saw the same episodes."""
    total = hashlib.sha256(np.ascontiguousarray(labels, np.int64).tobytes())
    for places in orders:
        total.update(np.ascontiguousarray(places, np.int64).tobytes())
    return total.hexdigest()
