"""What the reference runs show: `came_out.md`, written by hand.

README, `docs/results.md` and the first page of the reference run say the same sentences, and
`tests/test_came_out.py` computes each number from rows.
"""

from __future__ import annotations

from pathlib import Path

from penultimate.records.archive import reference
from penultimate.results.rows import Run

RUN = "evidence"
_TEXT = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
WORLD, *POINTS, NOTE = (" ".join(paragraph.split()) for paragraph in _TEXT.split("\n\n"))
"""The world of the results, three results, and what stands beside the count of verdicts."""


def is_reference(run: Run) -> bool:
    """Return whether these are the rows of the main reference run that the sentences are about."""
    return run.name == RUN and run.provenance.get("rows_sha256") == reference(RUN).digest
