"""Statistics of results: means over runs, the best of a column, power, correlations, lines, proportions.

Nothing here needs a tensor library, and NumPy and SciPy are imported on first use.
"""

from penultimate.statistics.anova import Anova, two_way_anova
from penultimate.statistics.comparison import Bold, bold, holm
from penultimate.statistics.correlation import Correlation, WithoutTwo, leave_two_out, spearman
from penultimate.statistics.crossed import CrossedMean, Crossing, crossed_mean, crossings
from penultimate.statistics.lines import (
    PartialSlope,
    StraightLine,
    equivalence,
    least_squares,
    partial_slopes,
    resampled_mean,
)
from penultimate.statistics.planning import power, seeds_needed
from penultimate.statistics.proportion import proportion_interval
from penultimate.statistics.summary import MeanWithError, mean, summarise

__all__ = [
    "Anova",
    "Bold",
    "Correlation",
    "CrossedMean",
    "Crossing",
    "MeanWithError",
    "PartialSlope",
    "StraightLine",
    "WithoutTwo",
    "bold",
    "crossed_mean",
    "crossings",
    "equivalence",
    "holm",
    "least_squares",
    "leave_two_out",
    "mean",
    "partial_slopes",
    "power",
    "proportion_interval",
    "resampled_mean",
    "seeds_needed",
    "spearman",
    "summarise",
    "two_way_anova",
]
