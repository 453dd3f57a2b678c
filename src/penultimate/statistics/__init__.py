"""Statistics of results that SciPy lacks: corrected comparisons, exact rank correlations, paired tests.

Nothing here needs a tensor library, and NumPy and SciPy are imported on first use.
"""

from penultimate.statistics.comparison import Bold, bold, holm, power, seeds_needed
from penultimate.statistics.correlation import Correlation, WithoutTwo, leave_two_out, page_p, spearman
from penultimate.statistics.crossed import CrossedMean, crossed_mean
from penultimate.statistics.lines import (
    PartialSlope,
    StraightLine,
    equivalence,
    least_squares,
    partial_slopes,
    resampled_mean,
)
from penultimate.statistics.proportion import proportion_interval

__all__ = [
    "Bold",
    "Correlation",
    "CrossedMean",
    "PartialSlope",
    "StraightLine",
    "WithoutTwo",
    "bold",
    "crossed_mean",
    "equivalence",
    "holm",
    "least_squares",
    "leave_two_out",
    "page_p",
    "partial_slopes",
    "power",
    "proportion_interval",
    "resampled_mean",
    "seeds_needed",
    "spearman",
]
