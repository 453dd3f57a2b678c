"""Statistics of results: means over runs, the entries of a column that none beats, power, rank correlations.

Names are resolved on first use; nothing here needs a tensor library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penultimate.statistics.anova import Anova, two_way_anova
    from penultimate.statistics.comparison import Bold, bold, holm
    from penultimate.statistics.correlation import Correlation, WithoutTwo, leave_two_out, spearman
    from penultimate.statistics.planning import pooled_spread, power, seeds_needed
    from penultimate.statistics.summary import Summary, mean, standard_error, summarise

_MODULES = {
    "summary": ("Summary", "mean", "standard_error", "summarise"),
    "anova": ("Anova", "two_way_anova"),
    "comparison": ("Bold", "bold", "holm"),
    "planning": ("pooled_spread", "power", "seeds_needed"),
    "correlation": ("Correlation", "WithoutTwo", "leave_two_out", "spearman"),
}
_LOCATIONS = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Anova",
    "Bold",
    "Correlation",
    "Summary",
    "WithoutTwo",
    "bold",
    "holm",
    "leave_two_out",
    "mean",
    "pooled_spread",
    "power",
    "seeds_needed",
    "spearman",
    "standard_error",
    "summarise",
    "two_way_anova",
]


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(f"{__name__}.{_LOCATIONS[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
