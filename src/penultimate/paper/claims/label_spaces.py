"""The rules on the number of classes: is the price of separation the same with 16 classes as with 128?

They were written on 2026-11-26, before any network of the study `class_counts` was trained. What was known is
the quickstart's answer with 128 classes, and pilots of pretraining alone (seed 7001, which no study uses).

With each number of classes K the price is the quickstart's: the slope of mean linear transfer on R² within
draws, of softmax, a logit penalty that separates further, and squared error. R² is that of the classes which
the networks were trained on, and the transfer tasks are the same for every K. Whether the price depends on K
is asked of all networks at once:

    transfer = a_(K, draw) + (b + c (log2 K - m)) R²

by least squares, with m the mean of log2 K over the numbers of classes. c is the change of the price with
each doubling of the classes. 36 networks in 12 blocks leave 36 - 12 - 2 = 22 degrees of freedom; networks
count one by one, as in the quickstart. Networks of one draw share first weights and tasks at every K: what
that adds to an objective at each K alike cancels in c. As the change might differ from draw to draw all the
same, "holds" also asks that each draw by itself has the sign of the whole.

4,000 simulated studies, with networks that vary by .5 points and R² of .36, .41 and .45, find a change of one
point a doubling in 99 %, one of half a point in 60 % and one of a quarter in 19 %; where there is none, they
find one in 3 %. So a price that vanishes between 16 classes and 128 is seen, and little less than that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from penultimate.data.catalog import card
from penultimate.objectives.presets import PRESETS, preset_of
from penultimate.paper.claims.criteria import CRITERIA, DOSES, Criteria, Criterion
from penultimate.paper.claims.effects import Effect, Verdict, all_of, corrected, decide, effect_by_t
from penultimate.paper.claims.evidence import Evidence, StudyEvidence
from penultimate.paper.claims.quick import fall
from penultimate.paper.claims.rules import Claim, LabelSpaces
from penultimate.paper.claims.stated import digest_of
from penultimate.paper.claims.strengths import PER, price_text
from penultimate.paper.claims.trials import Assessment, Trials, not_judged, range_text, unmeasured
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.text import counted, fixed, listed, p_value, signed
from penultimate.statistics import PartialSlope, mean, partial_slopes, slope_within

CLASS_RULES = "2026-11-26, the number of classes"
"""The date of these rules."""
STUDY = "class_counts"
"""The study that measures what these rules judge."""
COMPARED = ("softmax", "logit_penalty", "squared_error")
"""The objectives at every number of classes, whatever their strengths there."""
LEAST_CHANGE = Criterion(
    DOSES.least_price.value / 3,
    "A change of the price counts from half a point for each .1 of R² over three doublings, from 16 classes"
    " to 128: as much as a price counts by itself.",
)
_Seen: TypeAlias = Literal["linear", "knn"]


def _claim(key: str, says: str, rule: LabelSpaces) -> Claim:
    where = "section 5; no table varies the number of classes"
    return Claim(key, says, where, rule, True, "The number of classes is not varied", CLASS_RULES)


CLASS_CLAIMS: tuple[Claim, ...] = (
    _claim(
        "classes_price",
        "With few classes as with many, the further an objective separates them, the worse its features"
        " transfer (linear classifiers)",
        LabelSpaces("price"),
    ),
    _claim("classes_price_knn", "The same holds for kNN classifiers", LabelSpaces("price", "knn")),
    _claim(
        "classes_change",
        "The more classes networks are trained on, the less transfer falls with class separation (linear"
        " classifiers)",
        LabelSpaces("change"),
    ),
    _claim("classes_change_knn", "The same holds for kNN classifiers", LabelSpaces("change", "knn")),
)


def class_digest() -> str:
    """Return the sha256 of these rules: objectives, numbers and claims."""
    return digest_of((CRITERIA, DOSES.least_price, COMPARED, PER, LEAST_CHANGE), CLASS_CLAIMS)


def class_spoken() -> tuple[str, ...]:
    """Return these rules in sentences; those of the first set on level, runs and verdicts hold here too."""
    price, change = fixed(DOSES.least_price.value, 1), fixed(LEAST_CHANGE.value, 2)
    return (
        f"The rules on the number of classes are of {CLASS_RULES.partition(',')[0]} (sha256"
        f" {class_digest()[:12]}), before any network of the study that they judge was trained. The price is"
        " the slope of mean transfer on R² within draws, in points for each .1, at each number of classes. It"
        f" is a fall that counts from {price} points, beyond chance; p is corrected for the numbers of"
        " classes (Holm). The claim holds if transfer falls so at every number of classes, and fails if such"
        " a fall is excluded at one.",
        "The change of the price with each doubling of the classes comes from one regression within draws and"
        f" numbers of classes. It counts from {change} points, and holds if it is that large, beyond chance,"
        " and of that sign in every draw by itself; it does not hold if so large a change is excluded."
        f" Of these {len(CLASS_CLAIMS)} claims up to {fixed(len(CLASS_CLAIMS) * CRITERIA.one_sided, 2)} may"
        " be decided wrongly by chance.",
    )


@dataclass(frozen=True)
class LabelSpace:
    """The networks that were trained on one number of classes: R² and transfer by draw, then by objective.

    `absent` are the networks that were planned and have no numbers, because they diverged or are not there.
    """

    classes: int
    separation: Mapping[Seed, Mapping[str, float]]
    transfer: Mapping[Seed, Mapping[str, float]]
    absent: tuple[str, ...] = ()

    @property
    def draws(self) -> tuple[Seed, ...]:
        """The draws in which a line can be laid: those with two objectives or more."""
        return tuple(draw for draw, of in self.separation.items() if len(of) > 1)

    def line(self, draw: Seed) -> tuple[list[float], list[float]]:
        """Return the R² and the transfer of one draw's networks."""
        return list(self.separation[draw].values()), list(self.transfer[draw].values())

    def price(self, criteria: Criteria = CRITERIA) -> Effect | None:
        """Return the effect that transfer falls with R² within draws, or None with too few draws."""
        if len(self.draws) < criteria.least_runs.value:
            return None
        found = slope_within(map(self.line, self.draws))
        if found is None or found.standard_error == 0:
            return None
        return fall(found.slope, found.standard_error, found.degrees_of_freedom, criteria)


def arms_by_classes(measurements: Measurements) -> dict[int, Measurements]:
    """Return the arms of a study by how many classes their networks are trained on, from the fewest on.

    Beside the main arm those count whose grids set the number; the first of equals is taken.
    """
    there = card(measurements.source).classes
    found: dict[int, Measurements] = {}
    for arm in dict.fromkeys((measurements.arm, *measurements.arms)):
        numbers = {int(grid.get("classes", 0)) for grid in measurements.networks.grids(arm)}
        if len(numbers) == 1 and (numbers != {0} or arm == measurements.arm):
            found.setdefault(numbers.pop() or there, measurements.in_arm(arm))
    return dict(sorted(found.items()))


def label_spaces(evidence: StudyEvidence, aspect: _Seen = "linear") -> list[LabelSpace]:
    """Return the label spaces of a study, or nothing if all its networks have the same classes."""
    arms = arms_by_classes(evidence.measurements)
    if len(arms) < 2:
        return []
    spaces = [_space(evidence.with_arm(of.arm), classes, aspect) for classes, of in arms.items()]
    return [one for one in spaces if one.draws]


def _space(evidence: StudyEvidence, classes: int, aspect: _Seen) -> LabelSpace:
    separation, transfer = evidence.values("separation"), evidence.values(aspect)
    x: dict[Seed, dict[str, float]] = {}
    y: dict[Seed, dict[str, float]] = {}
    absent = []
    for spec, seed in planned(evidence):
        name = preset_of(spec)
        if name is None or name not in COMPARED:
            continue
        if seed in separation.get(spec, {}) and seed in transfer.get(spec, {}):
            x.setdefault(seed, {})[name] = separation[spec][seed]
            y.setdefault(seed, {})[name] = transfer[spec][seed]
        else:
            absent.append(f"{PRESETS[name].label.lower()} at {classes} classes, seed {seed}")
    return LabelSpace(classes, x, y, tuple(absent))


def planned(evidence: StudyEvidence) -> list[tuple[str, Seed]]:
    """Return the networks of an arm as the study lists them: each seed with its objectives."""
    study = evidence.measurements
    grids = study.networks.grids(study.arm)
    return list(
        dict.fromkeys(
            (str(spec), seed)
            for grid in grids
            for seed, spec in itertools.product(grid.get("seeds", ()), grid.get("objectives", ()))
        )
    )


def change(spaces: Sequence[LabelSpace], draws: Sequence[Seed] | None = None) -> PartialSlope | None:
    """Return the change of the slope of transfer on R² with each doubling of the classes.

    It is that of one regression within draws and numbers of classes, of all draws or only of some. Return
    None with one number of classes, or too few networks.
    """
    middle = mean([math.log2(one.classes) for one in spaces]) if spaces else 0.0
    groups, x, tilted, y = list[tuple[int, Seed]](), list[float](), list[float](), list[float]()
    for one in spaces:
        for draw in one.draws:
            if draws is None or draw in draws:
                first, second = one.line(draw)
                groups += [(one.classes, draw)] * len(first)
                x += first
                tilted += [(math.log2(one.classes) - middle) * value for value in first]
                y += second
    found = partial_slopes(groups, [x, tilted], y) if len({of for of, _ in groups}) > 1 else None
    return found[1] if found else None


def change_effect(spaces: Sequence[LabelSpace], criteria: Criteria = CRITERIA) -> Effect | None:
    """Return the effect that the price shrinks with each doubling of the classes, if it can be tested."""
    draws = {draw for one in spaces for draw in one.draws}
    found = change(spaces)
    if found is None or found.error == 0 or len(draws) < criteria.least_runs.value:
        return None
    degrees = found.degrees_of_freedom
    return effect_by_t(PER * found.slope, PER * found.error, degrees, LEAST_CHANGE.value, criteria)


def changes_by_draw(spaces: Sequence[LabelSpace]) -> dict[Seed, float]:
    """Return the change in each draw by itself, in points for each .1 of R²."""
    draws = dict.fromkeys(draw for one in spaces for draw in one.draws)
    found = {draw: change(spaces, (draw,)) for draw in draws}
    return {draw: PER * of.slope for draw, of in found.items() if of is not None}


def judge_label_spaces(evidence: Evidence, rule: LabelSpaces) -> Assessment | Trials:
    """Judge a claim about the number of classes, which the paper does not vary."""
    if not isinstance(evidence, StudyEvidence):
        return evidence.lacking("separation", "networks of several numbers of classes")
    spaces = label_spaces(evidence, rule.aspect)
    if len(spaces) < 2:
        return unmeasured("networks of several numbers of classes", f"penultimate run {STUDY}")
    judge = _judge_price if rule.test == "price" else _judge_change
    return judge(spaces, evidence.criteria)


def prices(spaces: Sequence[LabelSpace], criteria: Criteria = CRITERIA) -> dict[int, Effect]:
    """Return the price at each number of classes that can be judged, with p corrected for their number."""
    effects = {one.classes: one.price(criteria) for one in spaces}
    tested = {classes: effect for classes, effect in effects.items() if effect is not None}
    both = corrected(corrected(list(tested.values()), "p_for"), "p_against")
    return dict(zip(tested, both, strict=True))


def _judge_price(spaces: Sequence[LabelSpace], criteria: Criteria) -> Assessment:
    effects = prices(spaces, criteria)
    if not effects:
        return not_judged(_extent(spaces), f"Fewer than three draws.{absent_text(spaces)}")
    said = "; ".join(f"K = {classes} {price_text(effect)}" for classes, effect in effects.items())
    ours = f"Points for each .1 of R²: {said}; {_extent(spaces)}"
    verdicts = {classes: decide(effect, criteria) for classes, effect in effects.items()}
    why = " ".join(
        _PRICES[verdict].format(listed([str(of) for of in verdicts if verdicts[of] == verdict]))
        for verdict in _PRICES
        if verdict in verdicts.values()
    )
    lacking = [str(one.classes) for one in spaces if one.classes not in effects]
    why += f" Not judged, with too few draws: {listed(lacking)} classes." if lacking else ""
    why += absent_text(spaces)
    verdict = all_of(verdicts.values())
    return not_judged(ours, why) if verdict == "holds" and lacking else Assessment(ours, verdict, why)


_PRICES: dict[Verdict, str] = {
    "holds": "A fall that counts, beyond chance (corrected), with {} classes.",
    "does not hold": "Excluded (corrected), a fall that counts, with {} classes.",
    "undecided": "Open with {} classes.",
}


def _judge_change(spaces: Sequence[LabelSpace], criteria: Criteria) -> Assessment:
    effect = change_effect(spaces, criteria)
    if effect is None:
        return not_judged(_extent(spaces), f"Too few draws or networks.{absent_text(spaces)}")
    own = changes_by_draw(spaces)
    each = listed([signed(value, 2) for value in own.values()])
    ours = (
        f"{signed(effect.estimate, 2)} points for each .1 of R² with each doubling of the classes"
        f" ({range_text(effect.low, effect.high, 2)}; by draw {each}); {_extent(spaces)}"
    )
    verdict = decide(effect, criteria)
    if verdict == "holds" and min(own.values()) <= 0:
        verdict = "undecided"
        why = f"Beyond chance ({p_value(effect.p)}), but not of that sign in every draw."
    else:
        why = _CHANGES[verdict].format(p_value(effect.p), fixed(LEAST_CHANGE.value, 2))
    return Assessment(ours, verdict, why + absent_text(spaces))


_CHANGES: dict[Verdict, str] = {
    "holds": "Beyond chance ({0}), by an estimated {1} points or more, and so in every draw.",
    "does not hold": "Excluded: a change of {1} points or more for the better.",
    "undecided": "A change of {1} points or more for the better is neither shown nor excluded ({0}).",
}


def _extent(spaces: Sequence[LabelSpace]) -> str:
    draws = {draw for one in spaces for draw in one.draws}
    networks = sum(len(of) for one in spaces for of in one.separation.values())
    return f"{counted(networks, 'network')}, {counted(len(draws), 'draw')}"


def absent_text(spaces: Sequence[LabelSpace]) -> str:
    """Return a sentence that names the networks that are left out, or an empty string."""
    absent = [name for one in spaces for name in one.absent]
    return f" Left out, since they diverged or are not measured: {listed(absent)}." if absent else ""
