"""Claims, and the kinds of rule that judge them, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from penultimate.paper import published
from penultimate.paper.claims.aspects import Aspect

RULES_OF = "2026-11-22"
"""The date of today's rules."""
AMENDED = "2026-11-23"
"""The date since which shared classes are judged by a slope over their share, not as all or none."""
FILED = "2026-11-26"
"""The date since which squared error's accuracy is filed as ours, and softmax's linear transfer and the
spread on shifted test sets as the paper's, and since which the paper's tasks share the classes of its
Table F.1. No other rule and no number was changed. On this date the fourth set of rules was filed, too."""
ALTERNATIVES = tuple(name for name in published.objectives() if name != "softmax")
"""The objectives that the paper compares with softmax."""


@dataclass(frozen=True)
class Better:
    """Rule: the objective's mean is above softmax's (one of several: Holm over all alternatives)."""

    aspect: Aspect
    objective: str


@dataclass(frozen=True)
class BestOfAll:
    """Rule: softmax's mean is above (sign +1) or below (sign -1) that of each of these objectives."""

    aspect: Aspect
    sign: Literal[-1, 1] = 1
    among: tuple[str, ...] = ALTERNATIVES


@dataclass(frozen=True)
class Unbeaten:
    """Rule: no alternative's mean is above softmax's."""

    aspect: Aspect


@dataclass(frozen=True)
class OnlyThese:
    """Rule: the means of these objectives are above softmax's; those of the other alternatives are not."""

    aspect: Aspect
    objectives: tuple[str, ...]


@dataclass(frozen=True)
class BestForMost:
    """Rule: on more than half of the tasks, softmax's mean is above that of every alternative."""

    aspect: Literal["linear", "knn"]


@dataclass(frozen=True)
class Ranked:
    """Rule: x and y rank the objectives alike (sign +1), oppositely (-1), or neither (0)."""

    x: Aspect
    y: Aspect
    sign: Literal[-1, 0, 1]


@dataclass(frozen=True)
class Trend:
    """Rule: within each seed, the quantity rises (sign +1) or falls (-1) with temperature (Page's test)."""

    aspect: Aspect
    sign: Literal[-1, 1]


@dataclass(frozen=True)
class Levels:
    """Rule: the mean rises up to the middle temperature and is level above it."""

    aspect: Aspect


@dataclass(frozen=True)
class Positive:
    """Rule: the mean over seeds of a quantity (of this objective, or of the study) is above zero."""

    aspect: Aspect
    objective: str = ""


@dataclass(frozen=True)
class NonePositive:
    """Rule: no alternative has a mean of the quantity above zero."""

    aspect: Aspect


@dataclass(frozen=True)
class Narrower:
    """Rule: the spread of the objectives' means is much smaller in x than in y."""

    x: Literal["fine_tuned", "robust"]
    y: Literal["linear"]


@dataclass(frozen=True)
class Alike:
    """Rule: the mean of every alternative is neither much above nor much below softmax's."""

    aspect: Aspect


@dataclass(frozen=True)
class LastLayers:
    """Rule: networks of one objective are more alike than of two in the last layers, hardly in the first."""


@dataclass(frozen=True)
class OnlyAccuracy:
    """Rule: in this arm accuracy is above that of the main arm, and class separation is unchanged."""

    arm: str


@dataclass(frozen=True)
class NoSum:
    """Rule: combined objectives are no better than the better of their parts, in the mean of combinations."""


@dataclass(frozen=True)
class Dose:
    """Rule on families of objectives whose strength is varied (`claims.doses`).

    test    "reading": what the paper's reading implies, all together; "pairs": strengths of equal accuracy;
            "slopes": of each family; "window": the same within a window of accuracy; "overall": the mean
            slope; "one line": whether the families share a line; "strengths": the rank correlation at the
            strengths that the paper prints
    """

    test: Literal["reading", "pairs", "slopes", "window", "overall", "one line", "strengths"]
    aspect: Literal["linear", "knn"] = "linear"


@dataclass(frozen=True)
class Regained:
    """Rule: where the final layer has its own weight decay, these gain on softmax as they do in the paper.

    `share` is the share of the paper's mean gain, in softmax's errors, from which a mean gain counts.
    """

    among: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class BetterInBoth:
    """Rule: the one objective beside softmax is above it in test accuracy and in transfer (`claims.both`)."""

    aspect: Literal["linear", "knn"]


@dataclass(frozen=True)
class Projected:
    """Rule on objectives behind a projector, which is thrown away after training (`claims.projectors`).

    test    "gain": transfer is better with two layers than with none; "spread": the objectives differ less in
            it; "accuracy": the objectives with two layers are as accurate as softmax with none
    """

    test: Literal["gain", "spread", "accuracy"]
    aspect: Literal["linear", "knn"] = "linear"


@dataclass(frozen=True)
class Ranking:
    """Rule on the errors among the surest answers of label smoothing and softmax (`claims.certainty`).

    test    "degrades": label smoothing has more by the maximum softmax probability; "mends": the normalised
            logit takes away more of them than of softmax's
    """

    test: Literal["degrades", "mends"]


@dataclass(frozen=True)
class Unassociated:
    """Rule: x and y do not rank the objectives alike."""

    x: Aspect
    y: Aspect


@dataclass(frozen=True)
class BestForShare:
    """Rule: on this share of the labels, or snapshots, softmax is above every alternative measured."""

    aspect: Literal["labels", "snapshots"]
    share: float


@dataclass(frozen=True)
class Below:
    """Rule: the mean of each of these objectives is below a limit."""

    aspect: Aspect
    limit: float
    objectives: tuple[str, ...]


@dataclass(frozen=True)
class Adds:
    """Rule: in this arm each alternative is more accurate than softmax there, and than itself without it."""

    arm: str


@dataclass(frozen=True)
class SomeBetter:
    """Rule: on the first of these tasks some objective that separates further is above softmax."""

    aspect: Aspect
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class NoMixture:
    """Rule: ensembles of two objectives are no better than the better of these alone, in the mean."""


@dataclass(frozen=True)
class NoSingleBest:
    """Rule: every objective is beaten by another one on some benchmark."""


@dataclass(frozen=True)
class Elsewhere:
    """Rule: another rule, in a second architecture."""

    rule: Ranked | Unassociated | BestOfAll


Rule: TypeAlias = (
    Better
    | BestOfAll
    | Unbeaten
    | OnlyThese
    | BestForMost
    | Ranked
    | Trend
    | Levels
    | Positive
    | NonePositive
    | Narrower
    | Alike
    | LastLayers
    | OnlyAccuracy
    | NoSum
    | Dose
    | Regained
    | BetterInBoth
    | Projected
    | Ranking
    | Unassociated
    | BestForShare
    | Below
    | Adds
    | SomeBetter
    | NoMixture
    | NoSingleBest
    | Elsewhere
)


@dataclass(frozen=True)
class Claim:
    """A statement in our words, with its place in the paper and the rule that judges it.

    ours    whether the paper prints the numbers but does not make the statement, so that it is ours
    prints  the paper's evidence, if no table of the paper has the numbers
    since   the date of the rules that the claim came with, or of its amended rule
    """

    key: str
    says: str
    where: str
    rule: Rule
    ours: bool = False
    prints: str = ""
    since: str = RULES_OF
