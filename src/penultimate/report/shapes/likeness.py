"""What stands beside CKA: how often it is beyond chance."""

from __future__ import annotations

from penultimate.report.measurements import Measurements
from penultimate.report.spec import OURS
from penultimate.report.text import counted, fixed, in_words
from penultimate.statistics.comparison import LEVEL, holm


def of_pairs(measurements: Measurements) -> tuple[str, ...]:
    """Return a sentence on chance, for the pairs whose likeness was measured."""
    ps, nulls = ([row.value for row in measurements.rows(f"likeness_cka_{name}")] for name in ("p", "null"))
    if not ps:
        return ()
    beyond = in_words(sum(p <= LEVEL for p in holm(ps)), "none")
    told = (
        f"{OURS}: CKA is above chance for {beyond} of {counted(len(ps), 'pair')} of networks (permutations"
        f" of the images, corrected for all pairs by Holm); chance exceeds {fixed(max(nulls), 3)} in one of"
        " 20 permutations at most."
    )
    return (told,)
