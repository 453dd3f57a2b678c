"""The second set of rules: fine-tuning, layers, augmentation, combinations and robustness.

They were written before any study with enough seeds had measured what they judge, except for the likeness of
layers and the shifted test sets of the reference run, whose means were known. The first set and its numbers
stay as they are.

Simulated studies show how often these rules decide. The first figure of a pair is for three seeds, the second
for five. A ratio of 0.1 is found to be far below in 60 to 89 and 65 to 86 % of the studies (depending on
noise and tasks), and one of 0.5 is denied in 42 to 66 and 49 to 62 %. If no alternative is apart, this is
shown in 93 and 100 % if runs differ by 0.1 points, and in 0 and 24 % if by 0.3; an alternative that is apart
by twice what counts refutes it in 68 and 100 %, or in 11 and 85 %. With the reference run's noise,
AutoAugment that gains a point and leaves R² alone is found to do so in 93 and 100 %. That combinations gain
nothing is shown in 14 and 30 % if they neither gain nor lose, and in 74 and 100 % if they lose half a point;
a gain of a point refutes it in 96 and 100 %. That the last layers differ is found in 94 % with six objectives
and in 100 % with nine if all of them differ alike, and in 20 % and 60 % if they differ very unequally. Wrong
verdicts come in 3 % at most.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from penultimate.paper.arms import AUTOAUGMENT
from penultimate.paper.claims.criteria import CRITERIA, FURTHER, Criterion
from penultimate.paper.claims.rules import Alike, Claim, LastLayers, Narrower, NoSum, OnlyAccuracy
from penultimate.report.text import fixed

FURTHER_RULES = "2026-11-22, second set"
"""The date of these rules."""


_claim = partial(Claim, since=FURTHER_RULES)


FURTHER_CLAIMS: tuple[Claim, ...] = (
    _claim(
        "fine_tuning_erases",
        "Fine-tuning erases most of the differences: the objectives are spread far less than with linear"
        " classifiers",
        "section 3.1, tables 1 and 2",
        Narrower("fine_tuned", "linear"),
    ),
    _claim(
        "fine_tuned_alike",
        "Fine-tuned, no alternative is much better or worse than softmax",
        "section 3.1, table 2",
        Alike("fine_tuned"),
    ),
    _claim(
        "last_layers",
        "Objectives differ in the last layers, and little in the first",
        "section 3.2, figure 2",
        LastLayers(),
        prints="drawn, not printed",
    ),
    _claim(
        "augmentation",
        "AutoAugment raises the accuracy on the classes trained on without changing class separation",
        "appendix E.3, table E.3",
        OnlyAccuracy(AUTOAUGMENT),
    ),
    _claim(
        "combinations",
        "Objectives combined are no more accurate than the better of their parts",
        "appendix C.4, table C.4",
        NoSum(),
    ),
    _claim(
        "robustness",
        "On shifted test sets the objectives are spread far less than in transfer (linear classifiers)",
        "section 4, tables 1 and C.2",
        Narrower("robust", "linear"),
    ),
)


def further_spoken() -> tuple[str, ...]:
    """Return these rules in sentences; those of the first set on level, runs and objectives hold here too."""
    expected = fixed(len(FURTHER_CLAIMS) * CRITERIA.one_sided, 2)
    return (
        f"The rules on fine-tuning, layers, augmentation, combinations and robustness are a set of their own,"
        f" of {FURTHER_RULES}. Of these {len(FURTHER_CLAIMS)} claims up to"
        f" {expected} may be decided wrongly by chance.",
        "Spread: the standard deviation of the objectives' means over tasks, less what chance between runs"
        " adds. 'Far less' holds where the whole interval of the ratio of two spreads (bootstrap of seeds and"
        " tasks) is below a quarter, and does not where all of it is above.",
        "Fine-tuned, 'much better or worse' is a test of equivalence: of every alternative both a gain and a"
        " loss that count must be excluded; one that is shown, corrected, refutes the claim.",
        "Layers: how much more alike (CKA) two networks of one objective are than two of different ones. In"
        " the last third of the layers that must be above zero, and in the first less than a quarter of it;"
        " objectives are left out in turn (jackknife).",
        "Augmentation: within seeds, in the mean over objectives, accuracy must rise, and a change of R² that"
        " counts be excluded. Combinations: within seeds, less the better of the parts, chosen by the other"
        " seeds; a gain that counts must be excluded.",
    )


def further_reasons() -> tuple[tuple[str, Criterion], ...]:
    """Return every number of these rules with its reason, by name."""
    return tuple((field.name, getattr(FURTHER, field.name)) for field in dataclasses.fields(FURTHER))
