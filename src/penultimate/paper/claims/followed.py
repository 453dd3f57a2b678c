"""The paper's statements about alternatives to softmax, asked of one further objective.

What the paper says of each alternative is tested as its claims are, within seeds. What it says of all of them
together is a line: an objective follows it if its own value lies where the other objectives' line expects it
(a 95 % prediction interval of least squares).
"""

from __future__ import annotations

import math

from penultimate.paper.claims.aspects import NAMES, Aspect
from penultimate.paper.claims.comparisons import level_text
from penultimate.paper.claims.evidence import StudyEvidence, gather
from penultimate.paper.claims.trials import Trial, assess, one, unit
from penultimate.report.measurements import Measurements
from penultimate.report.page.form import Followed
from penultimate.report.shapes.numbers import rank_correlation
from penultimate.report.text import counted, fixed
from penultimate.statistics import mean

FOLLOWS, DEPARTS, OPEN = "follows", "departs", "undecided"
VERDICTS = {"holds": FOLLOWS, "does not hold": DEPARTS}
ALONE: tuple[tuple[Aspect, int, str, str], ...] = (
    ("accuracy", 1, "It is more accurate than softmax on the classes trained on", "section 3.1, table 1"),
    ("train", -1, "It fits the training images worse than softmax", "appendix C.1, table C.1"),
    (
        "matched",
        1,
        "At equal accuracy on the training images, it is more accurate than softmax on new ones",
        "appendix C.1, figure C.3",
    ),
    ("separation", 1, "It separates the classes further than softmax", "section 3.3, table 3"),
    ("linear", -1, "Its features transfer worse than softmax's (linear classifiers)", "section 3.1, table 1"),
    ("knn", -1, "Its features transfer worse than softmax's (kNN classifiers)", "section 3.1, table 1"),
)
"""What the paper says of every alternative, or of all but one: the aspect, and its sign against softmax."""
TOGETHER: tuple[tuple[Aspect, Aspect, str, str], ...] = (
    ("separation", "linear", "Class separation foretells its linear transfer", "section 3.4, figure 5"),
    ("separation", "knn", "Class separation foretells its kNN transfer", "sections 3.1 and 3.4"),
    (
        "separation",
        "relearned",
        "Class separation foretells how well its head is relearned from limited data",
        "section 3.4, figure 6",
    ),
    ("accuracy", "robust", "Its accuracy foretells that on shifted test sets", "appendix C.2, table C.2"),
)
LEAST, LEAST_RHO = 5, 0.5


def followed(measurements: Measurements, spec: str) -> tuple[Followed, ...]:
    """Return which of the paper's statements one objective follows, beside the others of a study."""
    evidence = gather(measurements)
    asked = [
        *(_alone(evidence, spec, *statement) for statement in ALONE),
        *(_together(evidence, spec, *statement) for statement in TOGETHER),
    ]
    return tuple(found for found in asked if found is not None)


def _alone(
    evidence: StudyEvidence, spec: str, aspect: Aspect, sign: int, says: str, where: str
) -> Followed | None:
    softmax, _ = evidence.alternatives(aspect)
    runs = evidence.values(aspect).get(spec, {})
    shared = [seed for seed in runs if seed in softmax]
    if not shared:
        return None
    margin = evidence.least(aspect, softmax)
    trial = Trial(
        evidence.effect((runs, softmax), (sign, -sign), margin), unit(aspect), sign=sign, runs=len(shared)
    )
    enough = evidence.is_enough(len(shared))
    refusal = "" if enough else f"{counted(len(shared), 'seed')}: too few to judge."
    lead = f"softmax {level_text(mean(softmax[seed] for seed in shared), aspect)}"
    found = assess(one(trial, lead=lead, refusal=refusal), evidence.criteria)
    return Followed(says, where, found.ours, VERDICTS.get(found.verdict, OPEN), found.reason)


def _together(
    evidence: StudyEvidence, spec: str, of_x: Aspect, of_y: Aspect, says: str, where: str
) -> Followed | None:
    x, y = evidence.values(of_x), evidence.values(of_y)
    if spec not in x or spec not in y:
        return None
    others = [other for other in x if other in y and other != spec]
    xs, ys = ([mean(of[other].values()) for other in others] for of in (x, y))
    rank = rank_correlation(xs, ys)
    if len(others) < LEAST or rank is None:
        return None
    here, there = mean(x[spec].values()), mean(y[spec].values())
    expected, half = predicted(xs, ys, here)
    told = (
        f"{level_text(there, of_y)}; expected from {level_text(here, of_x)}:"
        f" {fixed(expected, 1)} ({fixed(expected - half, 1)} to {fixed(expected + half, 1)})"
    )
    line = f"the line of {len(others)} others (ρ = {fixed(rank.rho, 2)})"
    if abs(rank.rho) < LEAST_RHO:
        return Followed(
            says, where, told, OPEN, f"There is hardly a line to follow: {NAMES[of_x]} ranks {line[12:]}."
        )
    inside = abs(there - expected) <= half
    where_it_lies = "where" if inside else "beside where"
    return Followed(
        says, where, told, FOLLOWS if inside else DEPARTS, f"It lies {where_it_lies} {line} expects it."
    )


def predicted(xs: list[float], ys: list[float], at: float) -> tuple[float, float]:
    """Return what a least-squares line expects at a place, and half of its 95 % prediction interval.

    y = a + b x,    half = t_{.975, n-2} s sqrt(1 + 1/n + (x - mean x)^2 / S_xx)

    >>> expected, half = predicted([1, 2, 3, 4], [2.1, 3.9, 6.1, 7.9], 5)
    >>> round(expected, 2), round(half, 2)
    (9.9, 0.86)
    """
    from scipy.special import stdtrit

    n, centre = len(xs), mean(xs)
    s_xx = math.fsum((x - centre) ** 2 for x in xs)
    slope = math.fsum((x - centre) * (y - mean(ys)) for x, y in zip(xs, ys, strict=True)) / s_xx
    start = mean(ys) - slope * centre
    squares = math.fsum((y - start - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    spread = math.sqrt(squares / (n - 2))
    half = float(stdtrit(n - 2, 0.975)) * spread * math.sqrt(1 + 1 / n + (at - centre) ** 2 / s_xx)
    return start + slope * at, half
