"""Means over two crossed samples: every episode of few labels is tested on the same test images.

An accuracy a_ei of episode e on image i varies with the episode, with the image, and with both together. An
interval over episodes alone would say nothing of other test images, and one over images alone nothing of
other training images; the two parts of the variance add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL
from penultimate.statistics.proportion import proportion_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class CrossedMean(NamedTuple):
    """A mean over episodes and images with its standard error, and the degrees of freedom of the error."""

    value: float
    error: float
    degrees: float

    def interval(self) -> tuple[float, float]:
        """Return the two ends of the 95 % interval by t; a point if nothing varies."""
        from scipy.special import stdtrit

        reach = 0.0 if self.error == 0 else float(stdtrit(self.degrees, 1 - LEVEL / 2)) * self.error
        return self.value - reach, self.value + reach

    def accuracy_interval(self, images: int) -> tuple[float, float]:
        """Return the 95 % interval of an accuracy on a number of images, within 0 and 1.

        It is the exact interval of a share v of n independent images that has the same standard error and
        degrees of freedom, and so never a point, and never narrower than that of as many images:

        n = min(images, v (1 - v) / se^2 (t_{images-1} / t_{degrees})^2)

        >>> [round(end, 3) for end in CrossedMean(1.0, 0.0, 1.0).accuracy_interval(31)]
        [0.888, 1.0]

        Korn and Graubard, 1998.
        """
        from scipy.special import stdtrit

        count, at = float(images), 1 - LEVEL / 2
        if self.error > 0 and 0 < self.value < 1:
            wider = float(stdtrit(max(images - 1, 1), at) / stdtrit(self.degrees, at))
            count = min(count, self.value * (1 - self.value) * (wider / self.error) ** 2)
        return proportion_interval(self.value * count, count)


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
    samples = [(episodes, 1.0), *((group, len(groups)) for group in groups)]
    parts = [
        (float(of.var(ddof=1)) / len(of) / share**2, len(of) - 1) for of, share in samples if len(of) > 1
    ]
    variance = math.fsum(part for part, _ in parts)
    squares = math.fsum(part**2 / degrees for part, degrees in parts)
    return CrossedMean(float(episodes.mean()), math.sqrt(variance), variance**2 / squares if squares else 1.0)
