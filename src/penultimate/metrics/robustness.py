"""Robustness: errors on corrupted images, relative to a reference network's error on each corruption.

The input is a few error rates from any source, so this module needs no tensor library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from penultimate.errors import RequestError, nearest
from penultimate.metrics import UndefinedError

Errors: TypeAlias = Mapping[str, float | Sequence[float]]
"""Error rates in [0, 1] by corruption: one for each severity, or only their mean."""

ALL_SEVERITIES = 5
"""The number of severities that an error given as a mean stands for."""

ALEXNET_ERRORS: Mapping[str, float] = MappingProxyType(
    {
        "gaussian_noise": 0.886428,
        "shot_noise": 0.894468,
        "impulse_noise": 0.922640,
        "defocus_blur": 0.819880,
        "glass_blur": 0.826268,
        "motion_blur": 0.785948,
        "zoom_blur": 0.798360,
        "snow": 0.866816,
        "frost": 0.826572,
        "fog": 0.819324,
        "brightness": 0.564592,
        "contrast": 0.853204,
        "elastic_transform": 0.646056,
        "pixelate": 0.717840,
        "jpeg_compression": 0.606500,
    }
)
"""AlexNet's top-1 errors on the published ImageNet-C, averaged over five severities: the benchmark's
normalisation (Hendrycks and Dietterich, ICLR 2019, table 1; with the digits that evaluation code uses)."""


def mean_corruption_error(errors: Errors, reference: Errors = ALEXNET_ERRORS) -> float:
    """Return the mean over corruptions of the error relative to a reference's error.

    mCE = (1/C) sum_c [ sum_s E_cs / sum_s R_cs ],    s = severities 1..5

    A value of 1 is as good as the reference, and lower is better. `errors` and `reference` hold error rates
    by corruption: a sequence with one for each severity, or the mean of all five. The benchmark prints 100
    times this number, with AlexNet as the reference (the default). Raise RequestError if the two differ in
    corruptions or numbers of severities, or if an error lies outside [0, 1]; raise UndefinedError if the
    reference makes no error on a corruption.

    >>> softmax = {"fog": [0.2, 0.3, 0.4, 0.5, 0.6], "snow": [0.5] * 5}
    >>> round(mean_corruption_error({"fog": [0.1, 0.2, 0.3, 0.4, 0.5], "snow": 0.5}, softmax), 4)
    0.875

    Hendrycks and Dietterich, ICLR 2019, section 4.2; Kornblith et al., 2021, table C.2.
    """
    relative = corruption_errors(errors, reference)
    return math.fsum(relative.values()) / len(relative)


def corruption_errors(errors: Errors, reference: Errors = ALEXNET_ERRORS) -> dict[str, float]:
    """Return each corruption's error relative to a reference's: CE_c = sum_s E_cs / sum_s R_cs.

    `mean_corruption_error`, the mean of these values, describes the arguments and the errors raised.

    >>> corruption_errors({"fog": [0.25, 0.5]}, {"fog": [0.5, 1.0]})
    {'fog': 0.5}
    """
    if not errors:
        raise RequestError("the corruption error of no corruption: no errors were given")
    for one, other, whose in ((errors, reference, "the reference's"), (reference, errors, "the given")):
        missing = [name for name in one if name not in other]
        if missing:
            raise RequestError(
                f"{whose} errors lack {', '.join(missing)}.{nearest(missing[0], other)} The mean is"
                " taken over the same corruptions on both sides; leave others out of both"
            )
    relative = {}
    for name in errors:
        error, count = _mean(name, errors[name], "the given")
        baseline, expected = _mean(name, reference[name], "the reference's")
        if count != expected:
            raise RequestError(
                f"{name}: errors at {count} severities, the reference's at {expected}"
                f" (one number counts as the mean of {ALL_SEVERITIES})"
            )
        if baseline == 0:
            raise UndefinedError(f"{name}: the reference makes no error, so that no ratio to it exists")
        relative[name] = error / baseline
    return relative


def _mean(name: str, values: float | Sequence[float], whose: str) -> tuple[float, int]:
    """Return the mean error of a corruption, and the number of severities (all, if a mean is given)."""
    several = not isinstance(values, int | float)
    try:
        listed = [float(value) for value in values] if several else [float(values)]  # type: ignore[union-attr,arg-type]
    except (TypeError, ValueError) as error:
        raise RequestError(f"{name}: {whose} errors must be numbers in [0, 1]: {error}") from None
    if not listed:
        raise RequestError(f"{name}: {whose} errors are empty; one per severity is expected")
    wrong = next((value for value in listed if not 0 <= value <= 1), None)
    if wrong is not None:
        hint = "; divide percentages by 100" if 1 < wrong <= 100 else ""
        raise RequestError(f"{name}: {whose} errors must lie in [0, 1]; got {wrong}{hint}")
    return math.fsum(listed) / len(listed), len(listed) if several else ALL_SEVERITIES
