"""From a study's rows to tables, figures and one page.

A run is a pandas frame, and an exhibit is a function of a run. Names are resolved when first used; nothing
here needs a tensor library, and a drawing library only to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penultimate.lazy import attributes

if TYPE_CHECKING:
    from penultimate.results.exhibit import Exhibit as Exhibit
    from penultimate.results.exhibit import Shown as Shown
    from penultimate.results.exhibit import exhibit as exhibit
    from penultimate.results.exhibit import show as show
    from penultimate.results.page import write_page as write_page
    from penultimate.results.rows import Run as Run
    from penultimate.results.rows import read_reference as read_reference
    from penultimate.results.rows import read_run as read_run

__getattr__, __dir__ = attributes(
    __name__,
    {"exhibit": "Exhibit Shown exhibit show", "page": "write_page", "rows": "Run read_reference read_run"},
)
__all__ = __dir__()
