"""What a claim is, and the kinds of rule that judge one: data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from penultimate.paper import published
from penultimate.paper.claims.aspects import Aspect

FIRST_RULES = "2026-11-20"
"""The date of the rules that this package began with, whose verdicts stand beside those of today's."""
RULES_OF = "2026-11-22"
"""The date of today's rules."""
AMENDED = "2026-11-23"
"""The date since which shared classes are judged by a slope over their share: before, all or none were."""
ALTERNATIVES = tuple(name for name in published.objectives() if name != "softmax")
"""The objectives that the paper compares with softmax."""


@dataclass(frozen=True)
class Better:
    """The objective's mean is above softmax's (one of several: Holm over all alternatives)."""

    aspect: Aspect
    objective: str


@dataclass(frozen=True)
class BestOfAll:
    """Softmax's mean is above (sign +1) or below (sign -1) that of each of these objectives."""

    aspect: Aspect
    sign: Literal[-1, 1] = 1
    among: tuple[str, ...] = ALTERNATIVES


@dataclass(frozen=True)
class Unbeaten:
    """No alternative's mean is above softmax's."""

    aspect: Aspect


@dataclass(frozen=True)
class OnlyThese:
    """The means of these objectives are above softmax's, those of the other alternatives are not."""

    aspect: Aspect
    objectives: tuple[str, ...]


@dataclass(frozen=True)
class BestForMost:
    """On more than half of the tasks, softmax's mean is above that of every alternative."""

    aspect: Literal["linear", "knn"]


@dataclass(frozen=True)
class Ranked:
    """x and y rank the objectives alike (sign +1), oppositely (-1), or neither (0)."""

    x: Aspect
    y: Aspect
    sign: Literal[-1, 0, 1]


@dataclass(frozen=True)
class Trend:
    """Within each seed, the quantity rises (sign +1) or falls (-1) with the temperature (Page's test)."""

    aspect: Aspect
    sign: Literal[-1, 1]


@dataclass(frozen=True)
class Levels:
    """The mean rises up to the middle temperature and is level above it."""

    aspect: Aspect


@dataclass(frozen=True)
class Positive:
    """A quantity that each seed has one of (of this objective, or of the study) has a mean above zero."""

    aspect: Aspect
    objective: str = ""


@dataclass(frozen=True)
class NonePositive:
    """Of no alternative has the quantity a mean above zero."""

    aspect: Aspect


@dataclass(frozen=True)
class Narrower:
    """The objectives' means are spread much less in x than in y."""

    x: Literal["fine_tuned", "robust"]
    y: Literal["linear"]


@dataclass(frozen=True)
class Alike:
    """The mean of every alternative is as high as softmax's, neither much above nor much below."""

    aspect: Aspect


@dataclass(frozen=True)
class LastLayers:
    """Networks of one objective are more alike than those of two in the last layers, hardly in the first."""


@dataclass(frozen=True)
class OnlyAccuracy:
    """In this arm accuracy is above that of the main one, and class separation is what it is there."""

    arm: str


@dataclass(frozen=True)
class NoSum:
    """Objectives combined are no better than the better of their parts, in the mean of the combinations."""


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
)


@dataclass(frozen=True)
class Claim:
    """A statement in our words, where the paper makes it, and the rule that judges it.

    ours    the paper prints numbers, but does not make the statement: it is ours
    prints  the paper's evidence, where no table of it has the numbers
    since   the date of the rules that it came with, or of its amended rule
    """

    key: str
    says: str
    where: str
    rule: Rule
    ours: bool = False
    prints: str = ""
    since: str = RULES_OF
