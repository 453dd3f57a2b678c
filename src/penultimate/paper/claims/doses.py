"""The third set of rules: objectives at several strengths, for the studies `sweep` and `sweep_smallest`.

They were written on 2026-11-26, before any network of these studies was trained, from pretraining rows alone:
the searches' accuracies on the holdout, and a pilot of one seed that was never transferred. In them

- a family is an objective whose strength is varied (an arm of the study), with softmax as its strength zero
  where it has one. A strength counts if every seed has it; one that diverged or is not measured is left out
  of the curve and named;
- a price is a slope of transfer on class separation, in points for each .1 of R²: a fall is a negative one.
  Slopes are those of least squares within each seed; means over seeds are tested by t, with one degree of
  freedom fewer than seeds, never over networks;
- a study with fewer strengths is judged by those that it has. A pair of which a network is not there, and a
  family of which fewer than two strengths are, is said not to be judged.

Simulated studies show the power, with networks that vary by .45 points within a seed: a slope of -3.6 is
found for a family of three strengths over .1 of R² with three seeds in 97 to 100 %. With a slope of -1.4 it
takes 34 strengths and five seeds to find it in 99 %. That a fall of .5 counts is excluded, if the truth is
none, overall, but rarely of one family by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from penultimate.paper.claims.criteria import CRITERIA, DOSES, Criterion
from penultimate.paper.claims.rules import Claim, Dose
from penultimate.report.text import fixed

DOSE_RULES = "2026-11-26, third set"
"""The date of these rules."""
FAMILIES = (
    "label_smoothing",
    "final_layer_l2",
    "logit_penalty",
    "sigmoid",
    "logit_norm",
    "cosine_softmax",
    "squared_error",
)
"""The arms of the families that are judged. Dropout's is not: R² moves by .05 for four points of accuracy."""
WITHOUT_A_LINE = ("squared_error",)
"""The families that are left out where families are compared at one R², which these never reach."""


@dataclass(frozen=True)
class PairOfStrengths:
    """Two strengths of a family whose accuracy on the search's holdout was the same, in per cent."""

    family: str
    weak: str
    strong: str
    holdout: tuple[float, float]


PAIRS = (
    PairOfStrengths("logit_penalty", "softmax", "logit_penalty(beta=0.0024)", (77.0, 77.0)),
    PairOfStrengths(
        "label_smoothing", "label_smoothing(alpha=0.1)", "label_smoothing(alpha=0.4)", (77.5, 77.35)
    ),
    PairOfStrengths(
        "logit_norm", "logit_norm(temperature=0.028)", "logit_norm(temperature=0.08)", (76.9, 76.7)
    ),
    PairOfStrengths(
        "squared_error",
        "squared_error(kappa=9, scale=1.28, target=1.88)",
        "squared_error(kappa=9, scale=1.28, target=7.5)",
        (73.4, 73.6),
    ),
)
"""The pairs of equal accuracy, fixed by the searches' holdout."""
WINDOW: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "label_smoothing": ("softmax", *(f"label_smoothing(alpha={alpha})" for alpha in (0.1, 0.2, 0.4))),
        "final_layer_l2": (
            "softmax",
            *(f"final_layer_l2(lambda_final={weight})" for weight in (0.000128, 0.0008)),
        ),
        "logit_penalty": ("softmax", *(f"logit_penalty(beta={beta})" for beta in (0.0006, 0.0024, 0.0047))),
        "sigmoid": ("sigmoid", *(f"logit_penalty(beta={beta}) + sigmoid" for beta in (0.0003, 0.0006))),
        "logit_norm": tuple(f"logit_norm(temperature={tau})" for tau in (0.028, 0.04, 0.057, 0.08)),
        "cosine_softmax": tuple(f"cosine_softmax(scale=1, temperature={tau})" for tau in (0.035, 0.05)),
    }
)
"""The strengths whose accuracy on the search's holdout is at most a point below softmax's 77.0 %; of the
sigmoid with a logit penalty, which was not searched, those that the grid expected at about 77 %."""


def _dose_claim(key: str, says: str, rule: Dose) -> Claim:
    return Claim(key, says, "section 3.4, read as a cause", rule, True, _NOT_VARIED, DOSE_RULES)


_NOT_VARIED = "No strength but the temperature is varied"
DOSE_CLAIMS: tuple[Claim, ...] = (
    _dose_claim(
        "dose_reading",
        "Class separation itself costs transfer: at equal accuracy, in no family the other way round, and at"
        " one price for all objectives",
        Dose("reading"),
    ),
    _dose_claim(
        "dose_pairs",
        "Of two strengths of equal accuracy, that which separates the classes further transfers worse (linear"
        " classifiers)",
        Dose("pairs"),
    ),
    _dose_claim("dose_pairs_knn", "The same holds for kNN classifiers", Dose("pairs", "knn")),
    _dose_claim(
        "dose_slopes",
        "In every family, the further a strength separates the classes, the worse the features transfer"
        " (linear classifiers)",
        Dose("slopes"),
    ),
    _dose_claim(
        "dose_slopes_knn", "In every family, the same holds for kNN classifiers", Dose("slopes", "knn")
    ),
    _dose_claim(
        "dose_window",
        "In every family, it holds among the strengths that cost less than a point of accuracy",
        Dose("window"),
    ),
    _dose_claim(
        "dose_overall",
        "In the mean of the families, separation costs transfer, beyond chance over seeds and over families",
        Dose("overall"),
    ),
    _dose_claim(
        "dose_one_line",
        "All families lie on one line of transfer on class separation",
        Dose("one line"),
    ),
    _dose_claim(
        "dose_strengths",
        "At the strengths that the paper prints, the further an objective separates the classes, the worse"
        " its features transfer",
        Dose("strengths"),
    ),
)
"""The claims about strengths; the first is the primary one."""


def dose_reasons() -> tuple[tuple[str, Criterion], ...]:
    """Return every number of these rules with its reason, by name."""
    return tuple((field.name, getattr(DOSES, field.name)) for field in dataclasses.fields(DOSES))


def dose_spoken() -> tuple[str, ...]:
    """Return these rules in sentences; those of the first set on level, runs and verdicts hold here too."""
    price, equal = fixed(DOSES.least_price.value, 1), fixed(DOSES.equal.value, 2)
    place, span = fixed(DOSES.one_place.value, 2), fixed(DOSES.span.value, 2)
    return (
        f"The rules on strengths are a set of their own, of {DOSE_RULES}. They"
        " came before any network that they judge was trained, and rest on pretraining rows alone.",
        "A price is the slope of transfer on R², in points for each .1, by least squares within each seed,"
        " and is tested over seeds by t. A family's price holds if it is a fall beyond chance of an estimated"
        f" {price} points or more, and does not if that is excluded; over families p is corrected by"
        " Holm's method. Linear transfer is judged; kNN transfer likewise, as claims of its own.",
        "Equal accuracy: pairs of strengths of one family, fixed by the holdout of the searches. A pair"
        f" counts if its test accuracies are shown to be within {equal} points of each other, and if R²"
        " rises in every seed. Its price is the difference in transfer over the mean difference in R². The"
        " mean price of the pairs that count is judged.",
        f"One line: transfer at R² = {place}, read from each family's line within each seed, and the slopes"
        " themselves, by an analysis of variance (families x seeds, with their interaction as error;"
        " corrected for two tests by Holm). The claim fails if either differs beyond chance, with a range of"
        f" {fixed(DOSES.least_range.value, 1)} points or more, and holds if every two families are shown to"
        " be within that in both.",
        "The primary claim, the paper's reading, is refuted if the mean price of pairs excludes a fall that"
        " counts, if transfer rises with R² beyond chance in a family, or if the families do not share a"
        f" line. The study is silent if in the window fewer than {DOSES.least_families.value:.0f} families"
        f" span {span} of R²: then the reading is not confirmed, whatever the pairs say, though it may be"
        " refuted, since each refutation is beyond chance by itself. Otherwise it is confirmed if the mean"
        " price of pairs holds.",
        f"Of these {len(DOSE_CLAIMS)} claims up to {fixed(len(DOSE_CLAIMS) * CRITERIA.one_sided, 2)} may"
        " be decided wrongly by chance. Covariates, the line of under-training and a bootstrap of whole seeds"
        " are shown beside the verdicts and decide nothing.",
    )
