"""Curves over the size of the training set, from what episodes of few labels left: means and differences.

The networks of an objective that saw the same episodes are averaged first; those of other draws of the data
saw other images, and count as independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penultimate.report.measurements import Measurements
from penultimate.report.sets import official_accuracy
from penultimate.statistics.crossed import CrossedMean, crossed_mean, pooled

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

METRIC = "few_labels_curve"


@dataclass
class Margins:
    """The sums over some networks of each episode's accuracy [E] and of each image's share of hits [n]."""

    by_episode: npt.NDArray[np.float64]
    by_image: npt.NDArray[np.float64]
    strata: npt.NDArray[np.int64] | None
    networks: int = 1

    def add(self, by_episode: npt.NDArray[np.float64], by_image: npt.NDArray[np.float64]) -> None:
        """Add another network."""
        self.by_episode = self.by_episode + by_episode
        self.by_image = self.by_image + by_image
        self.networks += 1

    @property
    def mean(self) -> CrossedMean:
        count = self.networks
        return crossed_mean(self.by_episode / count, self.by_image / count, self.strata)

    def minus(self, other: Margins) -> CrossedMean:
        """Return the mean difference to other networks on the same episodes and images."""
        ours, theirs = self.networks, other.networks
        return crossed_mean(
            self.by_episode / ours - other.by_episode / theirs,
            self.by_image / ours - other.by_image / theirs,
            self.strata,
        )


@dataclass
class Learnt:
    """An objective at one size: `images` of training, and the margins for each draw of episodes."""

    size: str
    images: int
    draws: dict[str, Margins] = field(default_factory=dict)

    @property
    def tested(self) -> int:
        """The number of test images."""
        return sum(len(margins.by_image) for margins in self.draws.values())

    @property
    def mean(self) -> CrossedMean:
        return pooled(
            [each.mean for each in self.draws.values()], [of.networks for of in self.draws.values()]
        )

    def minus(self, other: Learnt) -> CrossedMean | None:
        """Return the mean difference over the draws that both have, or None if there is none."""
        shared = [draw for draw in self.draws if draw in other.draws]
        if not shared:
            return None
        differences = [self.draws[draw].minus(other.draws[draw]) for draw in shared]
        return pooled(differences, [1.0] * len(shared))


CurveOf = dict[str, Learnt]
"""The sizes of a curve in ascending order of the training images, by name ("shots=5")."""


def curves_of(measurements: Measurements, target: str, probe: str) -> dict[str, CurveOf]:
    """Return the curve of each objective on a target, by its spec, in the order of the study."""
    strata = official_accuracy(target) == "mean_per_class"
    read = measurements.results.arrays
    found: dict[str, CurveOf] = {}
    for row in measurements.rows(METRIC, "test", target) if read else ():
        if row.step is None or row.objective is None or not measurements.is_own(row):
            continue
        assert read is not None
        _add(found.setdefault(str(row.objective), {}), read(row.step, METRIC), probe, strata)
    return {
        each.spec: dict(sorted(found[each.spec].items(), key=lambda item: item[1].images))
        for each in measurements.objectives
        if each.spec in found
    }


def _add(curve: CurveOf, arrays: Mapping[str, Any], probe: str, per_class: bool) -> None:
    """Add a network to the curve of its objective."""
    import numpy as np

    digest, labels = str(arrays["digest"][0]), np.asarray(arrays["labels"])
    for place, size in enumerate(arrays["sizes"].tolist()):
        episodes = np.asarray(arrays[probe][place], float)
        episodes = episodes[np.isfinite(episodes)]
        hits = np.asarray(arrays[f"{probe}_hits"][place], float)
        learnt = curve.setdefault(size, Learnt(size, int(arrays["images"][place])))
        if digest in learnt.draws:
            learnt.draws[digest].add(episodes, hits)
        else:
            learnt.draws[digest] = Margins(episodes, hits, labels if per_class else None)
