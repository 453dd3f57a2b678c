"""The answer at the top of the page of a study: one sentence, up to three points, and the panels beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from penultimate.paper import FIRST_STUDY
from penultimate.paper.claims.effects import span
from penultimate.paper.claims.filed import LEAST_PRICE, LEAST_RHO, LEAST_RUNS, LEVEL, PAIRS, PER
from penultimate.paper.claims.judging import LIMITED, judge, pooled
from penultimate.paper.claims.numbers import ACCURACY, BASELINE, KNN, LINEAR, SEPARATION, Numbers
from penultimate.paper.claims.quick import Beside, answer_quickly, beside_softmax, is_quick
from penultimate.paper.claims.rules import gain, other_of, ranked
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.claims.strengths import (
    compared_pair,
    complete,
    one_line,
    overall,
    overall_prices,
    price_of_pairs,
    price_text,
    reading,
    strengths,
)
from penultimate.paper.claims.verdicts import Verdict, decide
from penultimate.paper.families import distinct, has_families, pareto_front, strengths_of
from penultimate.paper.page.came_out import POINTS, WORLD, is_reference
from penultimate.results.page import Answer
from penultimate.results.rows import Run, both, read_reference
from penultimate.results.text import counted, fixed, in_words, listed, p_value, signed
from penultimate.statistics import least_squares, spearman

if TYPE_CHECKING:
    from penultimate.paper.claims.numbers import Frame

FIGURE_5 = ("figure5-ours", "figure5-published")
DOSES, GAINS = ("doses-linear", "doses-linear-published"), ("better-gains",)
"""The panels that stand under the answer."""
LONGER = "glyphs"
"""The kept run that trains the quickstart's objectives longer, and more of them."""
PRICE = "points of linear transfer for each 0.1 of R²"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def answer(run: Run) -> Answer:
    """Return the answer of a study, or of the first of several that has class separation and transfer."""
    if run.parts:
        return answer(next((part for part in run.parts if len(_sides(Numbers(part))[0])), run.parts[0]))
    if is_quick(run):
        return _quick(run)
    if has_families(run):
        return _of_strengths(run)
    if other_of(run):
        return _of_pair(run)
    if is_reference(run):
        return Answer(WORLD, tuple(POINTS), FIGURE_5)
    return _of_order(run)


def _sides(of: Numbers) -> tuple[Frame, Frame]:
    return both(of.frame(SEPARATION), of.frame(LINEAR))


# Does transfer fall with class separation, over the objectives?


def _of_order(run: Run) -> Answer:
    of = Numbers(pooled(run))
    sides = _sides(of)
    means = [side.mean().tolist() for side in sides]
    if len(means[0]) < 3:
        way = run.provenance.get("command") if run.unfinished else f"penultimate run {FIRST_STUDY}"
        return Answer(
            "This study cannot say yet whether pulling classes apart costs transfer: fewer than three"
            f" objectives have both numbers. To measure them: `{way}`.",
            tuple(_places(of)),
        )
    found = spearman(*means)
    verdicts = [ranked(SEPARATION, LINEAR, sign)(of) for sign in (-1, 1)]
    falls, rises = ("undecided" if run.limited or not one else one.verdict for one in verdicts)
    among = f"{'In this limited run, among' if run.limited else 'Among'} {counted(found.n, 'objective')},"
    way = "transfer neither better nor worse"
    if "holds" in (falls, rises):
        way = f"transfer {'worse' if falls == 'holds' else 'better'}"
    elif abs(found.rho) >= 0.1:
        why = "but not beyond chance" if found.p >= LEVEL else "which the rules of the claims leave undecided"
        way = f"tend to transfer {'worse' if found.rho < 0 else 'better'}, {why}"
    size = f"Spearman's ρ = {fixed(found.rho, 2)}, {p_value(found.p)}, n = {found.n}"
    theirs = spearman(*(side.iloc[0].tolist() for side in _sides(Numbers())))
    if falls == "holds":
        beside = "this study agrees"
    elif rises == "holds":
        beside = "this study disagrees: the relation is reversed here"
    elif falls == "does not hold":
        beside = f"this study disagrees: a ρ of {fixed(-LEAST_RHO, 2)} or stronger is ruled out"
    else:
        beside = "this study neither confirms nor refutes it"
    paper = f"The paper found ρ = {fixed(theirs.rho, 2)} for its nine objectives on ImageNet; {beside}."
    points = [paper, *_narrow(sides[0], run.limited), *_places(of)]
    return Answer(
        f"{among} those that pull the classes further apart {way} ({size}).", tuple(points), FIGURE_5
    )


def _narrow(separation: Frame, limited: bool) -> list[str]:
    """Return a sentence if all objectives but one lie in less than half of the paper's range of R²."""
    n = separation.shape[1]
    here, theirs = _range(separation.mean()), _range(Numbers().frame(SEPARATION).iloc[0])
    if limited or n < 4 or here >= theirs / 2:
        return []
    return [
        f"{in_words(n - 1).capitalize()} of {in_words(n)} objectives lie within {fixed(here, 2)} of R² of"
        f" each other (in the paper within {fixed(theirs, 2)}): a narrow range for such a test."
    ]


def _range(values: Iterable[float]) -> float:
    ascending = sorted(values)
    return float(min(ascending[-2] - ascending[0], ascending[-1] - ascending[1]))


def _places(of: Numbers) -> list[str]:
    """Return a sentence on the place of softmax in accuracy and in transfer."""
    places = []
    for quantity in (ACCURACY, LINEAR):
        means = of.frame(quantity).mean()
        if BASELINE not in means or len(means) < 2:
            return []
        place = int((means > means[BASELINE]).sum())
        ordinal = ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"
        places.append(f"{ordinal} of {in_words(len(means))}")
    return [
        f"Plain softmax ranks {places[0]} in test accuracy and {places[1]} in transfer, by its means; in the"
        " paper it is last of nine and first of nine."
    ]


# Studies with a rule of their own.


def _of_strengths(run: Run) -> Answer:
    of = Numbers(run)
    found = strengths(of)
    effects, line, mean = overall_prices(found), one_line(of), overall(of)
    said = {
        "holds": "The further the objectives of one family pull the classes apart, the worse their features"
        " transfer",
        "does not hold": "Objectives of one family that pull the classes further apart do not transfer worse",
        "undecided": "Whether objectives of one family transfer worse the further they pull the classes apart"
        " is open",
    }
    sentence = []
    if effects and mean:
        families = counted(len({key[0] for key in found.index}), "family", "families")
        sentence = [
            f"{said[mean.verdict]}: {price_text(effects['seeds'])} {PRICE}, in the mean of"
            f" {families} at several strengths each"
            f" ({span(-effects['families'].low, -effects['families'].high, 2)} over families)."
        ]
    read = reading(of)
    if run.limited or line is None or read is None:
        sentence.append(
            f"Whether class separation itself costs transfer stays open. {LIMITED if run.limited else ''}"
        )
    else:
        apart = line.verdict == "does not hold"
        answers = {
            "holds": "Class separation itself costs transfer here, as the paper reads it.",
            "does not hold": "Each family pays its own price."
            if apart
            else "Class separation itself does not cost transfer here.",
            "undecided": "Whether it is class separation itself that costs transfer, as the paper has it, is"
            " open.",
        }
        sentence.append(answers[read.verdict])
    points = [*_pairs(of), *_front(run)]
    if line and line.judged:
        words = {
            "holds": "The families lie on one line",
            "does not hold": "The families do not lie on one line",
            "undecided": "Whether the families lie on one line is open",
        }[line.verdict]
        points.insert(1, f"{words}: {line.numbers[0].lower()}{line.numbers[1:]}.")
    return Answer(" ".join(sentence), tuple(points), DOSES)


def _pairs(of: Numbers) -> list[str]:
    pairs = [compared_pair(strengths(of), pair) for pair in PAIRS]
    effect = price_of_pairs(pairs)
    if effect is None:
        return []
    verdict = {
        "holds": "a fall beyond chance",
        "does not hold": "a fall that counts is ruled out",
        "undecided": "neither a fall nor its absence is shown",
    }[decide(effect)]
    counting = in_words(sum(not one.why_not for one in pairs))
    return [
        f"At equal accuracy ({counting} of {in_words(len(pairs))} pairs of strengths fixed beforehand) it is"
        f" {price_text(effect)}: {verdict}."
    ]


def _front(run: Run) -> list[str]:
    front = pareto_front(distinct(complete(strengths_of(run))))
    names = [
        f"{label} ({fixed(one['accuracy'], 1)} %, {fixed(one['linear'], 1)} %)"
        for (_, label), one in front.iterrows()
    ]
    said = "The best in test accuracy and linear transfer together, by means (the Pareto front):"
    return [f"{said} {listed(names)}."] if names else []


def _of_pair(run: Run) -> Answer:
    of, other = Numbers(run), other_of(run)
    assert other is not None
    trials = [found for quantity in (ACCURACY, LINEAR) if (found := gain(of, quantity))]
    gains = " and ".join(
        f"{trial.unit.of(trial.estimate) if trial.unit else ''} of {trial.name}" for trial in trials
    )
    judged = {one.claim.key: one.ours for one in judge(run, claims_of("better"))}
    linear, knn = (judged.get(claim.key) for claim in claims_of("better"))
    if linear is None or not linear.judged:
        way = f" To go on: `{run.provenance['command']}`." if run.unfinished else ""
        so_far = f" So far: {gains}." if gains else ""
        why = f" {linear.reason}" if linear else ""
        return Answer(
            f"This study cannot say yet whether {other.label} is better than softmax in both."
            f"{why}{so_far}{way}",
            panels=GAINS,
        )
    sized = " and ".join(
        f"{signed(trial.estimate, 2)} points of {name} ({span(trial.low, trial.high, 2)})"
        for trial, name in zip(trials, ("test accuracy", "linear transfer"), strict=True)
    )
    said = {
        "holds": f"{other.label} is better than softmax in both: {sized}.",
        "does not hold": f"{other.label} is not better than softmax in both: {sized}.",
        "undecided": f"Whether {other.label} is better than softmax in both is open: {sized}.",
    }[linear.verdict]
    points = [linear.reason]
    on_knn = gain(of, KNN)
    if on_knn and knn and knn.judged:
        verdict = {
            "holds": "it is better in both",
            "does not hold": "it is not better in both",
            "undecided": "whether it is better in both is open",
        }[knn.verdict]
        points.append(
            "With nearest neighbours instead of linear classifiers it gains"
            f" {signed(on_knn.estimate, 2)} points of transfer"
            f" ({span(on_knn.low, on_knn.high, 2)}): {verdict}."
        )
    separation = of.frame(SEPARATION).mean()
    if {other.slug, BASELINE} <= {*separation.index}:
        own, softmax = (fixed(separation[slug], 3) for slug in (other.slug, BASELINE))
        points.append(f"Its R² is {own}, softmax's {softmax}.")
    return Answer(said, tuple(points), GAINS, decides=True)


def _quick(run: Run) -> Answer:
    found = answer_quickly(run)
    if found is None:
        command = run.provenance.get("command", "penultimate run quickstart")
        return Answer(
            "The quickstart's rule cannot be applied yet: it needs accuracy, class separation and linear"
            f" transfer of its three objectives in {counted(LEAST_RUNS, 'draw')} at least. To go on:"
            f" `{command}`."
        )
    least = fixed(LEAST_PRICE, 1)
    verdicts: dict[Verdict, str] = {
        "holds": "the further apart the classes, the worse the features transfer",
        "does not hold": f"a fall of {least} points or more is ruled out",
        "undecided": f"open, since a fall of {least} points or more is neither shown nor ruled out",
    }
    price, (penalty, squared) = found.price, found.beside
    sentence = (
        f"Over {counted(found.draws, 'draw')}, each .1 of class separation goes with"
        f" {signed(-price.estimate, 2)} points of linear transfer ({span(-price.low, -price.high, 2)}):"
        f" {verdicts[decide(found.price)]}. {_beside(penalty)}"
    )
    rule = (
        "The rule, of 2026-11-26 and before any of these networks was transferred, is the slope of mean"
        f" linear transfer on R² within draws ({p_value(price.p)}). It rests mostly on the objective that"
        " separates furthest; accuracy differs as well, so that it is no price of separation by itself."
    )
    return Answer(
        sentence, (_beside(squared), rule, f"{_in_longer_run(squared)}{_in_paper()}"), FIGURE_5, decides=True
    )


def _beside(one: Beside) -> str:
    further = "further" if one.separation > 0 else "less far"
    gained = one.transfer
    better = "better" if gained.estimate > 0 else "worse"
    chance = "" if gained.low > 0 or gained.high < 0 else ", not beyond chance"
    return (
        f"{one.label} separates {further} than softmax ({signed(one.separation, 3)} of R²) at"
        f" {signed(one.accuracy, 1)} points of accuracy and transfers {fixed(abs(gained.estimate), 2)} points"
        f" {better} ({span(gained.low, gained.high, 2)}{chance})."
    )


def _in_longer_run(squared: Beside) -> str:
    """Return a sentence on squared error in the reference run, which is longer and has more draws."""
    run = read_reference(LONGER)
    specs: Sequence[str] = [each.spec for each in run.objectives() if each.label == squared.label]
    found = beside_softmax(run, specs[0]) if specs else None
    if found is None:
        return ""
    draws, epochs = counted(run.frame["seed"].nunique(), "draw"), int(run.grids()[0]["recipe"]["epochs"])
    return (
        f"The reference run {LONGER} ({draws}, {epochs} epochs, nine objectives:"
        f" `penultimate report --reference --study {LONGER}`): {_beside(found)} "
    )


def _in_paper() -> str:
    line = least_squares(*(side.iloc[0].tolist() for side in _sides(Numbers())))
    assert line is not None
    return (
        "In the paper a straight line through its nine objectives on ImageNet goes with"
        f" {signed(PER * line.slope, 1)} points for each .1 of R²."
    )
