"""The claims, and their rules in sentences.

The rules of `RULES_OF` followed a first reference run, whose means were known, and an earlier set of rules,
which the tag `rules-2026-11` keeps with its verdicts.

Objectives are compared within seeds, and the variance is not pooled over objectives, because it differs
between them: with the paper's own standard errors as the truth, five seeds and no differences, Dunnett's test
on the pooled variance finds one in 7 % of studies instead of 2.5, the paired tests in fewer than 2 %.
"""

from __future__ import annotations

import dataclasses

from penultimate.objectives.presets import PRESETS
from penultimate.paper.claims.criteria import CRITERIA, Criteria, Criterion
from penultimate.paper.claims.rules import (
    ALTERNATIVES,
    AMENDED,
    FILED,
    RULES_OF,
    BestForMost,
    BestOfAll,
    Better,
    Claim,
    Levels,
    NonePositive,
    OnlyThese,
    Positive,
    Ranked,
    Trend,
    Unbeaten,
)
from penultimate.report.text import fixed

_RELEARNED = "section 3.4, figure 6; the numbers: ICLR version, table 3"
_NOT_PRINTED = "drawn, not printed"

CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            f"accuracy_{name}",
            f"{PRESETS[name].label} is more accurate than softmax on the classes trained on",
            "table 1; section 3.1 excepts it" if name == "squared_error" else "section 3.1, table 1",
            Better("accuracy", name),
            ours=name == "squared_error",
        )
        for name in ALTERNATIVES
    ),
    Claim(
        "train_accuracy",
        "Every alternative but label smoothing fits the training images worse than softmax",
        "appendix C.1, table C.1",
        BestOfAll("train", among=tuple(name for name in ALTERNATIVES if name != "label_smoothing")),
    ),
    Claim(
        "matched_accuracy",
        "At equal accuracy on the training images, every alternative is more accurate than softmax on new"
        " ones",
        "appendix C.1, figure C.3",
        BestOfAll("matched", -1),
        prints=_NOT_PRINTED,
    ),
    Claim(
        "calibration",
        "How well an objective is calibrated has no clear relation to its accuracy",
        "appendix C.2, table C.3",
        Ranked("accuracy", "ece", 0),
    ),
    Claim(
        "mistakes",
        "Two networks of one objective make the same mistakes more often than two of different objectives",
        "appendix C.3, figure C.4",
        Positive("kinship"),
        prints=_NOT_PRINTED,
    ),
    Claim(
        "most_linear",
        "Softmax's features are the best for most tasks (linear classifiers)",
        "section 3.1, table 1",
        BestForMost("linear"),
    ),
    Claim(
        "most_knn",
        "Softmax's features are the best for most tasks (kNN classifiers)",
        "section 3.1, table 1",
        BestForMost("knn"),
    ),
    Claim(
        "softmax_best",
        "Softmax's features transfer best (linear classifiers, mean of the tasks)",
        "sections 3.1 and 3.4, table 1",
        BestOfAll("linear"),
    ),
    Claim(
        "softmax_best_knn",
        "Softmax's features transfer best (kNN classifiers, mean of the tasks)",
        "section 3.1, table 1",
        BestOfAll("knn"),
        ours=True,
    ),
    Claim(
        "softmax_unbeaten",
        "No alternative's features transfer better than softmax's (linear classifiers, mean of the tasks)",
        "section 3.1, table 1",
        Unbeaten("linear"),
        ours=True,
    ),
    Claim(
        "softmax_unbeaten_knn",
        "No alternative's features transfer better than softmax's (kNN classifiers, mean of the tasks)",
        "section 3.1, table 1",
        Unbeaten("knn"),
        ours=True,
    ),
    Claim(
        "separation_all",
        "Every alternative separates the classes further than softmax",
        "section 3.3, table 3",
        BestOfAll("separation", -1),
    ),
    Claim(
        "separation_before",
        "Before the penultimate layer only final layer L², logit penalty and squared error separate the"
        " classes further than softmax",
        "ICLR version, section 3.4, figure 4",
        OnlyThese("separation_before", ("final_layer_l2", "logit_penalty", "squared_error")),
        prints=_NOT_PRINTED,
    ),
    Claim(
        "softmax_peaks",
        "Softmax's class separation peaks in the course of training, then falls",
        "section 3.3, appendix E.4",
        Positive("fall", "softmax"),
        prints="the peak is at epoch 32 of 146",
    ),
    Claim(
        "others_rise",
        "No alternative's class separation falls before the end of training",
        "section 3.3, appendix E.4",
        NonePositive("fall"),
        prints="highest at the last checkpoint, for all",
    ),
    Claim(
        "separation_linear",
        "The further an objective separates the classes, the worse its features transfer (linear"
        " classifiers)",
        "section 3.4, figure 5a",
        Ranked("separation", "linear", -1),
    ),
    Claim(
        "separation_knn",
        "The same holds for kNN classifiers",
        "section 3.1, tables 1 and 3",
        Ranked("separation", "knn", -1),
        ours=True,
    ),
    Claim(
        "separation_shared",
        "Separation hurts transfer least where the task shares its classes with pretraining",
        "section 3.4, appendix F",
        Positive("shared"),
        since=AMENDED,
    ),
    Claim(
        "separation_relearned",
        "The further an objective separates the classes, the better its head is relearned from limited data",
        _RELEARNED,
        Ranked("separation", "relearned", 1),
    ),
    Claim(
        "separation_gap",
        "The further an objective separates the classes, the less the relearned head falls behind the"
        " original",
        _RELEARNED,
        Ranked("separation", "gap", 1),
    ),
    Claim(
        "temperature_separation",
        "A higher temperature of cosine softmax separates the classes further",
        "section 3.4, table 4",
        Trend("separation", 1),
    ),
    Claim(
        "temperature_transfer",
        "A higher temperature of cosine softmax transfers worse (linear classifiers)",
        "section 3.4, figure 5b",
        Trend("linear", -1),
    ),
    Claim(
        "temperature_accuracy",
        "A higher temperature of cosine softmax raises the accuracy on the classes trained on, then levels"
        " off",
        "section 3.4, table 4",
        Levels("accuracy"),
    ),
)


def spoken(criteria: Criteria = CRITERIA) -> tuple[str, ...]:
    """Return the rules in sentences, for the notes under the verdicts; `reasons` lists their numbers."""
    return (
        f"These rules are of {RULES_OF}. A run"
        f" that is older than its rules is described by them, not"
        f" tested. The rule on shared classes was amended on {AMENDED}, for tasks that share a part of"
        f" them, and on {FILED} it took the paper's shares for the paper's tasks, which changes no verdict on"
        " this package's own. On that day three claims were filed with the side that makes them, the paper or"
        " us.",
        "Holds: the effect has the claimed sign beyond chance, and its estimate is as large as the least that"
        " counts. Does not hold: an effect that counts is excluded. Undecided: neither. That something makes"
        " no difference holds only where a difference that counts is excluded.",
        "Objectives are compared within seeds, since a seed is a draw of the data that all share: by a t-test"
        " of the differences.",
        "p is twice the one-sided one. Where any of several alternatives may decide, it is corrected by"
        " Holm's method, and where most of the tasks must agree, by Benjamini and Heller's; where it"
        " disagrees with"
        " an interval, p governs. Nothing is corrected over the claims: of"
        f" {len(CLAIMS)}, up to {fixed(len(CLAIMS) * criteria.one_sided, 2)} may be decided wrongly by"
        " chance.",
        "A rank correlation has its exact p, and the wider of two intervals: over objectives (Fisher; Bonett"
        " and Wright) and over seeds (bootstrap). For a verdict p and interval must agree. Its range with any"
        " two left out decides nothing. Of temperatures each seed's order is tested (Page's L).",
        "Equal training accuracy: the highest that all objectives of a seed reach, interpolated between"
        " snapshots. A peak is where the other seeds have it. Before the penultimate layer: in the last"
        " block, on test images. Shared classes: the slope of the tasks' ρ over the share of their"
        " classes that pretraining has, which is the difference of two means where they share all or none."
        " Mistakes: of networks of different seeds, which are left out in turn (jackknife).",
        "A claim of no"
        " difference can be shown only where the interval is narrower than the difference that counts, and"
        " that two quantities are unrelated only with 16 objectives or more: until then it can be refuted,"
        " not shown, and its row says so.",
    )


def reasons(criteria: Criteria = CRITERIA) -> tuple[tuple[str, Criterion], ...]:
    """Return every number of the rules with its reason, by name."""
    return tuple((field.name, getattr(criteria, field.name)) for field in dataclasses.fields(criteria))
