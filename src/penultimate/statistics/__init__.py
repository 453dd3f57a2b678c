"""Statistics of results: means over runs, the best of a column, power, correlations, lines, proportions.

Names are resolved on first use, and nothing here needs a tensor library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penultimate.lazy import attributes

if TYPE_CHECKING:
    from penultimate.statistics.anova import Anova as Anova
    from penultimate.statistics.anova import two_way_anova as two_way_anova
    from penultimate.statistics.comparison import Bold as Bold
    from penultimate.statistics.comparison import bold as bold
    from penultimate.statistics.comparison import holm as holm
    from penultimate.statistics.correlation import Correlation as Correlation
    from penultimate.statistics.correlation import WithoutTwo as WithoutTwo
    from penultimate.statistics.correlation import leave_two_out as leave_two_out
    from penultimate.statistics.correlation import spearman as spearman
    from penultimate.statistics.crossed import CrossedMean as CrossedMean
    from penultimate.statistics.crossed import Crossing as Crossing
    from penultimate.statistics.crossed import crossed_mean as crossed_mean
    from penultimate.statistics.crossed import crossings as crossings
    from penultimate.statistics.lines import PartialSlope as PartialSlope
    from penultimate.statistics.lines import StraightLine as StraightLine
    from penultimate.statistics.lines import equivalence as equivalence
    from penultimate.statistics.lines import least_squares as least_squares
    from penultimate.statistics.lines import partial_slopes as partial_slopes
    from penultimate.statistics.lines import resampled_mean as resampled_mean
    from penultimate.statistics.planning import power as power
    from penultimate.statistics.planning import seeds_needed as seeds_needed
    from penultimate.statistics.proportion import proportion_interval as proportion_interval
    from penultimate.statistics.summary import MeanWithError as MeanWithError
    from penultimate.statistics.summary import mean as mean
    from penultimate.statistics.summary import standard_error as standard_error
    from penultimate.statistics.summary import summarise as summarise

__getattr__, __dir__ = attributes(
    __name__,
    {
        "anova": "Anova two_way_anova",
        "comparison": "Bold bold holm",
        "correlation": "Correlation WithoutTwo leave_two_out spearman",
        "crossed": "CrossedMean Crossing crossed_mean crossings",
        "lines": "PartialSlope StraightLine equivalence least_squares partial_slopes resampled_mean",
        "planning": "power seeds_needed",
        "proportion": "proportion_interval",
        "summary": "MeanWithError mean standard_error summarise",
    },
)
__all__ = __dir__()
