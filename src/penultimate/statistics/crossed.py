"""Means over two crossed samples: every episode of few labels is tested on the same test images.

An accuracy a_ei of episode e on image i varies with the episode, with the image, and with both together. An
interval over episodes alone would say nothing of other test images, and one over images alone nothing of
other training images; the two parts of the variance add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.proportion import proportion_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class CrossedMean:
    """A mean over episodes and images with its standard error, and the degrees of freedom of the error."""

    value: float
    error: float
    degrees: float

    def interval(self, level: float = 1 - LEVEL) -> tuple[float, float]:
        """Return the two ends of the interval by t; a point if nothing varies."""
        from scipy.special import stdtrit

        reach = 0.0 if self.error == 0 else float(stdtrit(self.degrees, (1 + level) / 2)) * self.error
        return self.value - reach, self.value + reach

    def accuracy_interval(self, images: int, level: float = 1 - LEVEL) -> tuple[float, float]:
        """Return the interval of an accuracy on a number of images, within 0 and 1.

        It is the exact interval of a share v of n independent images that has the same standard error and
        degrees of freedom, and so never a point, and never narrower than that of as many images:

        n = min(images, v (1 - v) / se^2 (t_{images-1} / t_{degrees})^2)

        >>> [round(end, 3) for end in CrossedMean(1.0, 0.0, 1.0).accuracy_interval(31)]
        [0.888, 1.0]

        Korn and Graubard, 1998.
        """
        from scipy.special import stdtrit

        count, tail = float(images), (1 - level) / 2
        if self.error > 0 and 0 < self.value < 1:
            wider = float(stdtrit(max(images - 1, 1), 1 - tail) / stdtrit(self.degrees, 1 - tail))
            count = min(count, self.value * (1 - self.value) * (wider / self.error) ** 2)
        return proportion_interval(self.value * count, count, level)

    @property
    def p(self) -> float:
        """The two-sided p of the null hypothesis that the mean is zero."""
        from scipy.special import stdtr

        if self.error == 0:
            return float(self.value == 0)
        return min(1.0, 2 * float(stdtr(self.degrees, -abs(self.value) / self.error)))


def crossed_mean(
    by_episode: Sequence[float] | npt.NDArray[np.float64],
    by_image: npt.NDArray[np.float64],
    strata: npt.NDArray[np.int64] | None = None,
) -> CrossedMean:
    """Return the mean of values a_ei with its standard error, from its margins alone.

    se^2 = s_E^2 / E + s_I^2 / n,    s_E^2, s_I^2 the variances of the means of episodes and of images

    `by_episode` [E] are the means over images of each episode, `by_image` [n] the means over episodes of each
    image. With `strata` [n], the classes of the images, the mean is that over classes of each class's mean,
    as `by_episode` is then as well, and the second part is sum_c s_c^2 / n_c / k^2. The error is too large
    rather than too small, by what image and episode do together, divided by E n. A single episode has no
    variance of its own: if it is all that there is (the whole training set), images alone vary. Degrees of
    freedom are those of Welch and Satterthwaite. Raise RequestError if there is no episode or no image.

    For the difference of two networks, pass the differences of their margins: episodes and images are paired.

    >>> import numpy as np
    >>> found = crossed_mean([0.5, 0.7], np.array([0.2, 0.6, 1.0]))
    >>> round(found.value, 3), round(found.error, 3), round(found.degrees, 2)
    (0.6, 0.252, 2.64)

    Satterthwaite, 1946; Owen, 2007 (the bootstrap of crossed samples has the same expectation).
    """
    import numpy as np

    episodes, images = np.asarray(by_episode, float), np.asarray(by_image, float)
    if not (episodes.size and images.size):
        raise RequestError("a mean over episodes and images needs one of each or more")
    groups = [images] if strata is None else [images[strata == each] for each in np.unique(strata)]
    parts = [(float(episodes.var(ddof=1)) / len(episodes), len(episodes) - 1)] if len(episodes) > 1 else []
    parts += [
        (float(group.var(ddof=1)) / len(group) / len(groups) ** 2, len(group) - 1)
        for group in groups
        if len(group) > 1
    ]
    return _combined(float(episodes.mean()), parts)


def pooled(means: Sequence[CrossedMean], weights: Sequence[float]) -> CrossedMean:
    """Return the mean of independent means with these weights, such as those on several draws of the data.

    >>> found = pooled([CrossedMean(0.5, 0.1, 9), CrossedMean(0.7, 0.1, 9)], [1, 1])
    >>> round(found.value, 3), round(found.error, 3), round(found.degrees, 3)
    (0.6, 0.071, 18.0)
    """
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    value = math.fsum(share * each.value for share, each in zip(shares, means, strict=True))
    parts = [((share * each.error) ** 2, each.degrees) for share, each in zip(shares, means, strict=True)]
    return _combined(value, parts)


def _combined(value: float, parts: Sequence[tuple[float, float]]) -> CrossedMean:
    """Return a mean whose variance is a sum of independent parts, each with its degrees of freedom."""
    variance = math.fsum(part for part, _ in parts)
    squares = math.fsum(part**2 / degrees for part, degrees in parts)
    return CrossedMean(value, math.sqrt(variance), variance**2 / squares if squares else 1.0)


@dataclass(frozen=True)
class Crossing:
    """Between which sizes, by their index, one curve overtakes another, and whether that is beyond chance.

    `is_sure`: the curves are told apart on either side, at some size each, in opposite directions.
    """

    before: int
    after: int
    is_sure: bool


def crossings(differences: Sequence[CrossedMean], told: Sequence[bool]) -> list[Crossing]:
    """Return where the difference of two curves changes its sign, for sizes in ascending order.

    `told` says at which sizes the difference is beyond chance. Sizes at which the curves are equal belong to
    neither side.

    >>> rising = [CrossedMean(value, 0.01, 9) for value in (-0.1, -0.02, 0.0, 0.05)]
    >>> crossings(rising, [True, False, False, True])
    [Crossing(before=1, after=3, is_sure=True)]
    """
    unequal = [place for place, each in enumerate(differences) if each.value != 0]
    found = []
    for before, after in itertools.pairwise(unequal):
        sign = math.copysign(1, differences[before].value)
        if sign == math.copysign(1, differences[after].value):
            continue
        earlier = any(told[place] and sign * differences[place].value > 0 for place in range(before + 1))
        later = any(
            told[place] and sign * differences[place].value < 0 for place in range(after, len(differences))
        )
        found.append(Crossing(before, after, earlier and later))
    return found


def told_apart(curves: Sequence[Sequence[CrossedMean]], level: float = LEVEL) -> list[list[bool]]:
    """Return which differences are beyond chance, for some pairs at some sizes, corrected together (Holm).

    >>> told_apart([[CrossedMean(0.1, 0.01, 9), CrossedMean(0.01, 0.01, 9)]])
    [[True, False]]
    """
    corrected = iter(holm([each.p for curve in curves for each in curve]))
    return [[next(corrected) <= level for _ in curve] for curve in curves]
