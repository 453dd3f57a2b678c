"""The second set of rules: fine-tuning, layers, augmentation, combinations and robustness.

They were written before any study with enough seeds had measured what they judge, but for the likeness of
layers and the shifted test sets of the reference run, whose means were known. The first set, its numbers and
its text stay as they are.
"""

from __future__ import annotations

import dataclasses

from penultimate.report.claims.criteria import CRITERIA, FURTHER
from penultimate.report.claims.rules import Alike, Claim, LastLayers, Narrower, NoSum, OnlyAccuracy, Rule
from penultimate.report.claims.stated import CLAIMS, digest_of
from penultimate.report.quantity import AUTOAUGMENT
from penultimate.report.text import fixed

FURTHER_RULES = "2026-11-22, second set"
"""The date of these rules."""


def _claim(key: str, says: str, where: str, rule: Rule, ours: bool = False, prints: str = "") -> Claim:
    return Claim(key, says, where, rule, ours, prints, since=FURTHER_RULES)


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
        "appendix C.2, tables 1 and C.2",
        Narrower("robust", "linear"),
        ours=True,
    ),
)
EVERY_CLAIM = (*CLAIMS, *FURTHER_CLAIMS)


def further_digest() -> str:
    """The sha256 of these rules."""
    return digest_of(FURTHER, FURTHER_CLAIMS)


def further_spoken() -> tuple[str, ...]:
    """These rules in sentences; what the first set says of level, runs and objectives holds for them too."""
    expected = fixed(len(FURTHER_CLAIMS) * CRITERIA.one_sided, 1)
    return (
        f"The rules on fine-tuning, layers, augmentation, combinations and robustness are a set of their own,"
        f" of {FURTHER_RULES} (sha256 {further_digest()[:12]}). Of these {len(FURTHER_CLAIMS)} claims up to"
        f" {expected} more may be expected to be decided wrongly by chance.",
        "Spread: the standard deviation of the objectives' means over tasks, from the covariance between"
        " different seeds, which the chance between runs does not enlarge. The ratio of two spreads holds as"
        " far below where its whole interval is, and does not where its whole interval is above. Seeds and"
        " tasks are resampled, for all objectives at once (Owen's pigeonhole bootstrap); where both spreads"
        " are over the same tasks, these are drawn once for both.",
        "Fine-tuned, 'much better or worse' is a test of equivalence (two one-sided tests): for every"
        " alternative both a gain and a loss that count must be excluded; one that is shown, corrected,"
        " refutes it.",
        "Layers: how much more alike (CKA) two networks of one objective are than two of different ones, of"
        " different seeds, in the last third of the layers (at least one) and in the first. It holds where in"
        " the last it is above zero and the first has less than a quarter of it. There are two networks of"
        " each objective, so that objectives are left out in turn, not seeds (jackknife).",
        "Augmentation: within seeds, the mean over the objectives that both arms have. Accuracy must rise,"
        " and both a rise and a fall of R² that count must be excluded.",
        "Combinations: within seeds, the combination less the better of its parts, which is the one that is"
        " better in the other seeds, lest the better of two by chance be taken; the mean over all"
        " combinations. It holds where a gain that counts is excluded.",
        "How often these rules decide, of simulated studies of three seeds and of five: a ratio of 0.1 is"
        " found far below in 60 to 89 and 65 to 86 % (by noise and tasks), one of 0.5 is denied in 42 to"
        " 66 and 49 to 62 %. That no alternative is apart, where none is, is shown in 93 and 100 % if runs"
        " differ by 0.1 points, in 0 and 24 % if by 0.3; one that is apart by twice what counts refutes it"
        " in 68 and 100, or 11 and 85 %. With the reference run's noise, AutoAugment that gains a point"
        " and leaves R² alone is found to in 93 and 100 %; that combinations gain nothing, where they do"
        " not, in 14 and 30 %, where they lose half a point in 74 and 100 %; a gain of a point refutes it"
        " in 96 and 100 %. Last layers are found in 94 % (six objectives) and 100 % (nine) where all"
        " differ alike, in 20 and 60 % where they differ very unequally. Wrong verdicts come in 3 % at"
        " most.",
        *(getattr(FURTHER, field.name).reason for field in dataclasses.fields(FURTHER)),
    )
