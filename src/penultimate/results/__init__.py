"""From a study's rows to tables, figures and one page.

A run is a pandas frame, and an exhibit is a function of a run. Names are resolved when first used; nothing
here needs a tensor library, and a drawing library only to draw. `penultimate.results(path)` returns the rows
of a study, whether or not this room, which has the same name, has been imported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from penultimate.lazy import attributes

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.results.exhibit import Exhibit as Exhibit
    from penultimate.results.exhibit import Shown as Shown
    from penultimate.results.exhibit import show as show
    from penultimate.results.page import write_page as write_page
    from penultimate.results.rows import Run as Run
    from penultimate.results.rows import read_reference as read_reference
    from penultimate.results.rows import read_run as read_run

__getattr__, __dir__ = attributes(
    __name__,
    {"exhibit": "Exhibit Shown show", "page": "write_page", "rows": "Run read_reference read_run"},
)
__all__ = __dir__()


class _Room(ModuleType):
    """This module, which can be called."""

    def __call__(self, path: Path | str = "runs", study: str = "") -> pd.DataFrame:
        """Return the rows of a study (`records.reading.results`)."""
        from penultimate.records.reading import results

        return results(path, study)


sys.modules[__name__].__class__ = _Room
