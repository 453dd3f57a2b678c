"""What stands beside CKA: how often it is beyond chance, and how far a shift of a few images moves it."""

from __future__ import annotations

from penultimate.report.measurements import Measurements
from penultimate.report.spec import OURS
from penultimate.report.text import counted, fixed, in_words, signed
from penultimate.statistics.comparison import LEVEL, holm


def of_pairs(measurements: Measurements) -> tuple[str, ...]:
    """Return a sentence on chance and a caution about shifts, for the pairs whose likeness was measured."""
    ps, nulls, shifted, changes = (
        [row.value for row in measurements.rows(f"likeness_cka_{name}")]
        for name in ("p", "null", "shifted", "change")
    )
    if not ps:
        return ()
    beyond = in_words(sum(p <= LEVEL for p in holm(ps)), "none")
    told = (
        f"{OURS}: CKA is above chance for {beyond} of {counted(len(ps), 'pair')} of networks (permutations"
        f" of the images, corrected for all pairs by Holm); chance exceeds {fixed(max(nulls), 3)} in one of"
        " 20 permutations at most."
    )
    if not shifted or not changes:
        return (told,)
    most = max(changes, key=abs)
    caution = (
        "A caution: CKA follows a few images. If 1 % of them are shifted in one network by ten times their"
        " usual distance from the mean, which changes no linear decision on the others, its CKA with itself"
        f" falls to {fixed(min(shifted), 2)}, and that of a pair changes by up to {signed(most, 2)} (after"
        " Davari et al., 2022)."
    )
    return told, caution
