"""The fourth set of rules: claims of the paper that had none, filed on 2026-11-26, the weightiest first.

The runs that come with the package are older, so that these rules describe them and do not test them. What
they measured was known when the rules were written, as were the paper's numbers.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from penultimate.paper.arms import AUTOAUGMENT
from penultimate.paper.claims.criteria import CRITERIA, FOURTH, Criterion
from penultimate.paper.claims.further import FURTHER_CLAIMS
from penultimate.paper.claims.rules import (
    FILED,
    Adds,
    Below,
    BestForShare,
    BestOfAll,
    Claim,
    Elsewhere,
    NoMixture,
    NoSingleBest,
    Positive,
    Ranked,
    SomeBetter,
    Unassociated,
)
from penultimate.paper.claims.stated import CLAIMS
from penultimate.report.text import fixed

FILED_RULES = f"{FILED}, fourth set"
"""The date of these rules."""
_DRAWN = "drawn, not printed"


_claim = partial(Claim, since=FILED_RULES)


FILED_CLAIMS: tuple[Claim, ...] = (
    _claim(
        "thesis",
        "Higher accuracy on the classes trained on is not associated with better transfer (linear"
        " classifiers)",
        "figure 1, table 1",
        Unassociated("accuracy", "linear"),
    ),
    _claim(
        "least_accurate",
        "Softmax is less accurate on the classes trained on than every alternative",
        "section 3.1, table 1",
        BestOfAll("accuracy", -1),
    ),
    _claim(
        "second_thesis",
        "In a second architecture, too, higher accuracy is not associated with better transfer",
        "appendix B, table B.1",
        Elsewhere(Unassociated("accuracy", "linear")),
    ),
    _claim(
        "second_best",
        "In a second architecture, too, softmax's features transfer best (linear classifiers, mean of the"
        " tasks)",
        "appendix B, table B.1",
        Elsewhere(BestOfAll("linear")),
    ),
    _claim(
        "second_separation",
        "In a second architecture, too, the further an objective separates the classes, the worse its"
        " features transfer",
        "appendix B, table B.1",
        Elsewhere(Ranked("separation", "linear", -1)),
    ),
    _claim(
        "least_sparse",
        "Softmax leaves more penultimate activations on than every alternative",
        "section 3.2, figure 3",
        BestOfAll("active"),
        prints="softmax 92.8 %, the others drawn",
    ),
    _claim(
        "sparse",
        "Logit normalization, cosine softmax and squared error leave fewer than a quarter of the penultimate"
        " activations on",
        "section 3.2, figure 3",
        Below("active", 25.0, ("logit_norm", "cosine_softmax", "squared_error")),
        prints="below 25 % for the three, without their numbers",
    ),
    _claim(
        "augmentation_adds",
        "The gains of augmentation add to those of the objectives: with AutoAugment an alternative is more"
        " accurate than softmax with it, and than itself without it",
        "appendix C.4, table C.5",
        Adds(AUTOAUGMENT),
    ),
    _claim(
        "best_throughout",
        "Softmax's features transfer best throughout training: at more than half of the snapshots",
        "appendix D.2, figure D.2",
        BestForShare("snapshots", 0.51),
        prints=_DRAWN,
    ),
    _claim(
        "later_layers_change",
        "Fine-tuning changes later layers more than earlier ones (softmax)",
        "section 3.2, appendix D.4, figure D.3",
        Positive("moved", "softmax"),
        prints=_DRAWN,
    ),
    _claim(
        "ensembles",
        "Ensembles of two objectives are no more accurate than the better of the ensembles of one",
        "appendix C.3, figure C.7",
        NoMixture(),
        prints=_DRAWN,
    ),
    _claim(
        "several_labels",
        "On images of several labels softmax's features are better than all others' for four labels of five",
        "appendix D.3, table D.1",
        BestForShare("labels", 0.8),
    ),
    _claim(
        "slightly_more",
        "Where most classes are those of pretraining (Pets), some objective that separates them further than"
        " softmax transfers better (linear classifiers)",
        "section 3.4, tables 1 and F.1",
        SomeBetter("linear", ("pets", "newfaces")),
    ),
    _claim(
        "no_single_best",
        "No single objective is the most accurate on every benchmark",
        "ICLR version, section 3.1, table 1",
        NoSingleBest(),
    ),
)
EVERY_CLAIM = (*CLAIMS, *FURTHER_CLAIMS, *FILED_CLAIMS)


def filed_spoken() -> tuple[str, ...]:
    """Return these rules in sentences; those of the first set on level, runs and objectives hold here too."""
    expected = fixed(len(FILED_CLAIMS) * CRITERIA.one_sided, 2)
    return (
        f"A fourth set of {len(FILED_CLAIMS)} claims is of {FILED_RULES}; up"
        f" to {expected} may be decided wrongly by chance. Runs that were measured before that day, as the"
        " kept ones were, are described by these rules, not tested.",
        "Not associated: a rank correlation that counts must be excluded. Fewer than a quarter: each of the"
        " means must lie below it. Gains add up where both are at least what counts. Ensembles: mixtures less"
        " the better of their parts; objectives are left out in turn (jackknife). No single best: every"
        " objective must be beaten on some benchmark, by what counts. Where some alternative is claimed to be"
        " better, one must be, corrected for their number.",
        "What fine-tuning reaches is not judged while more than a tenth of its best cells lie on the edge of"
        " their grid.",
    )


def filed_reasons() -> tuple[tuple[str, Criterion], ...]:
    """Return every number of these rules with its reason, by name."""
    return tuple((field.name, getattr(FOURTH, field.name)) for field in dataclasses.fields(FOURTH))
